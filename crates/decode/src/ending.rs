//! What frames of IEEE 802.15.4 end in where the link type leaves it open.
//!
//! Captures of link type 195 are to end in the FCS, and many do not: radios by TI write their
//! measurements in its place, and some programs nothing at all. The first frames show it. Place:
//! between [`Capture`] and [`Decoder`]. Left out: captures in which frames end differently.

use motet::wire::ieee802154::{self, Command, FrameType, Header};

use crate::Decoder;
use crate::capture::{Capture, Record};
use crate::layers;
use crate::model::Status;

/// What frames of IEEE 802.15.4 end in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ending {
    /// The FCS of two bytes, as the link type says.
    #[default]
    Crc,
    /// The measurements of a radio by TI (CC24xx and later): signal strength, a bit for a right
    /// FCS, correlation.
    Metadata,
    /// Nothing: the FCS was left out.
    Nothing,
}

impl Capture {
    /// Finds out what the frames end in, from the first ones, which stay to be read.
    ///
    /// It reads no further than the second right FCS, and at most some dozen frames: a capture that
    /// grows is shown from its begin.
    pub fn ending(&mut self) -> Ending {
        let mut evidence = Evidence::default();
        while evidence.frames < FRAMES_MAX && evidence.right < RIGHT_ENOUGH {
            let at = evidence.records;
            let Some(record) = self.ahead(at) else {
                break;
            };
            evidence.add(record);
            if evidence.records >= RECORDS_MAX || evidence.is_elsewhere() {
                break;
            }
        }
        if evidence.right * RIGHT_SHARE >= evidence.frames {
            return Ending::Crc;
        }
        let records: Vec<&Record> = (0..evidence.records)
            .filter_map(|at| self.kept(at))
            .collect();
        evidence.judge(&records)
    }
}

/// What the frames read ahead show.
#[derive(Default)]
struct Evidence {
    records: usize,
    /// Frames whose ending is open.
    frames: usize,
    /// Those that end in their FCS.
    right: usize,
    /// Those whose last byte says that a TI radio saw a right FCS.
    vouched: usize,
    /// Those that are as long as their type says, without an FCS and with it.
    bare: usize,
    tailed: usize,
}

impl Evidence {
    fn add(&mut self, record: &Record) {
        self.records += 1;
        let is_whole = record.data.len() as u64 >= u64::from(record.original_len);
        let psdu = layers::of_open_ending(record.link_type, &record.data);
        let Some(psdu) = psdu.filter(|psdu| is_whole && psdu.len() >= PSDU_LEN_MIN) else {
            return;
        };
        self.frames += 1;
        if psdu.len() > PSDU_LEN_MIN && ieee802154::check_fcs(psdu).is_ok() {
            self.right += 1;
            return;
        }
        self.vouched += usize::from(psdu.last().is_some_and(|last| last & 0x80 != 0));
        match length_over(psdu) {
            Some(0) => self.bare += 1,
            Some(ieee802154::FCS_LEN) => self.tailed += 1,
            _ => {}
        }
    }

    /// Whether none of many records is of a kind that leaves its ending open.
    const fn is_elsewhere(&self) -> bool {
        self.frames == 0 && self.records >= FOREIGN_MAX
    }

    /// Judges frames of which few or none end in their FCS.
    fn judge(&self, records: &[&Record]) -> Ending {
        if self.bare != self.tailed {
            return match self.bare > self.tailed {
                true => Ending::Nothing,
                false => self.tail(),
            };
        }
        // What is decoded two bytes too long or too short is seldom well formed.
        let [without, with] =
            [Ending::Nothing, Ending::Metadata].map(|ending| trial(records, ending));
        let ending = match without.malformed < with.malformed {
            true => Ending::Nothing,
            false => self.tail(),
        };
        // One wrong frame looks like anything: of few, all have to make sense.
        let makes_sense = match ending {
            Ending::Nothing => without,
            _ => with,
        };
        match self.frames < FEW && makes_sense.decoded < self.frames {
            true => Ending::Crc,
            false => ending,
        }
    }

    /// What two bytes mean that are no FCS.
    const fn tail(&self) -> Ending {
        match self.vouched * 3 >= self.frames * 2 && self.vouched > 0 {
            true => Ending::Metadata,
            false => Ending::Crc,
        }
    }
}

/// By how many bytes a frame is longer than its type says; `None` where that says nothing.
fn length_over(psdu: &[u8]) -> Option<usize> {
    let (header, payload) = Header::parse(psdu).ok()?;
    match header.frame_type {
        FrameType::Ack => Some(payload.len()),
        FrameType::Command => {
            let lens = 1..=payload.len().min(COMMAND_LEN_MAX);
            let is_command = |len: &usize| {
                let command = payload.get(..*len).map(Command::parse);
                command.is_some_and(|command| command.is_ok())
            };
            lens.clone().find(is_command).map(|len| payload.len() - len)
        }
        FrameType::Beacon | FrameType::Data => None,
    }
}

/// How frames are decoded if all end so.
struct Trial {
    malformed: usize,
    /// To their last byte.
    decoded: usize,
}

fn trial(records: &[&Record], ending: Ending) -> Trial {
    let mut decoder = Decoder::new(&[]);
    decoder.end_frames_in(ending);
    decoder.is_trial = true;
    let mut trial = Trial {
        malformed: 0,
        decoded: 0,
    };
    for record in records {
        match decoder.decode(record).status {
            Status::Malformed(_) => trial.malformed += 1,
            Status::Decoded | Status::Fragment => trial.decoded += 1,
            Status::Undecoded(_) => {}
        }
    }
    trial
}

/// Frames read ahead at most.
const FRAMES_MAX: usize = 64;
/// Records read ahead at most, of whatever kind.
const RECORDS_MAX: usize = 1_024;
/// So few frames are judged one by one.
const FEW: usize = 3;
/// Records of other kinds after which no frame is expected any more.
const FOREIGN_MAX: usize = 16;
/// Right FCSs that are no chance any more: one frame in 65,536 has one by chance.
const RIGHT_ENOUGH: usize = 2;
/// At least one frame in so many is to be right, or all of them are so by chance.
const RIGHT_SHARE: usize = 16;
/// The shortest frame: an acknowledgment.
const PSDU_LEN_MIN: usize = 3;
/// The longest command: a coordinator's realignment.
const COMMAND_LEN_MAX: usize = 9;
