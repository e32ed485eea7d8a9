//! How good the links of a node over a radio to its neighbours are, by the frames that pass between
//! node and radio.
//!
//! Left out: whether a frame's sender is who it claims to be. Strangers can make addresses up, so
//! the table is bounded, and only those that the mesh knows are shown.

use std::collections::BTreeMap;

use motet::{
    mac::AttemptOutcome,
    time::Instant,
    wire::{LinkAddr, ieee802154::Header},
};

/// The links to all neighbours, by their EUI-64.
#[derive(Debug, Default)]
pub(super) struct Neighbors {
    links: BTreeMap<[u8; 8], Link>,
    /// The receiver of the frame that was loaded last.
    loaded_for: Option<[u8; 8]>,
}

/// How good a link is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct LinkQuality {
    /// Received signal strength, dBm: that of the latest frames.
    pub(crate) rssi_dbm: f64,
    /// Attempts for each frame that was acknowledged; none yet, where none was.
    pub(crate) etx: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    rssi_dbm: f64,
    heard_at: Instant,
    attempts: u32,
    acked: u32,
}

impl Neighbors {
    /// The radio gets a frame to send.
    pub(super) fn on_loaded(&mut self, psdu: &[u8]) {
        let header = Header::parse_secured(psdu);
        let dst = header.ok().and_then(|(header, ..)| header.dst);
        self.loaded_for = dst.and_then(|dst| extended(dst.addr));
    }

    /// An attempt to send it has ended.
    pub(super) fn on_sent(&mut self, outcome: AttemptOutcome) {
        let link = self.loaded_for.and_then(|to| self.links.get_mut(&to));
        let (Some(link), Some(acked)) = (link, acknowledged(outcome)) else {
            return;
        };
        link.attempts += 1;
        link.acked += u32::from(acked);
        if link.attempts >= ATTEMPTS_KEPT {
            link.attempts /= 2;
            link.acked /= 2;
        }
    }

    /// A frame came; returns the EUI-64 of its sender.
    pub(super) fn on_frame(&mut self, psdu: &[u8], rssi_dbm: i8, now: Instant) -> Option<[u8; 8]> {
        let (header, ..) = Header::parse_secured(psdu).ok()?;
        let from = extended(header.src?.addr)?;
        let rssi_dbm = f64::from(rssi_dbm);
        if let Some(link) = self.links.get_mut(&from) {
            link.rssi_dbm += (rssi_dbm - link.rssi_dbm) / RSSI_FRAMES;
            link.heard_at = now;
            return Some(from);
        }
        if self.links.len() >= LINKS_MAX {
            let oldest = self.links.iter().min_by_key(|(_, link)| link.heard_at);
            let oldest = oldest.map(|(from, _)| *from);
            oldest.and_then(|from| self.links.remove(&from));
        }
        let link = Link {
            rssi_dbm,
            heard_at: now,
            attempts: 0,
            acked: 0,
        };
        self.links.insert(from, link);
        Some(from)
    }

    /// How good the link to a neighbour is; none: nothing has come from it.
    pub(super) fn quality(&self, of: [u8; 8]) -> Option<LinkQuality> {
        let link = self.links.get(&of)?;
        let etx = f64::from(link.attempts) / f64::from(link.acked);
        Some(LinkQuality {
            rssi_dbm: link.rssi_dbm,
            etx: (link.acked > 0).then_some(etx),
        })
    }
}

/// Whether a frame was acknowledged; `None`: the attempt says nothing of the link.
const fn acknowledged(outcome: AttemptOutcome) -> Option<bool> {
    match outcome {
        AttemptOutcome::Acked { .. } => Some(true),
        AttemptOutcome::NoAck => Some(false),
        _ => None,
    }
}

const fn extended(addr: LinkAddr) -> Option<[u8; 8]> {
    match addr {
        LinkAddr::Extended(eui64) => Some(eui64),
        _ => None,
    }
}

/// Frames over which the signal strength is averaged.
const RSSI_FRAMES: f64 = 8.0;

/// Attempts at which both counts halve, as the stack's own do.
const ATTEMPTS_KEPT: u32 = 128;

/// More than a root has motes.
const LINKS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 1];
    const MOTE: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 2];

    fn frame(to: [u8; 8], from: [u8; 8]) -> Vec<u8> {
        let [to, from] = [to, from].map(LinkAddr::Extended);
        let mut frame = vec![0; 64];
        let len = Header::data(0xabcd, to, from, 1).emit(&mut frame).unwrap();
        frame.truncate(len);
        frame
    }

    #[test]
    fn a_links_quality_follows_from_frames_and_acks() {
        let mut neighbors = Neighbors::default();
        assert_eq!(neighbors.quality(MOTE), None);
        let now = Instant::ORIGIN;
        assert_eq!(neighbors.on_frame(&frame(OWN, MOTE), -60, now), Some(MOTE));
        neighbors.on_frame(&frame(OWN, MOTE), -68, now);
        let expected = |rssi_dbm, etx| Some(LinkQuality { rssi_dbm, etx });
        assert_eq!(neighbors.quality(MOTE), expected(-61.0, None));
        neighbors.on_loaded(&frame(MOTE, OWN));
        let acked = AttemptOutcome::Acked { pending: false };
        for outcome in [AttemptOutcome::NoAck, acked, AttemptOutcome::Busy, acked] {
            neighbors.on_sent(outcome);
        }
        assert_eq!(neighbors.quality(MOTE), expected(-61.0, Some(1.5)));
        assert_eq!(neighbors.on_frame(b"", -60, now), None);
    }

    #[test]
    fn strangers_fill_no_more_than_the_table() {
        let mut neighbors = Neighbors::default();
        for n in 0..1_000_u16 {
            let [high, low] = n.to_be_bytes();
            let from = [2, 0, 0, 0, 0, 1, high, low];
            let now = Instant::from_micros(n.into());
            assert_eq!(neighbors.on_frame(&frame(OWN, from), -60, now), Some(from));
        }
        assert_eq!(neighbors.links.len(), LINKS_MAX);
        assert_eq!(neighbors.quality([2, 0, 0, 0, 0, 1, 0, 0]), None);
    }
}
