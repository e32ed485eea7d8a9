//! A host that brings new firmware to motes over CoAP.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::random::Rng;
use motet::time::{Duration, Instant, earliest};
use motet::udp::Inbox;

use crate::Arena;
use crate::apps::readings::take_inbox;
use crate::coap;
use crate::coap::push::{Mode, Push};

/// Brings an image to motes over CoAP.
#[derive(Debug)]
pub struct BlockPusher<'m> {
    image: Vec<u8>,
    inbox: Option<Inbox<'m>>,
    transfers: Vec<(Ipv6Addr, Push)>,
    in_turn: bool,
    /// A message that the node had no room for, to whom, and when to try again.
    held: Option<(Ipv6Addr, Vec<u8>, Instant)>,
}

impl<'m> BlockPusher<'m> {
    /// Brings `image` to these motes, one after another or all at once, in blocks of `block_len`.
    pub fn new(
        image: Vec<u8>,
        motes: impl Iterator<Item = Ipv6Addr>,
        in_turn: bool,
        (mode, block_len): (Mode, usize),
        mut rng: Rng,
        arena: &'m Arena,
    ) -> Self {
        let sizes = (image.len(), block_len);
        let transfers = motes.map(|mote| (mote, Push::new(mode, sizes, rng.derive())));
        let memory = arena.alloc_slice_fill_copy(INBOX_LEN, 0);
        Self {
            transfers: transfers.collect(),
            image,
            inbox: Some(Inbox::new(arena.alloc_slice_copy(&[PORT]), memory)),
            in_turn,
            held: None,
        }
    }

    /// The image.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Whether a mote, by its place, has got the image; none while it may.
    pub fn outcome(&self, mote: usize) -> Option<bool> {
        self.transfers.get(mote)?.1.outcome()
    }

    /// Bytes of the image that were sent to this mote again.
    pub fn resent(&self, mote: usize) -> u64 {
        self.transfers.get(mote).map_or(0, |(_, push)| push.resent)
    }

    /// The transfers that are under way.
    fn active(&mut self) -> impl Iterator<Item = &mut (Ipv6Addr, Push)> {
        let most = if self.in_turn { 1 } else { usize::MAX };
        let open = |transfer: &&mut (Ipv6Addr, Push)| transfer.1.outcome().is_none();
        self.transfers.iter_mut().filter(open).take(most)
    }

    pub(in crate::apps) fn next_deadline(&self) -> Option<Instant> {
        if let Some((_, _, at)) = &self.held {
            return Some(*at);
        }
        let most = if self.in_turn { 1 } else { usize::MAX };
        let open = self
            .transfers
            .iter()
            .filter(|(_, push)| push.outcome().is_none());
        let due = open.take(most).filter_map(|(_, push)| push.next_deadline());
        due.fold(None, |first, at| earliest(first, Some(at)))
    }

    pub(in crate::apps) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.inbox = take_inbox(node).or(self.inbox.take());
        self.held = None;
    }

    pub(in crate::apps) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if let Some(inbox) = self.inbox.take() {
            node.set_inbox(inbox);
            return true;
        }
        let mut acted = false;
        let mut bytes = [0; MESSAGE_LEN_MAX];
        while let Some(datagram) = node.inbox_mut().and_then(|inbox| inbox.recv(&mut bytes)) {
            acted = true;
            let from = datagram.from.addr;
            let mut transfers = self.transfers.iter_mut();
            if let Some((_, push)) = transfers.find(|(mote, _)| *mote == from) {
                push.on_message(&bytes[..datagram.len], now);
            }
        }
        if let Some((to, message, at)) = self.held.take() {
            if now < at {
                self.held = Some((to, message, at));
                return acted;
            }
            self.transmit(to, message, node, now);
            acted = true;
        }
        while self.held.is_none()
            && let Some((to, message)) = self.next_message(now)
        {
            acted = true;
            self.transmit(to, message, node, now);
        }
        acted
    }

    fn next_message(&mut self, now: Instant) -> Option<(Ipv6Addr, Vec<u8>)> {
        let image = std::mem::take(&mut self.image);
        let next = self.active().find_map(|(mote, push)| {
            let message = push.poll(&image, now)?;
            Some((*mote, message))
        });
        self.image = image;
        next
    }

    fn transmit(&mut self, to: Ipv6Addr, message: Vec<u8>, node: &mut Node<'m>, now: Instant) {
        let remote = (to, coap::PORT);
        if node.send_datagram(remote, PORT, &message).is_err() {
            self.held = Some((to, message, now + HELD_FOR));
        }
    }
}

/// The host's own.
const PORT: u16 = 0xf0b3;

/// Answers are short.
const INBOX_LEN: usize = 8_192;

/// More than a packet of the mesh has.
const MESSAGE_LEN_MAX: usize = 1_280;

/// How long a datagram waits for room in the queue.
const HELD_FOR: Duration = Duration::from_millis(20);
