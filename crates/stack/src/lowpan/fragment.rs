//! Packets into frame payloads.
//!
//! Place: an outgoing packet waits in the one buffer of [`Fragmenter`] while the node pulls frame
//! after frame from it, each when the MAC has room. A relay that passes fragments on writes first
//! ones with `forward_first`; later ones only change their tag. Fragment headers number a packet as
//! IPHC and uncompressed headers give it: without what a 6LoRH stands for, and with the RPL option
//! that [`HeaderForms`] keeps apart from the packet.
//! Left out: acknowledged fragments (RFC 8931).
//!
//! Sources: RFC 4944 §5.3 (format, units of eight bytes); RFC 8138 §4 leaves open what of it is
//! numbered, and Wireshark reassembles so; RFC 8930 §5 (a first fragment may
//! grow on its way, so its sender leaves some slack).

use super::contexts::Contexts;
use super::{
    CompressError, First, HeaderForms, LinkPair, TcpForm, Unnumbered, compress_form, numbered,
    unabridged,
};
use crate::limits::{IPV6_MTU_MIN, MESH_PACKET_LEN_MAX};
use crate::wire::cursor::{Full, copy};
#[cfg(feature = "sleepy")]
use crate::wire::ieee802154::fcs;
use crate::wire::lowpan_frag::{FIRST_LEN, Header, NEXT_LEN};

/// One packet on its way into frames.
#[derive(Debug)]
pub struct Fragmenter<'m> {
    packet: &'m mut [u8],
    /// Bytes of the packet; 0: none.
    len: u16,
    /// Bytes that have gone out.
    sent: u16,
    forms: HeaderForms,
    /// As [`Compressed::unnumbered`](super::Compressed::unnumbered), once the first fragment is
    /// out.
    unnumbered: Unnumbered,
    link: LinkPair,
    tag: u16,
    frame_payload_len_max: u8,
    slack: u8,
    /// Whether the buffer still holds the packet last started, out or not.
    is_kept: bool,
}

/// Why a packet, or a first fragment to be passed on, is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FragmentError {
    /// Longer than the buffer or than [`MESH_PACKET_LEN_MAX`]; or empty.
    BadLength,
    /// No IPv6 header, or one that does not fit the packet.
    Malformed,
    /// The compressed header leaves a frame no room, or `out` is too short; or a first fragment
    /// to be passed on would number its packet otherwise than the later ones do.
    NoRoom,
}

impl FragmentError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::BadLength => "packet of a length that is not sent",
            Self::Malformed => "not an IPv6 packet",
            Self::NoRoom => "the compressed header leaves a frame no room",
        }
    }
}

speaks!(FragmentError);

impl From<CompressError> for FragmentError {
    fn from(error: CompressError) -> Self {
        match error {
            CompressError::Full => Self::NoRoom,
            _ => Self::Malformed,
        }
    }
}

impl From<Full> for FragmentError {
    fn from(_: Full) -> Self {
        Self::NoRoom
    }
}

impl<'m> Fragmenter<'m> {
    /// The buffer it was lent.
    pub(crate) fn into_memory(self) -> &'m mut [u8] {
        self.packet
    }

    /// No packet yet. `buffer`: 1,280 bytes hold any packet of a 6LoWPAN, and
    /// [`MESH_PACKET_LEN_MAX`] also those with routing headers on top.
    pub fn new(buffer: &'m mut [u8]) -> Self {
        let nobody = crate::wire::LinkAddr::BROADCAST;
        Self {
            packet: buffer,
            len: 0,
            sent: 0,
            forms: HeaderForms::default(),
            unnumbered: Unnumbered::default(),
            link: LinkPair {
                src: nobody,
                dst: nobody,
            },
            tag: 0,
            frame_payload_len_max: 0,
            slack: 0,
            is_kept: false,
        }
    }

    /// Whether no packet is under way.
    pub(crate) const fn is_idle(&self) -> bool {
        self.len == 0
    }

    /// Where to write the next packet while no packet is under way; call [`Self::start`] then.
    pub fn buffer(&mut self) -> &mut [u8] {
        debug_assert!(self.is_idle(), "the packet under way would be overwritten");
        self.packet
    }

    /// Begins to send the `len` bytes written to the buffer.
    ///
    /// `forms`: the forms of their TCP and routing headers. `tag`: from
    /// [`super::datagram::Datagrams::new_tag`], used if the packet needs more than one frame.
    /// `frame_payload_len_max`: from the MAC, for this neighbour. `slack`: bytes a first fragment
    /// leaves free, e.g. [`FIRST_SLACK`].
    ///
    /// # Errors
    /// [`FragmentError::BadLength`].
    pub fn start(
        &mut self,
        len: usize,
        forms: HeaderForms,
        link: LinkPair,
        tag: u16,
        frame_payload_len_max: usize,
        slack: u8,
    ) -> Result<(), FragmentError> {
        if len == 0 || len > self.packet.len().min(MESH_PACKET_LEN_MAX) {
            return Err(FragmentError::BadLength);
        }
        self.len = len as u16;
        self.sent = 0;
        self.forms = forms;
        self.link = link;
        self.tag = tag;
        self.frame_payload_len_max = u8::try_from(frame_payload_len_max).unwrap_or(u8::MAX);
        self.slack = slack;
        self.is_kept = true;
        Ok(())
    }

    /// Discards the packet in the buffer.
    pub(crate) fn discard(&mut self) {
        (self.len, self.is_kept) = (0, false);
    }

    /// How the packet last started has its TCP header.
    pub(crate) const fn tcp_form(&self) -> TcpForm {
        self.forms.tcp
    }

    /// Whether the buffer still holds the packet with this tag.
    pub(crate) const fn holds(&self, tag: u16) -> bool {
        self.is_kept && self.tag == tag
    }

    /// Lends the buffer out while it still holds the packet with this tag, to quote it, and
    /// gives the packet up; [`Self::give_back`] ends the loan.
    pub(crate) fn lend(&mut self, tag: u16) -> Option<&'m mut [u8]> {
        self.holds(tag).then(|| {
            self.discard();
            core::mem::take(&mut self.packet)
        })
    }

    /// Takes back what [`Self::lend`] gave.
    pub(crate) fn give_back(&mut self, buffer: &'m mut [u8]) {
        self.packet = buffer;
    }

    /// Writes the next frame's payload to `out` and returns its length; `None` when the
    /// packet is out or there is none.
    ///
    /// # Errors
    /// [`FragmentError`]; the packet is given up.
    pub fn next(
        &mut self,
        contexts: &Contexts,
        out: &mut [u8],
    ) -> Result<Option<usize>, FragmentError> {
        if self.is_idle() {
            return Ok(None);
        }
        let frame = match self.sent {
            0 => self.first(contexts, out),
            _ => self.later(out),
        };
        match frame {
            Ok((frame_len, sent, unnumbered)) => {
                self.sent = sent;
                self.unnumbered = unnumbered;
                if sent >= self.len {
                    self.len = 0;
                }
                Ok(Some(frame_len))
            }
            Err(error) => {
                self.len = 0;
                Err(error)
            }
        }
    }

    /// Gives the packet up if it is the one with this tag: a fragment of it was lost.
    pub(crate) fn abort(&mut self, tag: u16) -> bool {
        let found = !self.is_idle() && self.tag == tag;
        if found {
            self.len = 0;
        }
        found
    }

    /// The hop that the packet under way takes.
    pub(crate) const fn link(&self) -> LinkPair {
        self.link
    }

    /// The tag of the packet under way: also its frames' token in the MAC.
    pub(crate) const fn tag(&self) -> u16 {
        self.tag
    }

    /// A check sum of the packet just started, and of the sizes by which it is cut into frames.
    #[cfg(feature = "sleepy")]
    pub(crate) fn digest(&self) -> u16 {
        let packet = self.packet.get(..usize::from(self.len)).unwrap_or_default();
        let room = [self.frame_payload_len_max, self.slack];
        fcs(packet) ^ fcs(&room)
    }

    /// Sets the tag of the packet just started to that of an earlier delivery of the same packet.
    #[cfg(feature = "sleepy")]
    pub(crate) const fn set_tag(&mut self, tag: u16) {
        self.tag = tag;
    }

    /// The packet in one frame, or its first fragment.
    fn first(&self, contexts: &Contexts, out: &mut [u8]) -> Result<Cut, FragmentError> {
        let packet = self.packet.get(..usize::from(self.len)).unwrap_or_default();
        let out = frame_payload(out, self.frame_payload_len_max)?;
        let alone = compress_form(packet, self.forms, self.link, contexts, out)?;
        let rest = packet.get(alone.uncompressed_len..).unwrap_or_default();
        let room = out.get_mut(alone.compressed_len..).unwrap_or_default();
        if rest.len() <= room.len() {
            copy(room, rest);
            return Ok((alone.compressed_len + rest.len(), self.len, self.unnumbered));
        }
        let whole = (packet, self.forms);
        let (len, tag) = (usize::from(self.len), self.tag);
        emit_first(whole, (len, tag), self.link, contexts, self.slack, out)
    }

    fn later(&self, out: &mut [u8]) -> Result<Cut, FragmentError> {
        let out = frame_payload(out, self.frame_payload_len_max)?;
        let room = units(out.len().saturating_sub(NEXT_LEN));
        if room == 0 {
            return Err(FragmentError::NoRoom);
        }
        let left = usize::from(self.len.saturating_sub(self.sent));
        // The last fragment need not end on a unit.
        let carried = if left <= out.len() - NEXT_LEN {
            left
        } else {
            room
        };
        let start = usize::from(self.sent);
        let header = Header {
            datagram_size: numbered(usize::from(self.len), self.unnumbered) as u16,
            datagram_tag: self.tag,
            datagram_offset: Some((numbered(start, self.unnumbered) / 8) as u8),
        };
        let piece = self
            .packet
            .get(start..)
            .and_then(|rest| rest.get(..carried));
        let mut frame_len = header.emit(out)?;
        let room = out.get_mut(frame_len..).unwrap_or_default();
        frame_len += copy(room, piece.unwrap_or_default());
        let sent = self.sent.saturating_add(carried as u16);
        Ok((frame_len, sent, self.unnumbered))
    }
}

/// A frame's length, how many bytes of the packet are out with it, and as
/// [`Compressed::unnumbered`](super::Compressed::unnumbered).
type Cut = (usize, u16, Unnumbered);

/// Writes a first fragment that a relay forwards; returns its length.
///
/// `first`: the decompressed fragment, with the decremented hop limit. All of it must fit, because
/// the offsets of the later fragments do not change. `header`: the fragment header, with the tag
/// towards the next hop.
///
/// # Errors
/// [`FragmentError::NoRoom`] when the header grew beyond the slack, or when its routing headers
/// would be written in another form than they were received in, so that the offsets of later
/// fragments would be wrong: the packet has to be reassembled.
pub(crate) fn forward_first(
    first: First<'_>,
    header: Header,
    link: LinkPair,
    contexts: &Contexts,
    frame_payload_len_max: usize,
    out: &mut [u8],
) -> Result<usize, FragmentError> {
    let max = u8::try_from(frame_payload_len_max).unwrap_or(u8::MAX);
    let out = frame_payload(out, max)?;
    let len = unabridged(usize::from(header.datagram_size), first.unnumbered);
    let (start, tag) = ((first.bytes, first.forms), header.datagram_tag);
    let (frame_len, covered, unnumbered) = emit_first(start, (len, tag), link, contexts, 0, out)?;
    let is_all = usize::from(covered) == first.bytes.len();
    if is_all && unnumbered == first.unnumbered {
        Ok(frame_len)
    } else {
        Err(FragmentError::NoRoom)
    }
}

/// The largest payload behind headers that travels in `frames` frames.
///
/// `frame_payload_len_max`: the payload of one frame, from the MAC, bytes. `compressed_len` and
/// `uncompressed_len`: the length of all headers, that of TCP included. `slack`: as for
/// [`Fragmenter::start`]. 0 when not even the headers fit.
pub(crate) fn payload_for_frames(
    frames: usize,
    frame_payload_len_max: usize,
    compressed_len: usize,
    uncompressed_len: usize,
    slack: usize,
) -> usize {
    let packet_len = match frames {
        0 => 0,
        1 => (frame_payload_len_max + uncompressed_len).saturating_sub(compressed_len),
        _ => {
            let overhead = FIRST_LEN + compressed_len + slack;
            let first = units((frame_payload_len_max + uncompressed_len).saturating_sub(overhead));
            let last = frame_payload_len_max.saturating_sub(NEXT_LEN);
            let between = units(last).saturating_mul(frames - 2);
            if first < uncompressed_len {
                0
            } else {
                first.saturating_add(between) + last
            }
        }
    };
    packet_len
        .min(IPV6_MTU_MIN)
        .saturating_sub(uncompressed_len)
}

/// The most that a first fragment grows by on later hops, bytes: the source's interface identifier,
/// which only the first hop can derive from the frame (8), the hop limit, which starts at a value
/// that needs no byte (1), and the traffic class, should a relay mark congestion (1).
pub const FIRST_SLACK: u8 = 8 + 1 + 1;

/// Writes FRAG1: as much of `packet` as fits beside `slack` unused bytes, in whole units
/// unless it is all. `len` and `tag`: of the whole packet.
fn emit_first(
    (packet, forms): (&[u8], HeaderForms),
    (len, tag): (usize, u16),
    link: LinkPair,
    contexts: &Contexts,
    slack: u8,
    out: &mut [u8],
) -> Result<Cut, FragmentError> {
    let room = out.get_mut(FIRST_LEN..).ok_or(FragmentError::NoRoom)?;
    let room_len = room.len();
    let headers = compress_form(packet, forms, link, contexts, room)?;
    let unnumbered = headers.unnumbered;
    let units = |len| unabridged(units(numbered(len, unnumbered)), unnumbered);
    let most = (headers.uncompressed_len + room_len).saturating_sub(headers.compressed_len);
    let covered = if packet.len() <= most && slack == 0 {
        packet.len()
    } else {
        let wanted = units(most.saturating_sub(usize::from(slack)));
        // A long header may use the slack up; better than not sending it at all.
        if wanted < headers.uncompressed_len {
            units(most)
        } else {
            wanted
        }
    };
    let piece = packet.get(headers.uncompressed_len..covered);
    let piece = piece.ok_or(FragmentError::NoRoom)?;
    copy(
        room.get_mut(headers.compressed_len..).unwrap_or_default(),
        piece,
    );
    let header = Header {
        datagram_size: numbered(len, unnumbered) as u16,
        datagram_tag: tag,
        datagram_offset: None,
    };
    let frame_len = header.emit(out)? + headers.compressed_len + piece.len();
    Ok((frame_len, covered as u16, unnumbered))
}

/// The part of `out` that one frame holds.
fn frame_payload(out: &mut [u8], len: u8) -> Result<&mut [u8], FragmentError> {
    out.get_mut(..usize::from(len)).ok_or(FragmentError::NoRoom)
}

/// `len` cut to whole units of eight bytes.
const fn units(len: usize) -> usize {
    len & !7
}

#[cfg(test)]
#[path = "tests/fragment.rs"]
mod tests;
