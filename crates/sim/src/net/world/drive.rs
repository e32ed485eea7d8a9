//! Lets one node do all it can: its radio, its applications, its own wishes.

use motet::time::Instant;
use motet::{mac, node};

use super::port::{Attached, Kind};
use super::{Mote, World};
use crate::air::Event;
use crate::air::radio::Radio;

impl World<'_> {
    /// Drives a node whose radio has events for it; nothing has changed for the other nodes.
    pub(super) fn drive_if_told(&mut self, mote: usize, now: Instant) {
        if self.motes[mote].radios().any(Radio::has_output) {
            self.drive(mote, now);
        }
    }

    /// Passes the radio's events to a node, carries out its actions, and schedules its next call.
    pub(super) fn drive(&mut self, mote: usize, now: Instant) {
        if self.motes[mote].is_off {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        if self.wait_for_processor(mote, now) {
            self.agenda.doubt(mote);
        } else {
            let at = self.settle(mote, &mut buffer, now);
            if self.has_thread {
                self.follow_short_address(mote);
            }
            self.motes[mote].charge_work();
            self.motes[mote].charge_flash(now);
            self.plan(mote, at, now);
        }
        self.buffer = buffer;
    }

    /// Lets a node and its applications make all progress they can; returns the node's next
    /// deadline. The node is called last: only then is its deadline known.
    fn settle(&mut self, mote: usize, buffer: &mut [u8], now: Instant) -> Option<Instant> {
        let mut is_settled = false;
        loop {
            let mut acted = self.step_apps(mote, now);
            let told = self.tell(mote, now);
            // Without an event or a call since the last round the node has nothing to do, unless
            // its deadline is due.
            if is_settled && !told && !acted {
                let at = self.motes[mote].next_deadline();
                if self.motes[mote].is_quiet() || at.is_none_or(|at| at > now) {
                    return at;
                }
            }
            acted |= told;
            acted |= self.act(mote, buffer, now);
            // A timer may have ended a connection without any action: nobody but the
            // application would ever notice.
            if !acted && !self.step_apps(mote, now) {
                return self.motes[mote].next_deadline();
            }
            is_settled = true;
        }
    }

    /// Whether the node's processor copies now; then it is called when it has done so.
    fn wait_for_processor(&mut self, mote: usize, now: Instant) -> bool {
        let free_at = self.motes[mote].radios().map(Radio::cpu_free_at).max();
        let Some(free_at) = free_at.filter(|free_at| *free_at > now) else {
            return false;
        };
        let resumes = &mut self.motes[mote].resumes;
        if resumes.is_none_or(|planned| free_at < planned) {
            *resumes = Some(free_at);
            self.air.calendar.schedule(free_at, Event::Resume { mote });
        }
        true
    }

    /// Lets a node's applications make progress; returns whether there was any.
    fn step_apps(&mut self, mote: usize, now: Instant) -> bool {
        let Mote { node, apps, .. } = &mut self.motes[mote];
        apps.iter_mut()
            .fold(false, |acted, app| acted | app.step(node, now))
    }

    /// Passes the radio's events to a node; returns whether there were any.
    fn tell(&mut self, mote: usize, now: Instant) -> bool {
        let Mote {
            node,
            ports,
            thread,
            ..
        } = &mut self.motes[mote];
        let mut told = false;
        for Attached { interface, kind } in ports {
            let radio = match kind {
                Kind::Air(radio) => radio,
                Kind::Ble(device) => {
                    let ble = &mut self.ble;
                    while let Some(report) = ble.as_mut().and_then(|b| b.air.poll_report(*device)) {
                        report.tell(|event| {
                            node.on_event(*interface, node::Event::Ble(event), now);
                        });
                        told = true;
                    }
                    continue;
                }
                Kind::Wire | Kind::Tap(_) | Kind::Controller(_) | Kind::Outside(_) => continue,
            };
            while let Some(output) = radio.poll_output(&mut self.air, now) {
                output.tell(|event| match thread {
                    Some(router) => router.on_event(event, now),
                    None => node.on_event(*interface, node::Event::Mesh(event), now),
                });
                told = true;
            }
        }
        told
    }

    /// Carries out the actions of a node; returns whether there were any.
    fn act(&mut self, mote: usize, buffer: &mut [u8], now: Instant) -> bool {
        let mut acted = false;
        while let Some((interface, action)) = self.motes[mote].poll_action(now, buffer) {
            acted = true;
            let mut ports = self.motes[mote].ports.iter_mut();
            let port = ports.find(|port| port.interface == interface);
            match (action, port.map(|port| &mut port.kind)) {
                (node::Action::Mesh(action), Some(Kind::Air(radio))) => {
                    radio.command(action, buffer, &mut self.air, now);
                }
                (node::Action::Ble(action), Some(Kind::Ble(device))) => {
                    if let Some(ble) = &mut self.ble {
                        let len = action.bytes_len();
                        let bytes = buffer.get(..len).unwrap_or(&[]);
                        ble.air.advance_to(now);
                        ble.air.command(*device, action, bytes);
                    }
                }
                (node::Action::Ble(action), Some(Kind::Controller(commands))) => {
                    let bytes = buffer.get(..action.bytes_len()).unwrap_or(&[]);
                    commands.push_back((action, bytes.into()));
                }
                (node::Action::Mesh(action), Some(Kind::Outside(orders))) => {
                    let len = match action {
                        mac::Action::Preload { len } | mac::Action::Transmit { len, .. } => len,
                        _ => 0,
                    };
                    orders.push_back((action, buffer.get(..len).unwrap_or(&[]).into()));
                }
                (node::Action::Cable { len }, Some(Kind::Tap(sent))) => {
                    sent.push_back(buffer.get(..len).unwrap_or(&[]).into());
                }
                (node::Action::Cable { len }, Some(Kind::Wire)) => {
                    let packet = buffer.get(..len).unwrap_or(&[]);
                    self.send(mote, packet, now);
                }
                (action, port) => debug_assert!(false, "{action:?} at {port:?}"),
            }
        }
        acted | self.act_for_thread(mote, buffer, now)
    }

    /// Lets a node be called when it wants to be, unless it is before that anyway.
    fn plan(&mut self, mote: usize, wanted: Option<Instant>, now: Instant) {
        if let Some(at) = self.agenda.plan(mote, wanted, now) {
            self.air.calendar.schedule(at, Event::Deadline { mote });
        }
    }
}
