//! Sends back what comes in at port 7: the same file on a device and under QEMU.

use embedded_io_async::{Read, Write};
use motet_embassy::{Error, Stack};

/// Serves one peer after the other.
pub(crate) async fn echo(stack: Stack) -> Result<(), Error> {
    let listener = stack.listen(7)?;
    loop {
        let mut socket = listener.accept().await?;
        let mut bytes = [0; 128];
        while let Ok(count @ 1..) = socket.read(&mut bytes).await {
            let read = bytes.get(..count).unwrap_or_default();
            if socket.write_all(read).await.is_err() {
                break;
            }
        }
    }
}
