//! The steps of joining that motes have not completed, for the message that explains why a mesh is
//! incomplete.
//!
//! Purpose: names the motes that have not joined, and the step that each one lacks. Place: it reads
//! the present state of nodes, and changes nothing.
//! Left out: the reason why a step is missing, which a capture shows.

use std::collections::BTreeMap;
use std::fmt;

use motet::link::Link;
use motet::node::Node;
use motet::rpl::Rpl;

use super::network::RADIO;
use super::plan;
use super::world::World;

/// A step that a mote has not done, in the order in which they are done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lack {
    /// The mote is switched off.
    Power,
    /// The mote has requested a key, and has not got it yet.
    Key,
    /// RPL has found no parent.
    Parent,
    /// No router has answered.
    Router,
    /// The mote has no prefix, and so no address but its link-local one.
    Prefix,
    /// The mote does not know every context by which the border router compresses headers.
    Contexts,
    /// The border router has not confirmed its DAO.
    Confirmation,
    /// No way leads from the border router to it.
    RouteDown,
}

impl Lack {
    /// The lack in words, as what the mote lacks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Key => "a key",
            Self::Parent => "a parent",
            Self::Router => "a router",
            Self::Prefix => "a prefix and an address",
            Self::Contexts => "header contexts",
            Self::Confirmation => "the border router's answer to its DAO",
            Self::RouteDown => "a route at the border router",
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The steps that mesh node `mote` lacks at this moment, in a world whose border router is node 0.
pub fn lacks(world: &World<'_>, mote: usize) -> Vec<Lack> {
    if !world.is_on(mote) {
        return vec![Lack::Power];
    }
    let (root, node) = (world.node(0), world.node(mote));
    let has_route = node.ip().default_route().is_some();
    let has_joined_rpl = |lack: bool| node.rpl().is_some() && lack;
    [
        (Lack::Key, world.awaits_key(mote)),
        (Lack::Parent, has_joined_rpl(!has_route)),
        (Lack::Router, node.rpl().is_none() && !has_route),
        (Lack::Prefix, node.global_address().is_none()),
        (Lack::Contexts, !knows_contexts(root, node)),
        (
            Lack::Confirmation,
            !node.rpl().is_none_or(Rpl::is_reachable),
        ),
        (Lack::RouteDown, has_joined_rpl(!leads_to(root, mote))),
    ]
    .into_iter()
    .filter_map(|(lack, is_lacking)| is_lacking.then_some(lack))
    .collect()
}

/// Whether a node can read what the border router compresses by contexts.
fn knows_contexts(root: &Node<'_>, node: &Node<'_>) -> bool {
    match (root.link(RADIO), node.link(RADIO)) {
        (Some(Link::Mesh(root)), Some(Link::Mesh(own))) => {
            let known = own.contexts();
            let mut used = root.contexts().iter();
            used.all(|(id, context)| {
                let own = known.get(id);
                own.is_some_and(|own| own.prefix() == context.prefix())
            })
        }
        // Over Bluetooth LE the prefix itself is the context.
        _ => true,
    }
}

/// Whether the border router's table leads to a mote.
fn leads_to(root: &Node<'_>, mote: usize) -> bool {
    // Lossless: nodes have 16-bit numbers.
    let [own, mut at] = [0, mote as u16].map(|n| plan::link_addr(n).iid());
    let steps = root.routes_down().count();
    for _ in 0..=steps {
        if at == own {
            return true;
        }
        let mut known = root.routes_down();
        match known.find(|step| step.child == at && !step.is_lost) {
            Some(step) => at = step.parent,
            None => return false,
        }
    }
    false
}

/// A sentence's part that names motes and what each one lacks, those together that lack the same:
/// "motes 43 and 56 lack header contexts; mote 7 lacks a parent".
pub fn describe(world: &World<'_>, motes: impl IntoIterator<Item = usize>) -> String {
    let mut groups: BTreeMap<Vec<Lack>, Vec<usize>> = BTreeMap::new();
    for mote in motes {
        groups.entry(lacks(world, mote)).or_default().push(mote);
    }
    let said = groups.iter().map(|(lacks, motes)| {
        let lacks: Vec<&str> = lacks.iter().map(|lack| lack.name()).collect();
        let (word, verb) = match motes.len() {
            1 => ("mote", "lacks"),
            _ => ("motes", "lack"),
        };
        let what = match lacks.is_empty() {
            true => "nothing at this moment".to_owned(),
            false => listed(&lacks),
        };
        format!("{word} {} {verb} {what}", numbers(motes))
    });
    said.collect::<Vec<_>>().join("; ")
}

/// The first of these numbers, and how many more there are.
fn numbers(motes: &[usize]) -> String {
    let named = motes.iter().take(NAMED_MAX).map(ToString::to_string);
    let mut named: Vec<String> = named.collect();
    if let Some(more) = motes.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        named.push(format!("{more} others"));
    }
    listed(&named)
}

/// "a, b and c".
fn listed<T: AsRef<str>>(parts: &[T]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => parts.concat(),
    }
}

/// Motes that one part of a sentence names.
const NAMED_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sentences() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(numbers(&[4, 9]), "4 and 9");
        let many: Vec<usize> = (1..=23).collect();
        assert!(numbers(&many).ends_with("19, 20 and 3 others"));
    }
}
