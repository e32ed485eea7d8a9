//! One node, and every message that may come.

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use core::net::Ipv6Addr;

use proptest::prelude::*;

use super::lab::{PREFIX, addr, iid, link_local};
use crate::random::Rng;
use crate::rpl::{
    Candidate, Config, ControlMessage, Destination, Dodag, FrameReport, INFINITE_RANK, Leaf,
    LeafOutcome, MessageDrop, MessageOutcome, Root, Rpl, RplAction, RplRole, routes,
};
use crate::time::{Duration, Instant};
use crate::wire::cursor::Writer;
use crate::wire::lollipop;
use crate::wire::ndp::PrefixInformation;
use crate::wire::rpl::{
    Configuration, Dao, DaoAck, Dio, Dis, Message, Metrics, RplOption, RplOptions, Solicited,
    Target, Transit, mode,
};

/// A node with its clock.
pub(super) struct Bench {
    pub(super) rpl: Rpl<'static>,
    pub(super) rng: Rng,
    pub(super) now: Instant,
    pub(super) sent: Vec<(Destination, ControlMessage)>,
    /// Outcomes for leaves, and how often all of them were to be advertised again.
    pub(super) outcomes: Vec<(Leaf, LeafOutcome)>,
    pub(super) lost: usize,
}

/// What a neighbour says in a DIO, if nothing else is said.
#[derive(Clone)]
pub(super) struct Says {
    pub(super) from: usize,
    pub(super) rank: u16,
    pub(super) version: u8,
    pub(super) mode: u8,
    pub(super) dtsn: u8,
    pub(super) dodag: Ipv6Addr,
    pub(super) instance: u8,
    pub(super) configuration: Option<Configuration>,
    pub(super) etx: Option<u16>,
    pub(super) prefix: Option<PrefixInformation>,
}

/// A whole rank is a transmission, as where DIOs carry no metrics.
pub(super) const CONFIGURATION: Configuration = Configuration {
    min_hop_rank_increase: 128,
    max_rank_increase: 1024,
    ..Root::new(PREFIX).configuration
};

pub(super) const ROOT: RplRole = RplRole::Root(Root {
    has_metrics: false,
    configuration: CONFIGURATION,
    ..Root::new(PREFIX)
});

pub(super) fn says(from: usize, rank: u16) -> Says {
    Says {
        from,
        rank,
        version: 240,
        mode: mode::NON_STORING,
        dtsn: 240,
        dodag: addr(0),
        instance: 0,
        configuration: Some(CONFIGURATION),
        etx: None,
        prefix: None,
    }
}

pub(super) fn bytes_of(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 300];
    let mut w = Writer::new(&mut bytes);
    message.emit(&mut w).unwrap();
    let len = w.written();
    bytes.truncate(len);
    bytes
}

pub(super) fn options_of(options: &[RplOption<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; 300];
    let mut w = Writer::new(&mut bytes);
    for option in options {
        option.emit(&mut w).unwrap();
    }
    let len = w.written();
    bytes.truncate(len);
    bytes
}

/// A prefix from which addresses are formed.
pub(super) const OTHER_PREFIX: PrefixInformation = PrefixInformation {
    prefix_len: 64,
    on_link: false,
    autonomous: true,
    router_address: false,
    valid_lifetime_s: 3_600,
    preferred_lifetime_s: 3_600,
    prefix: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0),
};

impl Says {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let etx = self.etx.map(Metrics::etx_object);
        let etx = etx.as_ref().map(|etx| Metrics::parse(etx).unwrap());
        let mut options: Vec<_> = etx.into_iter().map(RplOption::Metrics).collect();
        options.extend(self.configuration.map(RplOption::Configuration));
        options.extend(self.prefix.map(RplOption::Prefix));
        let options = options_of(&options);
        bytes_of(&Message::Dio(Dio {
            instance: self.instance,
            version: self.version,
            rank: self.rank,
            grounded: true,
            mode: self.mode,
            preference: 0,
            dtsn: self.dtsn,
            dodag: self.dodag,
            options: RplOptions::parse(&options).unwrap(),
        }))
    }
}

impl Bench {
    pub(super) fn new(role: RplRole) -> Self {
        let slots = Box::leak(vec![Candidate::EMPTY; 8].into_boxed_slice());
        let config = Config { iid: iid(9), role };
        let mut bench = Self {
            rpl: Rpl::new(&config, slots),
            rng: Rng::from_seed([3, 4]),
            now: Instant::from_micros(1),
            sent: Vec::new(),
            outcomes: Vec::new(),
            lost: 0,
        };
        bench.rpl.start(bench.now, &mut bench.rng);
        bench
    }

    /// A router that has joined below the root (node 0), which acknowledges at once.
    pub(super) fn joined(role: RplRole) -> Self {
        let mut bench = Self::new(role);
        bench.dio(&says(0, 128)).unwrap();
        bench.acknowledges(0, 20);
        bench.run(Duration::from_secs(3));
        assert_eq!(bench.rpl.parent(), Some(iid(0)));
        bench
    }

    pub(super) fn dio(&mut self, says: &Says) -> Result<(), MessageDrop> {
        self.message(link_local(says.from), true, &says.bytes())
    }

    /// A neighbour says so to all, and when it is asked, the same to this node alone. What comes of
    /// the last.
    pub(super) fn says_itself(&mut self, says: &Says) -> Result<(), MessageDrop> {
        let asked = self.questions(says.from);
        let heard = self.dio(says);
        let until = self.now + Duration::from_millis(1_200);
        while self.questions(says.from) == asked && self.now < until {
            self.run(Duration::from_millis(10));
        }
        if self.questions(says.from) == asked {
            return heard;
        }
        self.acknowledges(says.from, 1);
        self.message(link_local(says.from), false, &says.bytes())
    }

    /// How often a neighbour was asked what it says itself.
    pub(super) fn questions(&self, to: usize) -> usize {
        let question = (Destination::Neighbour(iid(to)), ControlMessage::Dis);
        self.sent.iter().filter(|sent| **sent == question).count()
    }

    pub(super) fn message(
        &mut self,
        from: Ipv6Addr,
        to_all: bool,
        bytes: &[u8],
    ) -> Result<(), MessageDrop> {
        let parts = (bytes[1], &bytes[4..]);
        let heard = self
            .rpl
            .on_message(from, to_all, parts, self.now, &mut self.rng);
        let heard = heard.map(|_| ());
        self.poll();
        heard
    }

    pub(super) fn acknowledges(&mut self, node: usize, frames: usize) {
        for _ in 0..frames {
            self.rpl
                .on_sent(iid(node), FrameReport::of(1, true), self.now);
        }
        self.poll();
    }

    pub(super) fn poll(&mut self) {
        for turn in 0.. {
            assert!(turn < 50, "something to do for ever");
            match self.rpl.poll(self.now, &mut self.rng) {
                Some(RplAction::Send { to, message }) => self.sent.push((to, message)),
                Some(RplAction::Leaf(leaf, outcome)) => self.outcomes.push((leaf, outcome)),
                Some(RplAction::LeavesLost) => self.lost += 1,
                Some(_) => {}
                None => break,
            }
        }
        assert!(self.rpl.next_deadline().is_none_or(|at| at > self.now));
    }

    pub(super) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(at) = self.rpl.next_deadline().filter(|at| *at <= until) {
            self.now = at;
            self.poll();
        }
        self.now = until;
    }
}

#[test]
fn forged_and_malformed_dios_change_nothing() {
    use MessageDrop::*;
    let fine = says(7, 300);
    let of = |change: fn(&mut Says)| {
        let mut says = fine.clone();
        change(&mut says);
        says
    };
    let cases: &[(&str, Says, Result<(), MessageDrop>)] = &[
        ("a DIO as it should be", fine.clone(), Ok(())),
        ("rank 0", of(|it| it.rank = 0), Err(BadRank)),
        ("below the root's", of(|it| it.rank = 127), Err(BadRank)),
        (
            "between root and children",
            of(|it| it.rank = 255),
            Err(BadRank),
        ),
        ("a second root", of(|it| it.rank = 128), Err(SecondRoot)),
        (
            "poison of a stranger",
            of(|it| it.rank = INFINITE_RANK),
            Ok(()),
        ),
        (
            "a stranger's version",
            of(|it| it.version = 241),
            Err(StrangeVersion),
        ),
        ("an old version", of(|it| it.version = 239), Err(OldVersion)),
        (
            "a version out of order",
            of(|it| it.version = 150),
            Err(OldVersion),
        ),
        (
            "another DODAG",
            of(|it| it.dodag = addr(77)),
            Err(OtherDodag),
        ),
        (
            "another instance",
            of(|it| it.instance = 3),
            Err(OtherInstance),
        ),
        (
            "another mode",
            of(|it| it.mode = mode::STORING),
            Err(BadMode),
        ),
    ];
    for (name, says, outcome) in cases {
        let mut bench = Bench::joined(RplRole::Router);
        let before = (
            bench.rpl.rank(),
            bench.rpl.parent(),
            *bench.rpl.dodag().unwrap(),
        );
        assert_eq!(bench.dio(says), *outcome, "{name}");
        if let Err(reason) = outcome {
            assert_eq!(bench.rpl.dropped(*reason), 1, "{name}");
        }
        let after = (
            bench.rpl.rank(),
            bench.rpl.parent(),
            *bench.rpl.dodag().unwrap(),
        );
        assert_eq!(after, before, "{name}");
    }
}

#[test]
fn a_first_dio_must_be_one_that_can_be_followed() {
    use MessageDrop::*;
    let with = |change: fn(&mut Configuration)| {
        let mut configuration = CONFIGURATION;
        change(&mut configuration);
        Some(configuration)
    };
    for (name, configuration, mode, outcome) in [
        ("none", None, 1, Err(NoConfiguration)),
        (
            "no unit",
            with(|it| it.min_hop_rank_increase = 0),
            1,
            Err(BadConfiguration),
        ),
        (
            "no lifetime",
            with(|it| it.default_lifetime = 0),
            1,
            Err(BadConfiguration),
        ),
        (
            "no lifetime unit",
            with(|it| it.lifetime_unit_s = 0),
            1,
            Err(BadConfiguration),
        ),
        ("mode 5", with(|_| {}), 5, Err(BadMode)),
        (
            "long intervals",
            with(|it| it.interval_min = 255),
            1,
            Ok(()),
        ),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        let mut says = says(0, 128);
        (says.configuration, says.mode) = (configuration, mode);
        assert_eq!(bench.dio(&says), outcome, "{name}");
        assert_eq!(bench.rpl.dodag().is_some(), outcome.is_ok(), "{name}");
        // A neighbour that left out the configuration is asked for it.
        let dis = (Destination::Neighbour(iid(0)), ControlMessage::Dis);
        assert_eq!(
            bench.sent.contains(&dis),
            outcome == Err(NoConfiguration),
            "{name}"
        );
    }
    let mut bench = Bench::new(RplRole::Router);
    let bytes = says(0, 128).bytes();
    assert_eq!(bench.message(addr(0), true, &bytes), Err(BadSource));
    assert!(bench.message(link_local(0), true, &bytes[..20]).is_err());
}

#[test]
fn a_stranger_is_no_parent_before_it_acknowledges() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(0, 128)).unwrap();
    bench.run(Duration::from_secs(30));
    assert_eq!(
        (bench.rpl.parent(), bench.rpl.rank()),
        (None, INFINITE_RANK)
    );
    let probe = (
        Destination::Neighbour(iid(0)),
        ControlMessage::Dio { full: false },
    );
    assert!(bench.sent.contains(&probe));
    bench.acknowledges(0, 1);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
}

#[test]
fn one_neighbour_is_tried_at_a_time_the_most_promising_first() {
    let mut bench = Bench::new(RplRole::Router);
    for from in 1..=8 {
        bench.dio(&says(from, 256 + 128 * from as u16)).unwrap();
    }
    let probes = |bench: &Bench| -> Vec<Destination> {
        let is_probe = |message: &ControlMessage| *message == ControlMessage::Dio { full: false };
        let probes = bench.sent.iter().filter(|(_, message)| is_probe(message));
        probes.map(|(to, _)| *to).collect()
    };
    // Of the first nothing is heard yet: its frame may wait for its eighth attempt.
    bench.run(Duration::from_secs(1));
    assert_eq!(probes(&bench), [Destination::Neighbour(iid(1))]);
    bench
        .rpl
        .on_sent(iid(1), FrameReport::of(8, false), bench.now);
    bench.run(Duration::from_millis(250));
    let next = Destination::Neighbour(iid(2));
    assert_eq!(probes(&bench)[1..], [next]);
    // A report that never comes holds up nobody for long.
    bench.run(Duration::from_secs(4));
    assert!(probes(&bench).len() >= 3);
}

#[test]
fn a_mote_that_changes_its_parent_in_a_crowd_sends_few_daos() {
    let mut bench = Bench::joined(RplRole::Router);
    for from in [0, 7] {
        bench.acknowledges(from, 20);
    }
    bench.sent.clear();
    for turn in 0..60 {
        // The better way is once over 7, once over 8.
        for from in [7, 8] {
            let is_better = (from == 7) == (turn % 2 == 0);
            bench
                .dio(&says(from, if is_better { 256 } else { 900 }))
                .unwrap();
            bench.acknowledges(from, 3);
        }
        bench.dio(&says(0, INFINITE_RANK)).unwrap();
        bench.run(Duration::from_millis(500));
    }
    let daos = bench
        .sent
        .iter()
        .filter(|sent| sent.1 == ControlMessage::Dao);
    let count = daos.count();
    assert!((2..=12).contains(&count), "{count} DAOs in half a minute");
}

#[test]
fn a_rank_that_falls_a_little_disturbs_nobody() {
    for (from, to, resets) in [(900, 600, false), (900, 300, true), (600, 850, true)] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(7, from)).unwrap();
        bench.acknowledges(7, 30);
        for _ in 0..30 {
            bench.run(Duration::from_secs(10));
            bench.acknowledges(7, 1);
        }
        let rank = bench.rpl.rank();
        bench.sent.clear();
        bench.says_itself(&says(7, to)).unwrap();
        bench.run(Duration::from_secs(10));
        assert_eq!(bench.rpl.rank() + from, rank + to);
        let to_all = (Destination::All, ControlMessage::Dio { full: true });
        let count = bench.sent.iter().filter(|sent| **sent == to_all).count();
        assert!(if resets { count > 2 } else { count <= 1 }, "{to}: {count}");
    }
}

#[test]
fn poisoned_without_another_way_a_router_poisons_in_turn() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.sent.clear();
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    assert_eq!(bench.rpl.parent(), None);
    bench.run(Duration::from_secs(20));
    let to_all = |message| (Destination::All, message);
    let poison = to_all(ControlMessage::Dio { full: false });
    assert_eq!(bench.sent[..2], [poison, poison]);
    assert!(
        bench.sent[2..]
            .iter()
            .all(|sent| *sent == to_all(ControlMessage::Dis))
    );
    assert!((3..7).contains(&bench.sent.len()), "{}", bench.sent.len());
}

#[test]
fn a_possible_descendant_is_no_parent_until_it_knows() {
    let mut bench = Bench::joined(RplRole::Router);
    let rank = bench.rpl.rank();
    bench.dio(&says(7, rank + 128)).unwrap();
    bench.acknowledges(7, 20);
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    assert_eq!(bench.rpl.parent(), None);
    bench.run(Duration::from_secs(3));
    assert_eq!(bench.rpl.parent(), None);
    // It has heard the poisoning and says a rank all the same.
    bench.dio(&says(7, rank + 128)).unwrap();
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
}

#[test]
fn floods_are_answered_within_bounds() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.run(Duration::from_secs(100));
    let dis = bytes_of(&Message::Dis(Dis::default()));
    bench.sent.clear();
    for turn in 0..6000 {
        let from = link_local(turn % 500);
        let _ = bench.message(from, turn % 2 == 0, &dis);
        // Ranks that fall with every message, versions that grow, a root for everybody.
        let mut says = says(20 + turn % 50, 60_000 - turn as u16);
        says.version = if turn % 3 == 0 { (turn / 3) as u8 } else { 240 };
        says.dtsn = turn as u8;
        let _ = bench.dio(&says);
        bench.run(Duration::from_millis(10));
    }
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    assert!(bench.rpl.candidates().count() <= 8);
    // In 60 s: probes of strangers, 3 DIOs in 4 s and the answers that the allowances give.
    let count = |is: fn(&(Destination, ControlMessage)) -> bool| {
        bench.sent.iter().filter(|it| is(it)).count()
    };
    assert!(count(|(to, _)| *to == Destination::All) < 80);
    assert!(count(|(_, it)| *it == ControlMessage::Dio { full: true }) < 24 + 60 * 2 + 80);
    // One that nobody answers is repeated after 12 to 24 s.
    assert!(count(|(_, it)| *it == ControlMessage::Dao) <= 5);
    assert!(bench.sent.len() < 360, "{}", bench.sent.len());
    assert!(bench.rpl.dropped(MessageDrop::TooMany) > 1000);
}

#[test]
fn strangers_that_ask_keep_no_child_from_its_answer() {
    let dis = bytes_of(&Message::Dis(Dis::default()));
    // A second to this mote alone, of ever other neighbours that do not exist.
    for rate in [5, 20, 50] {
        let mut bench = Bench::joined(RplRole::Router);
        // A child, which has no slot: it has taken what the root said to it.
        bench.acknowledges(30, 1);
        bench.sent.clear();
        let mut turned_away = 0;
        for turn in 0..60 * rate {
            let _ = bench.message(link_local(1_000 + turn), false, &dis);
            if turn % rate == rate / 2 {
                let answer = bench.message(link_local(30), false, &dis);
                turned_away += usize::from(answer.is_err());
            }
            bench.run(Duration::from_micros(1_000_000 / rate as u64));
        }
        assert_eq!(turned_away, 0, "{rate} a second");
        // A minute of it makes this mote send two a second.
        let answers = bench.sent.iter().filter(|(to, message)| {
            let is_childs = *to == Destination::Neighbour(iid(30));
            *message == ControlMessage::Dio { full: true } && !is_childs
        });
        let count = answers.count();
        assert!(count < 24 + 60 * 2 + 20, "{count} at {rate} a second");
    }
}

#[test]
fn most_of_a_hundred_children_that_ask_at_once_are_answered() {
    let mut bench = Bench::joined(RplRole::Router);
    let dis = bytes_of(&Message::Dis(Dis::default()));
    for child in 100..200 {
        bench.acknowledges(child, 1);
    }
    bench.run(Duration::from_secs(60));
    let mut waiting: Vec<usize> = (100..200).collect();
    for _ in 0..3 {
        // Each asks a second after its last question, in the same 40 ms as the others.
        for child in waiting.clone() {
            if bench.message(link_local(child), false, &dis).is_ok() {
                waiting.retain(|other| *other != child);
                bench.acknowledges(child, 1);
            }
            bench.run(Duration::from_micros(400));
        }
        bench.run(Duration::from_secs(1));
    }
    assert!(waiting.len() <= 50, "{} have no answer", waiting.len());
}

#[test]
fn what_one_neighbour_is_owed_no_other_one_replaces() {
    let dis = bytes_of(&Message::Dis(Dis::default()));
    let mut old = says(40, 300);
    old.version = 200;
    let old = old.bytes();
    let whatever: [fn(&mut Bench, &[u8]); 2] = [
        |bench, old| {
            let _ = bench.rpl.on_message(
                link_local(40),
                true,
                (old[1], &old[4..]),
                bench.now,
                &mut bench.rng,
            );
        },
        |bench, _| bench.rpl.on_contradiction(iid(41), false, bench.now),
    ];
    for (case, happens) in whatever.into_iter().enumerate() {
        let mut bench = Bench::joined(RplRole::Router);
        bench.sent.clear();
        let (rpl, rng) = (&mut bench.rpl, &mut bench.rng);
        rpl.on_message(link_local(30), false, (dis[1], &dis[4..]), bench.now, rng)
            .unwrap();
        happens(&mut bench, &old);
        bench.poll();
        let answer = (
            Destination::Neighbour(iid(30)),
            ControlMessage::Dio { full: true },
        );
        assert!(bench.sent.contains(&answer), "{case}");
    }
}

#[test]
fn a_probe_of_the_parents_is_no_answer_to_a_question() {
    let mut bench = Bench::joined(RplRole::Router);
    let mut news = says(0, 128);
    news.prefix = Some(OTHER_PREFIX);
    let asked = bench.questions(0);
    bench.dio(&news).unwrap();
    bench.run(Duration::from_millis(200));
    assert_eq!(bench.questions(0), asked + 1);
    // It measures its link to this mote just then.
    let mut probe = says(0, 128);
    probe.configuration = None;
    bench.message(link_local(0), false, &probe.bytes()).unwrap();
    bench.message(link_local(0), false, &news.bytes()).unwrap();
    assert_eq!(bench.rpl.dodag().unwrap().prefix(), OTHER_PREFIX.prefix);
}

#[test]
fn versions_are_followed_a_few_times_a_minute() {
    let mut bench = Bench::joined(RplRole::Router);
    let mut followed = 0;
    for version in 241..=255 {
        let mut says = says(0, 128);
        says.version = version;
        followed += usize::from(bench.says_itself(&says).is_ok());
    }
    assert_eq!((followed, bench.rpl.dropped(MessageDrop::TooMany)), (4, 11));
}

#[test]
fn a_version_is_believed_only_as_the_parents_own_answer() {
    let newer = |from, rank| {
        let mut says = says(from, rank);
        says.version = 241;
        says
    };
    let version = |bench: &Bench| bench.rpl.dodag().unwrap().version;
    // A neighbour over a good link, one over a bad one, a stranger: none is followed, the parent is
    // asked.
    for attempts in [Some(1), Some(12), None] {
        let mut bench = Bench::joined(RplRole::Router);
        bench.dio(&says(7, 300)).unwrap();
        for _ in 0..attempts.map_or(0, |_| 20) {
            bench.rpl.on_sent(
                iid(7),
                FrameReport::of(attempts.unwrap_or(1), true),
                bench.now,
            );
        }
        bench.run(Duration::from_secs(1));
        let asked = bench.questions(0);
        assert_eq!(
            bench.dio(&newer(7, 300)),
            Err(MessageDrop::StrangeVersion),
            "{attempts:?}"
        );
        // Nor to this node alone: it has not been asked.
        let alone = bench.message(link_local(7), false, &newer(7, 300).bytes());
        assert_eq!(alone, Err(MessageDrop::StrangeVersion), "{attempts:?}");
        bench.run(Duration::from_secs(1));
        assert_eq!(version(&bench), 240, "{attempts:?}");
        assert_eq!(bench.rpl.parent(), Some(iid(0)), "{attempts:?}");
        assert!(bench.questions(0) > asked, "{attempts:?}");
        // The parent has not heard of it, and that ends it.
        bench.acknowledges(0, 1);
        let asked = bench.questions(0);
        let answer = says(0, 128).bytes();
        bench.message(link_local(0), false, &answer).unwrap();
        bench.run(Duration::from_secs(5));
        assert_eq!((bench.questions(0), version(&bench)), (asked, 240));
    }
    // In the parent's name, without an answer of its own: three questions, and nothing else.
    let mut bench = Bench::joined(RplRole::Router);
    bench.sent.clear();
    assert_eq!(bench.dio(&newer(0, 128)), Err(MessageDrop::StrangeVersion));
    for _ in 0..50 {
        bench.run(Duration::from_millis(200));
        bench.acknowledges(0, 1);
    }
    assert_eq!((bench.questions(0), version(&bench)), (3, 240));
    // Too late an answer is none. The first in time counts, and only that one.
    let late = bench.message(link_local(0), false, &newer(0, 128).bytes());
    assert_eq!(late, Err(MessageDrop::StrangeVersion));
    assert_eq!(bench.says_itself(&newer(0, 128)), Ok(()));
    assert_eq!(version(&bench), 241);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    let mut next = newer(0, 128);
    next.version = 242;
    let second = bench.message(link_local(0), false, &next.bytes());
    assert_eq!(second, Err(MessageDrop::StrangeVersion));
}

#[test]
fn questions_to_a_parent_are_paced_however_many_claims_come() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.sent.clear();
    let mut says = says(0, 128);
    for turn in 0..6_000 {
        says.version = [241, 245, 250][turn % 3];
        let _ = bench.dio(&says);
        bench.run(Duration::from_millis(10));
        bench.acknowledges(0, 1);
    }
    // One a second, as none is answered.
    assert!(
        (55..=61).contains(&bench.questions(0)),
        "{}",
        bench.questions(0)
    );
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    assert_eq!(bench.rpl.dodag().unwrap().version, 240);
}

#[test]
fn what_makes_a_mote_act_is_believed_only_as_the_parents_own_answer() {
    let settled = || {
        let mut bench = Bench::joined(RplRole::Router);
        bench.run(Duration::from_secs(20));
        let _ = bench.message(addr(0), false, &answer(241, 0));
        for _ in 0..50 {
            bench.run(Duration::from_secs(1));
            bench.acknowledges(0, 1);
        }
        bench.sent.clear();
        bench
    };
    type Change = fn(&mut Says);
    let cases: [(&str, Change); 7] = [
        ("another mode", |it| it.mode = mode::STORING),
        ("another DODAG", |it| it.dodag = addr(50)),
        ("an older version", |it| it.version = 230),
        ("a counter that asks", |it| it.dtsn = 250),
        ("no rank", |it| it.rank = INFINITE_RANK),
        ("a rank far worse", |it| it.rank = 60_000),
        ("another prefix", |it| it.prefix = Some(OTHER_PREFIX)),
    ];
    let acts = |bench: &Bench| {
        let prefix = bench.rpl.dodag().unwrap().prefix();
        let is_parentless = bench.rpl.parent().is_none();
        is_parentless || daos(bench) > 0 || prefix == OTHER_PREFIX.prefix
    };
    for (name, change) in cases {
        let mut said = says(0, 128);
        change(&mut said);
        let mut bench = settled();
        let before = (bench.rpl.rank(), bench.rpl.parent());
        let _ = bench.dio(&said);
        bench.run(Duration::from_millis(200));
        assert_eq!((bench.rpl.rank(), bench.rpl.parent()), before, "{name}");
        assert!(!acts(&bench), "{name}");
        assert_eq!(bench.questions(0), 1, "{name}");
        // It denies it.
        bench.acknowledges(0, 1);
        let denied = bench.message(link_local(0), false, &says(0, 128).bytes());
        assert_eq!(denied, Ok(()), "{name}");
        bench.run(Duration::from_secs(3));
        assert!(!acts(&bench), "{name}");
        assert_eq!(bench.questions(0), 1, "{name}");
        // It says so itself.
        let mut bench = settled();
        let _ = bench.says_itself(&said);
        // A DAO that the root has asked for follows within 6 s.
        bench.run(Duration::from_secs(7));
        assert!(acts(&bench), "{name}");
    }
}

#[test]
fn two_poisonings_without_an_answer_are_believed() {
    let mut bench = Bench::joined(RplRole::Router);
    for _ in 0..70 {
        bench.run(Duration::from_secs(1));
        bench.acknowledges(0, 1);
    }
    let poison = says(0, INFINITE_RANK);
    bench.dio(&poison).unwrap();
    bench.run(Duration::from_millis(250));
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    bench.dio(&poison).unwrap();
    assert_eq!(bench.rpl.parent(), None);
}

/// As [`Bench::joined`], long enough ago that the mesh has settled.
pub(super) fn settled(root: &Says) -> Bench {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(root).unwrap();
    bench.acknowledges(0, 20);
    for _ in 0..70 {
        bench.run(Duration::from_secs(1));
        bench.acknowledges(0, 1);
    }
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    bench
}

#[test]
fn a_cost_far_higher_is_believed_only_as_the_parents_own_answer() {
    let mut root = says(0, 128);
    root.etx = Some(0);
    let mut bench = settled(&root);
    let rank = bench.rpl.rank();
    root.etx = Some(20_000);
    bench.dio(&root).unwrap();
    bench.run(Duration::from_millis(200));
    assert_eq!((bench.rpl.rank(), bench.rpl.parent()), (rank, Some(iid(0))));
    // A little more is what costs do.
    let mut bench = settled(&says(0, 128));
    let rank = bench.rpl.rank();
    bench.dio(&says(0, 256)).unwrap();
    assert_eq!(bench.rpl.rank(), rank + 128);
}

#[test]
fn who_has_gone_over_to_a_newer_version_is_no_parent_in_this_one() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 20);
    let mut newer = says(7, 256);
    newer.version = 241;
    assert_eq!(bench.dio(&newer), Err(MessageDrop::StrangeVersion));
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    assert_eq!(bench.rpl.parent(), None);
}

#[test]
fn a_new_version_forgets_the_ranks_of_the_old_one() {
    let mut bench = Bench::joined(RplRole::Router);
    let mut newer = says(0, 3_000);
    newer.version = 241;
    assert_eq!(bench.says_itself(&newer), Ok(()));
    // More than the configuration lets a rank rise within one version.
    bench.run(Duration::from_secs(3));
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    assert!(bench.rpl.rank() > 3_000);
    // And above what descendants could have counted on before.
    let mut other = says(7, 1_500);
    other.version = 241;
    bench.dio(&other).unwrap();
    bench.acknowledges(7, 20);
    bench.run(Duration::from_secs(3));
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
    // No descendant counts on less than this mote's rank in this version.
    let mut bench = Bench::joined(RplRole::Router);
    bench.says_itself(&newer).unwrap();
    let mut sibling = says(7, bench.rpl.rank() + 60);
    sibling.version = 241;
    bench.dio(&sibling).unwrap();
    bench.acknowledges(7, 20);
    newer.rank = INFINITE_RANK;
    bench.dio(&newer).unwrap();
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
}

#[test]
fn after_a_new_version_a_silent_root_says_nothing_of_the_parent() {
    let mut bench = between_two();
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    let mut newer = says(7, 256);
    newer.version = 241;
    bench.says_itself(&newer).unwrap();
    let mut other = says(8, 300);
    other.version = 241;
    bench.dio(&other).unwrap();
    bench.acknowledges(8, 20);
    let before = daos(&bench);
    bench.run(Duration::from_secs(30));
    assert!(daos(&bench) > before + 3);
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
}

#[test]
fn a_mote_that_is_alone_for_long_follows_an_older_version() {
    let mut older = says(7, 256);
    older.version = 235;
    for (alone_s, follows) in [(5, false), (90, true)] {
        let mut bench = Bench::joined(RplRole::Router);
        bench.dio(&says(0, INFINITE_RANK)).unwrap();
        bench.run(Duration::from_secs(alone_s));
        let heard = bench.dio(&older);
        assert_eq!(heard.is_ok(), follows, "{alone_s} s: {heard:?}");
    }
}

#[test]
fn a_neighbour_that_is_heard_for_the_first_time_asks_for_nothing() {
    let mut bench = between_two();
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    bench.run(Duration::from_secs(20));
    bench.sent.clear();
    let mut stranger = says(5, 400);
    stranger.dtsn = 5;
    bench.dio(&stranger).unwrap();
    bench.run(Duration::from_secs(2));
    assert_eq!(daos(&bench), 0);
}

#[test]
fn only_what_neighbours_above_repeat_makes_a_mote_hold_its_tongue() {
    // Four neighbours above, each heard several times in every interval; the same of four below.
    let heard = |ranks: fn(usize, usize) -> u16| {
        let mut bench = settled(&says(0, 128));
        bench.sent.clear();
        for turn in 0..300 {
            for from in 1..5 {
                let _ = bench.dio(&says(from, ranks(from, turn)));
            }
            bench.acknowledges(0, 1);
            bench.run(Duration::from_secs(1));
        }
        let to_all = (Destination::All, ControlMessage::Dio { full: true });
        bench.sent.iter().filter(|sent| **sent == to_all).count()
    };
    assert_eq!(heard(|_, _| 256), 0);
    assert!(heard(|from, _| 600 + from as u16) > 0);
    // The parent's rank as it was, and every other one new each time.
    assert!(heard(|from, turn| 256 + (from + turn) as u16 % 7) > 0);
}

#[test]
fn addresses_are_formed_of_no_prefix_that_cannot_be_one() {
    let of = |change: fn(&mut PrefixInformation)| {
        let mut prefix = OTHER_PREFIX;
        change(&mut prefix);
        prefix
    };
    for (name, prefix, is_one) in [
        ("as it should be", OTHER_PREFIX, true),
        ("ended", of(|it| it.valid_lifetime_s = 0), false),
        ("not for addresses", of(|it| it.autonomous = false), false),
        ("too long", of(|it| it.prefix_len = 65), false),
        (
            "multicast",
            of(|it| it.prefix = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0)),
            false,
        ),
        (
            "of the link",
            of(|it| it.prefix = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)),
            false,
        ),
        ("none", of(|it| it.prefix = Ipv6Addr::UNSPECIFIED), false),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        let mut root = says(0, 128);
        root.prefix = Some(prefix);
        bench.dio(&root).unwrap();
        let taken = bench.rpl.dodag().unwrap().prefix;
        let taken = taken.map(|taken| taken.information());
        assert_eq!(taken, is_one.then_some(prefix), "{name}");
    }
}

#[test]
fn another_dodag_is_taken_where_nothing_is_left_of_the_first() {
    let mut other = says(7, 256);
    other.dodag = addr(50);
    // Nobody has proven the first: it is kept for two seconds.
    for (after_ms, outcome) in [(1_900, Err(MessageDrop::OtherDodag)), (2_100, Ok(()))] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(0, 128)).unwrap();
        bench.run(Duration::from_millis(after_ms));
        assert_eq!(bench.dio(&other), outcome, "{after_ms} ms");
    }
    // A neighbour in it has acknowledged: a minute or two.
    for (after_s, outcome) in [(30, Err(MessageDrop::OtherDodag)), (200, Ok(()))] {
        let mut bench = Bench::joined(RplRole::Router);
        bench.dio(&says(0, INFINITE_RANK)).unwrap();
        bench.run(Duration::from_secs(after_s));
        assert_eq!(bench.dio(&other), outcome, "{after_s} s");
    }
}

#[test]
fn a_question_is_answered_by_the_neighbour_that_was_asked() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 20);
    let mut newer = says(0, 128);
    newer.version = 241;
    assert_eq!(bench.dio(&newer), Err(MessageDrop::StrangeVersion));
    bench.run(Duration::from_millis(200));
    assert_eq!(bench.questions(0), 1);
    let other = says(7, 256).bytes();
    bench.message(link_local(7), false, &other).unwrap();
    assert_eq!(bench.message(link_local(0), false, &newer.bytes()), Ok(()));
    assert_eq!(bench.rpl.dodag().unwrap().version, 241);
}

#[test]
fn nobody_is_tried_who_could_not_be_followed() {
    let tried = |rank: u16| {
        let mut bench = Bench::joined(RplRole::Router);
        bench.dio(&says(0, INFINITE_RANK)).unwrap();
        bench.run(Duration::from_secs(2));
        bench.sent.clear();
        bench.dio(&says(7, rank)).unwrap();
        bench.run(Duration::from_secs(3));
        let to_it = |(to, _): &(Destination, ControlMessage)| *to == Destination::Neighbour(iid(7));
        bench.sent.iter().any(to_it)
    };
    // A rank may rise by 1,024 in one version.
    assert_eq!([tried(900), tried(1_600)], [true, false]);
}

/// One that goes back on its straight part is of a node that has begun anew: a root that did so,
/// and had heard none of its motes before it spoke, once had no routes for a quarter of an hour.
#[test]
fn a_counter_that_goes_round_and_back_asks_for_nothing() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.run(Duration::from_secs(20));
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    bench.sent.clear();
    let mut says = says(0, 128);
    let turns = [
        (239, true),
        (225, true),
        (226, true),
        (226, false),
        (250, true),
        (2, true),
        (1, false),
        (3, true),
    ];
    for (dtsn, asks) in turns {
        let before = daos(&bench);
        says.dtsn = dtsn;
        bench.says_itself(&says).unwrap();
        bench.run(Duration::from_secs(7));
        assert_eq!(daos(&bench) > before, asks, "{dtsn}");
        for sequence in 0..=255 {
            let _ = bench.message(addr(0), false, &answer(sequence, 0));
        }
    }
}

#[test]
fn an_unproven_claimant_of_the_roots_rank_keeps_nobody_out() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(5, 128)).unwrap();
    assert_eq!(bench.dio(&says(0, 128)), Ok(()));
    bench.acknowledges(0, 5);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    // Now it is taken, until the root is gone.
    assert_eq!(bench.dio(&says(5, 128)), Err(MessageDrop::SecondRoot));
    for _ in 0..9 {
        bench
            .rpl
            .on_sent(iid(0), FrameReport::of(8, false), bench.now);
    }
    assert_eq!(bench.dio(&says(5, 128)), Ok(()));
}

#[test]
fn a_mote_without_a_place_says_so_when_it_is_asked() {
    let dis = bytes_of(&Message::Dis(Dis::default()));
    let mut bench = Bench::joined(RplRole::Router);
    bench.dio(&says(0, INFINITE_RANK)).unwrap();
    assert_eq!(bench.rpl.parent(), None);
    bench.sent.clear();
    assert_eq!(bench.message(link_local(5), false, &dis), Ok(()));
    let answer = (
        Destination::Neighbour(iid(5)),
        ControlMessage::Dio { full: false },
    );
    assert!(bench.sent.contains(&answer));
    let to_all = bench.message(link_local(5), true, &dis);
    assert_eq!(to_all, Err(MessageDrop::Unwanted));
    // A root that begins listens before it speaks, to anybody.
    let mut root = Bench::new(ROOT);
    let early = root.message(link_local(5), false, &dis);
    assert_eq!(early, Err(MessageDrop::Unwanted));
}

#[test]
fn a_root_asks_before_it_takes_over_a_version_and_does_so_a_few_times_a_minute() {
    let mut root = Bench::new(ROOT);
    root.run(Duration::from_secs(10));
    root.sent.clear();
    let of = |root: &Bench| root.rpl.dodag().unwrap().version;
    let mut says = says(5, 400);
    says.dodag = root.rpl.dodag().unwrap().id;
    says.version = 245;
    // Somebody says so in a mote's name; the mote does not.
    assert_eq!(root.dio(&says), Err(MessageDrop::StrangeVersion));
    assert_eq!(root.questions(5), 1);
    let again = root.message(link_local(5), false, &{
        let mut own = says.clone();
        own.version = 240;
        own.bytes()
    });
    assert_eq!((again, of(&root)), (Ok(()), 240));
    // A flood of it makes one question a second.
    root.sent.clear();
    for turn in 0..1_000 {
        says.from = 5 + turn % 7;
        assert_eq!(root.dio(&says), Err(MessageDrop::StrangeVersion));
        root.run(Duration::from_millis(10));
    }
    let questions: usize = (5..12).map(|mote| root.questions(mote)).sum();
    assert!((9..=12).contains(&questions), "{questions}");
    assert_eq!(of(&root), 240);
    // Motes that do say so make it go on, four times at once and twice a minute.
    says.from = 5;
    let mut taken = 0;
    for _ in 0..30 {
        says.version = lollipop::next(of(&root));
        root.run(Duration::from_secs(1));
        taken += usize::from(root.says_itself(&says).is_ok());
    }
    assert!((4..=6).contains(&taken), "{taken} in half a minute");
    assert!(root.rpl.dropped(MessageDrop::TooMany) > 10);
}

#[test]
fn a_root_takes_over_whatever_version_its_motes_know() {
    // While it listens, the same version as its own means that it has been there before.
    for (name, heard_at_ms, version, then) in [
        ("the same, at first", 300, 240, 241),
        ("the same, later", 2_000, 240, 240),
        ("a newer one", 2_000, 250, 251),
        ("round the corner", 300, 0, 1),
        ("an older one", 2_000, 235, 240),
        ("one in no order", 2_000, 130, 131),
    ] {
        let mut bench = Bench::new(ROOT);
        bench.run(Duration::from_millis(heard_at_ms));
        let mut says = says(5, 400);
        says.version = version;
        says.dodag = bench.rpl.dodag().unwrap().id;
        bench.says_itself(&says).unwrap();
        bench.run(Duration::from_secs(2));
        assert_eq!(bench.rpl.dodag().unwrap().version, then, "{name}");
        assert_eq!(bench.rpl.rank(), 128);
        assert_eq!(bench.sent[0], (Destination::All, ControlMessage::Dis));
        says.rank = 128;
        assert_eq!(bench.dio(&says), Err(MessageDrop::SecondRoot));
    }
}

fn transit(parent: Option<Ipv6Addr>, lifetime: u8) -> RplOption<'static> {
    RplOption::Transit(Transit {
        external: false,
        path_control: 0,
        sequence: 241,
        lifetime,
        parent,
    })
}

fn target(prefix: Ipv6Addr, prefix_len: u8) -> RplOption<'static> {
    RplOption::Target(Target { prefix_len, prefix })
}

#[test]
pub(super) fn daos_are_taken_by_a_root_for_its_own_motes() {
    use MessageDrop::*;
    let outside = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let (one, two) = (addr(1), addr(2));
    let above = transit(Some(two), 30);
    let cases: &[(&str, &[RplOption<'_>], Result<usize, MessageDrop>)] = &[
        ("one target", &[target(one, 128), above], Ok(1)),
        ("gone", &[target(one, 128), transit(Some(two), 0)], Ok(1)),
        (
            "two of one parent",
            &[target(one, 128), target(addr(3), 128), above],
            Ok(2),
        ),
        (
            "two groups",
            &[target(one, 128), above, target(addr(3), 128), above],
            Ok(2),
        ),
        ("nothing", &[], Err(BadTarget)),
        ("no transit", &[target(one, 128)], Err(BadTarget)),
        (
            "storing form",
            &[target(one, 128), transit(None, 30)],
            Err(BadTarget),
        ),
        ("a prefix", &[target(PREFIX, 64), above], Err(BadTarget)),
        (
            "a node elsewhere",
            &[target(outside, 128), above],
            Err(BadTarget),
        ),
        (
            "a parent elsewhere",
            &[target(one, 128), transit(Some(outside), 9)],
            Err(BadTarget),
        ),
        ("its own parent", &[target(two, 128), above], Err(BadTarget)),
        (
            "one good, one bad",
            &[target(one, 128), target(two, 128), above],
            Err(BadTarget),
        ),
    ];
    let mut root = Bench::new(ROOT);
    let own: Dodag = *root.rpl.dodag().unwrap();
    let dao = |options: &[u8], instance, dodag| {
        bytes_of(&Message::Dao(Dao {
            instance,
            ack_requested: true,
            sequence: 7,
            dodag,
            options: RplOptions::parse(options).unwrap(),
        }))
    };
    for (name, options, outcome) in cases {
        let bytes = dao(&options_of(options), 0, None);
        let parts = (bytes[1], &bytes[4..]);
        let heard = root
            .rpl
            .on_message(one, false, parts, root.now, &mut root.rng);
        let count = heard.map(|heard| match heard {
            MessageOutcome::Dao(dao) => {
                let ack = ControlMessage::DaoAck {
                    sequence: 7,
                    status: 128,
                };
                assert_eq!(
                    Rpl::acknowledge(&dao, crate::rpl::status::REJECTED),
                    Some(ack)
                );
                routes(&dao, &own).count()
            }
            MessageOutcome::Done => 0,
        });
        assert_eq!(count, *outcome, "{name}");
    }
    let options = options_of(&[target(one, 128), above]);
    assert_eq!(
        root.message(one, false, &dao(&options, 1, None)),
        Err(OtherInstance)
    );
    assert_eq!(
        root.message(one, false, &dao(&options, 0, Some(two))),
        Err(OtherDodag)
    );
    assert_eq!(
        root.message(one, false, &dao(&options, 0, Some(own.id))),
        Ok(())
    );
    let mut mote = Bench::joined(RplRole::Router);
    assert_eq!(
        mote.message(one, false, &dao(&options, 0, None)),
        Err(Unwanted)
    );
}

#[test]
fn a_dao_is_repeated_until_the_root_answers_it() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.run(Duration::from_secs(60));
    let dao = (Destination::Root, ControlMessage::Dao);
    let count = |bench: &Bench| bench.sent.iter().filter(|sent| **sent == dao).count();
    assert!((5..9).contains(&count(&bench)), "{}", count(&bench));
    let ack = |sequence, status| {
        bytes_of(&Message::DaoAck(DaoAck {
            instance: 0,
            sequence,
            status,
            dodag: None,
            options: RplOptions::default(),
        }))
    };
    let sequence = 241;
    assert_eq!(
        bench.message(addr(5), false, &ack(sequence, 0)),
        Err(MessageDrop::BadSource)
    );
    assert_eq!(
        bench.message(addr(0), false, &ack(9, 0)),
        Err(MessageDrop::Unwanted)
    );
    assert!(!bench.rpl.is_reachable());
    assert_eq!(bench.message(addr(0), false, &ack(sequence, 0)), Ok(()));
    assert!(bench.rpl.is_reachable());
    // It holds 30 minutes, and is renewed after 15 to 22.
    bench.sent.clear();
    bench.run(Duration::from_secs(14 * 60));
    bench.acknowledges(0, 1);
    assert_eq!(count(&bench), 0);
    bench.run(Duration::from_secs(9 * 60));
    assert!(count(&bench) > 0);
    // The parent asks for one, of all its children at once.
    let before = count(&bench);
    assert_eq!(bench.message(addr(0), false, &ack(sequence + 1, 0)), Ok(()));
    let mut says = says(0, 128);
    says.dtsn += 1;
    bench.says_itself(&says).unwrap();
    bench.run(Duration::from_secs(2));
    assert_eq!(count(&bench), before);
    bench.run(Duration::from_secs(5));
    assert_eq!(count(&bench), before + 1);
}

/// The root holds any sequence of an earlier life, and what it says of that does not arrive.
#[test]
pub(super) fn daos_that_nobody_answers_pass_whatever_the_root_knows() {
    for first in [0, 1, 5, 16, 127, 128, 200, 239, 240, 249, 250, 255] {
        let mut bench = Bench::joined(RplRole::Router);
        bench.rpl.dao.path_sequence = first;
        let mut sent = vec![first];
        bench.sent.clear();
        while sent.len() < 7 {
            bench.run(Duration::from_secs(1));
            let messages = core::mem::take(&mut bench.sent);
            if messages
                .iter()
                .any(|(_, message)| *message == ControlMessage::Dao)
            {
                sent.push(bench.rpl.dao.path_sequence);
            }
        }
        for known in 0..=u8::MAX {
            let passes = |sequence: &u8| !lollipop::is_newer(known, *sequence);
            assert!(sent.iter().any(passes), "{known} against {sent:?}");
        }
    }
}

pub(super) fn answer(sequence: u8, status: u8) -> Vec<u8> {
    bytes_of(&Message::DaoAck(DaoAck {
        instance: 0,
        sequence,
        status,
        dodag: None,
        options: RplOptions::default(),
    }))
}

pub(super) fn daos(bench: &Bench) -> usize {
    let is_dao = |sent: &&(Destination, ControlMessage)| sent.1 == ControlMessage::Dao;
    bench.sent.iter().filter(is_dao).count()
}

/// A router whose parent is 7, and which could as well have 8, a little further away.
pub(super) fn between_two() -> Bench {
    let mut bench = Bench::new(RplRole::Router);
    for (from, rank) in [(7, 256), (8, 300)] {
        bench.dio(&says(from, rank)).unwrap();
        bench.acknowledges(from, 30);
    }
    bench.run(Duration::from_secs(3));
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
    bench
}

#[test]
fn a_parent_that_nothing_comes_down_over_is_left() {
    // The root says so.
    let mut bench = between_two();
    bench.message(addr(0), false, &answer(241, 1)).unwrap();
    assert_eq!(bench.rpl.parent(), Some(iid(8)));
    // Or it says nothing any more, though it did once.
    let mut bench = between_two();
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    let mut asks = says(7, 256);
    asks.dtsn += 1;
    bench.says_itself(&asks).unwrap();
    bench.run(Duration::from_secs(30));
    assert_eq!(bench.rpl.parent(), Some(iid(8)));
    // Where there is no other it stays; and in a crowd a silent root says nothing of the parent.
    let mut bench = Bench::joined(RplRole::Router);
    bench.message(addr(0), false, &answer(241, 1)).unwrap();
    bench.run(Duration::from_secs(30));
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    let mut bench = between_two();
    bench.run(Duration::from_secs(25));
    assert!(daos(&bench) > 3);
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
}

#[test]
fn what_the_root_asks_of_others_is_answered_where_the_parent_is_silent() {
    let mut bench = between_two();
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    bench.sent.clear();
    let mut asks = says(8, 300);
    asks.dtsn += 1;
    // The parent has just spoken: it will ask itself.
    bench.dio(&says(7, 256)).unwrap();
    bench.dio(&asks).unwrap();
    bench.run(Duration::from_secs(2));
    assert_eq!(daos(&bench), 0);
    bench.run(Duration::from_secs(10));
    bench.dio(&asks).unwrap();
    bench.run(Duration::from_secs(2));
    assert_eq!(daos(&bench), 0, "it asks for nothing new");
    asks.dtsn += 1;
    bench.dio(&asks).unwrap();
    bench.run(Duration::from_secs(1));
    assert_eq!(daos(&bench), 1);
    // Whoever asks for ever gets one in four seconds.
    for turn in 0..125 {
        // The root answers at once, whichever it was.
        for sequence in 0..=255 {
            let _ = bench.message(addr(0), false, &answer(sequence, 0));
        }
        asks.dtsn = turn;
        bench.dio(&asks).unwrap();
        bench.run(Duration::from_millis(750));
    }
    assert!((20..36).contains(&daos(&bench)), "{}", daos(&bench));
}

#[test]
fn a_new_parent_is_announced_soon_though_the_root_asked_at_leisure() {
    let mut bench = between_two();
    bench.message(addr(0), false, &answer(241, 0)).unwrap();
    // Nothing but what follows makes it send.
    let mut asks = says(7, 256);
    asks.dtsn += 1;
    bench.says_itself(&asks).unwrap();
    bench.sent.clear();
    bench.run(Duration::from_millis(500));
    assert_eq!(daos(&bench), 0, "at leisure");
    bench
        .message(link_local(7), false, &says(7, INFINITE_RANK).bytes())
        .unwrap();
    bench.dio(&says(7, INFINITE_RANK)).unwrap();
    bench.run(Duration::from_millis(800));
    assert_eq!(bench.rpl.parent(), Some(iid(8)));
    assert_eq!(daos(&bench), 1);
}

#[test]
fn a_transfer_makes_no_mote_leave_its_parent() {
    // Alone its frames need one attempt, in a row of many two, over whichever parent.
    let attempts = |turn: usize| [1, 3, 2, 1, 4, 2, 1, 2][turn % 8];
    let mut bench = between_two();
    for _ in 0..12 {
        bench.run(Duration::from_secs(10));
        bench.acknowledges(7, 2);
        bench.acknowledges(8, 2);
    }
    let rank = bench.rpl.rank();
    for turn in 0..1_200 {
        bench
            .rpl
            .on_sent(iid(7), FrameReport::of(attempts(turn), true), bench.now);
        bench.run(Duration::from_millis(50));
        assert_eq!(bench.rpl.parent(), Some(iid(7)), "frame {turn}");
    }
    let risen = bench.rpl.rank() - rank;
    assert!(risen < 64, "{risen}");
    // One that takes only every twelfth is left nevertheless.
    for _ in 0..400 {
        bench
            .rpl
            .on_sent(iid(7), FrameReport::of(12, true), bench.now);
        bench.run(Duration::from_millis(50));
    }
    assert_eq!(bench.rpl.parent(), Some(iid(8)));
}

#[test]
fn leaving_takes_the_route_back_and_poisons() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.sent.clear();
    bench.rpl.leave();
    bench.poll();
    bench.run(Duration::from_secs(600));
    let poison = (Destination::All, ControlMessage::Dio { full: false });
    let no_path = (Destination::Root, ControlMessage::NoPath);
    assert_eq!(bench.sent, [no_path, poison, poison]);
    assert_eq!(bench.rpl.parent(), None);
}

#[test]
fn what_is_not_understood_is_joined_as_a_leaf() {
    let dao_to_parent = (Destination::Neighbour(iid(0)), ControlMessage::Dao);
    let dao_to_root = (Destination::Root, ControlMessage::Dao);
    for (name, mode, objective, is_router, dao) in [
        ("non-storing", 1, 1, true, Some(dao_to_root)),
        ("OF0", 1, 0, true, Some(dao_to_root)),
        ("storing", 2, 1, false, Some(dao_to_parent)),
        ("storing with multicast", 3, 0, false, Some(dao_to_parent)),
        ("an unknown objective", 1, 7, false, Some(dao_to_root)),
        ("upwards only", 0, 1, true, None),
    ] {
        let mut bench = Bench::new(RplRole::Router);
        let mut says = says(0, 128);
        says.mode = mode;
        says.configuration = Some(Configuration {
            objective,
            ..CONFIGURATION
        });
        bench.dio(&says).unwrap();
        bench.acknowledges(0, 5);
        bench.run(Duration::from_secs(60));
        assert_eq!(bench.rpl.parent(), Some(iid(0)), "{name}");
        assert_eq!(bench.rpl.is_router(), is_router, "{name}");
        let full = (Destination::All, ControlMessage::Dio { full: true });
        assert_eq!(bench.sent.contains(&full), is_router, "{name}");
        for possible in [dao_to_parent, dao_to_root] {
            assert_eq!(
                bench.sent.contains(&possible),
                dao == Some(possible),
                "{name}"
            );
        }
    }
}

#[test]
fn metric_containers_count_where_the_dodag_has_them() {
    let mut bench = Bench::new(RplRole::Router);
    let mut root = says(0, 128);
    root.etx = Some(0);
    bench.dio(&root).unwrap();
    bench.acknowledges(0, 30);
    // 32 attempts for 31 frames: the path costs what the link does, the rank is a whole one more.
    assert_eq!(bench.rpl.rank(), 132 + 128);
    let mut bytes = [0; 100];
    let mut w = Writer::new(&mut bytes);
    bench
        .rpl
        .emit(ControlMessage::Dio { full: false }, &mut w)
        .unwrap();
    let len = w.written();
    let Ok(Message::Dio(dio)) = Message::parse(1, &bytes[4..len]) else {
        panic!("a DIO");
    };
    let etx = dio.options.iter().find_map(|option| match option {
        RplOption::Metrics(metrics) => metrics.etx(),
        _ => None,
    });
    assert!((128..140).contains(&etx.unwrap()), "{etx:?}");
}

#[test]
fn packets_that_go_the_wrong_way_cost_the_parent_its_place_for_the_second_time() {
    for (name, from, is_second, keeps_parent) in [
        ("from above", 5, false, true),
        ("from above, once more", 5, true, false),
        ("from the parent", 0, false, false),
    ] {
        let mut bench = Bench::joined(RplRole::Router);
        bench.rpl.on_contradiction(iid(from), is_second, bench.now);
        bench.poll();
        let dio = ControlMessage::Dio { full: false };
        assert!(
            bench
                .sent
                .contains(&(Destination::Neighbour(iid(from)), dio)),
            "{name}"
        );
        assert_eq!(bench.rpl.parent().is_some(), keeps_parent, "{name}");
    }
    // Another parent is taken at once.
    let mut bench = Bench::joined(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 1);
    bench.rpl.on_contradiction(iid(0), false, bench.now);
    bench.poll();
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
}

#[test]
fn a_parent_that_goes_over_to_another_dodag_is_none_any_more() {
    let mut bench = Bench::joined(RplRole::Router);
    bench.dio(&says(7, 256)).unwrap();
    bench.acknowledges(7, 1);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    let mut elsewhere = says(0, 256);
    elsewhere.dodag = addr(50);
    assert_eq!(bench.says_itself(&elsewhere), Err(MessageDrop::OtherDodag));
    bench.poll();
    assert_eq!(bench.rpl.parent(), Some(iid(7)));
    // Or to another mode of operation in the same one.
    let mut otherwise = says(7, 256);
    otherwise.mode = 2;
    assert_eq!(bench.says_itself(&otherwise), Err(MessageDrop::BadMode));
    bench.poll();
    assert_eq!(bench.rpl.parent(), None);
}

#[test]
fn a_solicitation_may_name_whom_it_asks() {
    let ask = |instance, version| {
        let options = options_of(&[RplOption::Solicited(Solicited {
            instance: Some(instance),
            dodag: None,
            version: Some(version),
        })]);
        let options = RplOptions::parse(&options).unwrap();
        bytes_of(&Message::Dis(Dis { options }))
    };
    let mut bench = Bench::joined(RplRole::Router);
    bench.sent.clear();
    let reply = (
        Destination::Neighbour(iid(5)),
        ControlMessage::Dio { full: true },
    );
    assert_eq!(
        bench.message(link_local(5), false, &ask(1, 240)),
        Err(MessageDrop::Unwanted)
    );
    assert_eq!(
        bench.message(link_local(5), false, &ask(0, 241)),
        Err(MessageDrop::Unwanted)
    );
    assert!(!bench.sent.contains(&reply));
    assert_eq!(bench.message(link_local(5), false, &ask(0, 240)), Ok(()));
    assert!(bench.sent.contains(&reply));
}

#[test]
fn memory_is_bounded() {
    let bytes = size_of::<Rpl<'_>>() + 8 * size_of::<Candidate>();
    assert!(bytes <= 776, "{bytes} bytes, with pointers of 8");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_comes_a_node_stays_consistent(
        kind in 0usize..3,
        steps in prop::collection::vec((0u8..8, 0usize..12, any::<u16>(), any::<[u8; 4]>()), 1..120),
    ) {
        let role = [RplRole::Router, RplRole::Leaf, ROOT][kind];
        let mut bench = Bench::new(role);
        for (what, who, number, bytes) in steps {
            let [a, b, c, d] = bytes;
            match what {
                0..=2 => {
                    let mut says = says(who, [number % 2048, 128, INFINITE_RANK, number][usize::from(a % 4)]);
                    says.version = if b < 32 { b } else { 240 + b % 3 };
                    says.dtsn = c;
                    says.mode = if d < 16 { d % 8 } else { 1 };
                    says.dodag = addr(if d > 240 { 50 } else if kind == 2 { 9 } else { 0 });
                    says.etx = (d % 16 == 1).then_some(number);
                    if d % 16 == 2 {
                        says.configuration = Some(Configuration {
                            interval_min: a,
                            interval_doublings: b,
                            redundancy: c,
                            min_hop_rank_increase: number,
                            max_rank_increase: number / 2,
                            ..CONFIGURATION
                        });
                    }
                    let _ = bench.dio(&says);
                }
                3 => {
                    bench.rpl.on_sent(iid(who), FrameReport::of(a % 16, b % 3 > 0), bench.now);
                    bench.poll();
                }
                4 => {
                    let _ = bench.message(link_local(who), a % 2 == 0, &[155, b % 6, 0, 0, a, b, c, d]);
                }
                5 => {
                    bench.rpl.on_contradiction(iid(who), b % 2 == 0, bench.now);
                    bench.poll();
                }
                _ => bench.run(Duration::from_millis(u64::from(number) / 4)),
            }
            let rpl = &bench.rpl;
            match kind {
                2 => prop_assert!(rpl.parent().is_none()),
                _ => prop_assert_eq!(rpl.parent().is_some(), rpl.rank() != INFINITE_RANK),
            }
            if let Some(parent) = rpl.parent() {
                let parent = rpl.candidates().find(|it| it.iid() == parent).expect("in its slot");
                prop_assert!(parent.is_proven() && parent.rank() < rpl.rank());
            }
            let mut out = [0; 200];
            for message in [ControlMessage::Dis, ControlMessage::Dio { full: true }, ControlMessage::Dao, ControlMessage::NoPath, ControlMessage::Leaf] {
                let mut w = Writer::new(&mut out);
                if rpl.emit(message, &mut w).is_ok() {
                    let len = w.written();
                    prop_assert!(Message::parse(out[1], &out[4..len]).is_ok());
                }
            }
        }
    }
}
