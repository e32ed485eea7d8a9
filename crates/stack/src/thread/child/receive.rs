//! What a child makes of the messages that it gets.

use super::{
    Child, ChildState, Due, FORMED_MAX, Formed, MleDrop, Parent, Place, Quest, Refusal, local,
    margin_quality, message::BY_CONTEXT,
};
use crate::thread::mle::{self, Ends, Message, Numbers, command, tlv_type as tlv};
use crate::thread::network_data::{
    BORDER_ROUTER, COMPRESSES, CONTEXT, CONTEXT_ID, NetworkData, flag,
};
use crate::thread::tlv::Tlvs;
use crate::time::Instant;

/// A router that has answered a Parent Request.
#[derive(Clone, Copy, Debug)]
pub(in crate::thread) struct Candidate {
    pub(super) parent: Parent,
    /// The challenge that the request for an address answers.
    pub(super) challenge: [u8; 8],
    pub(super) heard: Numbers,
    /// The frame counter of its MAC.
    link_counter: u32,
    margin: u8,
    rank: u32,
}

impl Child {
    /// Acts on a datagram of [`mle::PORT`]: the payload, which is opened where it is. Returns the
    /// network data in it, of which the link takes the contexts.
    ///
    /// `rssi_dbm`: the signal strength of its frame, where that is known.
    ///
    /// # Errors
    /// Why the message has changed nothing; counted.
    pub(crate) fn on_message<'a>(
        &mut self,
        ends: &Ends,
        payload: &'a mut [u8],
        rssi_dbm: Option<i8>,
        now: Instant,
    ) -> Result<Option<NetworkData<'a>>, MleDrop> {
        let outcome = self.take(ends, payload, rssi_dbm, now);
        match &outcome {
            Ok(_) => {
                self.openings.give_back();
                self.counters.believed = self.counters.believed.wrapping_add(1);
            }
            Err(reason) => self.count(*reason),
        }
        outcome
    }

    /// Counts a message that was dropped.
    pub(crate) fn count(&mut self, reason: MleDrop) {
        if let Some(count) = self.counters.dropped.get_mut(reason as usize) {
            *count = count.saturating_add(1);
        }
    }

    fn take<'a>(
        &mut self,
        ends: &Ends,
        payload: &'a mut [u8],
        rssi_dbm: Option<i8>,
        now: Instant,
    ) -> Result<Option<NetworkData<'a>>, MleDrop> {
        // The key is everybody's: what the parent has said to another child is authentic, too.
        if !ends.dst.is_multicast() && ends.dst != local(self.identity.extended) {
            return Err(MleDrop::NotLocal);
        }
        let sender = ends.sender();
        let has_parent = self.is_attached() || self.quest == Quest::Former;
        let is_parent = has_parent && sender == self.place.parent.extended;
        let is_its = |it: &Candidate| it.parent.extended == sender;
        let is_asked = self.quest == Quest::Address && self.candidate.as_ref().is_some_and(is_its);
        let searches = matches!(self.quest, Quest::Routers | Quest::All);
        // A parent that was lost, and is heard while this node rests between searches.
        let is_back = self.state == ChildState::Searching
            && self.quest == Quest::Rest
            && sender == self.place.parent.extended;
        // Nobody else is worth the cipher: offers are for one node.
        let may_offer = searches && !ends.dst.is_multicast();
        if !is_parent && !may_offer && !is_asked && !is_back {
            return Err(MleDrop::NotParent);
        }
        // An answer that is awaited is opened in a flood, too: that takes no longer than the wait.
        let is_awaited = self.asked != 0 || matches!(self.quest, Quest::Address | Quest::Former);
        if !is_awaited && !self.openings.take(now) {
            return Err(MleDrop::Rationed);
        }
        let message = mle::open(&self.network, ends, payload)?;
        let margin = rssi_dbm.map(|rssi| (i16::from(rssi) - NOISE_DBM).clamp(0, 127) as u8);
        match message.command {
            command::PARENT_RESPONSE if searches => {
                self.on_offer(sender, &message, margin.unwrap_or_default(), now)?;
                Ok(None)
            }
            command::CHILD_ID_RESPONSE if is_asked => self.on_address(&message, now),
            command::PARENT_RESPONSE | command::CHILD_ID_RESPONSE => Err(MleDrop::Unasked),
            _ if is_back && message.numbers > self.heard => {
                // It may still know this node: a question tells sooner than the next search.
                self.heard = message.numbers;
                (self.quest, self.quest_at, self.unanswered) = (Quest::Former, Some(now), 0);
                self.own_challenge = None;
                Ok(None)
            }
            _ if !is_parent => Err(MleDrop::NotParent),
            _ => self.on_parent(&message, margin, now),
        }
    }

    /// A router offers to be the parent: the best one is asked when the time for answers is over, a
    /// perfect one at once.
    fn on_offer(
        &mut self,
        sender: [u8; 8],
        message: &Message<'_>,
        margin: u8,
        now: Instant,
    ) -> Result<(), MleDrop> {
        let tlvs = message.tlvs;
        if tlvs.find(tlv::RESPONSE) != Some(&self.challenge) {
            return Err(MleDrop::Unasked);
        }
        if self.is_attached() && sender == self.place.parent.extended {
            self.margin = margin;
            return Ok(());
        }
        let mut challenge = [0; 8];
        let needed = [
            (tlv::SOURCE_ADDRESS, 2),
            (tlv::LINK_FRAME_COUNTER, 4),
            (tlv::LINK_MARGIN, 1),
            (tlv::CONNECTIVITY, 5),
            (tlv::VERSION, 2),
        ];
        let values = tlvs.gather(&needed).ok_or(MleDrop::Incomplete)?;
        let [
            r1,
            r0,
            c3,
            c2,
            c1,
            c0,
            their_margin,
            priority,
            _,
            _,
            _,
            cost,
            v1,
            v0,
        ] = values;
        if !tlvs.fill(tlv::CHALLENGE, &mut challenge) {
            return Err(MleDrop::Incomplete);
        }
        let version = u16::from_be_bytes([v1, v0]);
        if version < VERSION_MIN {
            self.refusal = Some(Refusal::Version(version));
            return Err(MleDrop::OldVersion);
        }
        let quality = margin_quality(margin).min(margin_quality(their_margin));
        if self.is_attached() && quality <= margin_quality(self.margin) {
            return Ok(());
        }
        let priority = match priority >> 6 {
            0b01 => 2,
            0b11 => 0,
            _ => 1,
        };
        let is_shunned = self.shunned == Some(sender);
        let order = [u8::from(!is_shunned), quality, priority, u8::MAX - cost];
        let rank = u32::from_be_bytes(order);
        if self.candidate.is_none_or(|best| best.rank < rank) {
            self.candidate = Some(Candidate {
                parent: Parent {
                    extended: sender,
                    rloc16: u16::from_be_bytes([r1, r0]),
                },
                challenge,
                heard: message.numbers,
                link_counter: u32::from_be_bytes([c3, c2, c1, c0]),
                margin,
                rank,
            });
        }
        if quality == 3 && priority > 0 && !is_shunned {
            self.quest_at = Some(now);
        }
        Ok(())
    }

    /// The candidate has given this node an address, or refused to.
    fn on_address<'a>(
        &mut self,
        message: &Message<'a>,
        now: Instant,
    ) -> Result<Option<NetworkData<'a>>, MleDrop> {
        let tlvs = message.tlvs;
        let candidate = self.candidate.as_ref().ok_or(MleDrop::Unasked)?;
        if message.numbers <= candidate.heard {
            return Err(MleDrop::Replayed);
        }
        if let Some([status]) = tlvs.array(tlv::STATUS) {
            self.refusal = Some(Refusal::Status(status));
            self.quest_at = Some(now);
            return Ok(None);
        }
        let needed = [(tlv::SOURCE_ADDRESS, 2), (tlv::ADDRESS16, 2)];
        let values = tlvs.gather(&needed).ok_or(MleDrop::Incomplete)?;
        let [p1, p0, r1, r0] = values;
        let leader = tlvs.array(tlv::LEADER_DATA).ok_or(MleDrop::Incomplete)?;
        let data = read(message)?;
        self.place = Place {
            parent: Parent {
                extended: candidate.parent.extended,
                rloc16: u16::from_be_bytes([p1, p0]),
            },
            rloc16: u16::from_be_bytes([r1, r0]),
        };
        (self.margin, self.link_counter) = (candidate.margin, candidate.link_counter);
        self.settle(message.numbers, leader, now);
        self.learn(leader, data);
        // The request had no room for them.
        if self.formed.iter().any(Option::is_some) {
            self.update();
        }
        Ok(data)
    }

    /// This node is attached where [`Self::place`] says.
    fn settle(&mut self, heard: Numbers, leader: [u8; 8], now: Instant) {
        self.counters.attached = self.counters.attached.wrapping_add(1);
        self.state = ChildState::Attached;
        (self.heard, self.leader) = (heard, leader);
        self.sequence = self.sequence.max(heard.sequence);
        (self.quest, self.candidate, self.refusal) = (Quest::Rest, None, None);
        self.shunned = None;
        self.ask_no_more();
        // Whatever the network data was before.
        (self.searches, self.data_version) = (0, None);
        self.quest_at = Some(now + super::BETTER_PACE);
        self.update_at = Some(now + self.pace());
        self.has_news = true;
    }

    /// A message of the parent, or of the former one.
    fn on_parent<'a>(
        &mut self,
        message: &Message<'a>,
        margin: Option<u8>,
        now: Instant,
    ) -> Result<Option<NetworkData<'a>>, MleDrop> {
        let (tlvs, numbers) = (message.tlvs, message.numbers);
        let is_answer = self.own_challenge.is_some_and(|it| {
            message.command == command::CHILD_UPDATE_RESPONSE
                && tlvs.find(tlv::RESPONSE) == Some(&it)
        });
        let challenge = match message.command {
            command::CHILD_UPDATE_REQUEST => tlvs.array(tlv::CHALLENGE),
            _ => None,
        };
        if self.quest == Quest::Former && !is_answer {
            return Err(MleDrop::Unasked);
        }
        if numbers <= self.heard && !is_answer {
            // One that has lost its key sequence asks in an earlier one, and takes nothing of this
            // node before it has an answer. It may be a recording: so it is asked itself.
            let is_past = challenge.is_some() && numbers.sequence < self.heard.sequence;
            if !is_past || self.unanswered > 0 || now < self.answers_past_at {
                return Err(MleDrop::Replayed);
            }
            self.answers_past_at = now + super::PAST_PACE;
            self.unanswered = 1;
            self.answer(challenge);
            return Ok(None);
        }
        let data = read(message)?;
        let leader = tlvs.array(tlv::LEADER_DATA).unwrap_or(self.leader);
        self.heard = numbers;
        // Of a recording the signal would say where the stranger is that sent it.
        self.margin = margin.unwrap_or(self.margin);
        if numbers.sequence > self.sequence {
            self.sequence = numbers.sequence;
            self.has_news = true;
        }
        let rloc16 = tlvs.array(tlv::SOURCE_ADDRESS).map(u16::from_be_bytes);
        let has_moved = rloc16.is_some_and(|rloc16| rloc16 != self.place.parent.rloc16);
        let status = tlvs.array(tlv::STATUS);
        if has_moved || status.is_some() {
            self.lose(now);
            self.refusal = status.map(|[status]| Refusal::Status(status));
            return Ok(None);
        }
        match message.command {
            command::ADVERTISEMENT => {}
            command::CHILD_UPDATE_RESPONSE => {
                let counter = tlvs.array(tlv::LINK_FRAME_COUNTER);
                let counter = counter.filter(|_| is_answer).map(u32::from_be_bytes);
                self.link_counter = counter.unwrap_or(self.link_counter);
                // In an earlier sequence it has not yet gone over to this node's.
                self.counts_anew |= counter.is_some() && numbers.sequence >= self.sequence;
                self.has_news |= self.counts_anew;
                match (self.quest, counter) {
                    (Quest::Former, None) => return Err(MleDrop::Incomplete),
                    (Quest::Former, _) => self.settle(numbers, leader, now),
                    _ => self.on_answer(Due::UPDATE_REQUEST, now),
                }
                // An answer that comes later still, or a recording of it, brings no counters.
                self.own_challenge = None;
            }
            command::DATA_RESPONSE => {
                self.on_answer(Due::DATA_REQUEST, now);
                // One that gives no network data is asked again when that has changed.
                self.data_version = Some(self.version(&leader));
            }
            command::CHILD_UPDATE_REQUEST => self.answer(challenge),
            command::ANNOUNCE => self.counters.announces = self.counters.announces.wrapping_add(1),
            _ => return Err(MleDrop::NotForChildren),
        }
        self.learn(leader, data);
        Ok(data)
    }

    /// Answers a Child Update Request of the parent, and asks it to confirm.
    const fn answer(&mut self, challenge: Option<[u8; 8]>) {
        self.their_challenge = challenge;
        self.due |= Due::UPDATE_RESPONSE;
        if challenge.is_some() {
            self.due |= Due::UPDATE_REQUEST;
        }
    }

    /// The parent has answered a request.
    fn on_answer(&mut self, request: u8, now: Instant) {
        self.asked &= !request;
        self.unanswered = 0;
        if self.asked == 0 {
            self.update_at = Some(now + self.pace());
        }
    }

    /// Takes over leader data, and the network data of it.
    fn learn(&mut self, leader: [u8; 8], data: Option<NetworkData<'_>>) {
        let former = self.partition();
        self.leader = leader;
        if self.partition() != former {
            // Another leader counts its versions by itself: the same number is other data.
            self.data_version = None;
            self.update();
        }
        let version = Some(self.version(&leader));
        match data {
            Some(data) => {
                self.data_version = version;
                self.form(data);
            }
            None if version != self.data_version && self.asked & Due::DATA_REQUEST == 0 => {
                self.due |= Due::DATA_REQUEST;
            }
            None => {}
        }
    }

    /// Forms an address of each prefix that invites to it, the preferred ones first.
    fn form(&mut self, data: NetworkData<'_>) {
        let mut formed = [None; FORMED_MAX];
        let mut free = formed.iter_mut();
        self.border_router = None;
        for wanted in [flag::SLAAC | flag::PREFERRED, flag::SLAAC] {
            for prefix in data {
                let (flags, context) = self.details(prefix.details);
                if flags & OF_ADDRESSES == wanted
                    && prefix.bits == 64
                    && let Some(place) = free.next()
                {
                    let octets = prefix.addr.octets();
                    *place = Some(Formed {
                        prefix: octets.first_chunk().copied().unwrap_or_default(),
                        context,
                    });
                }
            }
        }
        if formed != self.formed {
            self.formed = formed;
            self.update();
        }
        self.has_news = true;
    }

    /// The flags of all border routers of a prefix, and the context that stands for it in a
    /// registration; takes note of the first one with a default route.
    fn details(&mut self, details: Tlvs<'_>) -> (u16, u8) {
        let (mut flags, mut context) = (0, 0);
        for (kind, value) in details {
            match (kind >> 1, value) {
                (CONTEXT, [id, ..]) if id & COMPRESSES != 0 => {
                    context = BY_CONTEXT | id & CONTEXT_ID;
                }
                (BORDER_ROUTER, value) => {
                    // One entry, or a few.
                    for entry in value.chunks_exact(4) {
                        if let [r1, r0, f1, f0] = *entry {
                            let of_this = u16::from_be_bytes([f1, f0]);
                            flags |= of_this;
                            let rloc16 = u16::from_be_bytes([r1, r0]);
                            if of_this & flag::DEFAULT_ROUTE != 0 {
                                self.border_router.get_or_insert(rloc16);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        (flags, context)
    }

    /// Whether the parent's frames are new from its last [`Self::binding`] on, whatever was heard
    /// of it; once.
    pub(crate) const fn take_recount(&mut self) -> bool {
        core::mem::replace(&mut self.counts_anew, false)
    }

    /// The extended address of the neighbour whose frames are believed, the parent's or that of the
    /// candidate that was asked, and its first frame counter that is new. A former parent has none
    /// before it has answered: any frame of the past would be new.
    pub(crate) fn binding(&self) -> Option<([u8; 8], Numbers)> {
        let (extended, heard, counter) = match (self.quest, &self.candidate) {
            (Quest::Address, Some(candidate)) => (
                candidate.parent.extended,
                candidate.heard,
                candidate.link_counter,
            ),
            _ if self.is_attached() => (self.place.parent.extended, self.heard, self.link_counter),
            _ => return None,
        };
        let sequence = heard.sequence;
        Some((extended, Numbers { sequence, counter }))
    }
}

/// The network data of a message, if there is any.
fn read<'a>(message: &Message<'a>) -> Result<Option<NetworkData<'a>>, MleDrop> {
    let data = message.tlvs.find(tlv::NETWORK_DATA);
    let data = data.map(NetworkData::parse).transpose();
    data.map_err(|_| MleDrop::Incomplete)
}

/// The level from which the margin of a link counts (OpenThread's noise floor).
const NOISE_DBM: i16 = -100;

/// The flags that say whether addresses are formed: not in the prefix of a domain.
const OF_ADDRESSES: u16 = flag::SLAAC | flag::DOMAIN | flag::PREFERRED;

/// Thread 1.1.
const VERSION_MIN: u16 = 2;
