//! The one task that moves frames, and what it asks of a radio.

use core::future::{Future, pending, poll_fn};
use core::task::Poll;

use embassy_futures::select::{Either3, select3};
use embassy_time::Timer;
use motet::limits::PSDU_LEN_MAX;
use motet::link::{Action, Event};
use motet::mac::{self, RadioCapabilities};
use motet::time::Instant;

use crate::clock::{now, tick_of};
use crate::stack::{LINK, Stack};

/// A driver of an IEEE 802.15.4 radio: [`mac::Action`] says what each wish means, [`mac::Event`]
/// what each report does, and the documentation of [`motet`] by when.
///
/// A radio whose interface is *send this frame* → acknowledged, not acknowledged, busy, says so in
/// its capabilities ([`RadioCapabilities::assesses`], [`RadioCapabilities::takes_acks`]; they take
/// the feature `offload`), and answers each [`mac::Action::Fire`] by one [`mac::Event::Sent`].
pub trait Radio {
    /// The radio's capabilities.
    fn capabilities(&self) -> RadioCapabilities;

    /// Learns, before anything else, the addresses that the node answers to. A radio that leaves
    /// filtering and ACKs to the node has no use for them.
    fn set_addresses(&mut self, _config: &mac::Config) {}

    /// Begins an action; does not wait for its end. `bytes[..len]` hold the frame of an action that
    /// names a length, and are the caller's again when this returns.
    fn perform(&mut self, action: mac::Action, bytes: &[u8]);

    /// The next report; `psdu` takes the bytes of a frame.
    ///
    /// Must lose nothing when it is dropped: the runner drops it at each deadline and each call of
    /// an application, and asks again.
    fn event<'a>(
        &mut self,
        psdu: &'a mut [u8; PSDU_LEN_MAX],
    ) -> impl Future<Output = mac::Event<'a>>;
}

/// Moves frames between a node and its radio, and wakes the tasks that wait for the node.
#[derive(Debug)]
pub struct Runner<R> {
    pub(crate) stack: Stack,
    pub(crate) radio: R,
}

impl<R: Radio> Runner<R> {
    pub(crate) const fn new(stack: Stack, radio: R) -> Self {
        Self { stack, radio }
    }

    /// Runs for good. Nothing happens to any socket while this is not polled.
    pub async fn run(&mut self) -> ! {
        let mut psdu = [0; PSDU_LEN_MAX];
        // The node's one link is a mesh: its actions are of frames.
        let mut out = [0; PSDU_LEN_MAX];
        loop {
            let deadline = self.poll(&mut out);
            self.wait(deadline, &mut psdu).await;
        }
    }

    /// Waits for the radio, the application or `deadline`, and lets the node know. May be dropped.
    pub(crate) async fn wait(&mut self, deadline: Option<Instant>, psdu: &mut [u8; PSDU_LEN_MAX]) {
        let until = async {
            match deadline {
                Some(at) => Timer::at(tick_of(at)).await,
                None => pending().await,
            }
        };
        let stack = self.stack;
        let kicked = poll_fn(|cx| match stack.state().poll_kicked(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        let first = select3(self.radio.event(psdu), until, kicked).await;
        if let Either3::First(event) = first {
            let mut state = stack.state();
            state.node.on_event(LINK, Event::Mesh(event), now());
        }
    }

    /// Carries out what the node wants; returns when to poll it again.
    pub(crate) fn poll(&mut self, out: &mut [u8; PSDU_LEN_MAX]) -> Option<Instant> {
        let mut state = self.stack.state();
        state.begin_poll();
        while let Some((_, action)) = state.node.poll_action(now(), out) {
            if let Action::Mesh(action) = action {
                self.radio.perform(action, out);
            }
        }
        state.note_changes();
        state.node.next_deadline()
    }
}
