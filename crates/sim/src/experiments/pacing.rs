//! The pace that nodes find for themselves, against times set by hand.
//!
//! Chains of Hamiltons, of `TelosB`-like radios whose relays copy, and of such whose relays forward
//! without copies, on one channel and on several. Beside each stands the best of 40 fixed settings,
//! chosen anew for each chain, for an ACK for every eighth segment and for every second, for air in
//! which every twentieth frame is lost, and for air in which nodes two hops apart sense each other
//! (`search`). The measured pace has constants of its own: how many exchanges lie between two
//! frames, how relays learn when to send, when sources try slower paces, and when and by how much
//! they yield. The last was chosen on these chains with other seeds, the others on four of these
//! seeds.

pub(super) mod search;

use motet::tcp::Config;

use super::flows::Flows;
use super::metric::{GOODPUT, JAIN, LOSS};
use super::row::{Point, Row, Value};
use super::setup::Setup;
use super::{Case, Results};

/// A chain with its best times set by hand, and the criterion for the measured pace.
struct Chain {
    kind: Kind,
    hops: u64,
    /// The best times with an ACK for every eighth segment, and with one for every second.
    by_hand: [Times; 2],
    /// The least goodput with an ACK for every eighth segment, kb/s.
    least: Option<f64>,
    /// The same with one for every second, thinned.
    least_every_second: Option<f64>,
}

/// The hold rule's time per hop, µs, and d, ms.
type Times = (u64, u64);

/// The radios and relays of a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hamilton,
    LongSegments,
    Copies,
    Immediate,
    SeveralChannels,
}

const fn chain(kind: Kind, hops: u64, by_hand: [Times; 2], least: Option<f64>) -> Chain {
    Chain {
        kind,
        hops,
        by_hand,
        least,
        least_every_second: None,
    }
}

const fn every_second(mut chain: Chain, least: f64) -> Chain {
    chain.least_every_second = Some(least);
    chain
}

const CHAINS: [Chain; 12] = [
    chain(Kind::Hamilton, 2, [(6_000, 10), (6_000, 10)], Some(40.0)),
    every_second(
        chain(Kind::Hamilton, 3, [(4_000, 2), (4_000, 2)], Some(27.5)),
        27.0,
    ),
    chain(Kind::Hamilton, 4, [(8_000, 5), (8_000, 5)], Some(23.5)),
    chain(Kind::Hamilton, 6, [(8_000, 10), (8_000, 10)], Some(18.5)),
    chain(Kind::LongSegments, 3, [(4_000, 2), (4_000, 2)], Some(30.0)),
    chain(Kind::Copies, 2, [(0, 2), (0, 2)], None),
    chain(Kind::Copies, 3, [(0, 2), (0, 2)], Some(36.0)),
    chain(Kind::Immediate, 2, [(3_000, 20), (3_000, 2)], Some(64.0)),
    chain(Kind::Immediate, 3, [(4_000, 2), (4_000, 2)], Some(41.0)),
    chain(Kind::Immediate, 6, [(6_000, 2), (7_000, 2)], Some(26.5)),
    every_second(
        chain(
            Kind::SeveralChannels,
            3,
            [(3_000, 10), (3_000, 20)],
            Some(60.0),
        ),
        55.0,
    ),
    every_second(
        chain(
            Kind::SeveralChannels,
            6,
            [(3_000, 10), (7_000, 2)],
            Some(53.0),
        ),
        48.0,
    ),
];

/// How a chain is paced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// The best times by hand.
    ByHand,
    /// These times by hand, and what they are called.
    Fixed(&'static str, Times),
    /// Measured, and so much of that, %.
    Measured(u8),
    /// Measured, and the border router thins ACKs.
    Thinned,
}

const MEASURED: Pace = Pace::Measured(100);

/// Scales of the measured pace, and what goodput each may cost.
const SCALES: [(u8, f64); 4] = [(85, 0.85), (95, 0.95), (105, 0.95), (115, 0.85)];

/// Air that is worse or better than usual.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Air {
    /// Every twentieth frame is lost, ACKs too.
    Lossy,
    /// Nodes two hops apart sense each other.
    NothingHidden,
}

/// Chains of three hops in such air: which, and their best times by hand there.
const IN_OTHER_AIR: [(Air, usize, Times); 8] = [
    (Air::Lossy, 1, (3_500, 5)),
    (Air::Lossy, 6, (0, 2)),
    (Air::Lossy, 8, (4_000, 2)),
    (Air::Lossy, 10, (6_000, 2)),
    (Air::NothingHidden, 1, (5_000, 2)),
    (Air::NothingHidden, 6, (0, 5)),
    (Air::NothingHidden, 8, (5_000, 2)),
    (Air::NothingHidden, 10, (3_000, 10)),
];

impl Air {
    /// The chain of a case there, measured or by hand.
    fn case(self, chain: usize, by_hand: Times, pace: Pace) -> Case {
        let chain = Chain {
            by_hand: [by_hand; 2],
            ..CHAINS[chain]
        };
        let mut setup = chain.setup(pace, 8);
        match self {
            Self::Lossy => setup = setup.with("radio.frame_loss", 0.05),
            Self::NothingHidden => setup = setup.with("topology.hidden", false),
        }
        Case::new(self.point(&chain, pace), setup)
    }

    fn point(self, chain: &Chain, pace: Pace) -> Point {
        let point = chain.point(pace, 8);
        match self {
            Self::Lossy => point.with("loss", Value::Hundredths(5)),
            Self::NothingHidden => point.with("node", "none hidden"),
        }
    }
}

/// The chains that carry two flows, too, all of three hops: Hamiltons, relays that copy beside the
/// backoff, and relays without copies on one channel and on several.
const PAIRED: [&Chain; 4] = [&CHAINS[1], &CHAINS[6], &CHAINS[8], &CHAINS[10]];

impl Chain {
    fn point(&self, pace: Pace, ack_every: u64) -> Point {
        let design = match pace {
            Pace::ByHand => "by hand",
            Pace::Fixed(name, _) => name,
            Pace::Measured(85) => "measured, 85 %",
            Pace::Measured(95) => "measured, 95 %",
            Pace::Measured(105) => "measured, 105 %",
            Pace::Measured(115) => "measured, 115 %",
            Pace::Measured(_) => "measured",
            Pace::Thinned => "measured, thinned",
        };
        let is_immediate = matches!(self.kind, Kind::Immediate | Kind::SeveralChannels);
        let has_one_channel = self.kind != Kind::SeveralChannels;
        let point = Point::default()
            .with("hops", self.hops)
            .with("forwarding", if is_immediate { "cit" } else { "copy" })
            .with("channels", if has_one_channel { "single" } else { "multi" })
            .with(
                "compression",
                if self.is_telosb() { "tcphc" } else { "none" },
            )
            .with("mss_frames", u64::from(self.mss_frames()))
            .with("ack_every", ack_every)
            .with("design", design);
        match pace {
            Pace::Fixed(_, (_, delay_ms)) => point.with("retry_delay_ms", delay_ms),
            _ => point,
        }
    }

    fn setup(&self, pace: Pace, ack_every: u64) -> Setup {
        let window = if self.kind == Kind::LongSegments {
            5
        } else {
            12
        };
        let mut setup = Setup::hops(self.hops as u16)
            .window_segments(window)
            .with("stack.mss_frames", i64::from(self.mss_frames()))
            .with("stack.queue_frames", 32)
            .with("wire.host_ack_every", ack_every as i64);
        if self.is_telosb() {
            setup = setup.with("radio.profile", "telosb").compressed();
        }
        if matches!(self.kind, Kind::Immediate | Kind::SeveralChannels) {
            setup = setup.with("stack.forwarding", "cit");
        }
        if self.kind == Kind::SeveralChannels {
            setup = setup.with("radio.channels", "multi");
        }
        setup = match pace {
            Pace::Measured(percent) => setup.measured(percent, false),
            Pace::Thinned => setup.measured(100, true),
            Pace::ByHand => by_hand(setup, self.by_hand[usize::from(ack_every == 2)]),
            Pace::Fixed(_, times) => by_hand(setup, times),
        };
        setup.sender = |config: &mut Config| config.initial_window = 8;
        setup.receiver = match ack_every {
            8 => |config: &mut Config| receive(config, 8),
            _ => |config: &mut Config| receive(config, 2),
        };
        setup
    }

    fn case(&self, pace: Pace, ack_every: u64) -> Case {
        Case::new(self.point(pace, ack_every), self.setup(pace, ack_every))
    }

    fn is_telosb(&self) -> bool {
        !matches!(self.kind, Kind::Hamilton | Kind::LongSegments)
    }

    fn mss_frames(&self) -> u8 {
        if self.kind == Kind::LongSegments {
            12
        } else {
            5
        }
    }
}

fn by_hand(setup: Setup, (hold_us, delay_ms): Times) -> Setup {
    let setup = setup.with("stack.hold_ms", hold_us as f64 / 1e3);
    setup.retry_delay_ms(delay_ms)
}

/// The longest wait that RFC 9293 §3.8.6.3 allows, so that the rule decides and not the timer.
fn receive(config: &mut Config, ack_every: u8) {
    config.ack_every = ack_every;
    config.ack_delay_ms = 500;
}

fn two(point: Point) -> Point {
    point.with("flow", "two")
}

/// The cases of `combined-pacing` with a measured pace, and those beside them.
pub(super) fn cases() -> Vec<Case> {
    let paces = [
        (MEASURED, 8),
        (Pace::ByHand, 8),
        (MEASURED, 2),
        (Pace::ByHand, 2),
        (Pace::Thinned, 2),
    ];
    let of_chain = |chain: &'static Chain| {
        let scaled = SCALES.map(|(percent, _)| (Pace::Measured(percent), 8));
        let paces = paces.into_iter().chain(scaled);
        paces.map(|(pace, every)| chain.case(pace, every))
    };
    let of_two = |chain: &Chain| {
        let short_queues = chain.setup(MEASURED, 8).with("stack.queue_frames", 16);
        let flows = Case::new(two(chain.point(MEASURED, 8)), short_queues);
        flows.traffic(Flows::TwoUp)
    };
    let mut cases: Vec<Case> = CHAINS.iter().flat_map(of_chain).collect();
    cases.extend(PAIRED.map(of_two));
    for (air, chain, by_hand) in IN_OTHER_AIR {
        cases.extend([MEASURED, Pace::ByHand].map(|pace| air.case(chain, by_hand, pace)));
    }
    cases
}

/// The rows that follow from the cases.
pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mean = |point: &Point| results.mean(point, GOODPUT);
    let part = |point: Point, name, of: &Point| {
        let value = mean(&point) / mean(of);
        results.derived(point, (name, "1"), value)
    };
    let judged = |row: Row, least: Option<f64>| match least {
        Some(least) => row.at_least(least),
        None => row,
    };
    let mut rows = Vec::new();
    for chain in &CHAINS {
        let [measured, by_hand] = [MEASURED, Pace::ByHand].map(|pace| chain.point(pace, 8));
        let [often, thinned] = [MEASURED, Pace::Thinned].map(|pace| chain.point(pace, 2));
        rows.push(judged(results.goodput(&measured), chain.least));
        rows.push(results.goodput(&by_hand));
        rows.push(part(measured, "goodput_over_by_hand", &by_hand).at_least(0.95));
        rows.push(results.goodput(&often));
        rows.push(judged(results.goodput(&thinned), chain.least_every_second));
        let by_hand = chain.point(Pace::ByHand, 2);
        rows.push(results.goodput(&by_hand));
        rows.push(part(thinned, "goodput_over_by_hand", &by_hand).at_least(0.95));
        let whole = chain.point(MEASURED, 8);
        for (percent, least) in SCALES {
            let point = chain.point(Pace::Measured(percent), 8);
            rows.push(part(point, "goodput_over_measured", &whole).at_least(least));
        }
        rows.extend(reachable_rows(results, chain));
    }
    for (air, chain, _) in IN_OTHER_AIR {
        let [measured, by_hand] =
            [MEASURED, Pace::ByHand].map(|pace| air.point(&CHAINS[chain], pace));
        rows.push(part(measured, "goodput_over_by_hand", &by_hand).at_least(0.95));
    }
    let whole = PAIRED[0].point(MEASURED, 8);
    let bound = results.segment(&whole).bound.unwrap_or(f64::NAN);
    let over_bound = mean(&whole) / bound;
    let over_bound = results.derived(whole.clone(), ("goodput_over_bound", "1"), over_bound);
    // Follows from the goodput, which is judged; 0.8 would be better than anyone expects.
    rows.push(over_bound.identity());
    for chain in PAIRED {
        let whole = chain.point(MEASURED, 8);
        let both = two(whole.clone());
        rows.push(results.row(&both, JAIN).at_least(0.97));
        rows.push(results.row(&both, LOSS).at_most(0.02));
        rows.push(part(both, "goodput_over_one_flow", &whole).at_least(0.85));
    }
    rows
}

/// The best goodput of all settings of a chain that run here, those by hand being the best of 40
/// (`combined-pacing-search`), and what the measured pace has of it: the rest of the gap to the
/// bound is not the pace's. Shown, since the settings are judged against each other.
fn reachable_rows(results: &Results<'_>, chain: &Chain) -> [Row; 2] {
    let whole = chain.point(MEASURED, 8);
    let scaled = SCALES.map(|(percent, _)| Pace::Measured(percent));
    let settings = [MEASURED, Pace::ByHand].into_iter().chain(scaled);
    let goodputs = settings.map(|pace| results.mean(&chain.point(pace, 8), GOODPUT));
    let goodputs: Vec<f64> = goodputs.collect();
    let best = goodputs.iter().copied().fold(f64::NAN, f64::max);
    let own = results.mean(&whole, GOODPUT);
    [
        results.greatest(whole.clone(), ("reachable", "kb/s"), goodputs),
        results.derived(whole, ("goodput_over_reachable", "1"), own / best),
    ]
    .map(Row::identity)
}
