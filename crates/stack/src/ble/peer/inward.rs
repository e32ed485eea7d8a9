//! Inwards: data packets to L2CAP PDUs, K-frames to SDUs.
//!
//! A PDU may come in any number of data packets, cut anywhere: within its header, too (Bluetooth
//! Core 5.4 Vol 3 Part A §7.2.1). K-frames are copied to where their SDU is gathered as they come,
//! signals are gathered whole: they are short.

use super::{ChannelKind, Connection, State};
use crate::ble::counters::{ChannelDrop, HostCounters};
use crate::ble::{MPS, MTU, SDU_HEADROOM};
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::l2cap::{HEADER_LEN, Header, SIGNAL_LEN_MAX, SIGNALLING};

/// The PDU that is coming in.
#[derive(Debug)]
pub(in crate::ble) struct Gather {
    kind: Kind,
    /// Bytes that are still to come: of its header, then of its payload.
    left: u16,
    /// Bytes of its payload altogether.
    len: u16,
    /// The first bytes of the payload: all of a signal, the beginning of anything longer.
    head: [u8; SIGNAL_LEN_MAX],
    have: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The header is not whole yet.
    Header,
    Signal,
    #[cfg(feature = "tcple")]
    Attribute,
    Frame(ChannelKind),
    /// A PDU that is skipped: its channel is unknown, closed or closing.
    Skipped,
}

impl Gather {
    pub(in crate::ble) const EMPTY: Self = Self {
        kind: Kind::Skipped,
        left: 0,
        len: 0,
        head: [0; SIGNAL_LEN_MAX],
        have: 0,
    };

    /// A PDU of which nothing has come.
    const NEXT: Self = Self {
        kind: Kind::Header,
        left: HEADER_LEN as u16,
        ..Self::EMPTY
    };

    /// Discards the rest of a PDU for this channel.
    pub(in crate::ble) fn skip(&mut self, which: ChannelKind) {
        if self.kind == Kind::Frame(which) {
            self.kind = Kind::Skipped;
        }
    }

    /// Keeps as much of `bytes` as fits in the first `len` bytes; returns the rest.
    fn keep<'b>(&mut self, bytes: &'b [u8], len: usize) -> &'b [u8] {
        let have = usize::from(self.have);
        let room = self.head.get_mut(have..len).unwrap_or_default();
        let kept = copy(room, bytes);
        self.have += kept as u8;
        bytes.get(kept..).unwrap_or_default()
    }
}

impl Connection {
    /// Takes a data packet; `memory`: where the SDU is gathered. Returns the channel and the length
    /// of the SDU that is whole now: there is one in a packet at most.
    pub(in crate::ble) fn on_data(
        &mut self,
        (is_first, bytes): (bool, &[u8]),
        memory: &mut [u8],
        counters: &mut HostCounters,
        now: Instant,
    ) -> Option<(ChannelKind, u16)> {
        if is_first {
            self.cut_off(counters);
            self.gather = Gather::NEXT;
        } else if self.gather.left == 0 {
            // An empty packet goes on with nothing.
            if !bytes.is_empty() {
                counters.count(ChannelDrop::StrayContinuation);
            }
            return None;
        }
        let bytes = match self.gather.kind {
            Kind::Header => self.on_header(bytes, counters)?,
            _ => bytes,
        };
        let left = usize::from(self.gather.left);
        let piece = bytes.get(..left).unwrap_or(bytes);
        if piece.len() < bytes.len() {
            counters.count(ChannelDrop::CutPdu);
        }
        self.gather.left -= piece.len() as u16;
        let is_end = self.gather.left == 0;
        match self.gather.kind {
            Kind::Header | Kind::Skipped => None,
            Kind::Signal => {
                self.gather.keep(piece, SIGNAL_LEN_MAX);
                if is_end {
                    self.on_gathered_signal(counters, now);
                }
                None
            }
            #[cfg(feature = "tcple")]
            Kind::Attribute => {
                self.gather.keep(piece, SIGNAL_LEN_MAX);
                if is_end {
                    let bytes = self.gather.head.get(..usize::from(self.gather.have));
                    self.attributes.on_pdu(bytes.unwrap_or_default());
                }
                None
            }
            Kind::Frame(which) => match self.on_frame(which, piece, is_end, memory) {
                Ok(whole) => {
                    let received = &mut counters.sdus_received;
                    *received = received.wrapping_add(u32::from(whole.is_some()));
                    Some((which, whole?))
                }
                Err(reason) => {
                    self.fail(which, reason, counters);
                    None
                }
            },
        }
    }

    /// A PDU begins before the last one was whole.
    fn cut_off(&mut self, counters: &mut HostCounters) {
        if self.gather.left == 0 {
            return;
        }
        counters.count(ChannelDrop::CutPdu);
        let kind = self.gather.kind;
        for which in ChannelKind::ALL {
            // What follows belongs to no place in the SDU. Without its header the PDU may have been
            // a part of any SDU.
            let is_cut = match kind {
                Kind::Header => self.channel(which).sdu_len > 0,
                _ => kind == Kind::Frame(which),
            };
            if is_cut {
                self.fail(which, ChannelDrop::CutSdu, counters);
            }
        }
    }

    /// A piece of the header of a PDU, and what follows it. Returns the latter once the header is
    /// whole.
    fn on_header<'b>(&mut self, bytes: &'b [u8], counters: &mut HostCounters) -> Option<&'b [u8]> {
        let rest = self.gather.keep(bytes, HEADER_LEN);
        let have = usize::from(self.gather.have);
        self.gather.left = HEADER_LEN.saturating_sub(have) as u16;
        let (header, _) = Header::parse(self.gather.head.get(..have)?)?;
        self.begin(header, counters);
        Some(rest)
    }

    /// The header of a PDU is whole.
    fn begin(&mut self, header: Header, counters: &mut HostCounters) {
        let which = ChannelKind::of_local(header.channel);
        let state = which.map(|which| self.channel(which).state);
        let kind = match (which, state) {
            _ if header.channel == SIGNALLING => Kind::Signal,
            #[cfg(feature = "tcple")]
            _ if self.attributes.takes(header.channel) => Kind::Attribute,
            (Some(which), Some(State::Open)) => {
                #[cfg(feature = "tcple")]
                let is_mixed = self.is_mixed(which);
                let channel = self.channel_mut(which);
                let reason = match channel.granted.checked_sub(1) {
                    None => Some(ChannelDrop::NoCredit),
                    Some(_) if header.len > MPS => Some(ChannelDrop::FrameTooLong),
                    #[cfg(feature = "tcple")]
                    Some(_) if is_mixed => Some(ChannelDrop::Mixed),
                    Some(left) => {
                        channel.granted = left;
                        channel.owed = channel.owed.saturating_add(1);
                        None
                    }
                };
                match reason {
                    #[cfg(feature = "tcple")]
                    Some(ChannelDrop::Mixed) => {
                        self.fail(ChannelKind::Tcple, ChannelDrop::Mixed, counters);
                        Kind::Skipped
                    }
                    Some(reason) => {
                        self.fail(which, reason, counters);
                        Kind::Skipped
                    }
                    None => Kind::Frame(which),
                }
            }
            // The peer has not heard yet that it is over.
            (Some(_), Some(State::Closing)) => Kind::Skipped,
            _ => {
                counters.count(ChannelDrop::UnknownChannel);
                Kind::Skipped
            }
        };
        self.gather = Gather {
            kind,
            left: header.len,
            len: header.len,
            ..Gather::EMPTY
        };
    }

    /// A piece of a K-frame, `is_end`: the last one. Returns the length of the SDU that is whole
    /// now.
    fn on_frame(
        &mut self,
        which: ChannelKind,
        piece: &[u8],
        is_end: bool,
        memory: &mut [u8],
    ) -> Result<Option<u16>, ChannelDrop> {
        let channel = self.channels.get_mut(which);
        let gather = &mut self.gather;
        let mut piece = piece;
        if channel.sdu_len == 0 {
            piece = gather.keep(piece, SDU_LENGTH_LEN);
            let [low, high, ..] = gather.head;
            if usize::from(gather.have) < SDU_LENGTH_LEN {
                return match is_end {
                    true => Err(ChannelDrop::CutPdu),
                    false => Ok(None),
                };
            }
            channel.sdu_len = u16::from_le_bytes([low, high]);
            channel.sdu_have = 0;
            if channel.sdu_len > MTU {
                return Err(ChannelDrop::SduTooLong);
            }
        }
        let have = usize::from(channel.sdu_have);
        if have + piece.len() > usize::from(channel.sdu_len) {
            return Err(ChannelDrop::FrameTooLong);
        }
        let room = memory.get_mut(SDU_HEADROOM + have..).unwrap_or_default();
        channel.sdu_have += copy(room, piece) as u16;
        if !is_end || channel.sdu_have < channel.sdu_len {
            return Ok(None);
        }
        let len = core::mem::replace(&mut channel.sdu_len, 0);
        Ok((len > 0).then_some(len))
    }

    /// A signal that is whole, or as much of it as is kept.
    fn on_gathered_signal(&mut self, counters: &mut HostCounters, now: Instant) {
        let head = self.gather.head;
        let bytes = head
            .get(..usize::from(self.gather.have))
            .unwrap_or_default();
        let is_too_long = usize::from(self.gather.len) > SIGNAL_LEN_MAX;
        self.on_signal((bytes, is_too_long), counters, now);
    }
}

/// Bytes of an SDU's length at the start of its first K-frame.
const SDU_LENGTH_LEN: usize = 2;
