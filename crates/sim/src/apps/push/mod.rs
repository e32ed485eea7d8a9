//! A host that brings new firmware to motes, as `motet push` does, and what its motes have of it.
//!
//! Place: variants of [`crate::apps::App`]. Over TCP, motes run [`super::Services`] with
//! `/firmware`, and the host's tasks speak HTTP with them; over CoAP they run
//! [`super::BlockTaker`].

mod blocks;
mod bring;
mod clock;
mod http;
mod image;

use std::cell::RefCell;
use std::rc::Rc;

use motet::node::Node;
use motet::tcp::{Buffers, Config};
use motet::time::Instant;

use self::bring::{Fate, Push};
use self::clock::Clock;
use self::http::Client;
use super::ends::Ends;
use super::lines::{Calls, Task};
use crate::ordered;

pub use self::blocks::BlockPusher;
pub use self::bring::Target;
pub use self::image::IMAGE_LEN_MIN;
pub(crate) use self::image::{demands, image};

/// Which mote gets the image when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One after another.
    InTurn,
    /// All at once.
    AtOnce,
    /// Each from its source among the targets, part by part as that is known to have them.
    Tree,
}

/// Brings an image to motes over TCP.
#[derive(Debug)]
pub struct Pusher<'m> {
    ends: Ends<'m>,
    push: Rc<Push>,
    tasks: Vec<Task<()>>,
    calls: Calls,
    free: Vec<Buffers<'m>>,
}

impl<'m> Pusher<'m> {
    /// Begins to bring `image` to `motes`.
    pub fn new(
        image: Vec<u8>,
        motes: Vec<Target>,
        order: Order,
        ends: Ends<'m>,
        now: Instant,
    ) -> Self {
        let push = Rc::new(Push {
            client: Client::new(Clock::new(now)),
            image,
            fates: RefCell::new(vec![Fate::default(); motes.len()]),
            motes,
        });
        Self {
            tasks: tasks(&push, order),
            ends: ends.with(bound_patience),
            push,
            calls: Calls::default(),
            free: Vec::new(),
        }
    }

    /// Whether a mote, by its place among the targets, has got the image; none while it may.
    pub fn outcome(&self, mote: usize) -> Option<bool> {
        let fate = *self.push.fates.borrow().get(mote)?;
        fate.is_over.then_some(fate.has_it)
    }

    /// Bytes of the image that were sent to this mote again.
    pub fn resent(&self, mote: usize) -> u64 {
        self.push.fates.borrow()[mote].resent
    }

    /// The image.
    pub fn image(&self) -> &[u8] {
        &self.push.image
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.push.client.clock.due()
    }

    pub(super) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        let Some(config) = self.ends.config(node) else {
            return false;
        };
        self.push.client.clock.set(now);
        let mut acted = self.call(node, config, now);
        let before = self.tasks.len();
        self.tasks.retain_mut(|task| task.run().is_none());
        acted |= self.tasks.len() < before;
        acted | self.call(node, config, now)
    }

    fn call(&mut self, node: &mut Node<'m>, config: &'m Config, now: Instant) -> bool {
        let ends = &self.ends;
        let buffers = |free: &mut Vec<Buffers<'m>>| {
            let spare = free.pop();
            Some(spare.unwrap_or_else(|| ends.buffers(config)))
        };
        let dial = &self.push.client.dial;
        self.calls
            .step(dial, node, config, &mut self.free, buffers, now)
    }

    /// The host is switched off: its connections are gone.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.calls.switch_off(node.tcp_mut(), &mut self.free);
    }
}

/// What runs at the same time.
fn tasks(push: &Rc<Push>, order: Order) -> Vec<Task<()>> {
    let motes = 0..push.motes.len();
    match order {
        Order::InTurn => vec![Task::new(push.clone().in_turn(motes.collect()))],
        Order::AtOnce => motes
            .map(|mote| Task::new(push.clone().in_turn(vec![mote])))
            .collect(),
        Order::Tree => {
            let of = |source: Option<usize>| -> Vec<usize> {
                let mut own: Vec<usize> = motes
                    .clone()
                    .filter(|mote| push.motes[*mote].source == source)
                    .collect();
                ordered::sort_by_key(&mut own, |mote| {
                    std::cmp::Reverse(height(&push.motes, *mote))
                });
                own
            };
            let heads = Task::new(push.clone().in_rounds(of(None)));
            let following = motes.clone().filter_map(|mote| {
                let source = push.motes[mote].source?;
                Some(Task::new(push.clone().follow(mote, source)))
            });
            std::iter::once(heads).chain(following).collect()
        }
    }
}

/// How long the way below a mote is: who has most below begins first.
fn height(motes: &[Target], mote: usize) -> usize {
    let below = (0..motes.len()).filter(|below| motes[*below].source == Some(mote));
    below
        .map(|below| 1 + height(motes, below))
        .max()
        .unwrap_or(0)
}

/// A mote that was switched off while it fetches sends nothing: the host asks whether it is there.
fn bound_patience(config: &mut Config) {
    config.keepalive_idle_s = 20;
    config.keepalive_interval_s = 10;
    config.keepalive_probes = 6;
}
