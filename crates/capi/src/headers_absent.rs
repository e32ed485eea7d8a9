//! An archive whose nodes compress no headers, built without the feature `tcphc`: see `headers`.

use motet::link::Mesh;
use motet::random::Rng;
use motet::time::Instant;

use crate::config::motet_config;
use crate::memory::Carver;

pub(crate) struct Headers;

impl Headers {
    pub(crate) const fn of(_: &motet_config, _: &mut Carver) -> Self {
        Self
    }

    pub(crate) const fn give(self, _: &mut Mesh<'static>, _: Instant, _: &mut Rng) {}
}
