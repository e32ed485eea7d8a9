//! A transfer under way: the chain, how far it is, and when to give up.

use std::sync::Arc;

use motet::{
    tcp::{self, RetransmissionCause},
    time::{Duration, Instant},
};
use motet_lab::{
    Arena,
    air::radio::State,
    apps::{App, Progress as AppProgress, Receiver, Sender},
    net::chain::Chain,
    net::plan,
    scenario::Scenario,
};
use sha2::{Digest as _, Sha256};

use super::{Direction, trace::Trace};
use crate::{
    chain::{self, JOIN_ADVICE},
    error::Error,
    interrupt::Interrupt,
    progress::Progress,
};

/// The port that receivers listen on. No dissector of Wireshark's claims it: what a file holds
/// is shown as data, not as a broken message of some protocol.
pub(super) const PORT: u16 = 35_000;

/// Give up after so long without a byte at the far end. TCP's own patience is longer: twelve
/// timeouts of up to 60 s.
const STALL_MAX: Duration = Duration::from_secs(120);

/// How long the ends may take to close once everything has arrived.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// How long to wait, when both ends have closed, for segments still on their way.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// The parts that both kinds of transfer share.
#[derive(Debug)]
pub(super) struct Transfer<'m> {
    pub(super) chain: Chain<'m>,
    pub(super) content: Arc<[u8]>,
    pub(super) direction: Direction,
    /// The scenario that the mesh was made of: it has TCP's settings at simulated ends.
    pub(super) scenario: &'m Scenario,
    pub(super) interrupt: Interrupt,
    pub(super) bar: Progress,
    /// The advice to print when nothing arrives any more.
    pub(super) advice: &'static str,
    /// Where to write what the sender does, if anywhere.
    pub(super) trace: Option<Trace>,
    /// The energy that the mote's radio had used when the transfer began.
    at_first: Option<Spent>,
    /// Bytes at the far end, and when the last of them came.
    delivered: (u64, Instant),
}

/// The time and energy that a mote's radio has used since the start.
#[derive(Clone, Copy, Debug)]
struct Spent {
    total_us: u64,
    awake_us: u64,
    energy_mj: f64,
}

impl Spent {
    fn by(chain: &Chain<'_>) -> Option<Self> {
        let (usage, energy) = (
            chain.world.usage(chain.mote())?,
            chain.world.energy(chain.mote())?,
        );
        let total_us = usage.total().as_micros();
        Some(Self {
            total_us,
            awake_us: total_us - usage.span(State::Sleep).as_micros(),
            energy_mj: energy.radio_mj + energy.cpu_mj,
        })
    }
}

/// The figures of a finished transfer, with any kind of ends.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) sha256_received: [u8; 32],
    /// Time from the first SYN until the end of the file was read.
    pub(super) duration: Duration,
    /// Segments that the sender sent, and those that the receiver got.
    pub(super) segments_sent: u64,
    pub(super) segments_received: u64,
    pub(super) sender: SenderFigures,
}

/// The figures of the sending TCP.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderFigures {
    /// Mean round-trip time, ms.
    pub(super) rtt_ms: Option<f64>,
    /// The last telemetry of Motet's own TCP; `None` when the sender was another TCP.
    pub(super) telemetry: Option<tcp::Telemetry>,
    /// Retransmission timeouts (RFC 6298).
    pub(super) timeouts: u64,
    /// Retransmissions by cause, those that happened.
    pub(super) retransmissions: Vec<(&'static str, u64)>,
}

impl<'m> Transfer<'m> {
    pub(super) fn new(
        chain: Chain<'m>,
        scenario: &'m Scenario,
        (content, direction): (Arc<[u8]>, Direction),
        interrupt: Interrupt,
        bar: Progress,
    ) -> Self {
        let delivered = (0, chain.world.now());
        Self {
            chain,
            content,
            direction,
            scenario,
            advice: "lower --hops",
            interrupt,
            bar,
            trace: None,
            at_first: None,
            delivered,
        }
    }

    /// Brings the chain up, in virtual time.
    ///
    /// # Errors
    /// As [`chain::join`].
    pub(super) fn join(&mut self) -> Result<(), Error> {
        let nodes = self.chain.mote() + 1;
        let world = &mut self.chain.world;
        let limit = self.scenario.join_max();
        chain::join(world, nodes, limit, JOIN_ADVICE, &self.interrupt)?;
        self.delivered.1 = self.chain.world.now();
        Ok(())
    }

    /// Lets the mote send the file to the host, or receive it.
    pub(super) fn start_mote(&mut self, arena: &'m Arena) {
        let ends = self.chain.mote_ends(arena);
        let ends = ends.with(|config| self.apply_to_mote(config));
        let app = match self.direction {
            Direction::Up => App::Sender(Sender::new(
                Arc::clone(&self.content),
                (plan::HOST, PORT),
                ends,
            )),
            Direction::Down => App::Receiver(Receiver::new(PORT, ends)),
        };
        self.chain.world.set_app(self.chain.mote(), app);
        self.at_first = Spent::by(&self.chain);
    }

    fn apply_to_mote(&self, config: &mut tcp::Config) {
        if let Some(stack) = self.scenario.stacks.last() {
            stack.apply(config);
        }
    }

    /// Gives a simulated host its settings: Linux's.
    pub(super) fn apply_to_host(&self, config: &mut tcp::Config) {
        self.scenario.wire.apply(config);
    }

    /// The mote's radio since the transfer began: the share of the time in which it was not asleep,
    /// and the energy that it used, mJ.
    pub(super) fn spent(&self) -> Option<(f64, f64)> {
        let (before, now) = (self.at_first?, Spent::by(&self.chain)?);
        let total_us = now.total_us.saturating_sub(before.total_us);
        let awake_us = now.awake_us.saturating_sub(before.awake_us);
        let duty = awake_us as f64 / total_us.max(1) as f64;
        Some((duty, now.energy_mj - before.energy_mj))
    }

    /// Notes that `delivered` bytes have arrived.
    ///
    /// # Errors
    /// When nothing has arrived for too long, or a signal came.
    pub(super) fn look(&mut self, delivered: u64) -> Result<(), Error> {
        self.interrupt.check()?;
        let now = self.chain.world.now();
        let (before, since) = self.delivered;
        if delivered != before {
            self.delivered = (delivered, now);
        } else if now.since(since) > STALL_MAX {
            return Err(Error::failed(format!(
                "nothing arrived for {} s after {delivered} of {} bytes, {}",
                STALL_MAX.as_millis() / 1_000,
                self.content.len(),
                self.advice
            )));
        }
        Ok(())
    }

    /// Whether there is nothing to wait for any more, `finished` being when the receiver had
    /// read everything: both ends have closed and all segments have arrived, or the patience
    /// for that is over.
    pub(super) fn is_over(&self, finished: Instant, closed: bool, on_their_way: u64) -> bool {
        let waited = self.chain.world.now().since(finished);
        let settled = on_their_way == 0 || waited > SETTLE_MAX;
        closed && settled || waited > CLOSE_MAX
    }

    /// Shows the bar, where there is one to show.
    pub(super) fn show(&mut self, began: Instant, telemetry: impl FnOnce() -> String) {
        let (delivered, _) = self.delivered;
        let elapsed = self.chain.world.now().since(began);
        self.bar.update(delivered, || {
            format!("{:.1} kb/s  {}", kbps(delivered, elapsed), telemetry())
        });
    }

    /// Writes the changes of a simulated end's TCP since the last call, where there is a trace.
    ///
    /// # Errors
    /// As [`Trace::look`].
    pub(super) fn trace(&mut self, node: usize, telemetry: &tcp::Telemetry) -> Result<(), Error> {
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        let world = &self.chain.world;
        trace.look(telemetry, world.node(node).tcp().counters(), world.now())
    }

    /// How the transfer goes at a simulated end.
    pub(super) fn end(&self, node: usize) -> AppProgress {
        self.chain
            .world
            .app(node)
            .progress()
            .copied()
            .unwrap_or_default()
    }

    /// Bytes that a simulated receiver has read.
    pub(super) fn received(&self, node: usize) -> &[u8] {
        match self.chain.world.app(node) {
            App::Receiver(receiver) => &receiver.content,
            _ => &[],
        }
    }
}

/// Fails when a simulated end has given up before the file was through.
pub(super) fn check_end(name: &str, end: &AppProgress, advice: &str) -> Result<(), Error> {
    if end.finished.is_some() {
        return Ok(());
    }
    match end.error {
        Some(error) => Err(Error::failed(format!(
            "the {name}'s connection failed: {}",
            cause(error, advice)
        ))),
        None if end.closed => Err(Error::failed(format!(
            "the {name} could not open a connection"
        ))),
        None => Ok(()),
    }
}

fn cause(error: tcp::Error, advice: &str) -> String {
    let cause = match error {
        tcp::Error::Refused => "the peer refused it",
        tcp::Error::Reset => "the peer reset it",
        tcp::Error::TimedOut | tcp::Error::KeepaliveTimedOut | tcp::Error::UserTimeout => {
            return format!("the peer did not answer in time, {advice}");
        }
        tcp::Error::Unreachable => "the peer cannot be reached",
        tcp::Error::Aborted => "it was aborted",
    };
    cause.to_owned()
}

/// Follows the telemetry of a sender that runs our own stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follower {
    doublings: u8,
    timeouts: u64,
    /// One look for each tick of 100 ms that has passed.
    next_look: Option<Instant>,
    rtt_total_ms: u64,
    rtt_samples: u64,
    /// TCP's figures since data were measured.
    telemetry: Option<tcp::Telemetry>,
}

impl Follower {
    pub(super) fn look(&mut self, telemetry: &tcp::Telemetry, now: Instant) {
        // Each timeout doubles the RTO once; an acknowledgement takes that back.
        let doublings = telemetry.rto_doublings;
        self.timeouts += u64::from(doublings.saturating_sub(self.doublings));
        self.doublings = doublings;
        if telemetry.rtt_min_ms > 0 {
            self.telemetry = Some(*telemetry);
        }
        if telemetry.srtt_ms > 0 && self.next_look.is_none_or(|next| next <= now) {
            self.next_look = Some(now + Duration::from_millis(100));
            self.rtt_total_ms += u64::from(telemetry.srtt_ms);
            self.rtt_samples += 1;
        }
    }

    /// The sender's figures, with its retransmissions from its counters.
    pub(super) fn figures(&self, counters: &tcp::TcpCounters) -> SenderFigures {
        let retransmissions = RetransmissionCause::ALL
            .into_iter()
            .map(|cause| (cause.name(), u64::from(counters.retransmitted(cause))))
            .filter(|(_, count)| *count > 0)
            .collect();
        SenderFigures {
            rtt_ms: (self.rtt_samples > 0)
                .then(|| self.rtt_total_ms as f64 / self.rtt_samples as f64),
            telemetry: self.telemetry,
            timeouts: self.timeouts,
            retransmissions,
        }
    }
}

/// RTT and window as the bar shows them.
pub(super) fn telemetry_text(telemetry: &tcp::Telemetry) -> String {
    let segments = f64::from(telemetry.cwnd_bytes) / f64::from(telemetry.smss_bytes.max(1));
    format!("RTT {} ms  cwnd {segments:.0} segments", telemetry.srtt_ms)
}

/// Kilobits per second; 0 in no time.
pub(super) fn kbps(bytes: u64, time: Duration) -> f64 {
    match time.as_micros() {
        0 => 0.0,
        us => bytes as f64 * 8_000.0 / us as f64,
    }
}

/// SHA-256 of `bytes`.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
