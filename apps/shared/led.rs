//! An LED that is switched over TCP: a peer of port 7777 sends `1` for on, `0` for off, and gets
//! each back.

use embedded_io_async::{Read, Write};
use motet_embassy::{Error, Stack};

/// Serves one peer after the other.
pub(crate) async fn switch(stack: Stack, mut set: impl FnMut(bool)) -> Result<(), Error> {
    let listener = stack.listen(7777)?;
    loop {
        let mut socket = listener.accept().await?;
        let mut asked = [0];
        while let Ok(1..) = socket.read(&mut asked).await {
            match asked {
                [b'1'] => set(true),
                [b'0'] => set(false),
                _ => continue,
            }
            let _sent = socket.write_all(&asked).await;
        }
    }
}
