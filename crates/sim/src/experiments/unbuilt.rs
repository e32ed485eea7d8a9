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

/// In the order of the papers.
pub const UNBUILT: [Unbuilt; 1] = [unbuilt(
    "combined-security",
    "What link security costs",
    "link security",
)];
