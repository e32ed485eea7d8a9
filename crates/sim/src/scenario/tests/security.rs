//! Meshes with a key.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A key file in a folder of its own.
pub(super) fn key_file() -> (TempDir, String) {
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

/// A run with it is repeated by anybody, without a key file.
#[test]
fn the_labs_own_key_is_no_file() {
    let flow = "[topology]\nchain = 2\n[[flow]]\nfrom = 2\n";
    let text = format!("duration_s = 10\nwarmup_s = 2\n[security]\nlab_key = true\n{flow}");
    let run = results(&plan(&text).unwrap()).remove(0);
    assert!(run.complete && run.flows[0].goodput_kbps > 10.0);
    let both = format!("[security]\nkey = \"a.key\"\nlab_key = true\n{flow}");
    let error = plan(&both).unwrap_err().to_string();
    assert!(
        error.contains("security.lab_key is true, but must be left out"),
        "{error}"
    );
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

/// Nobody says anything for hours, and keys follow one another meanwhile: whoever has an earlier
/// one learns of the one in force by what it sends in vain.
#[test]
fn a_mesh_that_is_silent_for_long_outlives_its_keys() {
    let (_folder, key) = key_file();
    for (rotate_s, sleep) in [
        (900, "hinted"),
        (4_000, "hinted"),
        (900, "off"),
        (60, "fixed"),
    ] {
        let text = format!(
            "duration_s = 20000\nwarmup_s = 2\njoin_s = 30\n[security]\nkey = \"{key}\"\nrotate_s = {rotate_s}\n\
             [topology]\nchain = 3\n[[node]]\nid = 3\nsleep = \"{sleep}\"\n[[flow]]\nkind = \"periodic\"\n\
             from = 3\ninterval_s = 3000\n"
        );
        let plan = plan(&text).unwrap_or_else(|why| panic!("{rotate_s} {sleep}: {why}"));
        let run = results(&plan).remove(0);
        assert_eq!(run.failure, None, "{rotate_s} {sleep}");
        let [due, came] = run.flows[0].messages.expect("they are counted");
        assert!(
            due > 4 && came == due,
            "{rotate_s} {sleep}: {came} of {due}"
        );
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
fn motes_join_by_relays_and_transfer() {
    for topology in [
        "[topology]\nchain = 3\n",
        "[topology]\nchain = 3\njoining = \"rpl\"\n",
        "[radio]\nchannels = \"multi\"\n[topology]\nchain = 2\n",
        "[topology]\nchain = 2\njoining = \"static\"\n",
        "[topology]\nchain = 2\n[stack]\nsleep = \"adaptive\"\n",
        "[topology]\nchain = 2\n[[attacker]]\nnear = 1\nkind = \"source\"\n",
    ] {
        let run = run("joining = \"cojp\"", &format!("{topology}[[flow]]"));
        assert_eq!(run.failure, None, "{topology}");
        assert!(run.complete && run.flows[0].intact, "{topology}");
    }
}

#[test]
fn a_revoked_mote_is_given_no_key() {
    let run = run(
        "joining = \"cojp\"\nrevoked = [2]",
        "[topology]\nchain = 2\n[[flow]]",
    );
    let why = run.failure.expect("it does not join");
    assert!(why.contains("address and a route"), "{why}");
}

#[test]
fn a_mote_that_has_joined_goes_on_with_its_key_after_a_reboot() {
    let faults =
        "[topology]\nchain = 2\n[[fault]]\nkind = \"reboot\"\nnode = 1\nat_s = 3\n[[flow]]";
    let run = run("joining = \"cojp\"\nrotate_s = 5", faults);
    assert_eq!(run.failure, None);
    assert!(run.complete && run.flows[0].intact);
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
        ("joining = \"cojp\"", "", "security.key"),
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

/// Bytes of a flow that arrive in 20 s beside such attackers, with a key and without.
fn bytes_beside(attackers: &str, has_key: bool) -> u64 {
    let (_folder, key) = key_file();
    let security = match has_key {
        true => format!("[security]\nkey = \"{key}\"\n"),
        false => String::new(),
    };
    let text = format!(
        "duration_s = 20\nwarmup_s = 2\n{security}{attackers}[topology]\nchain = 2\n[[flow]]\nfrom = 2\nto = \"host\"\n"
    );
    let plan = plan(&text).unwrap_or_else(|why| panic!("{attackers}: {why}"));
    let run = results(&plan).remove(0);
    assert!(run.flows.iter().all(|flow| flow.intact), "{attackers}");
    run.flows.iter().map(|flow| flow.counted_bytes).sum()
}

#[test]
fn forgeries_stop_a_mesh_without_a_key_and_not_one_with_it() {
    let attackers = ["tag", "dsn"]
        .map(|kind| format!("[[attacker]]\nnear = 1\nper_s = 10.0\nkind = \"{kind}\"\n"))
        .concat();
    let [sealed, clear] = [true, false].map(|has_key| bytes_beside(&attackers, has_key));
    let undisturbed = bytes_beside("", true);
    assert!(sealed > undisturbed / 2, "{sealed} of {undisturbed}");
    assert!(
        clear < sealed / 4,
        "{clear} without a key, {sealed} with it"
    );
}

#[test]
fn a_capture_played_back_is_heard_and_believed_by_nobody() {
    use motet::time::Instant;

    use crate::capture::{Capture, Records};

    let folder = tempfile::tempdir().unwrap();
    for (name, records) in [
        ("plain", Records::Frames),
        ("tapped", Records::TappedFrames),
    ] {
        let path = folder.path().join(name);
        let file = fs::File::create(&path).unwrap();
        let mut capture = Capture::stream(Box::new(file), records).unwrap();
        for last in 0..3 {
            let psdu = [0x41, 0xc8, 7, 0x54, 0x4d, 1, 0, 2, 0, last, 0, 0];
            capture.frame(Instant::ORIGIN, &psdu, 26, None);
        }
        capture.finish().unwrap();
        let zipped = folder.path().join(format!("{name}.gz"));
        let to = fs::File::create(&zipped).unwrap();
        let mut zip = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
        std::io::Write::write_all(&mut zip, &fs::read(&path).unwrap()).unwrap();
        zip.finish().unwrap();
        let carried = [path, zipped].map(|path| {
            let path = path.display();
            let attacker = format!("[[attacker]]\nnear = 1\nkind = \"pcap\"\nfile = \"{path}\"\n");
            bytes_beside(&attacker, true)
        });
        assert!(
            carried[0] > 20_000 && carried[0] == carried[1],
            "{carried:?}"
        );
    }
}

#[test]
fn an_attacker_that_cannot_be_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not.pcap");
    fs::write(&path, "no capture").unwrap();
    let broken = format!("near = 1\nkind = \"pcap\"\nfile = \"{}\"", path.display());
    for (attacker, says) in [
        ("kind = \"ra\"", "attacker.near"),
        ("near = 1", "attacker.kind"),
        ("near = 3\nkind = \"ra\"", "0 to 2"),
        ("near = 1\nkind = \"jam\"", "kind"),
        ("near = 1\nkind = \"ra\"\nper_s = 0", "per_s"),
        ("near = 1\nkind = \"pcap\"", "attacker.file"),
        ("near = 1\nkind = \"ra\"\nfile = \"a.pcap\"", "left out"),
        (
            "near = 1\nkind = \"pcap\"\nfile = \"none.pcap\"",
            "no such file",
        ),
        (&broken, "pcap"),
    ] {
        let text = format!("[topology]\nchain = 2\n[[attacker]]\n{attacker}\n[[flow]]\n");
        let sentence = plan(&text).err().map(|error| error.to_string());
        let sentence = sentence.unwrap_or_default();
        assert!(sentence.contains(says), "{attacker}: {sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
}

/// Each message names the key that the scenario has, and each way to have a key.
#[test]
fn messages_name_both_ways_to_have_a_key() {
    let refused = |text: &str| plan(text).unwrap_err().to_string();
    let chain = "[topology]\nchain = 2\n[[flow]]\n";
    let idle = refused(&format!("{chain}[security]\nrotate_s = 60\n"));
    assert!(idle.contains("without security.key, which"), "{idle}");
    assert!(idle.contains("or security.lab_key = true"), "{idle}");
    let star = "[topology]\nperipherals = 2\n[radio]\nkind = \"ble\"\n[[flow]]\nfrom = 1\n";
    let over_ble = refused(&format!("{star}[security]\nlab_key = true\n"));
    assert!(
        over_ble.contains("security.lab_key must be left out"),
        "{over_ble}"
    );
}

/// A mote learns of the next key at most once a second: faster rotation leaves motes behind.
#[test]
fn a_key_that_rotates_too_fast_is_refused() {
    let with = |rotate_s: &str| {
        plan(&format!(
            "[topology]\nchain = 2\n[security]\nlab_key = true\nrotate_s = {rotate_s}\n[[flow]]\n"
        ))
    };
    for rotate_s in ["0.001", "0.999"] {
        let sentence = with(rotate_s).unwrap_err().to_string();
        let begin = format!("security.rotate_s is {rotate_s}, but must be 0 or at least 1:");
        assert!(sentence.contains(&begin), "{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
    for rotate_s in ["0", "0.0", "1", "2.5"] {
        assert!(with(rotate_s).is_ok(), "{rotate_s}");
    }
}
