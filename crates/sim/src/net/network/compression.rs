//! Who compresses TCP headers towards whom in a network, as its options say it.

use motet::mac::config::FRAME_AGE_MAX;

use super::{NetworkOptions, NodeOptions};

impl NetworkOptions {
    /// Whether headers of TCP between these two nodes are compressed: motes that agree on it do so
    /// with the border router alone.
    pub fn compresses(&self, ends: [usize; 2]) -> bool {
        let is_with_router = ends.contains(&0);
        ends.into_iter().all(|end| {
            let node = self.nodes.get(end);
            node.is_some_and(|node| {
                let is_agreed = is_with_router || !node.agrees_on_compression;
                node.compression.is_some() && is_agreed
            })
        })
    }

    /// Whether no frame is older than header compression counts on. What waits for a node that
    /// sleeps is no frame, and no frame's age bounds its wait.
    pub fn frames_expire(&self) -> bool {
        let is_young = |node: &NodeOptions| node.mac.frame_age_max <= FRAME_AGE_MAX;
        !self.has_sleepers() && self.nodes.iter().all(is_young)
    }
}
