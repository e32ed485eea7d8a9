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

const BLE: &str = "the Bluetooth LE adaptation";

/// In the order of the papers.
pub const UNBUILT: [Unbuilt; 8] = [
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
    unbuilt(
        "combined-security",
        "What link security costs",
        "link security",
    ),
];
