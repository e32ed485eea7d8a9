//! Compressed TCP headers: a context for each connection.
//!
//! Place: part of a node's memory. Left out: the border router's end, which is `motet router`.

use motet::link::Mesh;
use motet::random::Rng;
use motet::tcphc::{Config, Context, Tcphc};
use motet::time::Instant;

use crate::config::motet_config;
use crate::memory::{Carver, Piece};

/// Where the contexts and their compressor lie.
pub(crate) struct Headers {
    contexts: Piece<Context>,
    tcphc: Piece<Tcphc<'static>>,
}

impl Headers {
    pub(crate) fn of(config: &motet_config, carver: &mut Carver) -> Self {
        Self {
            contexts: carver.take(config.connections.into()),
            tcphc: carver.take(1),
        }
    }

    /// Lets the link compress where its border router offers it.
    ///
    /// # Safety
    /// As [`Piece::fill`].
    pub(crate) unsafe fn give(self, mesh: &mut Mesh<'static>, now: Instant, rng: &mut Rng) {
        // SAFETY: the caller's promises.
        let tcphc = unsafe {
            let contexts = self.contexts.fill(|| Context::EMPTY);
            self.tcphc
                .write(Tcphc::new(contexts, Config::AGREED, now, rng))
        };
        mesh.set_tcphc(tcphc);
    }
}
