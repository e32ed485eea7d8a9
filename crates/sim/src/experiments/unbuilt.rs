//! Figures of the papers, and comparisons of Motet's own, that nothing runs yet.
//!
//! Place: `motet reproduce` lists them and says so when one is asked for. An entry leaves this
//! table when its experiment is built.

/// An experiment that is planned.
#[derive(Clone, Copy, Debug)]
pub struct Unbuilt {
    /// What it will be called on the command line.
    pub id: &'static str,
    /// What it will show, and where that was published.
    pub title: &'static str,
    /// What it needs that is not there.
    pub needs: &'static str,
}

const fn unbuilt(id: &'static str, title: &'static str, needs: &'static str) -> Unbuilt {
    Unbuilt { id, title, needs }
}

const SLEEP: &str = "sleeping motes";
const STUDY: &str = "sleeping motes and CoAP";
const TAIM: &str = "TAiM at the border router";
const BLE: &str = "the Bluetooth LE adaptation";

/// In the order of the papers.
pub const UNBUILT: [Unbuilt; 19] = [
    unbuilt(
        "tcplp-batching",
        "Batches of readings by TCP and CoAP (TCPlp Fig 8)",
        STUDY,
    ),
    unbuilt(
        "tcplp-loss",
        "TCP and CoAP by packet loss (TCPlp Fig 9)",
        STUDY,
    ),
    unbuilt(
        "tcplp-day",
        "A day of interference (TCPlp Fig 10, Table 8)",
        STUDY,
    ),
    unbuilt(
        "tcplp-sleep",
        "Fixed sleep intervals (TCPlp Figs 12, 13)",
        SLEEP,
    ),
    unbuilt(
        "tcplp-adaptive",
        "Adaptive sleep intervals (TCPlp Fig 14)",
        SLEEP,
    ),
    unbuilt(
        "taim-testbed1",
        "Fairness in the first testbed (TAiM Figs 4, 10, 11)",
        TAIM,
    ),
    unbuilt(
        "taim-testbed2",
        "Fairness in the second testbed (TAiM Figs 14, 15)",
        TAIM,
    ),
    unbuilt(
        "taim-udp",
        "UDP by rate in the first testbed (TAiM Fig 6)",
        TAIM,
    ),
    unbuilt(
        "tcple-table4",
        "Goodput beside other radios (TCPlE Table IV)",
        BLE,
    ),
    unbuilt(
        "tcple-goodput",
        "Goodput by offered load (TCPlE Fig 8)",
        BLE,
    ),
    unbuilt("tcple-loss", "Goodput by frame loss (TCPlE Fig 9)", BLE),
    unbuilt(
        "tcple-fairness",
        "Peripherals that share a central (TCPlE Fig 10)",
        BLE,
    ),
    unbuilt("tcple-energy", "Energy of a reading (TCPlE Table VII)", BLE),
    unbuilt(
        "tcple-rtt",
        "Round-trip times of readings (TCPlE Fig 12)",
        BLE,
    ),
    unbuilt("tcple-ota", "A firmware update (TCPlE Fig 13)", BLE),
    unbuilt("combined-fairness", "Fairness with everything on", TAIM),
    unbuilt("combined-ble", "Both radios in one network", BLE),
    unbuilt(
        "combined-sleepy",
        "Sleeping motes with everything on",
        SLEEP,
    ),
    unbuilt(
        "combined-security",
        "What link security costs",
        "link security",
    ),
];
