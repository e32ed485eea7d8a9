//! The tables of a scenario file with all their keys: what `docs/reference/scenarios.md` shows.

use super::keys::Kind::{Choice, End, File, Flag, Integer, Links, Nodes, Number, Positions, Text};
use super::keys::{Section, key};
use super::stack_keys::STACK_KEYS;

pub(super) const PROFILES: &[&str] = &["hamilton", "telosb", "nrf52840", "rcp", "ideal"];

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
        doc: "Where the nodes are. Exactly one of `chain`, `positions`, `floor`, `links`, `matrix`, `k7` and, over Bluetooth LE, `peripherals`. Node 0 is the border router.",
        keys: &[
            key(
                "chain",
                Integer(1, 32),
                None,
                "So many radio hops in a row, each through a wall: the calibrated chain of TCPlp's study.",
            ).only_802_15_4()
            .flag(
                "hops",
                "N",
                "Radio hops between the mote and the border router [default: 3; 1 with ble]",
            ),
            key(
                "hidden",
                Flag,
                Some("true"),
                "`chain` only: whether nodes two hops apart do not sense each other.",
            ).only_802_15_4()
            .flag(
                "no-hidden",
                "",
                "Let every node hear every other: no hidden terminals",
            ),
            key(
                "positions",
                Positions,
                None,
                "A list of `[x, y]` in metres, the border router first; `[path_loss]` says what is heard.",
            ).only_802_15_4(),
            key(
                "floor",
                Integer(1, 1_000),
                None,
                "So many motes at random on an oblong floor, the border router at one end; `[path_loss]` says what is heard. Another `seed` is another floor, the same in all runs of a scenario. `motet run --json` has it in `parent` and `hops`.",
            ).only_802_15_4(),
            key(
                "floor_hops",
                Integer(1, 20),
                Some("4"),
                "`floor` only: how many hops the farthest mote has at least, by the path with the fewest expected transmissions.",
            ),
            key(
                "seed",
                Integer(-1, i64::MAX),
                Some("-1"),
                "`floor`, and `positions` with shadowing: the seed that draws places and shadowing. -1: the scenario's first seed, so that all its seeds are runs on one floor.",
            ).only_802_15_4(),
            key(
                "links",
                Links,
                None,
                "What is heard, one way each: `[from, to, gain in dB]`; a pair that is not listed does not hear each other. `motet import` and `motet replay` write it.",
            ).only_802_15_4(),
            key(
                "matrix",
                File,
                None,
                "A file with one line per transmitter and one number per receiver: the gain in dB (negative), or `-` where nothing is heard; separated by commas or blanks, `#` begins a comment.",
            ).only_802_15_4(),
            key(
                "k7",
                File,
                None,
                "A connectivity trace in the K7 format, gzipped or not: what a testbed measured on `radio.channel`. Links lose as many frames as there, given 0 dBm and the profile's noise. A row without a channel holds for every channel on which its link has no other.",
            ).only_802_15_4(),
            key(
                "k7_hour",
                Number(-1.0, 1e6),
                Some("-1.0"),
                "`k7` only: how far into the trace the run begins, hours; from there links change when they did. -1: each link keeps its mean over the trace.",
            ),
            key(
                "root",
                Integer(0, NODE_LAST),
                Some("0"),
                "`k7` only: the node of the trace that is the border router. It is node 0 of the run, and the trace's node 0 has its number; all others keep theirs. Nodes from which no path of links leads to it are off, and named.",
            ),
            key(
                "peripherals",
                Integer(1, 20),
                None,
                "`radio.kind` \"ble\" only, which needs it: so many motes, each connected to the border router.",
            ).only_ble(),
            key(
                "parents",
                Nodes,
                Some("[]"),
                "The parent of node 1, of node 2, …; empty: the path with the fewest expected transmissions, with signals taken as 6 dB weaker than they are.",
            ).only_802_15_4(),
            key(
                "joining",
                Choice(&["advertised", "static", "rpl", "thread"]),
                Some("\"advertised\""),
                "How motes get addresses and routes: by router advertisement along the tree of `parents`; from the start (large meshes need minutes otherwise); or by RPL, where they find parents by themselves, and others when links change; or by Thread's MLE: the border router is a Thread router, and every mote its child (`[thread]`).",
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
    super::interference::SECTION,
    super::radio::SECTION,
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
                "kind",
                Choice(&["802.15.4", "ble"]),
                None,
                "`ble`: beside a mesh, a mote over Bluetooth LE. The border router is its central, on a radio of its own, and has another prefix for such motes; `[radio]`'s keys of Bluetooth LE hold for them. Its place in the topology is of no account.",
            ),
            key(
                "profile",
                Choice(PROFILES),
                None,
                "Its radio and driver, where it is not `radio.profile`; `radio.deaf` and `radio.transmit_dbm` hold for it too.",
            ).only_802_15_4(),
            key(
                "tcple",
                Flag,
                None,
                "`ble` with `radio.tcple`: false for a mote that does without. It gets plain IPv6, the others what they have.",
            ).only_ble(),
        ],
    },
    super::wire::SECTION,
    super::router::SECTION,
    super::security::SECTION,
    super::thread::SECTION,
    super::attacker::SECTION,
    super::battery::SECTION,
    Section {
        name: "flow",
        repeated: true,
        doc: "One flow of data, at least one in a scenario and at most 40000. A mote can be an end of 255 over TCP, and receive 16 of them; the host takes all.",
        keys: &[
            key(
                "kind",
                Choice(FLOW_KINDS),
                Some("\"bulk\""),
                "`bulk`: as much as TCP takes; `periodic`: a message over one TCP connection each `interval_s`; `request`: the same, and each message is answered; `udp`: a datagram each `interval_s`; `readings`: a sensor's readings, one each `interval_s`, which wait in a queue and go in batches over one TCP connection. One that finds the queue full is lost; at the end of a run those that wait, or are under way, count neither way; `push`: the host brings new firmware to `motes`, each of which is a flow of its own in the results.",
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
                "`bulk`: how much; 0: as much as the time allows. `push`: bytes of the image, 250000 by default.",
            ),
            key(
                "motes",
                Nodes,
                Some("[]"),
                "`push`: who gets the image, in this order; without it every mote.",
            ),
            key(
                "schedule",
                Choice(SCHEDULES),
                Some("\"sequential\""),
                "`push`: one mote after another, all at once (`parallel`), or along the tree of parents: each mote fetches the image from the nearest one above it, once that has verified it.",
            ),
            key(
                "transport",
                Choice(TRANSPORTS),
                Some("\"tcp\""),
                "`push`: HTTP over TCP, as `motet push` has it; CoAP by Block1 (RFC 7959), one block under way; or by Q-Block1 (RFC 9177), ten.",
            ),
            key(
                "block_bytes",
                Integer(64, 1_024),
                Some("1024"),
                "`push` over CoAP: bytes of a block, a power of two.",
            ),
            key(
                "mss_frames",
                Integer(1, 12),
                Some("12"),
                "`push` over TCP: frames that a full segment of these connections fills, whatever `stack.mss_frames` says of the others.",
            ),
            key(
                "interval_s",
                Number(0.001, 1e6),
                Some("1.0"),
                "All but `bulk`: time between two messages, seconds; the first comes within one interval. But for `readings`, what is due while the last message is not written yet, or not answered, is left out and counts as not delivered.",
            ),
            key(
                "message_bytes",
                Integer(12, 60_000),
                Some("64"),
                "All but `bulk`: bytes of each message; `udp`: at most 1024; `readings`: 82 by default.",
            ),
            key(
                "queue",
                Integer(1, 100_000),
                Some("64"),
                "`readings`: how many may wait (TCPlp's study: 64).",
            ),
            key(
                "batch",
                Integer(1, 100_000),
                Some("64"),
                "`readings`: how many wait before they are sent, at most `queue`; 1: each at once.",
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
            ).only_802_15_4(),
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

/// The kinds of fault.
pub(super) const FAULT_KINDS: &[&str] = &["off", "reboot", "link"];

/// The shortest time that a radio is off, s.
const OFF_MIN_S: f64 = 0.1;

/// The kinds of flow.
pub(super) const FLOW_KINDS: &[&str] = &["bulk", "periodic", "request", "udp", "readings", "push"];

/// Which mote gets an image when, and what carries it.
const SCHEDULES: &[&str] = &["sequential", "parallel", "tree"];
const TRANSPORTS: &[&str] = &["tcp", "coap", "qblock"];

/// The highest number that a node may have.
pub(super) const NODE_LAST: i64 = crate::net::network::NODES_MAX as i64 - 1;
