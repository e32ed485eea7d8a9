//! Where neighbours meet when a mesh uses several channels.
//!
//! The rule: every node has a home channel, which follows from the link address that it sends from,
//! and is there whenever it does not transmit. A mesh uses addresses of one kind, short or
//! extended: those of the other kind lead elsewhere. A node that has a frame for another one
//! assesses, transmits and awaits the ACK there, then goes home. Data, reverse ACKs and control
//! messages all meet a node in that one place. A frame for all is sent once on each channel of the
//! plan.
//!
//! Neighbours whose addresses follow one another never share a home, so that each link of a
//! numbered chain has a channel of its own. A node that transmits is not at home: a neighbour
//! that calls then hears no ACK and tries again, as after any loss.
//!
//! Left out: channels that change with time, and the choice of good ones. Feature `channels`.
//! Source: Conditional immediate transmission, §2.3: a static channel for each link.

use super::state::State;
use super::{Action, Mac};
use crate::time::Instant;
use crate::wire::LinkAddr;

/// The channels that a mesh uses, 11 to 26; none: each node stays on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Channels(u16);

impl Channels {
    /// One channel for all nodes: [`super::Config::channel`].
    pub const SINGLE: Self = Self(0);

    /// All 16 of the 2.4 GHz band.
    pub const ALL: Self = Self(u16::MAX);

    /// These channels; others than 11 to 26 do not count.
    pub fn of(channels: &[u8]) -> Self {
        let bit = |channel: &u8| 1u16.checked_shl(u32::from(channel.wrapping_sub(FIRST)));
        Self(
            channels
                .iter()
                .filter_map(bit)
                .fold(0, |all, bit| all | bit),
        )
    }

    /// Whether the set has one channel only.
    pub const fn is_single(self) -> bool {
        self.0.count_ones() <= 1
    }

    /// The channels, 11 to 26, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (FIRST..=LAST).filter(move |channel| self.0 >> (channel - FIRST) & 1 == 1)
    }

    /// The home channel of the node with this address; `None` where there is no channel plan.
    pub(crate) fn home(self, addr: LinkAddr) -> Option<u8> {
        let number = match addr {
            LinkAddr::Short(short) => short.into(),
            LinkAddr::Extended([.., a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
            #[cfg(feature = "ble")]
            LinkAddr::Device(_) => return None,
        };
        let place = number.checked_rem(self.0.count_ones())?;
        self.iter().nth(place as usize)
    }

    /// The next channel of the plan after `channel`; the first one after `None`.
    pub(crate) fn after(self, channel: Option<u8>) -> Option<u8> {
        self.iter()
            .find(|next| channel.is_none_or(|channel| *next > channel))
    }
}

impl Mac<'_> {
    /// The channel where this node listens.
    pub(crate) fn home(&self) -> u8 {
        let home = self.config.channels.home(self.source());
        home.unwrap_or(self.config.channel)
    }

    /// Tunes to where the radio has to be now, unless it is there.
    pub(super) fn poll_channel(&mut self, now: Instant) -> Option<Action> {
        let channel = if self.is_away(now) {
            self.target()
        } else {
            self.home()
        };
        self.tune(channel)
    }

    /// Where the frame under way goes.
    fn target(&self) -> u8 {
        let Some(slot) = self.queue.get(self.current) else {
            return self.home();
        };
        let target = match slot.to.is_broadcast() {
            true => self.sweep,
            false => self.config.channels.home(slot.to),
        };
        target.unwrap_or(self.config.channel)
    }

    /// Whether an attempt needs the channel it goes out on: from the assessment to the ACK.
    fn is_away(&self, now: Instant) -> bool {
        match self.state {
            State::Backoff { until } => self.is_ready() && now >= self.may_assess_at(until),
            State::Assessing { .. }
            | State::Clear
            | State::Triggered
            | State::Firing { .. }
            | State::AwaitingAck { .. } => true,
            State::Idle | State::Preloading { .. } | State::Arming { .. } => false,
        }
    }
}

/// Channels of the 2.4 GHz band (IEEE 802.15.4-2006 §6.1.2.1).
const FIRST: u8 = 11;
const LAST: u8 = 26;

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn homes_follow_from_addresses() {
        let plan = Channels::of(&[26, 15, 20, 99, 0]);
        assert_eq!(plan.iter().collect::<Vec<_>>(), [15, 20, 26]);
        let extended = |last| LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, last]);
        for (number, home) in [(0, 15), (1, 20), (2, 26), (3, 15), (255, 15)] {
            assert_eq!(plan.home(extended(number)), Some(home), "{number}");
            assert_eq!(plan.home(LinkAddr::Short(number.into())), Some(home));
        }
        assert_eq!(Channels::SINGLE.home(extended(1)), None);
    }

    /// A channel for each link of a chain, also where the last byte of a number wraps.
    #[test]
    fn successive_addresses_have_different_homes() {
        let of_number = |number: u16| {
            let [high, low] = number.to_be_bytes();
            [
                LinkAddr::Short(number),
                LinkAddr::Extended([2, 0, 0, 0, 0, 0, high, low]),
            ]
        };
        for channels in [&[11, 12][..], &[15, 20, 26], &[11, 12, 13, 14, 15, 16, 17]] {
            let plan = Channels::of(channels);
            for number in 0..=u16::MAX - 1 {
                for kind in 0..2 {
                    let homes = [number, number + 1].map(|n| plan.home(of_number(n)[kind]));
                    assert_ne!(homes[0], homes[1], "{number} in {channels:?}");
                }
            }
        }
    }

    #[test]
    fn a_sweep_visits_each_channel_once() {
        for channels in [&[][..], &[11], &[26, 11, 12]] {
            let plan = Channels::of(channels);
            let mut visited = Vec::new();
            while let Some(next) = plan.after(visited.last().copied()) {
                visited.push(next);
            }
            let mut sorted = channels.to_vec();
            sorted.sort_unstable();
            assert_eq!(visited, sorted);
        }
    }
}
