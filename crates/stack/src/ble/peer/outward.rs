//! Outwards: SDUs to K-frames, and PDUs to data packets.
//!
//! An SDU is cut so that its packets on the air are full: where the peer takes an SDU as one
//! K-frame there is one header, else a K-frame fills whole packets on the air.

use super::{ChannelKind, Connection, Peer};
use crate::ble::Host;
use crate::wire::cursor::{Full, Writer};
use crate::wire::l2cap::{HEADER_LEN, Header};

/// The SDU that is going out.
#[derive(Debug)]
pub(in crate::ble) struct OutgoingSdu {
    /// The next byte of it to go, and the end of it.
    at: u16,
    end: u16,
    /// Bytes of the K-frame that the controller has in part.
    frame_left: u16,
    /// The SDU's length, which begins its first K-frame, is still to be written.
    is_new: bool,
    /// The channel that it goes by.
    which: ChannelKind,
}

impl OutgoingSdu {
    pub(in crate::ble) const IDLE: Self = Self {
        at: 0,
        end: 0,
        frame_left: 0,
        is_new: false,
        which: ChannelKind::Ip,
    };

    /// Whether no SDU is going out.
    pub(in crate::ble) const fn is_idle(&self) -> bool {
        self.at == self.end
    }

    /// Whether a PDU has left in part, so that no other one may begin.
    pub(in crate::ble) const fn is_within(&self) -> bool {
        self.frame_left > 0
    }

    /// The channel of the SDU.
    pub(in crate::ble) const fn which(&self) -> ChannelKind {
        self.which
    }

    /// Begins an SDU, the bytes from `at` to `end` of the memory.
    pub(in crate::ble) const fn begin(&mut self, which: ChannelKind, at: u16, end: u16) {
        *self = Self {
            at,
            end,
            frame_left: 0,
            is_new: true,
            which,
        };
    }

    /// Sends no more of an SDU of that channel than the K-frame that has left in part.
    pub(in crate::ble) fn abort(&mut self, which: ChannelKind) {
        if self.which == which {
            self.end = self.at + self.frame_left;
        }
    }
}

impl<'m> Host<'m> {
    /// Lends memory for an outgoing SDU that no SDU is leaving from, and returns whose it is;
    /// [`Self::give_outward`] ends the loan.
    pub(crate) fn lend_outward(&mut self) -> Option<(usize, &'m mut [u8])> {
        let is_idle = |peer: &Peer<'_>| {
            let connection = peer.connection();
            connection.is_none_or(|connection| connection.outgoing.is_idle())
        };
        let at = self.peers.iter().position(is_idle)?;
        let memory = core::mem::take(&mut self.peers.get_mut(at)?.outward);
        Some((at, memory))
    }

    /// Takes back what [`Self::lend_outward`] gave, `from` this place. The memory becomes that of
    /// the place `to`, where no SDU is leaving either; the place `from` has that one's instead.
    pub(crate) fn give_outward(&mut self, from: usize, to: usize, memory: &'m mut [u8]) {
        let Some(peer) = self.peers.get_mut(to) else {
            return;
        };
        let spare = core::mem::replace(&mut peer.outward, memory);
        if let Some(peer) = self.peers.get_mut(from).filter(|_| from != to) {
            peer.outward = spare;
        }
    }
}

impl Connection {
    /// Writes the next data packet of the SDU in `memory`, of `len_max` bytes at most. Returns
    /// whether a PDU begins with it, and its length.
    pub(in crate::ble) fn emit_data(
        &mut self,
        memory: &[u8],
        len_max: usize,
        out: &mut [u8],
    ) -> Result<(bool, usize), Full> {
        let frame_len_max = self.frame_len_max();
        let which = self.outgoing.which;
        let remote = self.channel(which).remote.channel;
        let outgoing = &mut self.outgoing;
        let mut w = Writer::new(out.get_mut(..len_max).ok_or(Full)?);
        let begins = !outgoing.is_within();
        if begins {
            let left = outgoing.end - outgoing.at;
            let prefix = if outgoing.is_new { 2 } else { 0 };
            let len = frame_len_max.min(left + prefix);
            Header {
                len,
                channel: remote,
            }
            .emit(&mut w)?;
            if core::mem::take(&mut outgoing.is_new) {
                w.u16_le(left)?;
            }
            outgoing.frame_left = len - prefix;
        }
        let piece = outgoing.frame_left.min(w.room() as u16);
        let at = usize::from(outgoing.at);
        w.put(memory.get(at..at + usize::from(piece)).ok_or(Full)?)?;
        outgoing.at += piece;
        outgoing.frame_left -= piece;
        if begins {
            let credits = &mut self.channel_mut(which).remote.credits;
            *credits = credits.saturating_sub(1);
        }
        Ok((begins, w.written()))
    }

    /// The longest payload of a K-frame to send: the peer's MPS, rounded down to whole packets on
    /// the air where it does not take a whole SDU.
    fn frame_len_max(&self) -> u16 {
        let mps = self.channel(self.outgoing.which).remote.mps;
        let left = self.outgoing.end - self.outgoing.at;
        if mps >= left.saturating_add(2) {
            return mps;
        }
        whole_packets(mps, self.pdu_len)
    }

    /// The longest SDU of up to `len_max` bytes whose packets on the air are all full; `len_max`
    /// where packets are too short for that to matter.
    pub(in crate::ble) fn sdu_len_max(&self, len_max: u16) -> u16 {
        let (mps, pdu) = (self.channels.ip.remote.mps, self.pdu_len);
        let frame = match mps >= len_max.saturating_add(2) {
            // One K-frame, however many packets.
            true => whole_packets(len_max.saturating_add(2), pdu),
            false => whole_packets(mps, pdu),
        };
        let frames = (len_max + 2).checked_div(frame).unwrap_or(0);
        match (frame * frames).checked_sub(2) {
            Some(len) if frames > 0 && pdu >= PDU_LONG => len,
            _ => len_max,
        }
    }
}

/// The longest payload of a K-frame, up to `len` bytes, that fills whole packets on the air; `len`
/// where not even one is filled.
const fn whole_packets(len: u16, pdu_len: u16) -> u16 {
    let header = HEADER_LEN as u16;
    match (len.saturating_add(header)).checked_div(pdu_len) {
        Some(packets) if packets > 0 => packets * pdu_len - header,
        _ => len,
    }
}

/// Where packets on the air are shorter than this, bytes, each SDU takes so many of them that a
/// part of one is not worth a shorter SDU.
const PDU_LONG: u16 = 100;
