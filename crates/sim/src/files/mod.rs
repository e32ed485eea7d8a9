//! Files: new ones, and traces that may be zipped.

#[cfg(feature = "files")]
mod new;

use std::io;

#[cfg(feature = "files")]
pub use new::{NewFile, RecordFile, write_file};

/// How a line begins: enough to find it by, and short enough for a sentence.
pub(crate) fn beginning(line: &str) -> String {
    match line.trim().char_indices().nth(LINE_SHOWN) {
        Some((end, _)) => format!("{}…", &line.trim()[..end]),
        None => line.trim().to_owned(),
    }
}

/// Characters of a broken line that an error shows.
const LINE_SHOWN: usize = 40;

/// A file's plain bytes: traces are published gzipped, and may be kept so. Ends with an error
/// behind [`PLAIN_LEN_MAX`] bytes, for a small file may unzip to any length. Without the feature
/// `gzip` a caller unzips, and zipped bytes are read as they are.
pub(crate) fn unzipped(bytes: &[u8]) -> impl io::Read + '_ {
    let plain: Box<dyn io::Read + '_> = match bytes.starts_with(&GZIP) {
        #[cfg(feature = "gzip")]
        true => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        _ => Box::new(bytes),
    };
    Bounded::new(plain, PLAIN_LEN_MAX)
}

/// What was zipped, up to so many bytes: a small file may unzip to any length. Behind them it ends
/// with an error, which says so in words.
#[derive(Debug)]
pub struct Bounded<R> {
    plain: R,
    left: u64,
    len_max: u64,
}

impl<R> Bounded<R> {
    /// The plain bytes of `plain`, up to `len_max`.
    pub const fn new(plain: R, len_max: u64) -> Self {
        Self {
            plain,
            left: len_max,
            len_max,
        }
    }
}

impl<R: io::Read> io::Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.plain.read(into)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let most = self.len_max >> 20;
            io::Error::other(format!("it is longer than {most} MiB unzipped"))
        })?;
        Ok(read)
    }
}

/// How what gzip has compressed begins (RFC 1952 §2.3.1).
pub const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Plain bytes of a trace, which bound the length of a line and what is kept of it; the
/// published ones have five million.
const PLAIN_LEN_MAX: u64 = 64 << 20;
