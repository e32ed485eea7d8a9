//! Where `decode`, `diagnose` and `replay` read frames from: a capture, and what opens it.
//!
//! Left out: what becomes of the frames.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use motet_decode::{Capture, CaptureError, Context, Decoder, Ending};
use motet_lab::files;

use crate::error::Error;
use crate::keys::CaptureKeys;

/// A capture, its keys and its contexts.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The capture file, gzipped or not; `-` reads standard input.
    #[arg(value_name = "FILE.pcap")]
    pub(crate) file: PathBuf,

    /// A header compression context that the capture does not show being announced.
    #[arg(long, value_name = "ID=PREFIX/LEN", value_parser = str::parse::<Context>)]
    context: Vec<Context>,

    /// Decrypt 802.15.4 frames and Thread's messages: a key file, a network key, or a dataset.
    ///
    /// A network key has 32 hexadecimal digits. A dataset is what ot-ctl dataset active -x prints
    /// of a Thread network: its digits, a file with them, or - for standard input. Where frames
    /// have short addresses, the extended ones are learned from the capture. No key is shown.
    ///
    /// With raw: in front, the digits are the AES key of the frames themselves, as Contiki-NG's
    /// llsec and Wi-SUN's group keys are; also where frames name no key. It may be given several
    /// times.
    #[arg(long, value_name = "FILE|KEY|DATASET|raw:KEY")]
    key: Vec<String>,

    /// The key index of frames that a raw key is for; the first belongs to the first raw key.
    ///
    /// Without it a raw key is tried for every frame.
    #[arg(long, value_name = "N")]
    key_index: Vec<u8>,

    /// What 802.15.4 frames end in where the link type says: in an FCS.
    ///
    /// A radio by TI puts signal strength and correlation in the FCS's place, and some programs
    /// leave it out. auto finds it out from the first frames.
    #[arg(long, value_enum, default_value = "auto")]
    fcs: FcsKind,
}

/// What the frames of a capture end in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum FcsKind {
    /// What the first frames show.
    Auto,
    /// The FCS.
    Crc,
    /// The metadata of a TI radio (CC24xx and later) in the FCS's place.
    Ti,
    /// Nothing.
    None,
}

impl FcsKind {
    /// What the frames of `capture` end in.
    fn ending(self, capture: &mut Capture) -> Ending {
        match self {
            Self::Auto => capture.ending(),
            Self::Crc => Ending::Crc,
            Self::Ti => Ending::Metadata,
            Self::None => Ending::Nothing,
        }
    }
}

impl Source {
    /// Opens the capture, with a decoder for its frames. With a key, what can be read twice is:
    /// a frame may be ahead of the message which explains it.
    ///
    /// # Errors
    /// [`Error::Input`] where the capture or a key cannot be read, or both are standard input.
    pub(crate) fn open(&self, is_spinel: bool) -> Result<(Capture, Decoder), Error> {
        if self.is_stdin() && self.key.iter().any(|key| key == "-") {
            return Err(Error::input(
                "the capture and --key cannot both be standard input: name a file for one of them",
            ));
        }
        let opened = || open_file(&self.file, is_spinel).map_err(|error| self.unreadable(&error));
        let keys = CaptureKeys::read(&self.key, &self.key_index)?;
        let mut capture = opened()?;
        let mut decoder = keys.decoder(&self.context);
        decoder.end_frames_in(self.fcs.ending(&mut capture));
        if !self.key.is_empty() && self.is_read_twice() {
            decoder = informed(decoder, opened()?);
        }
        Ok((capture, decoder))
    }

    /// Why the capture cannot be read (further).
    pub(crate) fn unreadable(&self, error: &CaptureError) -> Error {
        let file = match self.is_stdin() {
            true => "standard input".into(),
            false => self.file.display().to_string(),
        };
        Error::input(format!("cannot read {file}: {error}"))
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    /// Whether the capture can be read twice: it is a file, not a pipe and nothing that grows.
    fn is_read_twice(&self) -> bool {
        !self.is_stdin() && self.file.metadata().is_ok_and(|file| file.is_file())
    }
}

/// A decoder that knows what `capture` shows, so that frames are opened that are ahead of the
/// message which explains them.
fn informed(mut decoder: Decoder, mut capture: Capture) -> Decoder {
    // What cannot be read is reported when the frames are shown.
    while let Some(Ok(record)) = capture.next_record() {
        decoder.decode(&record);
    }
    decoder.rewound()
}

/// Opens a file, or standard input where the path is `-`.
fn open_file(path: &Path, is_spinel: bool) -> Result<Capture, CaptureError> {
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(CaptureError::Io)?;
        if file.metadata().map_err(CaptureError::Io)?.is_dir() {
            return Err(CaptureError::Io(io::ErrorKind::IsADirectory.into()));
        }
        Box::new(file)
    };
    match is_spinel {
        true => Capture::of_serial_line(input),
        false => {
            let plain = files::unzipped(input, UNZIPPED_LEN_MAX).map_err(CaptureError::Io)?;
            Capture::new(Box::new(plain))
        }
    }
}

/// Bytes of a capture that was zipped: its records are read one by one, so that this bounds time
/// alone.
const UNZIPPED_LEN_MAX: u64 = 4 << 30;
