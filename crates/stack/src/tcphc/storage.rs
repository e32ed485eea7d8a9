//! Memory of a mote's compressed connections, for a static.

use core::mem::MaybeUninit;

use super::{Config, Context, Tcphc};
use crate::random::Rng;
use crate::time::Instant;

/// A context for each of `CONNECTIONS`, and their compressor.
#[derive(Debug)]
pub(crate) struct Storage<'m, const CONNECTIONS: usize> {
    // Not written before it is lent: a free context is not all zeros, and the whole static would
    // take flash.
    contexts: MaybeUninit<[Context; CONNECTIONS]>,
    tcphc: MaybeUninit<Tcphc<'m>>,
}

impl<'m, const CONNECTIONS: usize> Storage<'m, CONNECTIONS> {
    pub(crate) const EMPTY: Self = Self {
        contexts: MaybeUninit::uninit(),
        tcphc: MaybeUninit::uninit(),
    };

    /// The compressor of a mote that compresses where its border router offers it.
    pub(crate) fn lend(&'m mut self, now: Instant, rng: &mut Rng) -> Option<&'m mut Tcphc<'m>> {
        let contexts = self.contexts.write([Context::EMPTY; CONNECTIONS]);
        let tcphc = Tcphc::new(contexts, Config::AGREED, now, rng);
        Some(self.tcphc.write(tcphc))
    }
}
