//! How many of its cases a long test tries.

use std::env;

/// Set by `cargo xtask check long`: then each test tries all of its cases.
const ALL: &str = "MOTET_LONG";

/// Whether a test is to try all of its cases.
pub(crate) fn is_long() -> bool {
    env::var_os(ALL).is_some()
}

/// All of these cases, or `count` of them that lie evenly among them, the first one included.
pub(crate) fn some_of<T>(cases: impl IntoIterator<Item = T>, count: usize) -> Vec<T> {
    let cases: Vec<T> = cases.into_iter().collect();
    if is_long() {
        return cases;
    }
    let step = cases.len().div_ceil(count.max(1)).max(1);
    cases.into_iter().step_by(step).collect()
}
