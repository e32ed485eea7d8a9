//! What SIGHUP does to a border router of our own with a key: it reads the key file again.

use std::path::Path;

use motet::mac::security::NetworkKey;
use motet_lab::{
    keys::{KeyChange, KeyFile},
    net::network::Network,
};

use crate::radio_node::RadioNode;

/// A mesh whose keys can change.
pub(super) trait Rekeyed {
    /// Lets the border router take the link key of this sequence, if it is later than its own.
    fn rotate(&mut self, sequence: u32);

    /// Begins to give motes another network key, but for those that are revoked; returns whether
    /// that is possible.
    fn replace(&mut self, key: (NetworkKey, u32), file: &KeyFile) -> bool;
}

impl Rekeyed for Network<'_> {
    fn rotate(&mut self, sequence: u32) {
        self.rotate_key(sequence);
    }

    fn replace(&mut self, key: (NetworkKey, u32), file: &KeyFile) -> bool {
        self.replace_key(key, |eui64| file.is_revoked(eui64))
    }
}

impl Rekeyed for RadioNode<'_> {
    fn rotate(&mut self, sequence: u32) {
        self.rotate_key(sequence);
    }

    fn replace(&mut self, key: (NetworkKey, u32), file: &KeyFile) -> bool {
        self.world.replace_key(key, file.revoked())
    }
}

/// Takes the keys that the file at `path` names by now, and says what it did. A file that cannot be
/// read, or that has gone back to an older state, changes nothing. `known`: the state that is in
/// force. `by_hand`: why motes cannot get another network key, where they cannot.
pub(super) fn reread(
    path: &Path,
    known: &mut KeyFile,
    mesh: &mut impl Rekeyed,
    by_hand: &str,
) -> String {
    let stays = |why: &str| format!("the key stays as it is: {why}");
    let file = match KeyFile::read(path) {
        Ok(file) => file,
        Err(error) => return stays(&error),
    };
    let Some(keys) = file.keys() else {
        return stays("the file is damaged");
    };
    let path = path.display();
    let did = match file.after(known) {
        KeyChange::Unchanged => return stays(&format!("{path} names the same one as before")),
        KeyChange::Back {
            network: [network, back],
            sequence,
        } => {
            let [sequence, back_to] = sequence;
            return stays(&format!(
                "{path} has gone back, from network key {network} and key sequence {sequence} to {back} and \
                 {back_to}, and perhaps to motes that are revoked; put the newer file in its place, or rotate \
                 the key"
            ));
        }
        KeyChange::Rotated => {
            mesh.rotate(keys.sequence);
            format!("the key sequence is {} or later", keys.sequence)
        }
        KeyChange::Replaced => {
            if !mesh.replace((keys.network, keys.sequence), &file) {
                return stays(by_hand);
            }
            "motes get another network key, but for those that are revoked".to_owned()
        }
    };
    *known = file;
    did
}

#[cfg(test)]
mod tests {
    use super::*;
    use motet_lab::keys::SECRET_LEN;

    /// A mesh that notes what is done to it.
    #[derive(Default)]
    struct Noted {
        sequences: Vec<u32>,
        has_registrar: bool,
    }

    impl Rekeyed for Noted {
        fn rotate(&mut self, sequence: u32) {
            self.sequences.push(sequence);
        }

        fn replace(&mut self, _: (NetworkKey, u32), file: &KeyFile) -> bool {
            assert!(file.is_revoked([7; 8]));
            self.has_registrar
        }
    }

    fn put(path: &Path, file: &KeyFile) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(path, file.text()).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn a_rotated_key_is_taken_and_one_from_before_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        let mut known = KeyFile::new(&[1; SECRET_LEN]);
        let first = known.clone();
        let mut file = known.clone();
        let mut mesh = Noted::default();
        put(&path, &file);
        let said = reread(&path, &mut known, &mut mesh, "by hand");
        assert!(said.contains("the same one"), "{said}");
        file.rotate().unwrap();
        put(&path, &file);
        reread(&path, &mut known, &mut mesh, "by hand");
        assert_eq!(mesh.sequences, [file.keys().unwrap().sequence]);
        put(&path, &first);
        let said = reread(&path, &mut known, &mut mesh, "by hand");
        assert!(said.contains("has gone back"), "{said}");
        file.revoke([7; 8]).unwrap();
        put(&path, &file);
        let said = reread(&path, &mut known, &mut mesh, "by hand");
        assert_eq!(said, "the key stays as it is: by hand");
        mesh.has_registrar = true;
        let said = reread(&path, &mut known, &mut mesh, "by hand");
        assert!(said.contains("another network key"), "{said}");
    }
}
