//! Sends back what comes in at port 7: the same file on a device and under QEMU.

use embassy_time::{Duration, with_timeout};
use embedded_io_async::{Read, Write};
use motet_embassy::{Error, Stack, TcpSocket};

/// Serves one peer after the other.
pub(crate) async fn echo(stack: Stack) -> Result<(), Error> {
    let listener = stack.listen(7)?;
    loop {
        let mut socket = listener.accept().await?;
        let is_idle = loop {
            match with_timeout(IDLE_MAX, exchange(&mut socket)).await {
                Ok(true) => {}
                Ok(false) => break false,
                Err(_timeout) => break true,
            }
        };
        if is_idle {
            socket.abort();
        }
    }
}

/// Sends back what comes next; false where nothing comes any more.
async fn exchange(socket: &mut TcpSocket) -> bool {
    let mut bytes = [0; 128];
    let Ok(count @ 1..) = socket.read(&mut bytes).await else {
        return false;
    };
    let read = bytes.get(..count).unwrap_or_default();
    socket.write_all(read).await.is_ok()
}

/// A peer that sends or takes nothing for so long makes room for another one.
const IDLE_MAX: Duration = Duration::from_secs(120);
