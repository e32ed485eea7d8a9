//! A node over a real radio, in real time: what `motet mote` and `motet router --radio` share.
//!
//! Place: `motet-radio` drives the radio and `motet-lab` has the node; here both meet under the
//! clock of this machine.

mod neighbors;
mod thread;
mod twin;

use std::{net::Ipv6Addr, os::fd::BorrowedFd, path::PathBuf, time};

use motet::{
    ip::Address,
    join::JoinKey,
    link::Link,
    mac::{self, Action, Event},
    random::Rng,
    thread::Dataset,
    time::{Duration, Instant},
};
use motet_lab::{
    Arena,
    keys::{KeyFile, Keys, hex},
    net::{
        counter_store::CounterStore,
        network::RADIO,
        outside::{self, Key, Role},
        world::World,
    },
};
use motet_radio::{NodeRadio, RadioChange};
use motet_spinel::{Promiscuous, RadioInfo, Settings};
use motet_state::KeyName;

pub(crate) use self::neighbors::LinkQuality;
use self::neighbors::Neighbors;
use self::thread::ThreadPlace;
pub(crate) use self::thread::read_dataset;
use crate::{
    error::Error,
    interrupt::Interrupt,
    keys,
    output::say,
    real_radio::{self, Clock, failed},
    state,
};

/// What a node is started from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    /// The radio's URL.
    pub(crate) radio: &'a str,
    pub(crate) channel: u8,
    /// The PAN identifier; none: that of the key.
    pub(crate) pan: Option<u16>,
    /// The Thread network of which the node is a child.
    pub(crate) thread: Option<&'a Dataset>,
    /// The key file.
    pub(crate) key: Option<&'a PathBuf>,
    /// The file with the node's own key, in its place.
    pub(crate) join_key: Option<&'a PathBuf>,
    /// What that key file says, where the node gives the key to others.
    pub(crate) registers: Option<&'a KeyFile>,
    /// The folder for frame counters.
    pub(crate) state: Option<&'a PathBuf>,
    pub(crate) role: Role,
    /// Connections, listeners and handshakes.
    pub(crate) sockets: [usize; 3],
}

/// The secret that a node begins with.
enum Secret {
    Network(Keys),
    Own(JoinKey),
    Thread(Dataset),
}

impl Start<'_> {
    /// The secret, if there is one, and the PAN identifier.
    ///
    /// # Errors
    /// The secret cannot be read; what is named does not say which PAN it is, or is of no use.
    fn secret(&self) -> Result<(Option<Secret>, u16), Error> {
        if let Some(dataset) = self.thread {
            return Ok((Some(Secret::Thread(*dataset)), dataset.pan));
        }
        let keys = self.key.map(|key| keys::read(key)).transpose()?;
        let own = self.join_key.map(|key| keys::read_join_key(key));
        let own = own.transpose()?;
        let pan = match (self.pan, &keys, &own) {
            (Some(pan), ..) => pan,
            (None, Some(keys), _) => keys::pan_of(keys),
            (None, None, Some(_)) => {
                return Err(Error::input(
                    "no PAN identifier follows from a mote's own key: name that of the mesh with --pan, such as \
                     0xabcd",
                ));
            }
            (None, None, None) => {
                return Err(Error::input(
                    "a mesh without a key needs a PAN identifier: name one with --pan, such as 0xabcd, or a key \
                     with --key",
                ));
            }
        };
        let secret = keys.map(Secret::Network).or(own.map(Secret::Own));
        if secret.is_none() && self.state.is_some() {
            return Err(Error::input(
                "--state keeps the frame counters of a key: name a key with --key, or leave --state out",
            ));
        }
        Ok((secret, pan))
    }
}

impl Secret {
    /// The node's key, and where its frame counters are kept.
    fn kept(self, start: &Start<'_>, eui64: [u8; 8]) -> Result<(Key, CounterStore), Error> {
        let folder = start.state.map(PathBuf::as_path);
        match self {
            Self::Thread(dataset) => {
                let name = KeyName::of(dataset.network.as_bytes());
                let store = state::counters_of(folder, name, 0, eui64)?;
                Ok((Key::Network(dataset.network, 0), store))
            }
            Self::Own(own) => {
                let name = KeyName::of(own.as_bytes());
                Ok((Key::Join(own), state::counters_of(folder, name, 0, eui64)?))
            }
            Self::Network(keys) => {
                let (network, sequence) = (keys.network, keys.sequence);
                let store = state::counters_of(folder, keys.name, sequence, eui64)?;
                let Some(file) = start.registers else {
                    return Ok((Key::Network(network, sequence), store));
                };
                let secret = file.join_secret().map_err(Error::input)?;
                let revoked = file.revoked().collect();
                Ok((Key::Registrar(network, sequence, secret, revoked), store))
            }
        }
    }
}

/// A node over a radio.
pub(crate) struct RadioNode<'m> {
    pub(crate) world: World<'m>,
    radio: NodeRadio,
    info: RadioInfo,
    clock: Clock,
    pan: u16,
    channel: u8,
    is_secured: bool,
    neighbors: Neighbors,
    /// The node's extended address.
    extended: [u8; 8],
    /// The node's place in a Thread network, where it is to have one.
    thread: Option<ThreadPlace>,
    /// Whether the radio is configured, and how often it was so anew.
    is_ready: bool,
    restarts: u64,
    /// When it was said last that another radio may have the same EUI-64.
    warned_at: Option<Instant>,
}

impl<'m> RadioNode<'m> {
    /// Starts the radio, and a node over it; none where a signal came first.
    ///
    /// # Errors
    /// There is no radio of use; the key cannot be read, or its counters not be kept.
    pub(crate) fn start(
        start: &Start<'_>,
        interrupt: &Interrupt,
        arena: &'m Arena,
    ) -> Result<Option<Self>, Error> {
        let (secret, pan) = start.secret()?;
        let settings = Settings {
            channel: start.channel,
            pan,
            short: None,
            eui64: None,
            promiscuous: Promiscuous::Off,
        };
        let clock = Clock::from_zero();
        let is_secured = secret.is_some();
        let needs = (is_secured, start.role.sleeps());
        let started = real_radio::start_for_node(start.radio, settings, needs, clock, interrupt)?;
        let Some((mut radio, info)) = started else {
            return Ok(None);
        };
        has_eui64(&info)?;
        let mut place = match start.thread {
            Some(dataset) => Some(ThreadPlace::of(dataset, start.state, info.eui64)?),
            None => None,
        };
        let extended = place.as_ref().map_or(info.eui64, ThreadPlace::extended);
        if let Some(place) = &mut place {
            place.name(&mut radio, clock.now())?;
        }
        // Before anything is sent.
        let key = secret.map(|secret| secret.kept(start, extended));
        let key = key.transpose()?;
        let seed = getrandom::u64()
            .map_err(|error| Error::failed(format!("no random bytes from this system: {error}")))?;
        let mut rng = Rng::from_seed([seed, !seed]);
        if let NodeRadio::Rcp(rcp) = &mut radio
            && !twin::seek(rcp.radio_mut(), (extended, pan), &mut rng, clock, interrupt)?
        {
            return Ok(None);
        }
        let mut mac = mac::Config::new(pan, extended);
        mac.channel = start.channel;
        radio.settle(&mut mac);
        let settings = outside::Settings {
            radio: radio.capabilities(),
            mac,
            role: start.role,
            key,
            thread: place.as_ref().map(ThreadPlace::config),
            sockets: start.sockets,
            seed,
        };
        let world = outside::node(&settings, arena);
        let mut world = world.map_err(|unfit| Error::failed(unfit.reason()))?;
        world.run_until(clock.now());
        Ok(Some(Self {
            world,
            radio,
            info,
            clock,
            pan,
            channel: start.channel,
            is_secured,
            neighbors: Neighbors::default(),
            extended,
            thread: place,
            is_ready: true,
            restarts: 0,
            warned_at: None,
        }))
    }

    /// Lets the node do all that it can, then sleeps until there is more to do, something comes
    /// from `others`, or for `nap`.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub(crate) fn turn(
        &mut self,
        others: &[BorrowedFd<'_>],
        nap: time::Duration,
    ) -> Result<(), Error> {
        self.exchange()?;
        self.rest(others, nap)
    }

    /// Sleeps as [`Self::turn`] does, behind [`Self::exchange`].
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub(crate) fn rest(
        &mut self,
        others: &[BorrowedFd<'_>],
        nap: time::Duration,
    ) -> Result<(), Error> {
        let now = self.clock.now();
        let due = self.world.next_event_at().map(|due| due.since(now));
        let due = due.map(|due| time::Duration::from_micros(due.as_micros()));
        let nap = due.map_or(nap, |due| nap.min(due));
        let waited = self.radio.wait(Some(nap), others, now);
        waited.map_err(|error| failed(&error))?;
        self.world.run_until(self.clock.now());
        Ok(())
    }

    /// Carries orders and reports until neither side has any more.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub(crate) fn exchange(&mut self) -> Result<(), Error> {
        loop {
            let now = self.clock.now();
            self.world.run_until(now);
            while let Some((action, bytes)) = self.world.take_order(0) {
                if let Action::Preload { .. } = action {
                    self.neighbors.on_loaded(&bytes);
                }
                if let Some(thread) = &mut self.thread {
                    thread.note(action, now);
                }
                self.radio.perform(action, &bytes, now);
            }
            let (world, neighbors) = (&mut self.world, &mut self.neighbors);
            let (mut acted, mut has_twin) = (false, false);
            let polled = self.radio.poll(now, |event| {
                match &event {
                    Event::FrameReceived { psdu, meta } => {
                        let from = neighbors.on_frame(psdu, meta.rssi_dbm, now);
                        has_twin |= from == Some(self.extended);
                    }
                    Event::Sent { outcome, .. } => neighbors.on_sent(*outcome),
                    _ => {}
                }
                world.hear(0, event);
                acted = true;
            });
            let notice = polled.map_err(|error| failed(&error))?;
            if has_twin {
                self.warn(now);
            }
            match notice {
                Some(RadioChange::Gone) => {
                    self.is_ready = false;
                    say("the radio is gone: plug it in again; all else goes on");
                }
                Some(RadioChange::Restarted) => {
                    self.is_ready = false;
                    say("the radio has restarted");
                }
                Some(RadioChange::Silent) => {
                    self.is_ready = false;
                    say(
                        "the radio does not answer: plug it in anew, unless it returns; all else goes on",
                    );
                }
                Some(RadioChange::Ready) => {
                    self.is_ready = true;
                    self.restarts += 1;
                    say("the radio is ready again");
                }
                None if !acted => return Ok(()),
                None => {}
            }
        }
    }

    /// Says that a frame came from this radio's own address, unless that was said lately.
    fn warn(&mut self, now: Instant) {
        let is_due = |at: Instant| now >= at + WARN_EVERY;
        if self.warned_at.is_none_or(is_due) {
            self.warned_at = Some(now);
            say(&twin::warning(self.extended));
        }
    }

    /// The node's addresses that are not only for this link.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv6Addr> {
        let addresses = self.world.node(0).ip().addresses();
        let of_mesh = addresses.filter(|address: &&Address| address.interface == RADIO);
        of_mesh
            .map(|address| address.addr)
            .filter(|addr| !addr.is_unicast_link_local())
    }

    /// Lets the node take the link key of this sequence, if it is later than its own; others follow
    /// by what they then hear.
    pub(crate) fn rotate_key(&mut self, sequence: u32) {
        self.world.with_node(0, |node, now| {
            if let Some(Link::Mesh(mesh)) = node.link_mut(RADIO) {
                mesh.rotate_key(sequence, now);
            }
        });
    }

    /// How good the link to a neighbour is; none: nothing has come from it.
    pub(crate) fn quality(&self, of: [u8; 8]) -> Option<LinkQuality> {
        self.neighbors.quality(of)
    }

    /// What to say of a router that does not answer.
    pub(crate) fn loneliness(&self) -> String {
        let (channel, pan) = (self.channel, self.pan);
        let key = match self.is_secured {
            true => ", and with this key",
            false => "",
        };
        format!(
            "no router has answered for {LONELY_S} s: see whether one is in reach, on channel {channel}, in PAN \
             {pan:#06x}{key}; this mote goes on asking"
        )
    }

    /// What the radio says of itself.
    pub(crate) const fn info(&self) -> &RadioInfo {
        &self.info
    }

    /// The channel and the PAN identifier.
    pub(crate) const fn channel_and_pan(&self) -> (u8, u16) {
        (self.channel, self.pan)
    }

    /// Whether the radio is there and configured, and how often it was configured anew.
    pub(crate) const fn readiness(&self) -> (bool, u64) {
        (self.is_ready, self.restarts)
    }

    /// The radio, the channel and the PAN in words.
    pub(crate) fn place(&self) -> String {
        let (firmware, channel, pan) = (&self.info.firmware, self.channel, self.pan);
        format!("by {firmware}, on channel {channel} in PAN {pan:#06x}")
    }

    /// A mote and its place in words.
    pub(crate) fn introduction(&self) -> String {
        let place = self.place();
        match &self.thread {
            Some(_) => format!("a Thread child {} {place}", hex(&self.extended)),
            None => format!("a mote {place}"),
        }
    }
}

/// Makes sure that the radio has an EUI-64: all nodes without one would have one address.
///
/// # Errors
/// Memory of the chip that was erased, or never written, is in its place.
fn has_eui64(info: &RadioInfo) -> Result<(), Error> {
    match info.eui64 {
        [0, 0, 0, 0, 0, 0, 0, 0] | [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => {
            Err(Error::failed(format!(
                "the radio has no EUI-64 of its own, but {}: set one by its firmware, or use another radio",
                hex(&info.eui64)
            )))
        }
        _ => Ok(()),
    }
}

/// How long a mote may be without a router before that is said, in seconds.
pub(crate) const LONELY_S: u64 = 30;

/// Anybody can make it be said.
const WARN_EVERY: Duration = Duration::from_secs(600);
