//! The same work for many things, on all cores where the build has the feature `parallel`.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// The results of `work` on each of `all`, in their order, whatever the number of cores. One thing
/// is taken at a time: they differ in length, and the first ones come first.
#[cfg(feature = "parallel")]
pub(crate) fn map<T: Send, U: Send>(all: Vec<T>, work: impl Fn(T) -> U + Sync + Send) -> Vec<U> {
    // One thing needs no other thread, and no pool of them.
    if all.len() < 2 {
        return all.into_iter().map(work).collect();
    }
    all.into_par_iter().with_max_len(1).map(work).collect()
}

/// The results of `work` on each of `all`, in their order.
#[cfg(not(feature = "parallel"))]
pub(crate) fn map<T, U>(all: Vec<T>, work: impl Fn(T) -> U) -> Vec<U> {
    all.into_iter().map(work).collect()
}
