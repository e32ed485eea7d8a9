//! The offer to restore compressed TCP headers, on its way from the border router to the motes.
//!
//! Purpose: a border router that restores such headers has an option in its advertisements. A
//! router repeats the option only while its own router has it. So a mote that hears the option
//! knows: every relay on its way up passes such headers. Place: beside prefix and contexts; the
//! link hands the offer to its compressor. Left out: what is compressed towards whom, which is the
//! compressor's.
//! Source: `docs/reference/tcphc.md`, section 7.

use super::Discovery;
use crate::ip::{Iid, Ip};
use crate::storage::packet_queue::PacketQueue;
use crate::time::{Duration, Instant};
use crate::wire::{LinkAddr, tcphc};

/// What is known of the offer.
#[derive(Debug)]
pub(super) struct Offer {
    /// The identifier of the border router that restores headers.
    router: Option<Iid>,
    /// The neighbour that said so, or that there is none; `None`: this node itself, the network's
    /// setup, or nobody yet.
    from: Option<Iid>,
    /// The offer in this node's last advertisement to all; `None`: it has not advertised.
    advertised: Option<Option<Iid>>,
    /// This node has heard something else since its last advertisement to all.
    is_news: bool,
    /// The next advertisement because of such news, at the earliest.
    may_tell: Instant,
}

impl Offer {
    pub(super) const NONE: Self = Self {
        router: None,
        from: None,
        advertised: None,
        is_news: false,
        may_tell: Instant::ORIGIN,
    };

    /// Notes what an advertisement of this node says, `to_all` or to one neighbour.
    pub(super) const fn tell(&mut self, said: Option<Iid>, to_all: bool) {
        if to_all || self.advertised.is_none() {
            self.advertised = Some(said);
        }
        if to_all {
            self.is_news = false;
        }
    }

    /// Whether the offer is not one that a router makes: this node makes it, or the setup.
    const fn is_own(&self) -> bool {
        self.from.is_none() && self.router.is_some()
    }

    /// What an advertisement with the offer `said` would change; `None`: nothing.
    pub(super) fn change(&self, said: Option<Iid>) -> Option<Option<Iid>> {
        (tcphc::IS_SUPPORTED && !self.is_own() && said != self.router).then_some(said)
    }

    /// When neighbours are told of another offer.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.is_news.then_some(self.may_tell)
    }

    /// The neighbour that said so has gone, or another one took its place.
    pub(super) fn end(&mut self) {
        self.router.take_if(|_| self.from.is_some());
    }
}

impl Discovery<'_> {
    /// The border router that restores headers of this node and of those below it: none in a build
    /// without compression.
    pub(in crate::link) fn offer(&self) -> Option<Iid> {
        if !tcphc::IS_SUPPORTED {
            return None;
        }
        let from = self.offer.from.as_ref();
        let is_way_up = from.is_none_or(|from| self.solicitor.is_way_up(from));
        self.offer.router.filter(|_| is_way_up)
    }

    /// Headers are restored by `router`: this node, or the one that the network's setup names.
    pub(in crate::link) const fn set_offer(&mut self, router: LinkAddr) {
        self.offer.router = Some(router.iid());
        self.offer.from = None;
    }

    /// This node restores headers.
    pub(in crate::link) const fn offer_own(&mut self) {
        self.set_offer(self.source);
    }

    /// The router `from` offers this, which was believed.
    pub(super) fn hear_offer(&mut self, said: Option<Iid>, from: Iid, now: Instant) {
        if !tcphc::IS_SUPPORTED {
            return;
        }
        if !self.offer.is_own() {
            let is_known = self.offer.router == said && self.offer.from == Some(from);
            if said.is_none() && !is_known && self.solicitor.is_led() {
                // It may hear of an offer soon, and a node that sleeps miss what it then tells all.
                self.solicitor.ask_by(now + INTERVAL);
            }
            self.offer.router = said;
            self.offer.from = Some(from);
        }
        let offer = self.offer();
        self.offer.is_news = self.offer.advertised.is_some_and(|said| said != offer);
    }

    /// Asks the router of this node for an offer, and tells neighbours of a changed one, where
    /// either is due.
    pub(super) fn poll_offer(&mut self, queue: &mut PacketQueue<'_>, ip: &Ip<'_>, now: Instant) {
        if !tcphc::IS_SUPPORTED {
            return;
        }
        // RPL has another parent than the one whose word is known: it is asked for its own, and not
        // while the mote has just found it, and has more to say.
        let is_foreign = (self.offer.from.as_ref()).is_some_and(|it| !self.solicitor.is_way_up(it));
        if is_foreign {
            self.solicitor.hasten(SETTLES_FOR, now);
        }
        if self.offer.is_news && now >= self.offer.may_tell {
            self.offer.is_news = false;
            self.offer.may_tell = now + INTERVAL;
            if ip.forwards() {
                self.announce(queue, ip, now);
            }
        }
    }
}

/// How long a new parent has other things to do.
const SETTLES_FOR: Duration = Duration::from_secs(5);

/// Between two advertisements because of an offer, and before a router without one is asked again.
const INTERVAL: Duration = Duration::from_secs(60);

#[cfg(all(test, feature = "rpl"))]
mod tests {
    use super::super::{Received, Settings};
    use super::*;
    use crate::ip::{self, Ingress, InterfaceId, Neighbour};
    use crate::random::Rng;
    use crate::wire::cursor::Writer;
    use crate::wire::icmpv6::{Message, MessageView, RouterAdvertisement};
    use crate::wire::ipv6;
    use crate::wire::ndp::{NdpOption, NdpOptions, PrefixInformation};
    use core::net::Ipv6Addr;

    const ROUTER: Iid = [2, 0, 0, 0xff, 0xfe, 0, 0, 9];
    const PARENTS: [Iid; 2] = [[2, 0, 0, 0, 0, 0, 0, 7], [2, 0, 0, 0, 0, 0, 0, 8]];

    struct Mote {
        discovery: Discovery<'static>,
        queue: PacketQueue<'static>,
        ip: Ip<'static>,
        now: Instant,
        rng: Rng,
    }

    impl Mote {
        /// A mote that RPL leads.
        fn new() -> Self {
            Self::with(ip::Config::default())
        }

        fn with(config: ip::Config) -> Self {
            let settings = Settings {
                source: LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, 5]),
                eui64: [2, 0, 0, 0, 0, 0, 0, 5],
                solicits: true,
                registers: false,
                router: None,
                advertised: None,
            };
            let mut mote = Self {
                discovery: Discovery::new(settings, &mut []),
                queue: PacketQueue::new(std::vec![0; 4_096].leak()),
                ip: Ip::new(config, std::vec![None; 2].leak()),
                now: Instant::from_micros(1_000_000),
                rng: Rng::from_seed([1, 2]),
            };
            let id = InterfaceId(0);
            mote.discovery
                .start(id, &mut mote.queue, &mut mote.ip, mote.now, &mut mote.rng);
            mote
        }

        fn follow(&mut self, parent: Iid) {
            self.discovery.follow(
                Some(parent),
                &mut self.queue,
                &self.ip,
                self.now,
                &mut self.rng,
            );
        }

        /// Its parent's advertisement, to it alone, with these options behind the prefix.
        fn hear(&mut self, from: Iid, options: &[NdpOption<'_>]) {
            let lifetime_s = 7_200;
            let prefix = NdpOption::Prefix(PrefixInformation {
                prefix_len: 64,
                on_link: false,
                autonomous: true,
                router_address: false,
                valid_lifetime_s: lifetime_s,
                preferred_lifetime_s: lifetime_s,
                prefix: Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 0),
            });
            let mut bytes = [0; 128];
            let mut w = Writer::new(&mut bytes);
            for option in [prefix].iter().chain(options) {
                option.emit(&mut w).unwrap();
            }
            let len = w.written();
            let message = Message::RouterAdvertisement(RouterAdvertisement {
                hop_limit: 64,
                flags: 0,
                router_lifetime_s: lifetime_s as u16,
                reachable_ms: 0,
                retransmit_ms: 0,
                options: NdpOptions::parse(&bytes[..len]).unwrap(),
            });
            let mut bytes = [0; 160];
            let len = message.emit(&mut bytes).unwrap();
            let message = MessageView::parse(&bytes[..len]).unwrap();
            let header = ipv6::Header {
                traffic_class: ipv6::TrafficClass(0),
                flow_label: 0,
                payload_len: 0,
                next_header: 58,
                hop_limit: 255,
                src: ip::link_local(from),
                dst: ip::link_local([2, 0, 0, 0, 0, 0, 0, 5]),
            };
            let ingress = Ingress {
                interface: InterfaceId(0),
                from: Neighbour::One(from),
                to_all: false,
                option: None,
                signal_dbm: -60,
            };
            let received = Received {
                header: &header,
                message: &message,
                ingress: &ingress,
                is_trusted: true,
                serves_sleepers: true,
            };
            let heard = self.discovery.on_message(
                received,
                &mut self.queue,
                &mut self.ip,
                self.now,
                &mut self.rng,
            );
            assert_eq!(heard, Ok(()));
        }

        /// Its parent changes what it says, and repeats it to each question that follows.
        fn confirm(&mut self, from: Iid, options: &[NdpOption<'_>]) {
            self.hear(from, options);
            for _ in 0..100 {
                if self.sends_for(1) > 0 {
                    self.hear(from, options);
                }
            }
        }

        /// How many packets it sends in a minute.
        fn sends(&mut self) -> usize {
            self.sends_for(60)
        }

        fn sends_for(&mut self, seconds: u64) -> usize {
            let mut sent = 0;
            for _ in 0..seconds {
                self.now += Duration::from_secs(1);
                self.discovery
                    .poll(&mut self.queue, &mut self.ip, self.now, &mut self.rng);
                while self.queue.pop() {
                    sent += 1;
                }
            }
            sent
        }
    }

    const OFFER: NdpOption<'_> = NdpOption::RestoresTcp { router: ROUTER };

    #[test]
    fn an_offer_counts_for_the_parent_that_made_it() {
        let mut mote = Mote::new();
        mote.follow(PARENTS[0]);
        mote.hear(PARENTS[0], &[OFFER]);
        assert_eq!(mote.discovery.offer(), Some(ROUTER));
        mote.sends();
        assert_eq!(mote.sends(), 0, "it has nothing to ask for");
        // Another parent is asked, at most once a minute.
        mote.follow(PARENTS[1]);
        assert_eq!(mote.discovery.offer(), None);
        assert!((1..=2).contains(&mote.sends()));
        mote.hear(PARENTS[1], &[OFFER]);
        assert_eq!(mote.discovery.offer(), Some(ROUTER));
        // It withdraws the offer; a stranger makes none.
        mote.confirm(PARENTS[1], &[]);
        mote.hear(PARENTS[0], &[OFFER]);
        assert_eq!(mote.discovery.offer(), None);
        // The next parent may have one, whatever this one said.
        mote.follow(PARENTS[0]);
        mote.sends();
        assert!((1..=2).contains(&mote.sends()), "it is asked");
        mote.confirm(PARENTS[0], &[OFFER]);
        assert_eq!(mote.discovery.offer(), Some(ROUTER));
        mote.sends();
        assert_eq!(mote.sends(), 0, "it has said so");
    }

    /// Somebody advertises in the parent's name, to all or to this node.
    #[test]
    fn an_offer_changes_only_when_the_parent_confirms_it() {
        for options in [&[][..], &[NdpOption::RestoresTcp { router: [1; 8] }]] {
            let mut mote = Mote::new();
            mote.follow(PARENTS[0]);
            mote.hear(PARENTS[0], &[OFFER]);
            for _ in 0..3 {
                mote.hear(PARENTS[0], options);
                assert_eq!(mote.discovery.offer(), Some(ROUTER), "{options:?}");
            }
            // The parent is asked, and says what it always said.
            assert!(mote.sends_for(5) > 0);
            mote.hear(PARENTS[0], &[OFFER]);
            assert_eq!(mote.discovery.offer(), Some(ROUTER));
            mote.confirm(PARENTS[0], options);
            assert_ne!(mote.discovery.offer(), Some(ROUTER), "{options:?}");
        }
    }

    /// The parent may get its offer after it has answered, and its word to all may get lost.
    #[test]
    fn a_parent_without_an_offer_is_asked_once_more() {
        let mut mote = Mote::new();
        mote.follow(PARENTS[0]);
        mote.sends_for(1);
        mote.hear(PARENTS[0], &[]);
        assert_eq!(mote.sends_for(58), 0);
        assert_eq!(mote.sends_for(3), 1);
        mote.hear(PARENTS[0], &[]);
        assert_eq!(mote.sends() + mote.sends(), 0);
    }

    /// A router whose parent changes its mind all the time, and names one router or another.
    #[test]
    fn neighbours_are_told_of_another_offer_once_a_minute() {
        let mut mote = Mote::with(ip::Config {
            forwards: true,
            ..ip::Config::default()
        });
        mote.follow(PARENTS[0]);
        mote.hear(PARENTS[0], &[OFFER]);
        let now = mote.now;
        mote.discovery.announce(&mut mote.queue, &mote.ip, now);
        mote.sends_for(1);
        let mut told = 0;
        for second in 0..120 {
            let router = [second as u8; 8];
            mote.discovery
                .hear_offer(Some(router), PARENTS[0], mote.now);
            let sent = mote.sends_for(1);
            assert!(second > 0 || sent == 1, "at once");
            told += sent;
        }
        assert_eq!(told, 2);
        // The last one is told, too.
        mote.sends();
        assert_eq!(mote.discovery.offer.advertised, Some(Some([119; 8])));
        assert_eq!(mote.sends(), 0);
    }

    /// What is repeated counts once, and what is of another kind not at all.
    #[test]
    fn the_first_offer_of_an_advertisement_counts() {
        let other = NdpOption::RestoresTcp { router: [1; 8] };
        let foreign = NdpOption::Other {
            kind: 253,
            body: &[7; 14],
        };
        for (options, expected) in [
            (&[foreign, OFFER, other][..], Some(ROUTER)),
            (&[OFFER, OFFER], Some(ROUTER)),
            (&[foreign], None),
        ] {
            let mut mote = Mote::new();
            mote.follow(PARENTS[0]);
            mote.hear(PARENTS[0], options);
            assert_eq!(mote.discovery.offer(), expected);
        }
    }
}
