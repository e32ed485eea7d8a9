//! The GATT characteristic by which the two ends of a connection announce TCPlE to each other: each
//! end reads the characteristic of the other.
//!
//! A device that offers nothing takes no part in ATT at all. A peer that does not answer, or
//! refuses, is treated as one with IPSP only.

use super::{ChannelKind, Connection};
use crate::ble::IPSP;
use crate::wire::att::{self, Pdu, reason};
use crate::wire::cursor::{Full, Writer};
use crate::wire::l2cap::{HEADER_LEN, Header};
use crate::wire::tcple::Characteristic;

/// The attributes offered, asked for and known on a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::ble) struct Attributes {
    /// This end's; `None`: it has no TCPlE.
    offered: Option<Characteristic>,
    /// The request to the peer has not been sent yet.
    is_due: bool,
    /// The peer's characteristic of TCPlE, once the peer has answered.
    remote: Option<Characteristic>,
    /// The answer that waits for room in the controller.
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Value,
    Error { request: u8, reason: u8 },
}

impl Attributes {
    pub(super) const NONE: Self = Self {
        offered: None,
        is_due: false,
        remote: None,
        answer: None,
    };

    /// The attributes of a new connection, of which this end offers TCPlE where `offered` is some.
    pub(in crate::ble) const fn offering(offered: Option<Characteristic>) -> Self {
        Self {
            is_due: offered.is_some(),
            offered,
            ..Self::NONE
        }
    }

    /// Whether this end takes a PDU for this channel as one of ATT.
    pub(super) const fn takes(&self, channel: u16) -> bool {
        channel == att::CHANNEL && self.offered.is_some()
    }

    /// The channel whose service has this SPSM at this end.
    pub(super) fn which_of(&self, service: u16) -> Option<ChannelKind> {
        match service {
            IPSP => Some(ChannelKind::Ip),
            _ if self.serves(service) => Some(ChannelKind::Tcple),
            _ => None,
        }
    }

    /// The SPSM for opening the channel; `None`: the peer is not known to support it.
    pub(super) const fn service_of(&self, which: ChannelKind) -> Option<u16> {
        match which {
            ChannelKind::Ip => Some(IPSP),
            ChannelKind::Tcple => self.service(),
        }
    }

    /// Whether this end offers TCPlE's channel as that service.
    fn serves(&self, service: u16) -> bool {
        self.offered
            .is_some_and(|offered| offered.service == service)
    }

    /// The service of the peer's channel.
    const fn service(&self) -> Option<u16> {
        match &self.remote {
            Some(remote) if self.offered.is_some() => Some(remote.service),
            _ => None,
        }
    }

    /// Bytes of prefetched segments that the peer holds.
    pub(in crate::ble) fn held_len(&self) -> u16 {
        self.remote.map_or(0, |remote| remote.held_len)
    }

    /// Takes a PDU of ATT.
    pub(super) fn on_pdu(&mut self, bytes: &[u8]) {
        let refused = |request, reason| Some(Answer::Error { request, reason });
        match Pdu::parse(bytes) {
            Pdu::ReadByType {
                uuid: Characteristic::UUID,
            } => self.answer = Some(Answer::Value),
            Pdu::ReadByType { .. } => {
                let request = bytes.first().copied().unwrap_or(0);
                self.answer = refused(request, reason::NOT_FOUND);
            }
            Pdu::OtherRequest { opcode } => {
                self.answer = refused(opcode, reason::UNSUPPORTED);
            }
            Pdu::Value(value) => self.remote = self.remote.or(Characteristic::parse(value)),
            Pdu::Error { .. } | Pdu::Other => {}
        }
    }
}

impl Connection {
    /// Whether an SDU of the other channel is still incomplete. Both channels share the memory in
    /// which SDUs are reassembled, so an end with TCPlE must not begin an SDU on one channel within
    /// an SDU on the other.
    pub(super) fn is_mixed(&self, which: ChannelKind) -> bool {
        let mut others = ChannelKind::ALL.into_iter().filter(|other| *other != which);
        others.any(|other| self.channel(other).sdu_len > 0)
    }

    /// Writes the next PDU of ATT, with L2CAP's header; returns its length.
    pub(super) fn emit_attribute(&mut self, out: &mut [u8]) -> Result<Option<usize>, Full> {
        let is_open = self.is_open();
        let attributes = &mut self.attributes;
        let Some(offered) = attributes.offered else {
            return Ok(None);
        };
        let value = offered.value();
        let pdu = match attributes.answer.take() {
            Some(Answer::Value) => Pdu::Value(&value),
            Some(Answer::Error { request, reason }) => Pdu::Error { request, reason },
            None if attributes.is_due && is_open => {
                attributes.is_due = false;
                Pdu::ReadByType {
                    uuid: Characteristic::UUID,
                }
            }
            None => return Ok(None),
        };
        let (head, body) = out.split_at_mut_checked(HEADER_LEN).ok_or(Full)?;
        let mut w = Writer::new(body);
        pdu.emit(&mut w)?;
        let len = w.written();
        let header = Header {
            len: len as u16,
            channel: att::CHANNEL,
        };
        header.emit(&mut Writer::new(head))?;
        Ok(Some(HEADER_LEN + len))
    }
}
