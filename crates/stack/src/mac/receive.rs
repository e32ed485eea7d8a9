//! Which received frames are for this node.
//!
//! Source: IEEE 802.15.4-2006 §7.5.6.2, third level of filtering; duplicates §7.5.6.4.3
//! (the standard leaves them to the layer above; TCP and fragment tables want them gone).

use super::{FrameDrop, Mac, Received, RxMeta};
use crate::limits::PSDU_LEN_MAX;
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ieee802154::{FCS_LEN, FrameType, Header, PAN_BROADCAST, ParseError, check_fcs};

/// The ACK of a frame that asks for one.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// Still to be sent; the frame ended at this instant.
    Due(Instant),
    /// Whether the ACK was sent before the frame was believed.
    #[cfg(feature = "security")]
    Given(bool),
}

impl Mac<'_> {
    /// Checks, acknowledges and unwraps a frame; counts why it is not delivered.
    pub(super) fn on_frame<'a>(
        &mut self,
        psdu: &'a [u8],
        meta: RxMeta,
        now: Instant,
    ) -> Option<Received<'a>> {
        match self.accept(psdu, meta, now) {
            Ok(received) => received,
            Err(reason) => {
                self.counters.drop(reason);
                None
            }
        }
    }

    /// `Ok(None)`: the ACK that was waited for.
    fn accept<'a>(
        &mut self,
        psdu: &'a [u8],
        meta: RxMeta,
        now: Instant,
    ) -> Result<Option<Received<'a>>, FrameDrop> {
        let mpdu = match self.radio.fcs_by_radio {
            true if psdu.len() > PSDU_LEN_MAX - FCS_LEN => return Err(FrameDrop::Malformed),
            true => psdu,
            false => check_fcs(psdu)?,
        };
        if self.guard.is_on() {
            return self.hear(mpdu, meta, now);
        }
        let (header, payload) = Header::parse(mpdu)?;
        match header.frame_type {
            FrameType::Ack => {
                let said = (header.sequence, header.frame_pending);
                let acknowledged = self.on_acknowledgment(said, meta.at, now);
                acknowledged.map(|()| None)
            }
            FrameType::Beacon => Err(FrameDrop::Beacon),
            FrameType::Command => self.on_command(&header, payload, meta.at).map(|()| None),
            FrameType::Data => {
                let (src, dst) = self.filter(&header)?;
                self.take_in(&header, (src, dst), payload, Answer::Due(meta.at), now)?;
                let pending = header.frame_pending;
                Ok(Some(Received {
                    src,
                    dst,
                    payload,
                    pending,
                    meta,
                }))
            }
        }
    }

    /// Remembers what a data frame says that is to be believed, and fires what waits for it.
    ///
    /// # Errors
    /// [`FrameDrop::Duplicate`], for one that was taken in before.
    // Two callers where frames may be secured, one otherwise.
    #[cfg_attr(not(feature = "security"), inline(always))]
    pub(super) fn take_in(
        &mut self,
        header: &Header,
        (src, dst): (LinkAddr, LinkAddr),
        payload: &[u8],
        answer: Answer,
        now: Instant,
    ) -> Result<(), FrameDrop> {
        self.neighbors.heard(src);
        let mut is_answered = true;
        if header.ack_request && !dst.is_broadcast() {
            is_answered = match answer {
                Answer::Due(frame_end) => self.owe_acknowledgment(header.sequence, frame_end),
                #[cfg(feature = "security")]
                Answer::Given(is_answered) => is_answered,
            };
            self.serving.on_data(src);
            self.on_poll_data(src, header.frame_pending, now);
            let lifetime = self.config.duplicate_lifetime;
            if self
                .neighbors
                .is_duplicate(src, header.sequence, now, lifetime)
            {
                self.on_repetition(src, payload, is_answered, now);
                return Err(FrameDrop::Duplicate);
            }
        }
        let sweeps = !self.config.channels.is_single();
        if dst.is_broadcast() && sweeps && self.neighbors.is_swept(src, header.sequence, now) {
            return Err(FrameDrop::Duplicate);
        }
        self.on_new_frame(src, payload, is_answered, now);
        self.counters.received = self.counters.received.wrapping_add(1);
        Ok(())
    }

    /// The addresses of a frame that is for this node.
    pub(super) fn filter(&self, header: &Header) -> Result<(LinkAddr, LinkAddr), FrameDrop> {
        let pan = self.config.pan;
        // Without a destination the frame is for the PAN coordinator, which no node here is.
        let dst = header.dst.ok_or(FrameDrop::OtherNode)?;
        if dst.pan_id != pan && dst.pan_id != PAN_BROADCAST {
            return Err(FrameDrop::OtherPan);
        }
        if !dst.addr.is_broadcast() && !self.is_own(dst.addr) {
            return Err(FrameDrop::OtherNode);
        }
        let src = header.src.ok_or(FrameDrop::BadSource)?;
        // 0xfffe: has joined, but was given no short address (§7.2.1.6).
        let nobody = matches!(src.addr, LinkAddr::Short(0xfffe..));
        if nobody || self.is_own(src.addr) {
            return Err(FrameDrop::BadSource);
        }
        // Answers go to our own PAN, so its sender must be there.
        if src.pan_id != pan && src.pan_id != PAN_BROADCAST {
            return Err(FrameDrop::OtherPan);
        }
        Ok((src.addr, dst.addr))
    }

    fn is_own(&self, addr: LinkAddr) -> bool {
        match addr {
            LinkAddr::Short(short) => self.config.short == Some(short),
            LinkAddr::Extended(extended) => self.config.extended == extended,
            #[cfg(feature = "ble")]
            LinkAddr::Device(_) => false,
        }
    }
}

impl From<ParseError> for FrameDrop {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Fcs => Self::BadFcs,
            ParseError::Security => Self::Secured,
            ParseError::FrameType
            | ParseError::ReservedVersion
            | ParseError::Version2015
            | ParseError::InformationElements
            | ParseError::SequenceSuppressed => Self::Unsupported,
            _ => Self::Malformed,
        }
    }
}
