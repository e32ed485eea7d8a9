//! `/firmware` with arbitrary requests, from arbitrary images in flash.
//!
//! Invariants: each connection is answered or ends; a verified image's bytes are those that its
//! digest is of, and pending; no word of flash is written twice. The input is cut into connections;
//! a server that is fetched from says what one of them said, by its port.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;

use embassy_futures::block_on;
use embedded_io_async::{ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use embedded_storage_async::nor_flash::{self, NorFlash, ReadNorFlash};
use motet_update::{Access, Demands, Firmware, Response, Slot, Source};
use sha2::{Digest as _, Sha256};

/// Serves the connections that the input says.
pub(crate) fn run(bytes: &[u8]) {
    let _ = Source::parse(bytes);
    let _ = Response::parse(bytes);
    let chip = RefCell::new(vec![0xFF; (2 + PAGES) * PAGE]);
    let part = |from, len| Part {
        chip: &chip,
        from,
        len,
    };
    let slot = part(2 * PAGE, PAGES * PAGE);
    let slot = block_on(Slot::open(slot, part(0, 2 * PAGE), Demands::default()));
    let firmware = Firmware::new(slot.expect("flash that is served"), Access::Open);
    let connections: Vec<&[u8]> = split(bytes);
    let web = Web(connections
        .iter()
        .rev()
        .map(|bytes| bytes.to_vec())
        .collect());
    for said in &connections {
        let mut client = Line::new(said);
        let served = block_on(firmware.serve(&mut client, &web, &mut [0; 512]));
        served.expect("a line that never fails");
        judge(&firmware, &chip.borrow());
    }
}

/// What is whole is what its digest says.
fn judge(firmware: &Firmware<'_, Part<'_>>, chip: &[u8]) {
    let mut client = Line::new(b"HEAD /firmware HTTP/1.0\r\n\r\n");
    let _ = block_on(firmware.serve(&mut client, &Web(Vec::new()), &mut [0; 512]));
    let head = Response::parse(&client.output).expect("a whole head");
    let (head, _) = head.expect("an answer");
    let mut client = Line::new(b"GET /firmware HTTP/1.0\r\n\r\n");
    let _ = block_on(firmware.serve(&mut client, &Web(Vec::new()), &mut [0; 512]));
    let got = Response::parse(&client.output).expect("a whole head");
    let (got, len) = got.expect("an answer");
    let is_pending = chip[chip.len() - 16..] == MAGIC.to_be_bytes();
    if got.status == 200 {
        let body = &client.output[len..];
        assert_eq!(head.sha256, Some(Sha256::digest(body).into()));
        assert!(is_pending, "a verified image is not pending");
    } else {
        assert_eq!(got.status, 409);
    }
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut parts = Vec::new();
    while let Some(at) = rest.windows(CUT.len()).position(|part| part == CUT) {
        parts.push(&rest[..at]);
        rest = &rest[at + CUT.len()..];
        if parts.len() == CONNECTIONS_MAX {
            return parts;
        }
    }
    parts.push(rest);
    parts
}

/// Inputs to start from.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let image = image(700);
    let len = image.len();
    let put = format!("PUT /firmware HTTP/1.1\r\nHost: m\r\nContent-Length: {len}\r\n\r\n");
    let mut whole = put.into_bytes();
    whole.extend_from_slice(&image);
    let head =
        "PUT /firmware HTTP/1.1\r\nHost: m\r\nExpect: 100-continue\r\nContent-Length: 600\r\n";
    let mut first = format!("{head}Content-Range: bytes 0-599/{len}\r\n\r\n").into_bytes();
    first.extend_from_slice(&image[..600]);
    let rest = len - 600;
    let last = len - 1;
    let mut second = format!(
        "PUT /firmware HTTP/1.1\r\nHost: m\r\nContent-Length: {rest}\r\n\
         Content-Range: bytes 600-{last}/{len}\r\n\r\n"
    )
    .into_bytes();
    second.extend_from_slice(&image[600..]);
    let post = b"POST /firmware HTTP/1.0\r\nContent-Type: text/uri-list\r\nContent-Length: 26\r\n\r\nhttp://[fd00::2]/firmware\n";
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes();
    answer.extend_from_slice(&image);
    vec![
        whole,
        [&first, CUT, &second].concat(),
        [&post[..], CUT, &answer].concat(),
        b"GET /firmware HTTP/1.1\r\nHost: m\r\nRange: bytes=0-5\r\nAuthorization: Bearer x\r\n\r\n"
            .to_vec(),
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\n\
          Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\r\n\r\n"
            .to_vec(),
    ]
}

/// An image as MCUboot's documentation describes it, of a payload of this many bytes.
fn image(payload: usize) -> Vec<u8> {
    let mut image = Vec::new();
    image.extend(0x96f3_b83d_u32.to_le_bytes());
    image.extend([0, 0, 0, 0, 32, 0, 0, 0]);
    image.extend((payload as u32).to_le_bytes());
    image.extend([0; 16]);
    image.extend((0..payload).map(|at| at as u8));
    let hash = Sha256::digest(&image);
    image.extend([0x07, 0x69, 40, 0, 0x10, 0, 32, 0]);
    image.extend(hash);
    image
}

/// A connection whose other end has said all it has to say.
struct Line {
    input: VecDeque<u8>,
    output: Vec<u8>,
}

impl Line {
    fn new(said: &[u8]) -> Self {
        Self {
            input: said.iter().copied().collect(),
            output: Vec::new(),
        }
    }
}

impl ErrorType for Line {
    type Error = Infallible;
}

impl Read for Line {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Infallible> {
        let count = out.len().min(self.input.len());
        for (place, byte) in out.iter_mut().zip(self.input.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for Line {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Servers that each say what one connection said, the last one first.
struct Web(Vec<Vec<u8>>);

impl TcpConnect for Web {
    type Error = Infallible;
    type Connection<'a> = Line;

    async fn connect(&self, remote: SocketAddr) -> Result<Line, Infallible> {
        let place = usize::from(remote.port()) % self.0.len().max(1);
        Ok(Line::new(self.0.get(place).map_or(&[], Vec::as_slice)))
    }
}

/// Flash of words of 4 bytes.
struct Part<'c> {
    chip: &'c RefCell<Vec<u8>>,
    from: usize,
    len: usize,
}

impl nor_flash::ErrorType for Part<'_> {
    type Error = nor_flash::NorFlashErrorKind;
}

impl ReadNorFlash for Part<'_> {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, out: &mut [u8]) -> Result<(), Self::Error> {
        let at = offset as usize;
        assert!(at + out.len() <= self.len, "a read beyond the partition");
        out.copy_from_slice(&self.chip.borrow()[self.from + at..][..out.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.len
    }
}

impl NorFlash for Part<'_> {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        assert!(to as usize <= self.len && from < to, "an erasure beyond");
        let len = (to - from) as usize;
        self.chip.borrow_mut()[self.from + from as usize..][..len].fill(0xFF);
        Ok(())
    }

    async fn write(&mut self, offset: u32, words: &[u8]) -> Result<(), Self::Error> {
        let at = offset as usize;
        assert!(at + words.len() <= self.len, "a write beyond the partition");
        assert!(at.is_multiple_of(4) && words.len().is_multiple_of(4));
        let mut chip = self.chip.borrow_mut();
        for (place, byte) in chip[self.from + at..].iter_mut().zip(words) {
            assert_eq!(*place, 0xFF, "a word is written twice");
            *place = *byte;
        }
        Ok(())
    }
}

/// What parts the connections of an input.
const CUT: &[u8] = b"\n--\n";

const CONNECTIONS_MAX: usize = 8;
const PAGE: usize = 512;
const PAGES: usize = 5;

/// MCUboot's magic number of a pending image.
const MAGIC: u128 = 0x77c2_95f3_60d2_ef7f_3552_500f_2cb6_7980;
