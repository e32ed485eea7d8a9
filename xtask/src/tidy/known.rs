//! The circles of files that stay on purpose, with the reason of each.

/// A circle that stays.
pub(super) struct Known {
    /// The folder of the crate's sources.
    pub(super) root: &'static str,
    /// Its files at the most, from there, in order.
    pub(super) files: &'static [&'static str],
    /// Why it stays.
    pub(super) why: &'static str,
}

/// All of them.
pub(super) const KNOWN: [Known; 17] = [
    Known {
        root: "apps/lab/src",
        files: &["air", "executor"],
        why: "the executor sleeps until the air's next event, by the clock that it keeps itself",
    },
    Known {
        root: "crates/capi/src",
        files: &["node", "sockets"],
        why: "a handle's node holds its sockets, and a call on a socket finds its node",
    },
    Known {
        root: "crates/conformance/src",
        files: &["host::edge", "host::freebsd", "host::settings"],
        why: "a profile lends settings and alters what passes the edge; frozen with the profile `freebsd`",
    },
    Known {
        root: "crates/decode/src",
        files: &["capture", "pcapng"],
        why: "a file's format is a reader of its own, and gives records of the capture",
    },
    Known {
        root: "crates/embassy/src",
        files: &[
            "connection",
            "listener",
            "stack",
            "stack_state",
            "udp",
            "waiters",
        ],
        why: "sockets and their stack name each other: a socket borrows the stack, the stack opens sockets",
    },
    Known {
        root: "crates/packetdrill/src",
        files: &["interface", "slots::sockets", "slots::transfer"],
        why: "C's table of functions names the functions, and they take its types",
    },
    Known {
        root: "crates/sim/src",
        files: &["air::energy", "air::profile", "air::radio::usage"],
        why: "a radio's profile has its currents, and its use is counted in them",
    },
    Known {
        root: "crates/sim/src",
        files: &[
            "air::event",
            "air::radio",
            "air::radio::line",
            "air::radio::receive",
            "air::radio::transmit",
        ],
        why: "an event is for a radio, and a radio brings about events",
    },
    Known {
        root: "crates/sim/src",
        files: &[
            "net::lacks",
            "net::network",
            "net::network::bluetooth",
            "net::network::build",
            "net::network::memory",
            "net::network::options",
            "net::network::wired",
            "net::run",
            "net::topology",
            "net::world",
            "net::world::attackers",
            "net::world::joiner",
            "net::world::processor",
            "net::world::security",
        ],
        why: "a network builds its world of nodes, and the world finds their names and places in the network",
    },
    Known {
        root: "crates/sim/src",
        files: &[
            "scenario::attacker",
            "scenario::battery",
            "scenario::defaults",
            "scenario::interference",
            "scenario::keys",
            "scenario::model",
            "scenario::radio",
            "scenario::router",
            "scenario::security",
            "scenario::stack_keys",
            "scenario::tables",
            "scenario::thread",
            "scenario::wire",
        ],
        why: "the table of sections names each section, and each is made of the table's kinds",
    },
    Known {
        root: "crates/sim/src",
        files: &[
            "scenario::bluetooth",
            "scenario::document",
            "scenario::made",
            "scenario::relevance",
        ],
        why: "the document is checked by rules that read it",
    },
    Known {
        root: "crates/sim/src",
        files: &[
            "scenario::bound",
            "scenario::flow",
            "scenario::readings",
            "scenario::run",
            "scenario::session",
        ],
        why: "a run has flows, and a session reports on both",
    },
    Known {
        root: "crates/sim/src",
        files: &["scenario::parts", "scenario::sweep"],
        why: "each point of a sweep is a scenario of its parts",
    },
    Known {
        root: "crates/taim/src",
        files: &[
            "flow",
            "flow::held",
            "flows",
            "policy",
            "policy::admission",
            "policy::answers",
            "policy::heavy_flows",
            "policy::paced",
            "policy::relay",
            "policy::share",
            "policy::turn",
            "router",
            "status",
            "strangers",
        ],
        why: "the policies read the flows, and a flow keeps what its policy notes",
    },
    Known {
        root: "peers/bench/src",
        files: &[
            "endpoint",
            "stacks::lwip",
            "stacks::motet",
            "stacks::smoltcp",
            "stacks::tcplp",
        ],
        why: "one list names the stacks, and each implements the trait beside it",
    },
    Known {
        root: "python/src",
        files: &["running", "steps", "sweep"],
        why: "runs are started by steps and sweeps, which share what a run gives",
    },
    Known {
        root: "xtask/src",
        files: &["apps", "devices"],
        why: "what a device measures is a line of the applications' table, which asks for it",
    },
];
