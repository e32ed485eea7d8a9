//! The keys of `[stack]`, which `[[node]]` may have too: what `docs/reference/scenarios.md` shows.

use motet::tcp::CongestionAlgorithm;

use super::keys::Kind::{Choice, Flag, Integer, Number};
use super::keys::{Key, Part, key};

/// How the pace of frames is found.
const PACINGS: &[&str] = &["auto", "off"];

/// How queues of packets are kept short.
pub(super) const QUEUES: &[&str] = &["droptail", "red", "red-drop"];

/// The names of all congestion controls of the stack.
pub(super) const CONGESTIONS: [&str; CongestionAlgorithm::ALL.len()] = {
    let mut names = [""; CongestionAlgorithm::ALL.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = CongestionAlgorithm::ALL[n].name();
        n += 1;
    }
    names
};

/// Keys of `[stack]`, and of `[[node]]`.
pub(super) const STACK_KEYS: &[Key] = &[
    key(
        "mss_frames",
        Integer(1, 12),
        Some("5"),
        "Frames that a full TCP segment fills.",
    ).only_802_15_4().needs(Part::Ends)
    .flag(
        "mss-frames",
        "N",
        "Size of a full TCP segment, in frames",
    )
    .showing("5"),
    key(
        "window_segments",
        Integer(1, 32),
        Some("4"),
        "TCP's send and receive buffers, in full segments.",
    ).needs(Part::Ends)
    .flag(
        "window",
        "SEGMENTS",
        "Buffers of each TCP end, in full segments [default: 4; 8 with cit, 16 with ble]",
    ),
    key(
        "retry_delay_ms",
        Integer(0, 10_000),
        Some("40"),
        "d: the longest random wait before a link retry, milliseconds; at most `frame_age_ms`. \
         Setting it turns `pacing` off.",
    ).only_802_15_4()
    .flag(
        "retry-delay",
        "MS",
        "Wait a random time up to this before a link retry, at most 2000: a frame may not get \
         older [default with --pacing off: 40; 10 with cit]",
    )
    .up_to(FRAME_AGE_MS),
    key(
        "frame_age_ms",
        Integer(10, 30_000),
        Some("2000"),
        "How long a frame may be at a node, queue and retries included, before an attempt at it, \
         milliseconds; older ones are dropped. At most 2000 with `compression` \"tcphc\".",
    ).only_802_15_4(),
    key(
        "pacing",
        Choice(PACINGS),
        Some("\"auto\""),
        "`auto`: each node measures how long a frame takes, leaves a neighbour alone that has taken \
         one while that goes on, and tries again after a wait that begins with that time and \
         doubles, up to 40 ms, or 80 where several sources contend for a relay; neither `hold_ms` nor \
         `retry_delay_ms` may be given. The border router rests between frames of its downloads. \
         `off`: `hold_ms` and `retry_delay_ms` set the times. Frames for all, alarms, frames \
         for children that sleep and Bluetooth LE are never paced. A relay that passes on fragments of \
         several nodes marks packets (ECN), its own too, once its queue is nearly full, or after losses once \
         a third of it is taken, whatever `queue` says.",
    ).only_802_15_4()
    .flag(
        "pacing",
        "auto|off",
        "Let each node measure the pace between frames, and the border router thin ACKs; or take \
         the pace from --hold and --retry-delay [default: auto; off with one of these]",
    ),
    key(
        "pace_percent",
        Integer(10, 250),
        Some("100"),
        "With `pacing` `auto`: part of the measured pace, in per cent; rests of the border router \
         stay as long.",
    ).only_802_15_4().needs(Part::Paces),
    key(
        "hold_ms",
        Number(0.0, 1000.0),
        Some("0.0"),
        "The hold rule's time per hop, milliseconds: keep the next frame to a neighbour until \
         the hops ahead have had their time; 0: off. Setting it turns `pacing` off. 7 suits \
         `hamilton`, with a shorter `retry_delay_ms` (10).",
    ).only_802_15_4().needs(Part::Paces)
    .flag(
        "hold",
        "MS",
        "Keep the next frame to a neighbour this long for each hop that the last one still goes \
         [default with --pacing off: 0; 3 to 7 with cit, by hops and channels]",
    )
    .refusing("the hold is 0 to 1000 ms"),
    key(
        "queue",
        Choice(QUEUES),
        Some("\"droptail\""),
        "What a queue of whole packets for the air does before it is full: nothing; random early \
         detection that marks (ECN) what may be marked and drops the rest; or one that drops. \
         A relay that passes on fragments asks when the first one comes. With `pacing` `auto` relays \
         may mark all the same.",
    ).only_802_15_4(),
    key(
        "link_attempts",
        Integer(1, 100),
        Some("8"),
        "Attempts in all before the MAC gives a frame up; with `pacing` `auto` twice as many for a \
         neighbour that needs more than two on average.",
    ).only_802_15_4(),
    key(
        "be_min",
        Integer(0, 8),
        Some("3"),
        "`macMinBE`: an attempt's first backoff is up to 2^BE - 1 units of 320 µs. With `pacing` `auto` BE is less for frames on the way up that a pace keeps apart and no fragments come down against, and for those of a node that nobody else disturbs: 1, and one more each time that the attempts for a frame, busy channels included, double.",
    ).only_802_15_4(),
    key(
        "be_max",
        Integer(0, 8),
        Some("5"),
        "`macMaxBE`: BE grows by one with each busy channel, up to this.",
    ).only_802_15_4(),
    key(
        "csma_backoffs",
        Integer(0, 255),
        Some("4"),
        "`macMaxCSMABackoffs`: the attempt fails when the channel was busy more often. TinyOS on \
         a CC2420 is near `be_min` 5, `be_max` 3, `csma_backoffs` 255, `link_attempts` 6, \
         `ack_wait_us` 7812, `retry_delay_ms` 206.",
    ).only_802_15_4(),
    key(
        "ack_wait_us",
        Integer(544, 100_000),
        Some("864"),
        "`macAckWaitDuration`: from a frame's end to its ACK's, microseconds.",
    ).only_802_15_4(),
    key(
        "deaf_backoff",
        Flag,
        Some("false"),
        "Whether the radio sleeps in the CSMA backoff.",
    ).only_802_15_4(),
    key(
        "queue_frames",
        Integer(4, 200),
        Some("16"),
        "Frames that the MAC queues.",
    ).only_802_15_4(),
    key(
        "packet_queue_bytes",
        Integer(128, 65_535),
        Some("10240"),
        "Room for whole packets that wait for the MAC's queue, bytes; beyond it they are dropped. \
         A packet of TCP without data takes about 70.",
    ),
    key(
        "relaying",
        Choice(&["fragments", "reassembly"]),
        Some("\"fragments\""),
        "How a relay passes on packets of several fragments: each as it comes, or only whole packets.",
    ).only_802_15_4().needs(Part::Relays),
    key(
        "forwarding",
        Choice(&["copy", "cit"]),
        Some("\"copy\""),
        "How a relay gets a fragment from frame to frame: by two copies, or waiting in the radio \
         until the next one fires it (`telosb`, `nrf52840`; other radios copy). `hold_ms` 3 suits \
         it up to two hops, 4 at three, 7 beyond; on several channels 3 up to three hops, 4 beyond.",
    ).only_802_15_4().needs(Part::Relays)
    .flag(
        "forwarding",
        "copy|cit",
        "How relays get a fragment from frame to frame: by copies, or without them (CIT)",
    )
    .showing("copy"),
    key(
        "compression",
        Choice(&["auto", "none", "tcphc"]),
        Some("\"auto\""),
        "Whether this node compresses TCP headers where it is an end of their path in the mesh: \
         LOWPAN_TCPHC in its default mode. `auto`: between a mote and the border router, where both \
         have it; they agree on it by the router's advertisements, or by this file where \
         `topology.joining` is `static`. `tcphc`: also between motes; all ends need it. Relays \
         never do.",
    ).only_802_15_4().needs(Part::Compresses)
    .flag(
        "compression",
        "auto|tcphc|none",
        "Compress TCP headers in the mesh: auto (between motes and border router), tcphc (between \
         motes too) or none",
    )
    .showing("auto"),
    key(
        "ack_every",
        Integer(1, 255),
        Some("2"),
        "Acknowledge every n-th full segment at once; of eight segments from a congestion mark on, at \
         least every second.",
    ).needs(Part::Receives),
    key(
        "ack_delay_ms",
        Integer(0, 500),
        Some("100"),
        "Longest wait of an ACK for company, milliseconds.",
    ).needs(Part::Receives),
    key(
        "initial_window",
        Integer(0, 10),
        Some("0"),
        "Initial congestion window, segments; 0: RFC 5681's 2 to 4 by segment size.",
    ).needs(Part::Sends),
    key(
        "rto_min_ms",
        Integer(1, 60_000),
        Some("200"),
        "Least retransmission timeout, milliseconds.",
    ).needs(Part::Ends),
    key("nagle", Flag, Some("true"), "Nagle's algorithm.").needs(Part::Sends),
    key(
        "timestamps",
        Flag,
        Some("true"),
        "Offer and use timestamps (RFC 7323).",
    ).needs(Part::Ends),
    key(
        "sack",
        Flag,
        Some("true"),
        "Offer and use selective acknowledgments (RFC 2018).",
    ).needs(Part::Ends),
    key(
        "rack",
        Flag,
        Some("true"),
        "Find losses by times of transmission (RFC 8985), where the peer sends SACK.",
    ).needs(Part::Sends),
    key(
        "tail_loss_probe",
        Flag,
        Some("true"),
        "Probe for tail losses before the timeout (RFC 8985 §7).",
    ).needs(Part::Ends),
    key(
        "limited_transmit",
        Flag,
        Some("true"),
        "Send new data on the first duplicate ACKs (RFC 3042).",
    ).needs(Part::Sends),
    key(
        "ecn",
        Flag,
        Some("true"),
        "Negotiate and use explicit congestion notification (RFC 3168).",
    ).needs(Part::Ends),
    key(
        "congestion",
        Choice(&CONGESTIONS),
        Some("\"reno\""),
        "How the congestion window answers a loss, and how it grows: New Reno's half and a segment \
         per round trip (RFC 5681), or CUBIC's seven tenths and cubic function of time (RFC 9438). \
         With windows of a few segments they differ by little.",
    ).needs(Part::Sends)
    .flag(
        "congestion",
        "ALGORITHM",
        "Congestion control of simulated TCP ends",
    )
    .showing("reno"),
    key(
        "congestion_control",
        Flag,
        Some("true"),
        "Congestion control at all; off only to measure what it does.",
    ).needs(Part::Sends),
    key(
        "sleep",
        Choice(&["off", "fixed", "paper", "adaptive", "hinted"]),
        Some("\"off\""),
        "How a mote sleeps between the packets that wait at its parent: not at all; asking every \
         `sleep_interval_s`; every 240 s, and every 100 ms while an answer is due (TCPlp's study); after \
         20 ms where a packet came, twice as long after each request in vain, up to 5 s; or when TCP \
         expects an answer, and at rest every `sleep_idle_s`. In `[stack]` it holds for motes through which nobody's packets pass; a \
         `[[node]]` must be one of them.",
    ).only_802_15_4(),
    key(
        "sleep_interval_s",
        Number(0.01, 1e5),
        Some("1.0"),
        "`fixed`: time between two requests, seconds; less than `child_timeout_s`.",
    ).only_802_15_4().needs(Part::AsksRegularly),
    key(
        "sleep_idle_s",
        Number(0.01, 1e5),
        Some("60.0"),
        "`hinted`: time between two requests at rest, seconds; less than `child_timeout_s`. What is sent to \
         such a mote unasked, the SYN of a new connection say, waits for so long, and Linux gives a SYN up \
         after 127 s. A mote that only sends may ask more rarely: TCPlp's did every 240 s.",
    ).only_802_15_4().needs(Part::TakesHints),
    key(
        "poll_timeout_ms",
        Integer(5, 1_000),
        Some("50"),
        "How long a mote that sleeps listens for what its parent has promised, milliseconds.",
    ).only_802_15_4().needs(Part::Sleeps),
    key(
        "drain",
        Flag,
        Some("true"),
        "Whether one request brings all that waits; off, one frame (OpenThread). Parents and motes \
         must agree.",
    ).only_802_15_4().needs(Part::SharesSleep),
    key(
        "data_asks",
        Flag,
        Some("true"),
        "Whether data of a mote that sleeps is a request, too, where its parent's radio can say so.",
    ).only_802_15_4().needs(Part::SharesSleep),
    key(
        "indirect_priority",
        Flag,
        Some("true"),
        "Whether frames for a mote that sleeps go before all others once it listens.",
    ).only_802_15_4().needs(Part::ServesSleepers),
    key(
        "indirect_retries",
        Flag,
        Some("true"),
        "Whether such frames are tried as often as others, and soon again; off, once upon each request.",
    ).only_802_15_4().needs(Part::ServesSleepers),
    key(
        "indirect_bytes",
        Integer(KEPT_BYTES_MIN, 65_535),
        Some("6144"),
        "Room for packets that wait for all motes that sleep at this node, bytes; for the longest one \
         at least, of 1280, and its record.",
    ).only_802_15_4().needs(Part::ServesSleepers),
    key(
        "child_bytes",
        Integer(KEPT_BYTES_MIN, 65_535),
        None,
        "Room for packets that wait for each of them, bytes; without it a child has what the others leave. \
         Where no room is left, the oldest packet of the child goes whose packets take most.",
    ).only_802_15_4().needs(Part::ServesSleepers),
    key(
        "child_timeout_s",
        Number(1.0, 1e5),
        Some("600.0"),
        "How long a mote that sleeps may be silent before its parent forgets it, seconds.",
    ).only_802_15_4().needs(Part::ServesSleepers),
];

/// The longest packet on a mesh, and what is kept beside it.
const KEPT_BYTES_MIN: i64 = motet::limits::IPV6_MTU_MIN as i64 + 7;

/// How long a frame may be at a node by default, ms: an option of a command line may not let one
/// wait for longer.
const FRAME_AGE_MS: i64 = motet::mac::config::FRAME_AGE_MAX.as_millis() as i64;
