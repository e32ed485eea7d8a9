//! The tables of a scenario file with all their keys: what `docs/reference/scenarios.md` shows.

use super::keys::Kind::{Choice, End, File, Flag, Integer, Nodes, Number, Positions, Text};
use super::keys::{Key, Section, key};

pub(super) const PROFILES: &[&str] = &["hamilton", "telosb", "nrf52840", "ideal"];

/// All tables, in the order of the documentation.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "",
        repeated: false,
        doc: "What is run, for how long, and how often.",
        keys: &[
            key(
                "name",
                Text,
                Some("\"\""),
                "A title for the report; the file's name if empty.",
            ),
            key(
                "duration_s",
                Number(0.1, 1e6),
                Some("60.0"),
                "Virtual time from the moment all motes have joined, seconds.",
            ),
            key(
                "warmup_s",
                Number(0.0, 1e6),
                Some("5.0"),
                "The part of it that figures leave out, seconds; shorter than `duration_s`.",
            ),
            key(
                "join_s",
                Number(1.0, 1e5),
                Some("120.0"),
                "How long motes may take to find their router, seconds; a scenario in which one does not has failed.",
            ),
            key(
                "sample_s",
                Number(0.0, 1e5),
                Some("0.0"),
                "Time between two samples of each flow, seconds; at least 0.01, or 0: a two-hundredth of `duration_s`, at least 0.5.",
            ),
            key(
                "seed",
                Integer(0, i64::MAX),
                Some("1"),
                "The first seed. Every random choice follows from it.",
            ),
            key(
                "seeds",
                Integer(1, 100_000),
                Some("1"),
                "How many seeds, counting up from `seed`; each is a run of its own.",
            ),
        ],
    },
    Section {
        name: "topology",
        repeated: false,
        doc: "Where the nodes are. Exactly one of `chain`, `positions`, `floor`, `matrix` and `k7`. Node 0 is the border router.",
        keys: &[
            key(
                "chain",
                Integer(1, 32),
                None,
                "So many radio hops in a row, each through a wall: the calibrated chain of TCPlp's study.",
            ),
            key(
                "hidden",
                Flag,
                Some("true"),
                "`chain` only: whether nodes two hops apart do not sense each other.",
            ),
            key(
                "positions",
                Positions,
                None,
                "A list of `[x, y]` in metres, the border router first; `[path_loss]` says what is heard.",
            ),
            key(
                "floor",
                Integer(1, 1_000),
                None,
                "So many motes at random on an oblong floor, the border router at one end; `[path_loss]` says what is heard. Another `seed` is another floor, the same in all runs of a scenario. `motet run --json` has it in `parent` and `hops`.",
            ),
            key(
                "floor_hops",
                Integer(1, 20),
                Some("4"),
                "`floor` only: how many hops the farthest mote has at least, by the path with the fewest expected transmissions.",
            ),
            key(
                "matrix",
                File,
                None,
                "A file with one line per transmitter and one number per receiver: the gain in dB (negative), or `-` where nothing is heard; separated by commas or blanks, `#` begins a comment.",
            ),
            key(
                "k7",
                File,
                None,
                "A connectivity trace in the K7 format, gzipped or not: what a testbed measured on `radio.channel`. Links lose as many frames as there, given 0 dBm and the profile's noise. A row without a channel holds for every channel on which its link has no other.",
            ),
            key(
                "k7_hour",
                Number(-1.0, 1e6),
                Some("-1.0"),
                "`k7` only: how far into the trace the run begins, hours; from there links change when they did. -1: each link keeps its mean over the trace.",
            ),
            key(
                "parents",
                Nodes,
                Some("[]"),
                "The parent of node 1, of node 2, …; empty: the path with the fewest expected transmissions.",
            ),
            key(
                "joining",
                Choice(&["advertised", "static", "rpl"]),
                Some("\"advertised\""),
                "How motes get addresses and routes: by router advertisement along the tree of `parents`; from the start (large meshes need minutes otherwise); or by RPL, where they find parents by themselves, and others when links change.",
            ),
            key(
                "switch_on_s",
                Number(0.0, 3_600.0),
                Some("0.0"),
                "Every node, the border router too, is switched on at a random moment within so many seconds; `joined_s` counts from the last. 0: all at once.",
            ),
        ],
    },
    Section {
        name: "path_loss",
        repeated: false,
        doc: "What distance costs, with `topology.positions` or `topology.floor`: a loss at one metre, and then by the logarithm of the distance.",
        keys: &[
            key(
                "exponent",
                Number(1.0, 10.0),
                Some("3.0"),
                "2 in free space, 3 in an office.",
            ),
            key(
                "loss_1m_db",
                Number(0.0, 200.0),
                Some("40.2"),
                "Loss at one metre, dB: free space at 2.44 GHz.",
            ),
            key(
                "shadowing_db",
                Number(0.0, 30.0),
                Some("0.0"),
                "Standard deviation of the loss between pairs at equal distance, dB.",
            ),
            key(
                "node_db",
                Number(0.0, 30.0),
                Some("0.0"),
                "Standard deviation of how well single nodes hear, dB; it makes links asymmetric.",
            ),
        ],
    },
    Section {
        name: "interference",
        repeated: false,
        doc: "What other systems do on the channel, as it was recorded.",
        keys: &[
            key(
                "trace",
                File,
                None,
                "A recording of noise, gzipped or not: a power in dBm a line, a thousand a second (TOSSIM's noise traces). Where it is louder than a receiver's own noise it takes its place; it repeats.",
            ),
            key("nodes", Nodes, Some("[]"), "Who hears it; empty: everyone."),
            key(
                "offset_db",
                Number(-100.0, 100.0),
                Some("0.0"),
                "Added to every sample, dB.",
            ),
            key(
                "together",
                Flag,
                Some("true"),
                "Whether all hear the same moment of it, as of one near source; false: each another one. Which, the seed says.",
            ),
        ],
    },
    Section {
        name: "radio",
        repeated: false,
        doc: "The radio and its driver, the same at every mesh node that has no `node.profile`.",
        keys: &[
            key(
                "profile",
                Choice(PROFILES),
                Some("\"hamilton\""),
                "`hamilton`: SAM R21 (Cortex-M0+, AT86RF233) as in TCPlp's testbed; `telosb`: MSP430 and CC2420; `nrf52840`: DMA from RAM; `ideal`: what the standard alone allows.",
            ),
            key(
                "deaf",
                Flag,
                Some("true"),
                "Whether a radio of that profile hears nothing while frames are copied; false: a driver that listens meanwhile.",
            ),
            key(
                "channel",
                Integer(11, 26),
                Some("26"),
                "Channel, 11 to 26, where all share one.",
            ),
            key(
                "channels",
                Choice(&["single", "multi"]),
                Some("\"single\""),
                "One channel for all, or a home channel for each node, by its number.",
            ),
            key(
                "transmit_dbm",
                Number(-40.0, 30.0),
                Some("0.0"),
                "Transmit power, dBm.",
            ),
            key(
                "frame_loss",
                Number(0.0, 1.0),
                Some("0.0"),
                "Chance that a frame received without error is lost nevertheless, ACKs included.",
            ),
        ],
    },
    Section {
        name: "stack",
        repeated: false,
        doc: "Settings of the stack at every node; `[[node]]` changes them for one.",
        keys: STACK_KEYS,
    },
    Section {
        name: "node",
        repeated: true,
        doc: "Settings of one node: its `id`, its radio, and any key of `[stack]` that differs there.",
        keys: &[
            key(
                "id",
                Integer(0, NODE_LAST),
                None,
                "The node's number; 0 is the border router.",
            ),
            key(
                "profile",
                Choice(PROFILES),
                None,
                "Its radio and driver, where it is not `radio.profile`; `radio.deaf` and `radio.transmit_dbm` hold for it too.",
            ),
        ],
    },
    Section {
        name: "wire",
        repeated: false,
        doc: "The link between the border router and the host.",
        keys: &[
            key(
                "delay_ms",
                Number(0.0, 60_000.0),
                Some("20.0"),
                "One way, milliseconds.",
            ),
            key(
                "loss",
                Number(0.0, 1.0),
                Some("0.0"),
                "Chance that a packet is lost at the border router, either way.",
            ),
            key(
                "host_ack_delay_ms",
                Integer(0, 500),
                Some("40"),
                "Longest wait of the host's ACK for company, milliseconds; 40 is Linux's.",
            ),
        ],
    },
    Section {
        name: "flow",
        repeated: true,
        doc: "One flow of data, at least one in a scenario and at most 40000. A mote can be an end of 255 over TCP, and receive 16 of them; the host takes all.",
        keys: &[
            key(
                "kind",
                Choice(FLOW_KINDS),
                Some("\"bulk\""),
                "`bulk`: as much as TCP takes; `periodic`: a message over one TCP connection each `interval_s`; `request`: the same, and each message is answered; `udp`: a datagram each `interval_s`.",
            ),
            key(
                "from",
                End,
                Some("-1"),
                "Who sends: \"host\" or a node's number; -1: the last node.",
            ),
            key(
                "to",
                End,
                Some("\"host\""),
                "Who receives: \"host\" or a node's number.",
            ),
            key(
                "bytes",
                Integer(0, 250_000_000),
                Some("0"),
                "`bulk`: how much; 0: as much as the time allows.",
            ),
            key(
                "interval_s",
                Number(0.001, 1e6),
                Some("1.0"),
                "All but `bulk`: time between two messages, seconds; the first comes within one interval. What is due while the last message is not written yet, or not answered, is left out and counts as not delivered.",
            ),
            key(
                "message_bytes",
                Integer(12, 60_000),
                Some("64"),
                "All but `bulk`: bytes of each message; `udp`: at most 1024.",
            ),
            key(
                "answer_bytes",
                Integer(1, 60_000),
                Some("64"),
                "`request`: bytes of each answer.",
            ),
            key(
                "start_s",
                Number(0.0, 1e6),
                Some("0.0"),
                "When it begins, seconds after all motes have joined; less than `duration_s`.",
            ),
        ],
    },
    Section {
        name: "fault",
        repeated: true,
        doc: "Something that breaks while the scenario runs, and is mended again. A node, or a link, has one fault at a time.",
        keys: &[
            key(
                "kind",
                Choice(FAULT_KINDS),
                None,
                "`off`: a node is switched off; `reboot`: the same, by default for a second; `link`: the gain between two nodes changes. Always needed.",
            ),
            key(
                "node",
                Integer(0, NODE_LAST),
                None,
                "Which node has the fault, 0 is the border router; an end of the link. Always needed.",
            ),
            key(
                "to",
                Integer(0, NODE_LAST),
                None,
                "`link`: the node at the other end, always needed.",
            ),
            key(
                "gain_db",
                Number(-1e3, 0.0),
                None,
                "`link`: the gain both ways, dB, as in a `topology.matrix`; without it neither end hears the other.",
            ),
            key(
                "at_s",
                Number(0.0, 1e6),
                None,
                "When it begins, seconds after all motes have joined, as `flow.start_s`; with `motet up` after the command was started. Always needed; less than `duration_s`.",
            ),
            key(
                "for_s",
                Number(OFF_MIN_S, 1e6),
                None,
                "How long it lasts, seconds; without it a reboot takes one second, and other faults last for ever.",
            ),
        ],
    },
];

/// What can break.
pub(super) const FAULT_KINDS: &[&str] = &["off", "reboot", "link"];

/// The shortest time that a radio is off, s.
const OFF_MIN_S: f64 = 0.1;

/// How queues of packets are kept short.
pub(super) const QUEUES: &[&str] = &["droptail", "red", "red-drop"];

/// What kinds of flow there are.
pub(super) const FLOW_KINDS: &[&str] = &["bulk", "periodic", "request", "udp"];

/// Keys of `[stack]`, and of `[[node]]`.
pub(super) const STACK_KEYS: &[Key] = &[
    key(
        "mss_frames",
        Integer(1, 12),
        Some("5"),
        "Frames that a full TCP segment fills.",
    ),
    key(
        "window_segments",
        Integer(1, 32),
        Some("4"),
        "TCP's send and receive buffers, in full segments.",
    ),
    key(
        "retry_delay_ms",
        Integer(0, 10_000),
        Some("40"),
        "d: the longest random wait before a link retry, milliseconds; at most `frame_age_ms`.",
    ),
    key(
        "frame_age_ms",
        Integer(10, 30_000),
        Some("2000"),
        "How long a frame may be at a node, queue and retries included, before an attempt at it, \
         milliseconds; older ones are dropped. At most 2000 with `compression`.",
    ),
    key(
        "hold_ms",
        Number(0.0, 1000.0),
        Some("0.0"),
        "The hold rule's time per hop, milliseconds: keep the next frame to a neighbour until \
         the hops ahead have had their time; 0: off. 7 suits `hamilton`, with a shorter \
         `retry_delay_ms` (10).",
    ),
    key(
        "queue",
        Choice(QUEUES),
        Some("\"droptail\""),
        "What a queue of whole packets for the air does before it is full: nothing; random early \
         detection that marks (ECN) what may be marked and drops the rest; or one that drops. \
         A relay that passes on fragments asks when the first one comes.",
    ),
    key(
        "link_attempts",
        Integer(1, 100),
        Some("8"),
        "Attempts in all before the MAC gives a frame up.",
    ),
    key(
        "be_min",
        Integer(0, 8),
        Some("3"),
        "`macMinBE`: an attempt's first backoff is up to 2^BE - 1 units of 320 µs.",
    ),
    key(
        "be_max",
        Integer(0, 8),
        Some("5"),
        "`macMaxBE`: BE grows by one with each busy channel, up to this.",
    ),
    key(
        "csma_backoffs",
        Integer(0, 255),
        Some("4"),
        "`macMaxCSMABackoffs`: the attempt fails when the channel was busy more often. TinyOS on \
         a CC2420 is near `be_min` 5, `be_max` 3, `csma_backoffs` 255, `link_attempts` 6, \
         `ack_wait_us` 7812, `retry_delay_ms` 206.",
    ),
    key(
        "ack_wait_us",
        Integer(544, 100_000),
        Some("864"),
        "`macAckWaitDuration`: from a frame's end to its ACK's, microseconds.",
    ),
    key(
        "deaf_backoff",
        Flag,
        Some("false"),
        "Whether the radio sleeps in the CSMA backoff.",
    ),
    key(
        "queue_frames",
        Integer(4, 200),
        Some("16"),
        "Frames that the MAC queues.",
    ),
    key(
        "relaying",
        Choice(&["fragments", "reassembly"]),
        Some("\"fragments\""),
        "How a relay passes on packets of several fragments: each as it comes, or only whole packets.",
    ),
    key(
        "forwarding",
        Choice(&["copy", "cit"]),
        Some("\"copy\""),
        "How a relay gets a fragment from frame to frame: by two copies, or waiting in the radio \
         until the next one fires it (`telosb`, `nrf52840`; other radios copy). `hold_ms` 3 suits \
         it up to two hops, 4 at three, 7 beyond; on several channels 3 up to three hops, 4 beyond.",
    ),
    key(
        "compression",
        Choice(&["none", "tcphc"]),
        Some("\"none\""),
        "Whether this node compresses TCP headers where it is an end of their path in the mesh: \
         LOWPAN_TCPHC in its default mode. All ends need it; relays never do.",
    ),
    key(
        "ack_every",
        Integer(1, 255),
        Some("2"),
        "Acknowledge every n-th full segment at once.",
    ),
    key(
        "ack_delay_ms",
        Integer(0, 500),
        Some("100"),
        "Longest wait of an ACK for company, milliseconds.",
    ),
    key(
        "initial_window",
        Integer(0, 10),
        Some("0"),
        "Initial congestion window, segments; 0: RFC 5681's 2 to 4 by segment size.",
    ),
    key(
        "rto_min_ms",
        Integer(1, 60_000),
        Some("200"),
        "Least retransmission timeout, milliseconds.",
    ),
    key("nagle", Flag, Some("true"), "Nagle's algorithm."),
    key(
        "timestamps",
        Flag,
        Some("true"),
        "Offer and use timestamps (RFC 7323).",
    ),
    key(
        "sack",
        Flag,
        Some("true"),
        "Offer and use selective acknowledgments (RFC 2018).",
    ),
    key(
        "rack",
        Flag,
        Some("true"),
        "Find losses by times of transmission (RFC 8985), where the peer sends SACK.",
    ),
    key(
        "tail_loss_probe",
        Flag,
        Some("true"),
        "Probe for tail losses before the timeout (RFC 8985 §7).",
    ),
    key(
        "limited_transmit",
        Flag,
        Some("true"),
        "Send new data on the first duplicate ACKs (RFC 3042).",
    ),
    key(
        "ecn",
        Flag,
        Some("true"),
        "Negotiate and use explicit congestion notification (RFC 3168).",
    ),
    key(
        "congestion",
        Choice(&["reno", "cubic"]),
        Some("\"reno\""),
        "How the congestion window answers a loss, and how it grows: New Reno's half and a segment \
         per round trip (RFC 5681), or CUBIC's seven tenths and cubic function of time (RFC 9438). \
         With windows of a few segments they differ by little.",
    ),
    key(
        "congestion_control",
        Flag,
        Some("true"),
        "Congestion control at all; off only to measure what it does.",
    ),
];

/// The highest number that a node may have.
pub(super) const NODE_LAST: i64 = crate::net::network::NODES_MAX as i64 - 1;
