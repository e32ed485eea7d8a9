//! Files: new ones, and traces that may be zipped.

#[cfg(feature = "files")]
mod new;

use std::io::{self, Read as _};

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

/// The plain bytes of a trace, gzipped or not, up to [`PLAIN_LEN_MAX`].
///
/// # Errors
/// The first bytes cannot be read.
pub(crate) fn plain(trace: &[u8]) -> io::Result<impl io::Read + '_> {
    Ok(Bounded::new(unzipped(trace, u64::MAX)?, PLAIN_LEN_MAX))
}

/// The content of what gzip has compressed, as traces and captures are published; all else as it
/// is. Ends with an error behind `len_max` bytes of the former, for a small file may unzip to any
/// length. Without the feature `gzip` a caller unzips, and zipped bytes are read as they are.
///
/// # Errors
/// The first bytes cannot be read.
pub fn unzipped<'a>(mut input: impl io::Read + 'a, len_max: u64) -> io::Result<impl io::Read + 'a> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(GZIP.len() as u64)
        .read_to_end(&mut head)?;
    let is_zipped = head == GZIP;
    let whole = io::Cursor::new(head).chain(input);
    let plain: Box<dyn io::Read + 'a> = match is_zipped {
        #[cfg(feature = "gzip")]
        true => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        _ => Box::new(whole),
    };
    Ok(Bounded::new(
        plain,
        if is_zipped { len_max } else { u64::MAX },
    ))
}

/// The first bytes of what was zipped, as many as are allowed: a small file may unzip to any
/// length. A longer one ends with an error that names the limit.
#[derive(Debug)]
struct Bounded<R> {
    plain: R,
    left: u64,
    len_max: u64,
}

impl<R> Bounded<R> {
    /// The plain bytes of `plain`, up to `len_max`.
    const fn new(plain: R, len_max: u64) -> Self {
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
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Plain bytes of a trace, which bound the length of a line and what is kept of it; the
/// published ones have five million.
const PLAIN_LEN_MAX: u64 = 64 << 20;
