//! Memory of a mote that compresses no headers, built without the feature `tcphc`: none. See
//! `storage`.

use core::marker::PhantomData;

use super::Tcphc;
use crate::random::Rng;
use crate::time::Instant;

#[derive(Debug)]
pub(crate) struct Storage<'m, const CONNECTIONS: usize>(PhantomData<Tcphc<'m>>);

impl<'m, const CONNECTIONS: usize> Storage<'m, CONNECTIONS> {
    pub(crate) const EMPTY: Self = Self(PhantomData);

    pub(crate) const fn lend(&'m mut self, _: Instant, _: &mut Rng) -> Option<&'m mut Tcphc<'m>> {
        None
    }
}
