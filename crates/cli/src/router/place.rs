//! Where a router's socket lies.

use std::path::PathBuf;

/// Where a router puts its socket, and where it is looked for, best first: systemd's folder for
/// the daemon; /run/motet, which is root's; the user's own.
pub(super) fn candidates() -> Vec<PathBuf> {
    let folder = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
    let own = folder("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("motet"));
    [
        folder("RUNTIME_DIRECTORY").map(PathBuf::from),
        Some(PathBuf::from("/run/motet")),
        own,
    ]
    .into_iter()
    .flatten()
    .map(|folder| folder.join(NAME))
    .collect()
}

const NAME: &str = "router.sock";
