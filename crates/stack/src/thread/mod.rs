//! Thread: a mote as a child in other people's 802.15.4 networks.
//!
//! The user gives the dataset of the network, as `ot-ctl dataset active -x` prints it. With its key
//! a child finds a router and attaches to it by MLE; the router is its parent, and the network data
//! that the parent sends takes the place of neighbour discovery.
//!
//! | module | contents |
//! |---|---|
//! | [`dataset`] | what a child needs of an Active Operational Dataset |
//! | [`mle`] | messages of Mesh Link Establishment: sealed, opened, TLV by TLV |
//! | [`network_data`] | prefixes, contexts, border routers, external routes |
//! | [`Child`] | the state machine of a child |
//!
//! Place: pure. Datagrams are taken from and given to the link (`link/mesh/thread`). Left out: the
//! role of a router, commissioning, CSL, link metrics, and the services of network data. Motet is
//! not certified; it joins networks of Thread with their dataset.
//!
//! Source: Thread 1.1 and 1.3 as far as OpenThread shows them on the air; `draft-ietf-mle` 00 for
//! MLE.

mod child;
pub mod dataset;
pub mod mle;
pub mod network_data;
#[cfg(test)]
mod tests;
mod tlv;

pub use child::{
    CHILD_TIMEOUT, Child, ChildConfig, ChildCounters, ChildState, Identity, MleDrop, Parent, Place,
    Refusal,
};
pub use dataset::{Dataset, DatasetError};
pub use tlv::Tlvs;

/// Why a node cannot be a child of a Thread network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadUnfit {
    /// It has no key yet.
    NoKey,
    /// Its table has fewer than two entries for neighbours with the key: a parent, and the next
    /// one.
    FewNeighbours,
    /// TCP header compression is on, which no other node of such a network has.
    TcpHeaders,
}

impl ThreadUnfit {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoKey => "a child of a Thread network needs its key first",
            Self::FewNeighbours => {
                "a child of a Thread network needs room for two neighbours with the key"
            }
            Self::TcpHeaders => "TCP header compression is on, which Thread does not have",
        }
    }
}

speaks!(ThreadUnfit);
