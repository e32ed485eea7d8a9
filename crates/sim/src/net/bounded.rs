//! Which flows of a network have a bound, and the path that it follows from.
//!
//! Purpose: [`bound`](crate::net::bound) knows chains of equal nodes, each of which hears the next
//! as well as the one before. A flow has such a bound where the nodes on its way are that, whatever
//! else is in the mesh; over one hop always. Where radios differ, or links are uneven as on a
//! floor, the source's own time bounds it. Left out: nodes that change their parent, of which no
//! path is known in advance.

use std::net::Ipv6Addr;

use motet::link::Forwarding;
use motet::mac::config::BE_MIN;

use crate::air::profile::Profile;
use crate::ble::estimate::SduTimes;
use crate::net::bound::Path;
use crate::net::network::{BleOptions, Joining, NetworkOptions, NodeOptions};
use crate::net::segments::Segments;
use crate::net::world::World;

/// A flow of bulk data in one direction, as far as its bound goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundedFlow<'a> {
    /// The mesh nodes on its way, from its sender's to its receiver's.
    pub nodes: &'a [usize],
    /// The addresses of sender and receiver.
    pub addrs: [Ipv6Addr; 2],
    /// Whether its segments carry timestamps.
    pub timestamps: bool,
    /// Segments for each ACK. `None`: ACKs may be left out on their way.
    pub ack_every: Option<u8>,
}

impl BoundedFlow<'_> {
    /// The flow's path in a network that was built with `options` and has joined; `None` where no
    /// bound is known.
    pub fn path(&self, world: &World<'_>, options: &NetworkOptions) -> Option<Path> {
        let (first, others) = self.nodes.split_first()?;
        let model = options.nodes.get(*first)?;
        let is_alike = |node: &usize| {
            options.nodes.get(*node).is_some_and(|node| {
                node.profile == model.profile
                    && node.mac.be_min == model.mac.be_min
                    && node.mac.channels == model.mac.channels
                    && node.forwarding == model.forwarding
            })
        };
        let is_fixed = options.joining != Joining::Rpl && options.later.is_empty();
        let is_plain = model.mac.acknowledged && model.mac.assessed;
        let hops = others.len();
        if hops == 0 || !is_fixed || !is_plain {
            return None;
        }
        let is_single = model.mac.channels.is_single();
        let senses_two_hops = match (hops, is_single) {
            (1, _) | (_, false) => Some(false),
            (_, true) => self.air(options, &model.profile),
        };
        let source_only = senses_two_hops.is_none() || !others.iter().all(is_alike);
        let segments = self.segments(options)?;
        Some(Path {
            profile: model.profile,
            hops,
            is_immediate: model.forwarding == Forwarding::Immediate
                && !model.profile.capabilities.shared_buffer,
            is_multi_channel: !is_single,
            senses_two_hops: senses_two_hops.unwrap_or_default(),
            be_min: self.be_min(model, options),
            segment: segments.frames(world, self.ack_every.map_or(0.0, |n| 1.0 / f64::from(n))),
            ack_every: self.ack_every,
            source_only,
        })
    }

    /// The segments of the flow. A mote knows how long they are; those of the other direction are
    /// no longer.
    pub fn segments(&self, options: &NetworkOptions) -> Option<Segments> {
        let (from, next, peer) = match self.nodes {
            [.., next, from] if *from != 0 => (*from, *next, self.addrs[0]),
            [from, next, ..] => (*from, *next, self.addrs[1]),
            _ => return None,
        };
        let ends = [*self.nodes.first()?, *self.nodes.last()?];
        Some(Segments {
            from,
            next,
            peer,
            timestamps: self.timestamps,
            // Compressed headers begin where the packet enters the mesh.
            is_compressed: options.compresses(ends),
        })
    }

    /// The least exponent of a first backoff of the source. A node that measures its pace begins
    /// with less where nobody contends; a radio that backs off by itself does so as the standard
    /// has it, whatever its MAC's setting says.
    fn be_min(&self, source: &NodeOptions, options: &NetworkOptions) -> u8 {
        if source.profile.capabilities.assesses {
            return BE_MIN;
        }
        let measures = |node: &usize| {
            let node = options.nodes.get(*node);
            node.is_some_and(|node| node.pace_percent > 0)
        };
        match self.nodes.iter().any(measures) {
            true => source.mac.be_min.min(BE_UNCONTENDED),
            false => source.mac.be_min,
        }
    }

    /// Whether nodes two hops apart sense each other. `None`: neighbours do not, or hear one
    /// neighbour better than the other, so that the one's frame may survive the other's.
    fn air(&self, options: &NetworkOptions, profile: &Profile) -> Option<bool> {
        let between = |[one, other]: [usize; 2]| {
            let gain = |from: usize, to: usize| options.gains.get(from, to);
            [gain(one, other), gain(other, one)]
        };
        let pairs = self.nodes.windows(2).map(|pair| [pair[0], pair[1]]);
        let gains: Option<Vec<f64>> = pairs.flat_map(between).collect();
        let gains = gains?;
        let senses = |gain_db: f64| gain_db + profile.transmit_dbm >= profile.cca_dbm;
        let first = *gains.first()?;
        let is_even = gains.iter().all(|gain| *gain == first) && senses(first);
        let two_apart = self.nodes.windows(3).map(|three| [three[0], three[2]]);
        let mut apart = two_apart.flat_map(between).flatten();
        is_even.then(|| apart.any(senses))
    }
}

/// The goodput that no flow of full segments exceeds over Bluetooth LE, kb/s: events without an
/// end, and ACKs that take no time. `payload_len`: application bytes of a segment.
pub fn ble_kbps(options: &BleOptions, payload_len: usize) -> f64 {
    let sdu = SduTimes {
        phy: options.phy,
        has_mic: options.has_mic,
        ack_every: u8::MAX,
    };
    sdu.goodput_kbps(payload_len, payload_len + BLE_HEADERS_LEN_MIN, 0)
}

/// The least exponent of a first backoff that a node takes which measures its pace.
const BE_UNCONTENDED: u8 = 1;

/// The shortest headers of a segment in its SDU: without timestamps, both addresses elided.
const BLE_HEADERS_LEN_MIN: usize = 3 + 20;
