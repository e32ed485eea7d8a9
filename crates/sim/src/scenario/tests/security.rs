//! Meshes with a key.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A key file in a folder of its own.
fn key_file() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("team.key");
    let text = format!(
        "secret = \"{}\"\nnetwork = 0\nsequence = 3\n",
        "5a".repeat(32)
    );
    fs::write(&path, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let path = path.display().to_string();
    (folder, path)
}

/// A chain of two hops with such `[security]`; `more`: other tables, the flow's last.
fn run(security: &str, more: &str) -> RunResult {
    let (_folder, key) = key_file();
    let text = format!(
        "duration_s = 40\nwarmup_s = 2\njoin_s = 30\n[security]\nkey = \"{key}\"\n{security}\n{more}\nfrom = 2\nto = \"host\"\nbytes = 12000\n"
    );
    let plan = plan(&text).unwrap_or_else(|why| panic!("{security} {more}: {why}"));
    let mut results = results(&plan);
    results.remove(0)
}

#[test]
fn a_mesh_with_a_key_carries_data_whatever_else_it_does() {
    let chain = "[topology]\nchain = 2\n";
    for (security, more) in [
        ("", format!("{chain}[[flow]]")),
        (
            "level = \"mic128\"\ncipher = \"software\"",
            format!("{chain}[[flow]]"),
        ),
        (
            "rotate_s = 3",
            format!("{chain}[stack]\ncompression = \"tcphc\"\n[[flow]]"),
        ),
        (
            "level = \"mic64\"",
            format!(
                "{chain}[radio]\nprofile = \"telosb\"\n[stack]\nforwarding = \"cit\"\n[[flow]]"
            ),
        ),
        (
            "rotate_s = 4",
            format!("{chain}[stack]\nsleep = \"adaptive\"\n[[flow]]"),
        ),
        (
            "",
            "[topology]\nchain = 2\njoining = \"rpl\"\n[[flow]]".to_owned(),
        ),
    ] {
        let run = run(security, &more);
        assert_eq!(run.failure, None, "{security} {more}");
        assert!(run.complete, "{security} {more}");
        assert!(run.flows[0].intact, "{security} {more}");
    }
}

#[test]
fn a_relay_that_reboots_proves_itself_again() {
    let faults =
        "[topology]\nchain = 2\n[[fault]]\nkind = \"reboot\"\nnode = 1\nat_s = 3\n[[flow]]";
    let run = run("rotate_s = 5", faults);
    assert_eq!(run.failure, None);
    assert!(run.complete && run.flows[0].intact);
}

#[test]
fn a_mote_with_another_key_gets_nothing_through() {
    let run = run("revoked = [2]", "[topology]\nchain = 2\n[[flow]]");
    let why = run.failure.expect("it does not join");
    assert!(why.contains("address and a route"), "{why}");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let (folder, key) = key_file();
    let named = format!("key = \"{key}\"");
    let refused = |security: &str, more: &str| {
        let text = format!("[security]\n{security}\n[topology]\nchain = 2\n{more}[[flow]]\n");
        plan(&text)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    for (security, more, says) in [
        ("level = \"mic32\"", "", "security.key"),
        (
            &format!("{named}\njoining = \"cojp\""),
            "",
            "CoJP is not there yet",
        ),
        (&format!("{named}\nlevel = \"mic16\""), "", "level"),
        (&format!("{named}\nrevoked = [0]"), "", "1 to 2"),
        (&format!("{named}\nrevoked = [3]"), "", "1 to 2"),
        ("key = \"none.key\"", "", "no such file"),
    ] {
        let sentence = refused(security, more);
        assert!(sentence.contains(says), "{security}: {sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused(&named, "").contains("chmod 600"));
    }
    drop(folder);
}
