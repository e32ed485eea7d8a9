//! Where a router's socket lies.

use std::path::{Path, PathBuf};

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

/// Sockets of routers that systemd has started, one for each interface, in the order of their
/// names.
pub(super) fn of_units() -> Vec<PathBuf> {
    sockets_below(Path::new("/run/motet"))
}

fn sockets_below(folder: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(folder).into_iter().flatten();
    let sockets = folders.flatten().map(|entry| entry.path().join(NAME));
    let mut sockets: Vec<_> = sockets
        .filter(|path| path.exists())
        .take(UNITS_MAX)
        .collect();
    sockets.sort();
    sockets
}

const NAME: &str = "router.sock";

/// Routers of one machine that are looked for.
const UNITS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_units_are_found_by_interface() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["wpan1", "wpan0", "empty"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join(NAME), "").unwrap();
        let sockets = ["wpan0", "wpan1"].map(|name| folder.path().join(name).join(NAME));
        for socket in &sockets {
            std::fs::write(socket, "").unwrap();
        }
        assert_eq!(sockets_below(folder.path()), sockets);
        assert!(sockets_below(&folder.path().join("none")).is_empty());
    }

    /// Two units share neither queue nor socket, and none takes the other's folder away.
    #[test]
    fn a_unit_can_run_twice() {
        let unit = include_str!("../../../../packaging/systemd/motet-router@.service");
        let line = |begins: &str| {
            let mut lines = unit.lines().filter(|line| line.starts_with(begins));
            lines.next().unwrap_or_default()
        };
        let start = line("ExecStart=");
        assert!(
            start.contains("--socket /run/motet/%i/router.sock"),
            "{start}"
        );
        assert!(start.contains("--nfqueue $MOTET_ROUTER_QUEUE"), "{start}");
        assert_eq!(
            line("Environment=MOTET_ROUTER_QUEUE"),
            "Environment=MOTET_ROUTER_QUEUE=auto"
        );
        assert_eq!(line("RuntimeDirectory="), "RuntimeDirectory=motet/%i");
    }
}
