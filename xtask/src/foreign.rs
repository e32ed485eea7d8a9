//! What others made and the check needs, made ready beside its first steps.
//!
//! Each part is built or fetched once for each version (`tools::once`): on a new machine that
//! takes minutes, in which the first steps leave the network, and often a core, to others. A step
//! that comes to its part first waits for it. What goes wrong here is not judged: the step that
//! needs the part meets the same and says so.

use std::process::Command;

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{ble_peers, deny, oldest, prose, python, thread};

/// Makes all parts ready, one after the other, in the order in which the steps come.
pub(crate) fn make_ready(workspace: &Workspace) {
    const PARTS: [fn(&Workspace) -> Result<()>; 6] = [
        prose::make_ready,
        python::make_ready,
        ble_peers::make_ready,
        thread::make_ready,
        oldest::make_ready,
        deny::make_ready,
    ];
    yield_to_steps();
    for part in PARTS {
        // The step that needs it says what is wrong.
        let _ = part(workspace);
    }
}

/// Lets what this thread starts run only where the steps leave processor time. Where that cannot be
/// said, it runs as everything else.
fn yield_to_steps() {
    let own = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let Some(number) = own.file_name() else {
        return;
    };
    // On Linux the number of a thread stands for that thread alone.
    let _ = Command::new("renice")
        .args(["-n", "19", "-p"])
        .arg(number)
        .output();
}
