//! A chain of radios of the lab, driven by tasks instead of the lab's world.
//!
//! The medium, the radios and what they cost are the lab's; frames may be lost on top of that with
//! a chance of the caller's. No real radio has any part in it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use motet::mac::{self, RadioCapabilities};
use motet::random::Rng;
use motet::time::Instant;
use motet_embassy::Radio;
use motet_lab::air::filter::{self, Filter};
use motet_lab::air::gains::{ChainAir, Gains};
use motet_lab::air::medium::{FrameId, Medium, Placement, Reception};
use motet_lab::air::profile::Profile;
use motet_lab::air::radio::{self, IncomingFrame, Output};
use motet_lab::air::{self, Event};
use motet_lab::net::plan;

use crate::executor::now_us;

/// The air of all motes and the executor.
pub(crate) type SharedAir = Rc<RefCell<ChainOfRadios>>;

/// Radios in a row, and the air between them.
pub(crate) struct ChainOfRadios {
    air: air::Air,
    radios: Vec<radio::Radio>,
    wakers: Vec<Option<Waker>>,
    chance: Rng,
    frame_loss: f64,
}

/// One of the radios, for the task of its mote.
pub(crate) struct LabRadio {
    chain: SharedAir,
    place: usize,
}

impl ChainOfRadios {
    /// `nodes` radios, of which each hears its neighbours. `frame_loss`: the chance that a frame
    /// that would arrive does not.
    pub(crate) fn new(nodes: u16, frame_loss: f64, seed: u64) -> SharedAir {
        let placement = Placement {
            transmit_dbm: PROFILE.transmit_dbm,
            noise_dbm: PROFILE.noise_dbm(),
            channel: plan::CHANNEL,
        };
        let gains = Gains::chain(nodes.into(), ChainAir::CALIBRATED);
        let medium = Medium::new(&gains, &vec![placement; nodes.into()]);
        let addresses = (0..nodes).map(|n| (plan::link_addr(n), usize::from(n)));
        let mut chance = Rng::from_seed([seed, 0]);
        let radios = (0..nodes).map(|n| {
            let filter = Filter {
                pan: plan::PAN,
                extended: plan::eui64(n),
                short: None,
            };
            radio::Radio::new(n.into(), PROFILE, filter, chance.derive())
        });
        let radios: Vec<_> = radios.collect();
        Rc::new(RefCell::new(Self {
            air: air::Air::new(medium, addresses),
            wakers: radios.iter().map(|_| None).collect(),
            radios,
            chance,
            frame_loss,
        }))
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.air.calendar.next_at()
    }

    pub(crate) fn advance_to(&mut self, at: Instant) {
        self.air.calendar.advance_to(at);
    }

    /// Lets one thing happen that is due by `until`.
    pub(crate) fn step(&mut self, until: Instant) {
        match self.air.calendar.pop_until(until) {
            Some((now, Event::Radio { place, due })) => {
                self.radios[place].on_due(due, &mut self.air, now);
                self.tell(place);
            }
            Some((now, Event::FrameEnd { id })) => self.end_frame(id, now),
            // Deadlines, wires and changing gains are of the lab's own worlds.
            _ => {}
        }
    }

    fn end_frame(&mut self, id: FrameId, now: Instant) {
        let mut receptions = Vec::new();
        let Some(finished) = self.air.medium.finish(id, now, &mut receptions) else {
            return;
        };
        let header = filter::header(finished.frame.psdu());
        self.radios[finished.from].on_sent(header.as_ref(), &mut self.air, now);
        self.tell(finished.from);
        for reception in receptions {
            let heard = header.as_ref().filter(|_| self.arrives(&reception));
            let heard = heard.map(|header| IncomingFrame {
                frame: &finished.frame,
                header,
                power: reception.power,
                from: finished.from,
            });
            self.radios[reception.at].on_reception(heard, &mut self.air, now);
            self.tell(reception.at);
        }
    }

    /// Draws whether a frame arrives.
    fn arrives(&mut self, reception: &Reception) -> bool {
        let mut happens =
            |chance: f64| f64::from(self.chance.next_u32()) < chance * (f64::from(u32::MAX) + 1.0);
        happens(reception.survival) && !happens(self.frame_loss)
    }

    /// Wakes the task of a radio that has something to tell.
    fn tell(&mut self, place: usize) {
        if self.radios[place].has_output()
            && let Some(waker) = self.wakers[place].take()
        {
            waker.wake();
        }
    }
}

impl LabRadio {
    pub(crate) fn new(chain: &SharedAir, place: u16) -> Self {
        Self {
            chain: chain.clone(),
            place: place.into(),
        }
    }
}

impl Radio for LabRadio {
    fn capabilities(&self) -> RadioCapabilities {
        PROFILE.capabilities
    }

    fn perform(&mut self, action: mac::Action, bytes: &[u8]) {
        let mut chain = self.chain.borrow_mut();
        let ChainOfRadios { air, radios, .. } = &mut *chain;
        let now = Instant::from_micros(now_us());
        radios[self.place].command(action, bytes, air, now);
    }

    async fn event<'a>(&mut self, psdu: &'a mut [u8; 127]) -> mac::Event<'a> {
        let output = poll_fn(|cx| {
            let mut chain = self.chain.borrow_mut();
            let ChainOfRadios { air, radios, .. } = &mut *chain;
            let now = Instant::from_micros(now_us());
            match radios[self.place].poll_output(air, now) {
                Some(output) => Poll::Ready(output),
                None => {
                    chain.wakers[self.place] = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        match output {
            Output::Preloaded => mac::Event::Preloaded,
            Output::Assessed { clear } => mac::Event::ChannelAssessed { clear },
            Output::TransmitDone(at) => mac::Event::TransmitDone { at },
            Output::Sent(outcome, at) => mac::Event::Sent { outcome, at },
            Output::Head(head) => mac::Event::FrameHead {
                head: copied(head.psdu(), psdu),
            },
            Output::Frame(frame, meta) => mac::Event::FrameReceived {
                psdu: copied(frame.psdu(), psdu),
                meta,
            },
        }
    }
}

fn copied<'a>(from: &[u8], to: &'a mut [u8; 127]) -> &'a [u8] {
    let to = &mut to[..from.len()];
    to.copy_from_slice(from);
    to
}

/// The radio and the processor of every mote.
pub(crate) const PROFILE: Profile = Profile::NRF52840;
