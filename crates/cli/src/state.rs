//! Where what must outlive a run is kept: frame counters of nodes with a key.
//!
//! Place: the commands whose frames follow from no seed alone, `send`, `up` and `router --air`,
//! open them before anything is sent. Runs in virtual time keep nothing: they give the same bytes
//! each time.

use std::env;
use std::path::{Path, PathBuf};

use motet_lab::keys::hex;
use motet_lab::net::counter_store::CounterStore;
use motet_lab::net::network::SecurityOptions;
use motet_lab::net::plan;
use motet_state::{Counters, Error as StateError, KeyName};

use crate::error::Error;
use crate::output::say;

/// Keeps the counters of the first `nodes` nodes of a mesh, if that has a key. `folder`: what the
/// command line names.
///
/// # Errors
/// [`Error::Input`] where they cannot be kept, or are not those that were kept last; for a folder
/// where the mesh has no key.
pub(crate) fn counter_store(
    folder: Option<&Path>,
    security: Option<&SecurityOptions>,
    nodes: usize,
) -> Result<Option<CounterStore>, Error> {
    let Some(security) = security else {
        return match folder {
            None => Ok(None),
            Some(_) => Err(Error::input(
                "--state keeps the frame counters of a key, and this mesh has none: name its key, or leave \
                 --state out",
            )),
        };
    };
    let counters = open(folder, security.name(), MESH)?;
    // Lossless: nodes have 16-bit numbers.
    let nodes = (0..nodes).map(|n| plan::eui64(n as u16));
    let counter_store = CounterStore::begin(counters, security.sequence, nodes, say);
    counter_store.map(Some).map_err(|error| refuse(&error))
}

/// Keeps the counters of one node with a real radio. `folder`: what the command line names.
///
/// # Errors
/// [`Error::Input`] where they cannot be kept, or are not those that were kept last.
pub(crate) fn counters_of(
    folder: Option<&Path>,
    key: KeyName,
    sequence: u32,
    eui64: [u8; 8],
) -> Result<CounterStore, Error> {
    // A file for each radio: several may run at a time.
    let counters = open(folder, key, &hex(&eui64))?;
    let counter_store = CounterStore::begin(counters, sequence, std::iter::once(eui64), say);
    counter_store.map_err(|error| refuse(&error))
}

/// The folder that the command line names, or the usual one.
pub(crate) fn folder(named: Option<&Path>) -> Option<PathBuf> {
    let usual = || usual(|variable| env::var_os(variable).map(PathBuf::from));
    named.map(Path::to_owned).or_else(usual)
}

fn open(named: Option<&Path>, key: KeyName, name: &str) -> Result<Counters, Error> {
    let folder = folder(named).ok_or_else(|| {
        Error::input(
            "there is no folder for the frame counters of the key, which must outlive this run: name one with \
             --state",
        )
    })?;
    Counters::open(&folder, key, name).map_err(|error| refuse(&error))
}

fn refuse(error: &StateError) -> Error {
    let advice = match error {
        StateError::Io(..) => {
            "; without frame counters that outlive this run nothing is sent: free some room there or mend its \
             permissions, for in another folder the counters of this key would begin at 0 again"
        }
        _ => "",
    };
    Error::input(format!("{error}{advice}"))
}

/// The folder where nobody names one: systemd's for the service, else the user's own.
fn usual(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    if let Some(folders) = variable("STATE_DIRECTORY") {
        // Several are divided by colons.
        let first = env::split_paths(&folders).next();
        return first.filter(|first| first.is_absolute());
    }
    let own = absolute("XDG_STATE_HOME");
    let own = own.or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    own.map(|own| own.join("motet"))
}

/// The name of the lab's mesh in the counter store: the nodes have the same addresses in each run.
const MESH: &str = "lab";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_has_its_folder_and_a_user_their_own() {
        let with = |set: &[(&str, &str)]| {
            let set: Vec<_> = set.to_vec();
            usual(move |name| {
                let found = set.iter().find(|(given, _)| *given == name);
                found.map(|(_, value)| PathBuf::from(value))
            })
        };
        let home = ("HOME", "/home/me");
        let xdg = ("XDG_STATE_HOME", "/xdg");
        let service = ("STATE_DIRECTORY", "/var/lib/motet:/var/lib/other");
        let is = |path: &str| Some(PathBuf::from(path));
        assert_eq!(with(&[home]), is("/home/me/.local/state/motet"));
        assert_eq!(with(&[home, xdg]), is("/xdg/motet"));
        assert_eq!(
            with(&[home, ("XDG_STATE_HOME", "x")]),
            is("/home/me/.local/state/motet")
        );
        assert_eq!(with(&[home, xdg, service]), is("/var/lib/motet"));
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("HOME", "here")]), None);
    }
}
