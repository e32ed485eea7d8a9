//! The testbed in Grenoble, two days of which were published.
//!
//! Purpose: where its trace is, and what of it experiments use.
//! Left out: the trace itself, which is not a part of Motet: it is read from the shared data, which
//! `MOTET_SHARED` names.

use std::path::PathBuf;

use super::run::Failure;
use crate::air::k7::{self, Trace};

/// The connectivity of the testbed, as it was measured.
///
/// # Errors
/// [`Failure::NoTrace`]: the file is not there, or is no such trace.
pub(super) fn trace() -> Result<Trace, Failure> {
    let path = path();
    let failed = |why: String| {
        let path = path.display();
        Failure::NoTrace(format!(
            "{path}: {why}; set MOTET_SHARED to the folder that has data/traces/{TRACE}"
        ))
    };
    let bytes = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
    k7::read(&bytes, CHANNEL).map_err(|error| failed(error.to_string()))
}

/// Where the trace is.
pub(super) fn path() -> PathBuf {
    let beside = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into();
    let shared = std::env::var_os("MOTET_SHARED").map_or_else(beside, PathBuf::from);
    shared.join("data").join("traces").join(TRACE)
}

const TRACE: &str = "grenoble_7.k7.gz";

/// Nodes of the testbed.
pub(super) const NODES: u64 = 50;

/// The lowest channel on which all of them are reached throughout the trace.
pub(super) const CHANNEL: u8 = 15;
