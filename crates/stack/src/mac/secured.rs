//! A MAC with a key: nothing is believed that is not sealed with it.
//!
//! ```text
//! heard      header, key index, counter → ACK                      nothing is remembered
//! believed   MIC → duplicates, children, parent, what waits to be fired, the layer above
//! ```
//!
//! A software ACK is due 192 µs after a frame, and a decryption takes milliseconds: an ACK means
//! heard, not believed. A frame is kept closed until its ACK has left; [`Mac::open_sealed`] then
//! opens it. A head fires what waits for it before its frame is whole, and so before its MIC is
//! known: a forged one sends an authentic frame early, and from its MIC on that neighbour's heads
//! fire nothing for a while.
//!
//! Joining, the frame: a MAC in a mesh with a key takes frames in clear where this node serves
//! nodes that have none, or has none itself (`hear_in_clear`), and sends them (`send_in_clear`).
//! This is the first of the three files that a datagram of CoJP crosses; `link/mesh/joining` has
//! its packet, `node/joining` the datagram.
//!
//! Place: part of [`Mac`]; keys, counters and neighbours are in [`super::security`].
//! Left out: short source addresses; beacons; secured ACKs, which 802.15.4-2006 does not have.
//! Source: IEEE 802.15.4-2006 §7.5.8.2.

use super::acknowledge::Acknowledgment;
use super::counters::FrameDrop;
use super::immediate;
use super::queue::{Class, Frame, Secret};
use super::radio::RxMeta;
use super::receive::Answer;
use super::security::{Proof, Reservation, Sealed, Security};
use super::{Mac, Received};
use crate::random::Rng;
use crate::time::{Instant, earliest};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::{Auxiliary, FrameType, Header};

/// Link security, where the node has a key.
#[derive(Debug, Default)]
pub(super) struct Guard<'m>(Option<&'m mut Security<'m>>);

impl Guard<'_> {
    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Bytes that frames are longer by.
    pub(super) fn overhead(&self) -> usize {
        self.0.as_ref().map_or(0, |security| security.overhead())
    }

    /// Whether frames wait until counters are stored for them.
    pub(super) fn is_waiting(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|security| security.is_waiting())
    }

    /// Whether the node has no key yet.
    pub(super) fn is_locked(&self) -> bool {
        self.0.as_ref().is_some_and(|security| security.is_locked())
    }

    /// Whether frames would wait for a key, or for a parent.
    pub(super) fn is_closed(&self) -> bool {
        let security = self.0.as_ref();
        security.is_some_and(|security| security.is_locked() || security.has_no_parent())
    }

    /// Whether this node is a child in a Thread network.
    pub(super) fn is_child(&self) -> bool {
        self.0.as_ref().is_some_and(|security| security.is_child())
    }

    /// The earlier of `own` and when it has something to do itself.
    pub(super) fn or_deadline(&self, own: Option<Instant>) -> Option<Instant> {
        let security = self.0.as_ref().and_then(|security| security.deadline());
        earliest(own, security)
    }

    /// Whether a frame waits to be opened.
    pub(super) fn has_sealed(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|security| security.sealed.is_some())
    }

    /// Writes a frame into `out`, sealed where there is a key, without its FCS; returns its length.
    pub(super) fn emit(
        &mut self,
        header: &Header,
        payload: &[u8],
        source: [u8; 8],
        out: &mut [u8],
    ) -> Option<usize> {
        let Some(security) = self.0.as_deref_mut() else {
            return header.emit_mpdu(payload, out).ok();
        };
        let is_command = header.frame_type == FrameType::Command;
        let payload = (payload, usize::from(is_command));
        security.seal(header, payload, source, out)
    }

    /// Why a frame could not be written.
    pub(super) fn refusal(&self) -> FrameDrop {
        match &self.0 {
            Some(security) if security.has_no_counter() => FrameDrop::NoCounter,
            _ => FrameDrop::BadLength,
        }
    }
}

/// A frame that was opened, with its bytes.
#[derive(Debug)]
pub(crate) struct Opened {
    sealed: Sealed,
    src: LinkAddr,
    dst: LinkAddr,
    pending: bool,
    /// Where the payload begins and ends in the frame.
    payload: (u8, u8),
}

impl Opened {
    /// The frame as the layer above takes it.
    pub(crate) fn frame(&self) -> Received<'_> {
        let (from, to) = self.payload;
        let payload = self.sealed.bytes.get(usize::from(from)..usize::from(to));
        Received {
            src: self.src,
            dst: self.dst,
            payload: payload.unwrap_or_default(),
            pending: self.pending,
            meta: self.sealed.meta,
        }
    }
}

impl<'m> Mac<'m> {
    /// Seals frames from now on, and believes no others. Frames then bear extended source
    /// addresses, whatever [`Config::short_source`](super::Config::short_source) says: nonces are
    /// made of them.
    pub(crate) fn set_security(&mut self, security: &'m mut Security<'m>) {
        self.config.short_source = false;
        self.guard = Guard(Some(security));
    }

    /// Gives link security back; frames are no longer sealed.
    pub(crate) fn take_security(&mut self) -> Option<&'m mut Security<'m>> {
        self.guard.0.take()
    }

    /// Link security, where the node has a key.
    pub fn security(&self) -> Option<&Security<'m>> {
        self.guard.0.as_deref()
    }

    /// [`Self::security`], for the link and the node to change.
    pub(crate) fn security_mut(&mut self) -> Option<&mut Security<'m>> {
        self.guard.0.as_deref_mut()
    }

    /// The reservation of frame counters that the host shall store before the node sends on, each
    /// once; the host answers by [`Self::on_reserved`].
    pub fn poll_reservation(&mut self, now: Instant) -> Option<Reservation> {
        self.security_mut()?.poll_reservation(now)
    }

    /// The host has stored it, or could not.
    pub fn on_reserved(&mut self, reservation: Reservation, is_stored: bool, now: Instant) {
        if let Some(security) = self.security_mut() {
            security.on_reserved(reservation, is_stored, now);
        }
    }

    /// Sets which neighbours are this node's children: their entries are never replaced.
    pub(crate) fn keep_children(&mut self, is_child: impl Fn(LinkAddr) -> bool) {
        if let Some(security) = self.security_mut() {
            security.keep_children(|addr| is_child(LinkAddr::Extended(addr)));
        }
    }

    /// Whether a neighbour has shown that it has the key since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        self.security_mut().is_some_and(Security::take_news)
    }

    pub(super) fn keep_parent(&mut self, addr: Option<LinkAddr>) {
        if let Some(security) = self.security_mut() {
            security.keep_parent(addr.and_then(extended));
        }
    }

    /// Whether an ACK in this neighbour's name may come from another node, and is not trusted.
    pub(super) fn disbelieves(&self, addr: LinkAddr) -> bool {
        let security = self.guard.0.as_deref().zip(extended(addr));
        security.is_some_and(|(security, addr)| security.disbelieves(addr))
    }

    /// Keeps the receiver of a node that sleeps on for what its parent may say now.
    pub(super) fn await_answer(&mut self, now: Instant) {
        #[cfg(feature = "sleepy")]
        self.listen_until(now + ANSWER_WAIT);
        #[cfg(not(feature = "sleepy"))]
        let _ = now;
    }

    pub(super) fn note_acknowledged(&mut self, by: LinkAddr) {
        if let (Some(by), Some(security)) = (extended(by), self.security_mut()) {
            security.on_acknowledged(by);
        }
    }

    /// Whether the link above knows nothing of the frame in this slot, and so gets no outcome.
    pub(super) fn is_proof(&self, index: u8) -> bool {
        let slot = self.queue.get(index);
        slot.is_some_and(|slot| slot.secret != Secret::Packet)
    }

    /// Takes a new key where that is due, doubts the parent, and computes ahead.
    pub(super) fn poll_security(&mut self, now: Instant, rng: &mut Rng) {
        let sleeps = self.sleeps();
        let Some(security) = self.guard.0.as_deref_mut() else {
            return;
        };
        security.rotate_if_due(now);
        if immediate::ENABLED
            && let Some(from) = extended(self.waiting.fired_by())
            && self.queue.get(self.waiting.slot).is_some()
        {
            security.prepare(from);
        }
        let doubted = security.doubt_parent(sleeps, now, rng);
        #[cfg(feature = "sleepy")]
        if self.poll.take_refused() {
            self.await_answer(now);
        }
        if let Some((addr, challenge)) = doubted {
            self.send_proof(LinkAddr::Extended(addr), &challenge, now);
            self.await_answer(now);
        }
    }

    /// A frame that has come: acknowledged, and kept closed until [`Self::open_sealed`]. One in
    /// clear is returned where this node deals with nodes that have no key: nothing of it is
    /// remembered.
    pub(super) fn hear<'a>(
        &mut self,
        mpdu: &'a [u8],
        meta: RxMeta,
        now: Instant,
    ) -> Result<Option<Received<'a>>, FrameDrop> {
        let (header, auxiliary, body) = Header::parse_secured(mpdu)?;
        match header.frame_type {
            FrameType::Ack => {
                let said = (header.sequence, header.frame_pending);
                return self.on_acknowledgment(said, meta.at, now).map(|()| None);
            }
            FrameType::Beacon => return Err(FrameDrop::Beacon),
            FrameType::Data | FrameType::Command => {}
        }
        let (src, dst) = self.filter(&header)?;
        let Some(auxiliary) = auxiliary else {
            return self
                .hear_in_clear(&header, (src, dst), body, meta)
                .map(Some);
        };
        let source = self.sender(src)?;
        let security = self.guard.0.as_deref_mut().ok_or(FrameDrop::Secured)?;
        let admitted = security.admit(source, &auxiliary, now);
        if admitted == Err(FrameDrop::UnknownKey) && !dst.is_broadcast() {
            self.remind(src, (source, auxiliary.key_index), now);
        }
        if !matches!(admitted, Ok(()) | Err(FrameDrop::Duplicate)) {
            return admitted.map(|()| None);
        }
        let asks = header.ack_request && !dst.is_broadcast();
        let is_answered = !asks || self.owe_acknowledgment(header.sequence, meta.at);
        if asks {
            let is_request =
                header.frame_type == FrameType::Command && body.first() == Some(&DATA_REQUEST);
            self.serving.on_heard(src, is_request);
        }
        if admitted.is_err() {
            self.hear_again(src, (&auxiliary, body), is_answered, now);
            return admitted.map(|()| None);
        }
        if let Some(security) = self.security_mut() {
            security.sealed = Some(Sealed::of(mpdu, meta, is_answered));
        }
        Ok(None)
    }

    /// The last frame of a neighbour, again: its first byte suffices to fire what it did not fire
    /// for want of an ACK.
    fn hear_again(
        &mut self,
        src: LinkAddr,
        (auxiliary, body): (&Auxiliary, &[u8]),
        is_answered: bool,
        now: Instant,
    ) {
        if !immediate::ENABLED || !self.waiting.is_owed {
            return;
        }
        let Some((source, &first)) = self.sender(src).ok().zip(body.first()) else {
            return;
        };
        let repeated = self
            .security_mut()
            .and_then(|it| it.peek_again(source, auxiliary, first));
        if let Some(first) = repeated {
            self.on_repetition(src, &[first], is_answered, now);
        }
    }

    /// The first bytes of a frame, as [`Mac::on_head`] has them.
    pub(super) fn hear_head(&mut self, head: &[u8], now: Instant) {
        let Ok((header, Some(auxiliary), body)) = Header::parse_secured(head) else {
            return;
        };
        if header.frame_type != FrameType::Data || (header.ack_request && !self.radio.auto_ack) {
            return;
        }
        let Ok((src, _)) = self.filter(&header) else {
            return;
        };
        let Some((source, &first)) = self.sender(src).ok().zip(body.first()) else {
            return;
        };
        let lifetime = self.config.duplicate_lifetime;
        let repeats = self.neighbors.repeats(src, header.sequence, now, lifetime);
        if (header.ack_request && repeats) || !self.is_awaited(src) {
            return;
        }
        let first = self
            .security_mut()
            .and_then(|it| it.peek(source, &auxiliary, first, now));
        if let Some(first) = first {
            self.trigger(src, &[first], now);
        }
    }

    /// Whether a frame waits to be opened.
    pub(crate) fn has_sealed(&self) -> bool {
        self.guard.has_sealed()
    }

    /// Whether a frame waits to be opened, and its ACK has left.
    pub(crate) fn may_open(&self) -> bool {
        self.guard.has_sealed() && !matches!(self.acknowledgment, Acknowledgment::Due { .. })
    }

    /// Opens the frame that was heard last; `None` where there is none, or it is not for the layer
    /// above.
    pub(crate) fn open_sealed(&mut self, now: Instant, rng: &mut Rng) -> Option<Opened> {
        let sealed = self.security_mut()?.sealed.take()?;
        match self.believe(sealed, now, rng) {
            Ok(opened) => opened,
            Err(reason) => {
                self.counters.drop(reason);
                None
            }
        }
    }

    /// Opens a frame, and only then remembers what it says.
    fn believe(
        &mut self,
        mut sealed: Sealed,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<Option<Opened>, FrameDrop> {
        let mpdu = sealed
            .bytes
            .get_mut(..usize::from(sealed.len))
            .unwrap_or_default();
        let (header, auxiliary, body) = Header::parse_secured(mpdu)?;
        let auxiliary = auxiliary.ok_or(FrameDrop::Unsecured)?;
        let (src, dst) = self.filter(&header)?;
        let source = self.sender(src)?;
        let is_command = header.frame_type == FrameType::Command;
        let payload_at = mpdu.len() - body.len();
        let clear_len = payload_at + usize::from(is_command);
        let parts = mpdu
            .split_at_mut_checked(clear_len)
            .ok_or(FrameDrop::Malformed)?;
        let security = self.guard.0.as_deref_mut().ok_or(FrameDrop::Secured)?;
        let (len, is_known) = security.open(source, auxiliary, (parts.0, parts.1), now)?;
        let payload_end = clear_len + len;
        let payload = mpdu.get(payload_at..payload_end).unwrap_or_default();
        if !is_command && let Some(proof) = Proof::parse(payload) {
            return self.on_proof(src, (&auxiliary, proof), is_known, now, rng);
        }
        if !is_known {
            let for_all = dst
                .is_broadcast()
                .then(|| self.neighbors.has_attempts_to_spare(now));
            let challenge = security.challenge_stranger(source, for_all, now, rng);
            if let Some(challenge) = challenge {
                self.send_proof(src, &challenge, now);
            }
            return Err(FrameDrop::Unproven);
        }
        if is_command {
            return self.on_request(src, payload).map(|()| None);
        }
        let answer = Answer::Given(sealed.is_answered);
        self.take_in(&header, (src, dst), payload, answer, now)?;
        Ok(Some(Opened {
            src,
            dst,
            pending: header.frame_pending,
            payload: (payload_at as u8, payload_end as u8),
            sealed,
        }))
    }

    /// A challenge, or an answer to this node's own.
    fn on_proof(
        &mut self,
        src: LinkAddr,
        proof: (&Auxiliary, Proof),
        is_known: bool,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<Option<Opened>, FrameDrop> {
        let source = extended(src).ok_or(FrameDrop::BadSource)?;
        let security = self.guard.0.as_deref_mut().ok_or(FrameDrop::Secured)?;
        let (reply, is_known) = security.on_proof(source, proof, is_known, now, rng);
        if let Some(reply) = reply {
            self.send_proof(src, &reply, now);
        }
        if !is_known {
            return Err(FrameDrop::Unproven);
        }
        #[cfg(feature = "sleepy")]
        self.end_listening(now + ANSWER_WAIT);
        self.neighbors.heard(src);
        Ok(None)
    }
}

impl Mac<'_> {
    /// The extended address that the nonces of this neighbour are made of. A short address has one
    /// where it is the parent's in a Thread network.
    ///
    /// # Errors
    /// [`FrameDrop::BadSource`], [`FrameDrop::NotParent`].
    fn sender(&self, addr: LinkAddr) -> Result<[u8; 8], FrameDrop> {
        match (addr, self.security()) {
            (LinkAddr::Extended(addr), _) => Ok(addr),
            (LinkAddr::Short(short), Some(security)) if security.is_child() => {
                security.extended_of(short).ok_or(FrameDrop::NotParent)
            }
            _ => Err(FrameDrop::BadSource),
        }
    }
}

impl Mac<'_> {
    /// Reminds a neighbour that uses an earlier key of the one in force. A stranger is reminded by
    /// a broadcast frame: even if an attacker without the key has provoked it, nodes that have
    /// missed the key hear it.
    fn remind(&mut self, to: LinkAddr, (source, index): ([u8; 8], u8), now: Instant) {
        if self.guard.is_waiting() || self.room(Class::Control) == 0 {
            return;
        }
        let Some(security) = self.guard.0.as_deref_mut() else {
            return;
        };
        if security.reminds(source, index, now) {
            let to = match security.knows(source) {
                true => to,
                false => LinkAddr::BROADCAST,
            };
            self.send_proof(to, &Proof::default(), now);
        }
    }

    /// Whether a request of this neighbour is answered by a challenge, if it is authentic: the
    /// neighbour has not shown yet that it is there.
    #[cfg(feature = "sleepy")]
    pub(crate) fn challenges(&self, by: LinkAddr) -> bool {
        let source = self.sender(by).ok();
        source
            .zip(self.security())
            .is_some_and(|(source, security)| !security.knows(source))
    }

    /// Queues a challenge or an answer, where there is room for it.
    fn send_proof(&mut self, to: LinkAddr, proof: &Proof, now: Instant) {
        let mut payload = [0; Proof::LEN_MAX];
        let len = proof.emit(&mut payload).unwrap_or_default();
        let frame = Frame {
            to,
            token: 0,
            payload: payload.get(..len).unwrap_or_default(),
            class: Class::Control,
            since: now,
        };
        if let Ok(index) = self.push(&frame)
            && let Some(slot) = self.queue.get_mut(index)
        {
            slot.secret = Secret::Proof;
        }
    }
}

/// The extended address that a nonce is made of.
pub(super) fn extended(addr: LinkAddr) -> Option<[u8; 8]> {
    match addr {
        LinkAddr::Extended(addr) => Some(addr),
        _ => None,
    }
}

/// The identifier of a data request (IEEE 802.15.4-2006 §7.3, table 82).
const DATA_REQUEST: u8 = 4;

/// How long a node that sleeps listens for the answer to its challenge, or for what a parent says
/// whose ACKs count for nothing.
#[cfg(feature = "sleepy")]
const ANSWER_WAIT: crate::time::Duration = crate::time::Duration::from_millis(200);
