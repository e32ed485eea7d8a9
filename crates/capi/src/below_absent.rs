//! An archive of leaves, built without the feature `relay`: see `below`.

use motet::ip::{Registration, Route};
use motet::link::Mesh;
use motet::node::Node;
use motet::time::Instant;

use crate::config::motet_config;
use crate::memory::Carver;

pub(crate) struct Below;

pub(crate) struct Memory {
    pub(crate) registrations: &'static mut [Registration],
    pub(crate) routes: &'static mut [Option<Route>],
    pub(crate) candidates: Candidates,
    pub(crate) parent: Parent,
}

pub(crate) struct Candidates;

pub(crate) struct Parent;

impl Below {
    pub(crate) const fn of(_: &motet_config, _: &mut Carver) -> Self {
        Self
    }

    pub(crate) const fn fill(self, _: &motet_config) -> Memory {
        Memory {
            registrations: &mut [],
            routes: &mut [],
            candidates: Candidates,
            parent: Parent,
        }
    }
}

impl Candidates {
    pub(crate) const fn begin(self, _: &mut Node<'static>, _: Instant) {}
}

impl Parent {
    pub(crate) const fn serve(self, _: &mut Mesh<'static>) {}
}
