//! The air: what radios hear of one another, and what that costs their nodes.
//!
//! Purpose: [`Air`] joins the medium, the calendar, the capture and the tallies behind one
//! interface for radios.
//! Place: radios schedule events and transmit frames here; [`crate::net::world`] takes the events
//! out. Packets are opaque bytes here.

pub mod census;
pub mod energy;
mod event;
pub mod filter;
pub mod gains;
pub mod k7;
pub mod line;
pub mod log;
pub mod medium;
pub mod noise;
pub mod nonces;
pub mod phy;
pub mod power;
pub mod profile;
pub mod radio;

use std::collections::HashMap;

use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{FrameType, Header};

use crate::air::census::Census;
use crate::air::log::{Happening, Log, LoggedFrame, Turn};
use crate::air::medium::{Fate, Finished, Frame, Medium};
use crate::air::nonces::Nonces;
use crate::air::power::Power;
use crate::air::radio::State;
use crate::calendar::Calendar;
use crate::capture::Capture;

pub use self::event::{End, Event, WirePacket};

/// The medium with all that happens on it.
#[derive(Debug)]
pub struct Air {
    /// Which nodes hear which frames.
    pub medium: Medium,
    /// Events to come, in order of time.
    pub calendar: Calendar<Event>,
    /// Frames and their fates, by sender, then by the few nodes that it sends to, in order.
    links: Vec<Vec<(usize, LinkTally)>>,
    /// Frames for nobody in particular, and ACKs nobody is known to wait for.
    pub broadcasts: u64,
    nodes: HashMap<LinkAddr, usize>,
    capture: Option<Capture>,
    /// The census of frames by what they carry, if it is on.
    pub census: Option<Census>,
    /// The nonces of frames on the air, if they are checked.
    pub nonces: Option<Nonces>,
    /// The log for an observer, if there is one.
    pub log: Option<Log>,
}

/// Frames sent from one node to another, and their fates there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkTally {
    /// Frames with a payload, each attempt counted.
    pub frames: u64,
    /// Bytes of the frames' PSDUs.
    pub bytes: u64,
    /// Immediate ACKs sent.
    pub acks: u64,
    /// The fates of the frames, by [`Fate::index`].
    pub frame_fates: [u64; Fate::COUNT],
    /// The fates of the ACKs.
    pub ack_fates: [u64; Fate::COUNT],
}

impl Air {
    /// An empty air; `addresses` are each node's link addresses.
    pub fn new(medium: Medium, addresses: impl IntoIterator<Item = (LinkAddr, usize)>) -> Self {
        Self {
            medium,
            calendar: Calendar::new(),
            links: Vec::new(),
            broadcasts: 0,
            nodes: addresses.into_iter().collect(),
            capture: None,
            census: None,
            nonces: None,
            log: None,
        }
    }

    /// The node at a place has another short address than before.
    pub fn rename(&mut self, (before, after): (Option<u16>, Option<u16>), place: usize) {
        if let Some(before) = before {
            self.nodes.remove(&LinkAddr::Short(before));
        }
        if let Some(after) = after {
            self.nodes.insert(LinkAddr::Short(after), place);
        }
    }

    /// Writes every frame to `capture` from now on.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.capture = capture;
    }

    /// Takes the capture back, to finish it.
    pub fn take_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    /// Puts a frame on the air. `to`: the destination of an ACK, whose bytes have no address.
    pub fn transmit(&mut self, from: usize, frame: Frame, to: Option<usize>, now: Instant) {
        let addressed = || filter::header(frame.psdu())?.dst;
        let intended = to.or_else(|| self.nodes.get(&addressed()?.addr).copied());
        if let Some(capture) = &mut self.capture {
            let power = intended.and_then(|to| self.medium.power(from, to));
            let dbm = power.map(Power::dbm);
            capture.frame(now, frame.psdu(), self.medium.channel(from), dbm);
        }
        if let Some(census) = &mut self.census {
            census.note(from, frame.psdu(), intended);
        }
        if let Some(nonces) = &mut self.nonces {
            nonces.note(frame.psdu());
        }
        let end = now + phy::air_time(frame.psdu().len());
        let id = self.medium.start(from, frame, intended, now);
        self.calendar.schedule(end, Event::FrameEnd { id });
    }

    /// Tells the observer that the radio at a place is in another state. Without one it is a look
    /// whether there is.
    #[inline]
    pub(crate) fn note_state(&mut self, place: usize, state: State, at: Instant) {
        if self.log.is_some() {
            let node = place;
            self.note(|_| Happening::Radio(Turn { node, at, state }));
        }
    }

    /// Tells the observer of a frame that has left the air, as [`Self::note_state`].
    #[inline]
    pub(crate) fn note_frame(
        &mut self,
        finished: &Finished,
        header: Option<&Header>,
        fate: Fate,
        end: Instant,
    ) {
        if self.log.is_some() {
            let logged = |medium: &Medium| LoggedFrame::of(finished, header, (fate, end), medium);
            self.note(|medium| Happening::Frame(logged(medium)));
        }
    }

    #[cold]
    fn note(&mut self, happening: impl FnOnce(&Medium) -> Happening) {
        let Self { log, medium, .. } = self;
        if let Some(log) = log {
            log.note(|| happening(medium));
        }
    }

    /// The tally of each link, by sender and receiver, in order.
    pub fn links(&self) -> impl Iterator<Item = ((usize, usize), &LinkTally)> {
        let of_sender = |(from, links): (usize, _)| {
            let links: &Vec<(usize, LinkTally)> = links;
            links.iter().map(move |(to, tally)| ((from, *to), tally))
        };
        self.links.iter().enumerate().flat_map(of_sender)
    }

    /// The tally of frames from one node to another.
    pub fn link(&self, from: usize, to: usize) -> LinkTally {
        let links = self.links.get(from).map_or(&[][..], Vec::as_slice);
        let place = links.binary_search_by_key(&to, |(to, _)| *to);
        place.map_or_else(|_| LinkTally::default(), |place| links[place].1)
    }

    /// Counts a frame with this header that has left the air, and its fate at the node it was for.
    pub fn count(&mut self, finished: &Finished, header: Option<&Header>, fate: Fate) {
        let Some(to) = finished.intended else {
            self.broadcasts += 1;
            return;
        };
        if self.links.len() <= finished.from {
            self.links.resize(finished.from + 1, Vec::new());
        }
        let links = &mut self.links[finished.from];
        let place = links
            .binary_search_by_key(&to, |(to, _)| *to)
            .unwrap_or_else(|place| {
                links.insert(place, (to, LinkTally::default()));
                place
            });
        let tally = &mut links[place].1;
        let is_ack = header.is_some_and(|header| header.frame_type == FrameType::Ack);
        if is_ack {
            tally.acks += 1;
            tally.ack_fates[fate.index()] += 1;
        } else {
            tally.frames += 1;
            tally.bytes += finished.frame.psdu().len() as u64;
            tally.frame_fates[fate.index()] += 1;
        }
    }
}
