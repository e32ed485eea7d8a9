//! Connections of a test: what one end has to say is there at once.

use std::collections::VecDeque;
use std::convert::Infallible;

use embassy_futures::block_on;
use embedded_io_async::{ErrorType, Read, Write};
use embedded_storage_async::nor_flash::NorFlash;
use motet_update::{Firmware, NoConnect, Served};

/// A client that has said all it has to say.
pub(crate) struct Said {
    pub(crate) input: VecDeque<u8>,
    pub(crate) output: Vec<u8>,
    /// The most bytes that one read gives.
    pub(crate) piece: usize,
}

impl Said {
    pub(crate) fn new(input: &[u8]) -> Self {
        Self {
            input: input.iter().copied().collect(),
            output: Vec::new(),
            piece: 100,
        }
    }
}

impl ErrorType for Said {
    type Error = Infallible;
}

impl Read for Said {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Infallible> {
        let count = out.len().min(self.piece).min(self.input.len());
        for (place, byte) in out.iter_mut().zip(self.input.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for Said {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) served: Served,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let field = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        field.map(|(_, value)| &**value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap().trim_end()
    }

    fn parse(output: &[u8], served: Served) -> Self {
        let mut rest = output;
        let (mut status, mut fields) = (0, Vec::new());
        while status < 200 {
            let end = rest.windows(4).position(|four| four == b"\r\n\r\n");
            let end = end.unwrap_or_else(|| panic!("no answer: {}", output.escape_ascii()));
            let head = std::str::from_utf8(&rest[..end]).unwrap();
            let mut lines = head.lines();
            status = lines.next().unwrap()[9..12].parse().unwrap();
            fields = lines
                .map(|line| line.split_once(": ").unwrap())
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            rest = &rest[end + 4..];
        }
        Self {
            status,
            fields,
            body: rest.to_vec(),
            served,
        }
    }
}

/// Lets a device serve one request.
pub(crate) fn ask<F: NorFlash, S: NorFlash>(
    firmware: &Firmware<'_, F, S>,
    request: &[u8],
) -> Answer {
    let mut client = Said::new(request);
    let served = block_on(firmware.serve(&mut client, &NoConnect, &mut [0; 512])).unwrap();
    Answer::parse(&client.output, served)
}

/// The same with a way to fetch.
pub(crate) fn ask_with<F: NorFlash, T: embedded_nal_async::TcpConnect>(
    firmware: &Firmware<'_, F>,
    connect: &T,
    request: &[u8],
) -> Answer {
    let mut client = Said::new(request);
    let served = block_on(firmware.serve(&mut client, connect, &mut [0; 512])).unwrap();
    Answer::parse(&client.output, served)
}

/// What a client sends to store `body`, which is the part of `total` bytes that begins at `first`.
pub(crate) fn put(first: usize, body: &[u8], total: usize) -> Vec<u8> {
    let len = body.len();
    let mut request = format!("PUT /firmware HTTP/1.1\r\nHost: m\r\nContent-Length: {len}\r\n");
    if first > 0 || len != total {
        let last = (first + len).saturating_sub(1);
        request.push_str(&format!("Content-Range: bytes {first}-{last}/{total}\r\n"));
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    request
}

/// A request without a body.
pub(crate) fn get(method: &str, fields: &str) -> Vec<u8> {
    format!("{method} /firmware HTTP/1.1\r\nHost: m\r\n{fields}\r\n").into_bytes()
}
