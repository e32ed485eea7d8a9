//! A node's ports to the outside: radios, wires, and the caller that runs the world.
//!
//! Place: a node has as many ports as interfaces, of any kinds, in any order. A new kind is a
//! variant of [`Port`] and of [`Kind`], and a case in `drive` and `deliver`.

use std::collections::VecDeque;
use std::sync::Arc;

use motet::ble::{Action, DeviceAddr};
use motet::ip::InterfaceId;
use motet::mac;
use motet::wire::LinkAddr;

use super::{Mote, Resident};
use crate::air::filter::Filter;
use crate::air::medium::Placement;
use crate::air::profile::Profile;
use crate::air::radio::Radio;
use crate::ble;
use crate::streams::{Purpose, stream};

/// How an interface of a node is attached.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all ports are radios")]
pub enum Port {
    /// A radio on the air.
    Air(RadioPort),
    /// A controller on the air of Bluetooth LE; a node has at most one.
    Ble(BlePort),
    /// A cable to the wire of the world.
    Wire(InterfaceId),
    /// A cable to the caller: see [`super::World::inject_at`].
    Tap(InterfaceId),
    /// A controller of Bluetooth LE that the caller has: see [`super::World::take_command`].
    Controller(InterfaceId),
    /// A radio of IEEE 802.15.4 that the caller has: see [`super::World::take_order`].
    Outside(InterfaceId),
}

/// A radio on the air.
#[derive(Clone, Copy, Debug)]
pub struct RadioPort {
    /// The node's interface.
    pub interface: InterfaceId,
    /// Radio and driver.
    pub profile: Profile,
    /// The addresses the radio answers to.
    pub filter: Filter,
    /// The channel it is tuned to at first.
    pub channel: u8,
}

/// A controller on the air of Bluetooth LE.
#[derive(Clone, Copy, Debug)]
pub struct BlePort {
    /// The node's interface.
    pub interface: InterfaceId,
    /// The address of the device.
    pub address: DeviceAddr,
    /// The controller's profile.
    pub profile: ble::Profile,
}

/// An interface of a node of a world that runs, and what it leads to.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) interface: InterfaceId,
    pub(super) kind: Kind,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most ports are radios, and each event looks into one"
)]
pub(super) enum Kind {
    Air(Radio),
    /// The number of the device.
    Ble(usize),
    Wire,
    /// The packets that left by the interface, until the caller takes them.
    Tap(VecDeque<Box<[u8]>>),
    /// The orders to that controller, each with its bytes, until the caller takes them.
    Controller(VecDeque<(Action, Box<[u8]>)>),
    /// The orders to that radio, each with its bytes, until the caller takes them.
    Outside(VecDeque<(mac::Action, Box<[u8]>)>),
}

/// The devices and profiles to which the ports of a world's nodes have been attached so far.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    /// The node of each controller of Bluetooth LE.
    pub(super) devices: Vec<usize>,
    /// The profiles of radios, each kind once.
    profiles: Vec<Arc<Profile>>,
}

/// The places of a world's radios on the air.
///
/// A node's first radio has the number of its node, with or without a radio; further radios
/// have the numbers behind those of all nodes.
#[derive(Debug)]
pub(super) struct Places {
    /// Node and port, by place.
    radios: Vec<Option<(usize, usize)>>,
    nodes: usize,
}

impl Places {
    pub(super) fn of(residents: &[Resident<'_>]) -> Self {
        let nodes = residents.len();
        let mut radios = vec![None; nodes];
        for (node, resident) in residents.iter().enumerate() {
            let ports = resident.ports.iter().enumerate();
            for (port, _) in ports.filter(|(_, port)| matches!(port, Port::Air(_))) {
                if radios[node].is_none() {
                    radios[node] = Some((node, port));
                } else {
                    radios.push(Some((node, port)));
                }
            }
        }
        Self { radios, nodes }
    }

    /// The node at a place.
    pub(super) fn node(&self, place: usize) -> usize {
        if place < self.nodes {
            return place;
        }
        let radio = self.radios.get(place).copied().flatten();
        radio.map_or(place, |(node, _)| node)
    }

    /// The place of a node's port; none if that is no radio.
    fn place(&self, node: usize, port: usize) -> Option<usize> {
        let mut radios = self.radios.iter();
        radios.position(|radio| *radio == Some((node, port)))
    }

    /// The port of the radio at a place.
    pub(super) fn port(&self, place: usize) -> Option<usize> {
        let (_, port) = self.radios.get(place).copied().flatten()?;
        Some(port)
    }

    /// The radios of these residents, by place.
    fn radios<'r>(
        &'r self,
        residents: &'r [Resident<'_>],
    ) -> impl Iterator<Item = Option<&'r RadioPort>> {
        self.radios.iter().map(|radio| {
            let (node, port) = (*radio)?;
            match &residents[node].ports[port] {
                Port::Air(radio) => Some(radio),
                _ => None,
            }
        })
    }

    /// Where and how the medium reaches each.
    pub(super) fn placements(&self, residents: &[Resident<'_>]) -> Vec<Placement> {
        self.radios(residents).map(placement).collect()
    }

    /// The link addresses of each.
    pub(super) fn addresses(&self, residents: &[Resident<'_>]) -> Vec<(LinkAddr, usize)> {
        let radios = self.radios(residents).enumerate();
        radios
            .filter_map(|(place, radio)| Some((place, radio?.filter)))
            .flat_map(|(place, filter)| {
                let short = filter.short.map(|short| (LinkAddr::Short(short), place));
                short
                    .into_iter()
                    .chain([(LinkAddr::Extended(filter.extended), place)])
            })
            .collect()
    }

    /// Attaches the ports of a node, after those of all nodes before it.
    pub(super) fn attach(
        &self,
        node: usize,
        ports: &[Port],
        Attachments { devices, profiles }: &mut Attachments,
        seed: u64,
    ) -> Vec<Attached> {
        let attach = |(number, port): (usize, &Port)| match *port {
            Port::Air(radio) => {
                let place = self.place(node, number).unwrap_or(node);
                // Lossless: no world has four thousand million radios.
                let jitter = stream(seed, place as u32, Purpose::CpuJitter);
                let profile = shared(profiles, &radio.profile);
                Attached {
                    interface: radio.interface,
                    kind: Kind::Air(Radio::new(place, profile, radio.filter, jitter)),
                }
            }
            Port::Ble(port) => {
                devices.push(node);
                Attached {
                    interface: port.interface,
                    kind: Kind::Ble(devices.len() - 1),
                }
            }
            Port::Wire(interface) => Attached {
                interface,
                kind: Kind::Wire,
            },
            Port::Tap(interface) => Attached {
                interface,
                kind: Kind::Tap(VecDeque::new()),
            },
            Port::Controller(interface) => Attached {
                interface,
                kind: Kind::Controller(VecDeque::new()),
            },
            Port::Outside(interface) => Attached {
                interface,
                kind: Kind::Outside(VecDeque::new()),
            },
        };
        ports.iter().enumerate().map(attach).collect()
    }
}

/// The profile, shared with a radio before, if any has the same.
fn shared(profiles: &mut Vec<Arc<Profile>>, profile: &Profile) -> Arc<Profile> {
    if let Some(known) = profiles.iter().find(|known| ***known == *profile) {
        return Arc::clone(known);
    }
    let profile = Arc::new(*profile);
    profiles.push(Arc::clone(&profile));
    profile
}

impl Attached {
    pub(super) fn radio(&self) -> Option<&Radio> {
        match &self.kind {
            Kind::Air(radio) => Some(radio),
            _ => None,
        }
    }

    /// The number of its controller of Bluetooth LE, if it is one.
    pub(super) fn device(&self) -> Option<usize> {
        match &self.kind {
            Kind::Ble(device) => Some(*device),
            _ => None,
        }
    }

    pub(super) fn radio_mut(&mut self) -> Option<&mut Radio> {
        match &mut self.kind {
            Kind::Air(radio) => Some(radio),
            _ => None,
        }
    }
}

/// The radio at a place of the air.
pub(super) fn radio_at<'a>(
    motes: &'a mut [Mote<'_>],
    places: &Places,
    place: usize,
) -> Option<&'a mut Radio> {
    let port = places.port(place)?;
    motes[places.node(place)].ports[port].radio_mut()
}

fn placement(port: Option<&RadioPort>) -> Placement {
    let Some(port) = port else {
        return Placement {
            transmit_dbm: 0.0,
            noise_dbm: 0.0,
            channel: 0,
        };
    };
    Placement {
        transmit_dbm: port.profile.transmit_dbm,
        noise_dbm: port.profile.noise_dbm(),
        channel: port.channel,
    }
}
