//! `motet keys` and `motet decode --key`: secured frames, as Wireshark's dissector reads them too.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{assert_refused, file, folder, motet, objects, run, said};
use motet::mac::security::{NetworkKey, Software, index, seal};
use motet::wire::LinkAddr;
use motet::wire::cursor::Writer;
use motet::wire::ieee802154::{
    Address, Auxiliary, Command, FrameType, Header, Level, Version, check_fcs, fcs,
};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use serde_json::Value;

#[test]
fn a_new_key_is_its_owners_alone_and_no_other_is_lost() {
    let folder = folder();
    let (first, second) = (folder.path().join("a.key"), folder.path().join("b.key"));
    for key in [&first, &second] {
        let made = keys(&["new"], key);
        assert!(made.status.success(), "{}", said(&made));
        assert!(made.stdout.is_empty() && made.stderr.is_empty());
    }
    let text = fs::read_to_string(&first).unwrap();
    assert_ne!(text, fs::read_to_string(&second).unwrap());
    assert_refused(&keys(&["new"], &first), 2, &["file exists"]);
    assert_eq!(fs::read_to_string(&first).unwrap(), text);
    assert_refused(
        &keys(&["new"], &folder.path().join("no/a.key")),
        2,
        &["no/a.key"],
    );
    let shown = keys(&["wireshark"], &first);
    assert_eq!(shown, keys(&["wireshark"], &first));
    assert_ne!(shown.stdout, keys(&["wireshark"], &second).stdout);
}

#[test]
fn a_device_gets_a_key_of_its_own() {
    let folder = folder();
    let key = folder.path().join("a.key");
    assert!(keys(&["new"], &key).status.success());
    let of = |eui64: &str, format: &str| {
        let mut command = motet();
        command.args(["keys", "device"]).arg(&key);
        let output = command.args([eui64, "--format", format]).output();
        output.unwrap()
    };
    let text = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    let first = text(&of("02:00:00:00:00:00:00:07", "hex"));
    assert_eq!(first.trim().len(), 32);
    assert_eq!(first, text(&of("0200000000000007", "hex")));
    assert_ne!(first, text(&of("0200000000000008", "hex")));
    let array = text(&of("0200000000000007", "rust"));
    let digits = array.replace(['[', ']', ',', ' '], "").replace("0x", "");
    assert_eq!(digits, first);
    assert_refused(&of("7", "hex"), 2, &["16 hexadecimal digits"]);
    let mut revoke = motet();
    revoke.args(["keys", "revoke"]).arg(&key);
    assert!(revoke.arg("0200000000000008").status().unwrap().success());
    assert_refused(&of("0200000000000008", "hex"), 2, &["revoked"]);
    assert_eq!(first, text(&of("0200000000000007", "hex")));
}

#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let key = folder.path().join("a.key");
    assert!(keys(&["new"], &key).status.success());
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for mode in [0o640, 0o604, 0o660, 0o601] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        assert_refused(&keys(&["wireshark"], &key), 2, &["chmod 600"]);
    }
}

#[cfg(unix)]
#[test]
fn a_damaged_key_is_refused_and_never_shown() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let key = folder.path().join("a.key");
    assert!(keys(&["new"], &key).status.success());
    let text = fs::read_to_string(&key).unwrap();
    let secret = text.split('"').nth(1).unwrap();
    let damaged = [
        "",
        "secret",
        &text.replace(secret, &secret[1..]),
        &text.replace(secret, &format!("{}x", &secret[1..])),
        &text.replace("network = 0", "network = -1"),
        &text.replace("network = 0", ""),
        &text.replace("network = 0", "network = 0\nnetworks = 0"),
        &text.replace('=', "= ="),
        "\u{0}\u{1}",
    ];
    for damaged in damaged {
        let path = folder.path().join("damaged.key");
        fs::write(&path, damaged).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let refused = keys(&["wireshark"], &path);
        assert_refused(&refused, 2, &["no key file"]);
        assert!(
            !said(&refused).contains(&secret[1..20]),
            "{}",
            said(&refused)
        );
    }
    assert_refused(&keys(&["wireshark"], folder.path()), 2, &["no key file"]);
    assert_refused(
        &keys(&["wireshark"], &folder.path().join("b.key")),
        2,
        &["b.key"],
    );
}

#[test]
fn a_key_goes_on_to_the_next_and_leaves_a_mote_behind() {
    let folder = folder();
    let key = folder.path().join("team.key");
    assert!(keys(&["new"], &key).status.success());
    let change = |words: &[&str]| {
        let command = motet()
            .arg("keys")
            .arg(words[0])
            .arg(&key)
            .args(&words[1..])
            .output();
        command.unwrap()
    };
    let first = network_key(&key);
    assert!(change(&["rotate"]).status.success());
    assert_eq!(network_key(&key), first, "link keys follow from one");
    assert!(fs::read_to_string(&key).unwrap().contains("sequence = 1"));
    assert!(
        change(&["revoke", "02:4d:6f:74:65:74:00:02"])
            .status
            .success()
    );
    assert_ne!(network_key(&key), first);
    let before = fs::read_to_string(&key).unwrap();
    assert_refused(
        &change(&["revoke", "024d6f7465740002"]),
        2,
        &["revoked before"],
    );
    assert_refused(&change(&["revoke", "2"]), 2, &["16 hexadecimal digits"]);
    assert_eq!(fs::read_to_string(&key).unwrap(), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Half a file of before is nobody's to write over.
    fs::write(folder.path().join("team.key.new"), "").unwrap();
    assert_refused(&change(&["rotate"]), 2, &["team.key.new", "remove it"]);
    assert_eq!(fs::read_to_string(&key).unwrap(), before);
}

/// A key is often read by another name than the one that it is changed by.
#[cfg(unix)]
#[test]
fn a_link_stays_one_and_its_file_is_changed() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let folder = folder();
    let shelf = folder.path().join("shelf");
    fs::create_dir(&shelf).unwrap();
    let key = shelf.join("team.key");
    assert!(keys(&["new"], &key).status.success());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
    let [direct, further] = ["direct.key", "further.key"].map(|name| folder.path().join(name));
    symlink("shelf/team.key", &direct).unwrap();
    symlink(&direct, &further).unwrap();
    let before = fs::metadata(&key).unwrap();
    for (link, sequence) in [(&direct, 1), (&further, 2)] {
        let changed = keys(&["rotate"], link);
        assert!(changed.status.success(), "{}", said(&changed));
        assert!(fs::symlink_metadata(link).unwrap().is_symlink());
        let text = fs::read_to_string(&key).unwrap();
        assert!(text.contains(&format!("sequence = {sequence}")), "{text}");
        assert_eq!(fs::read_to_string(link).unwrap(), text);
        let after = fs::metadata(&key).unwrap();
        let of = |meta: &fs::Metadata| (meta.uid(), meta.gid(), meta.mode());
        assert_eq!(of(&after), of(&before));
        assert_eq!(fs::read_dir(&shelf).unwrap().count(), 1, "nothing is left");
    }
    let first = network_key(&key);
    let mut revoke = motet();
    revoke.args(["keys", "revoke"]).arg(&further);
    assert!(revoke.arg("0200000000000008").status().unwrap().success());
    assert_ne!(network_key(&key), first);
    // What leads nowhere, and a new file in the place of a link, are refused.
    let nowhere = folder.path().join("nowhere.key");
    symlink("gone.key", &nowhere).unwrap();
    assert_refused(&keys(&["rotate"], &nowhere), 2, &["no such file"]);
    assert_refused(&keys(&["new"], &nowhere), 2, &["file exists"]);
    assert!(!folder.path().join("gone.key").exists());
}

/// A rename would leave the other name with the old key, and writing in place half a file.
#[cfg(unix)]
#[test]
fn a_file_of_several_names_is_refused_and_stays() {
    let folder = folder();
    let [key, other] = ["team.key", "other.key"].map(|name| folder.path().join(name));
    assert!(keys(&["new"], &key).status.success());
    fs::hard_link(&key, &other).unwrap();
    let before = fs::read_to_string(&key).unwrap();
    for name in [&key, &other] {
        assert_refused(&keys(&["rotate"], name), 2, &["hard link", "1 other name"]);
        let mut revoke = motet();
        revoke.args(["keys", "revoke"]).arg(name);
        let refused = revoke.arg("0200000000000008").output().unwrap();
        assert_refused(&refused, 2, &["hard link"]);
        assert_eq!(fs::read_to_string(name).unwrap(), before);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    fs::remove_file(&other).unwrap();
    assert!(keys(&["rotate"], &key).status.success());
}

/// As root: the daemon's user can still read what root has changed.
#[cfg(unix)]
#[test]
fn another_users_file_stays_that_users() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let folder = folder();
    let key = folder.path().join("team.key");
    assert!(keys(&["new"], &key).status.success());
    if chown(&key, Some(4_711), Some(4_712)).is_err() {
        println!("not run: only root gives files away");
        return;
    }
    let changed = keys(&["rotate"], &key);
    assert!(changed.status.success(), "{}", said(&changed));
    let meta = fs::metadata(&key).unwrap();
    assert_eq!(
        (meta.uid(), meta.gid(), meta.mode() & 0o777),
        (4_711, 4_712, 0o600)
    );
}

/// A group that the owner is not in, as a folder with the set-group-ID bit gives it: where the mode
/// leaves it nothing it is no obstacle, and where it does the sentence names the group.
#[cfg(unix)]
#[test]
fn a_foreign_group_that_may_do_nothing_is_no_obstacle() {
    use std::os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    };
    const OWNER: u32 = 4_711;
    const GROUP: u32 = 4_712;
    let folder = folder();
    let key = folder.path().join("team.key");
    assert!(keys(&["new"], &key).status.success());
    let given = chown(&key, Some(OWNER), Some(GROUP));
    if given.is_err() || chown(folder.path(), Some(OWNER), Some(OWNER)).is_err() {
        println!("not run: only root gives files away");
        return;
    }
    let rotate = || {
        let mut command = motet();
        command.args(["keys", "rotate"]).arg(&key);
        command.uid(OWNER).gid(OWNER).output().unwrap()
    };
    let changed = rotate();
    assert!(changed.status.success(), "{}", said(&changed));
    let meta = fs::metadata(&key).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (OWNER, 0o600));
    // What may be read by the group alone would be lost to it. Such a file the owner cannot even
    // use, unless the group is none of the others.
    chown(&key, Some(OWNER), Some(GROUP)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::read(&key).unwrap();
    let refused = rotate();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let sentence = said(&refused);
    assert!(!sentence.contains("another user's"), "{sentence}");
    assert_eq!(fs::read(&key).unwrap(), before);
}

/// A transfer's capture, each frame of it sealed: with the key decode and tshark read what they
/// read of the capture in clear, without it or after a changed bit nothing.
#[test]
fn decode_and_tshark_read_sealed_frames_with_the_key_alone() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let (team, other) = (path("team.key"), path("other.key"));
    assert!(keys(&["new"], &team).status.success());
    assert!(keys(&["new"], &other).status.success());
    let air = path("air.pcap");
    let sent = motet()
        .args(["send", "--virtual", "--hops=1", "--seed=1"])
        // tshark does not know compressed headers.
        .args(["--compression=none", "--pcap"])
        .args([&air, &file(folder.path(), 3_000)])
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", said(&sent));
    // The frames that have room for a header and the longest MIC.
    let short = path("short.pcap");
    rewrite(&air, &short, |mpdu| {
        (mpdu.len() <= 100).then(|| mpdu.to_vec())
    });
    let network = network_key(&team);
    for (number, level) in Level::ALL.into_iter().enumerate() {
        let sealed = path("sealed.pcap");
        // Far along the key sequence for one of them: one entry follows rotations.
        let sequence = [0, 1, 127][number];
        // A frame that is sent again has the same counter again, as it has the same number.
        rewrite(&short, &sealed, |mpdu| {
            let counter = u32::from(mpdu[2]);
            Some(sealed_mpdu(&network, sequence, level, mpdu, counter))
        });
        let clear = contents(&decode(&short, None));
        let segments = clear.iter().filter(|frame| frame.contains("seq_relative"));
        assert!(segments.count() > 8, "{}", clear.len());
        let opened = contents(&decode(&sealed, Some(&team)));
        for (number, (ours, theirs)) in opened.iter().zip(&clear).enumerate() {
            assert_eq!(ours, theirs, "{level:?}, frame {number}");
        }
        assert_eq!(opened.len(), clear.len());
        let is_closed = |file, key| contents(&decode(file, key)).iter().all(String::is_empty);
        assert!(is_closed(&sealed, None) && is_closed(&sealed, Some(&other)));
        let damaged = path("damaged.pcap");
        rewrite(&sealed, &damaged, |mpdu| {
            let mut mpdu = mpdu.to_vec();
            // An acknowledgment has no more than its number.
            if mpdu.len() > 3 {
                *mpdu.last_mut().unwrap() ^= 1;
            }
            Some(mpdu)
        });
        assert!(is_closed(&damaged, Some(&team)));

        let Some(theirs) = tshark(&short, None) else {
            return;
        };
        // It does not know the contexts of the addresses.
        let segments = theirs.iter().filter(|frame| frame.starts_with("::"));
        assert!(segments.count() > 8, "{theirs:?}");
        assert_eq!(tshark(&sealed, Some(&team)).unwrap(), theirs, "{level:?}");
        if level > Level::Mic32 {
            continue;
        }
        for (file, key) in [
            (&sealed, None),
            (&sealed, Some(&other)),
            (&damaged, Some(&team)),
        ] {
            let read = tshark(file, key).unwrap();
            let is_closed = |frame: &String| !frame.contains(|shown: char| shown.is_ascii_digit());
            assert!(read.iter().all(is_closed), "{read:?}");
        }
    }
}

/// The identifier of a command goes in clear, and is authenticated.
#[test]
fn a_commands_identifier_is_in_clear_and_authentic() {
    let folder = folder();
    let (key, air) = (folder.path().join("a.key"), folder.path().join("air.pcap"));
    assert!(keys(&["new"], &key).status.success());
    let address = |last| LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, last]);
    let header = Header::command(0x4d54, address(1), address(2), 9);
    let mut mpdu = vec![0; header.header_len()];
    header.emit(&mut mpdu).unwrap();
    let mut command = [0; 8];
    let len = Command::DataRequest.emit(&mut command).unwrap();
    mpdu.extend(&command[..len]);
    let network = network_key(&key);
    let genuine = sealed_mpdu(&network, 0, Level::Mic32, &mpdu, 5);
    let mut forged = genuine.clone();
    let at = genuine.len() - 5;
    assert_eq!(genuine[at], command[0], "in clear");
    forged[at] = 1;
    write(&air, [genuine, forged]);
    let [genuine, forged] = decode(&air, Some(&key)).try_into().unwrap();
    assert_eq!(genuine["status"], "decoded", "{genuine}");
    assert_eq!(forged["status"], "undecoded", "{forged}");
}

fn keys(words: &[&str], file: &Path) -> Output {
    motet().arg("keys").args(words).arg(file).output().unwrap()
}

/// The network key, as `motet keys wireshark` shows it.
fn network_key(file: &Path) -> NetworkKey {
    let shown = keys(&["wireshark"], file);
    assert!(shown.status.success(), "{}", said(&shown));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let digits = shown.split('"').nth(1).unwrap();
    assert_eq!(shown.lines().count(), 1);
    let byte = |at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    NetworkKey::new(std::array::from_fn(byte))
}

/// The frame `mpdu`, in clear, as a node with the key would have sent it.
fn sealed_mpdu(
    network: &NetworkKey,
    sequence: u32,
    level: Level,
    mpdu: &[u8],
    counter: u32,
) -> Vec<u8> {
    let (header, payload) = Header::parse(mpdu).unwrap();
    if header.frame_type == FrameType::Ack {
        return mpdu.to_vec();
    }
    let Some(Address {
        addr: LinkAddr::Extended(source),
        ..
    }) = header.src
    else {
        panic!("{header:?}");
    };
    let header = Header {
        version: Version::V2006,
        ..header
    };
    let mut sealed = vec![0; header.header_len() + Auxiliary::LEN];
    let len = header.emit(&mut sealed).unwrap();
    // Security enabled.
    sealed[0] |= 1 << 3;
    let auxiliary = Auxiliary {
        level,
        counter,
        key_index: index(sequence),
    };
    auxiliary
        .emit(&mut Writer::new(&mut sealed[len..]))
        .unwrap();
    let identifier_len = usize::from(header.frame_type == FrameType::Command);
    let (identifier, payload) = payload.split_at(identifier_len);
    sealed.extend(identifier);
    let mut body = payload.to_vec();
    body.resize(payload.len() + level.mic_len(), 0);
    let cipher = Software::new(&network.link_key(sequence));
    seal(&cipher, source, auxiliary, &sealed, &mut body).unwrap();
    [sealed, body].concat()
}

/// Copies a capture, each of its frames changed or left out.
fn rewrite(from: &Path, to: &Path, mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
    let mut reader = PcapReader::new(BufReader::new(File::open(from).unwrap())).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap();
        let mpdu = check_fcs(&record.data).unwrap();
        records.extend(change(mpdu));
    }
    write(to, records);
}

/// Writes frames, an FCS behind each.
fn write(path: &Path, mpdus: impl IntoIterator<Item = Vec<u8>>) {
    let header = PcapHeader {
        datalink: DataLink::IEEE802_15_4,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(File::create(path).unwrap(), header).unwrap();
    for (mpdu, at_ms) in mpdus.into_iter().zip(1..) {
        let psdu = [&mpdu[..], &fcs(&mpdu).to_le_bytes()].concat();
        let at = std::time::Duration::from_millis(at_ms);
        writer
            .write_packet(&PcapPacket::new_owned(at, psdu.len() as u32, psdu))
            .unwrap();
    }
}

fn decode(file: &Path, key: Option<&PathBuf>) -> Vec<Value> {
    let mut command = motet();
    command.args(["decode", "--json", "--context=0=fd6d:6f74:6574:1::/64"]);
    command.arg("--context=1=fd6d:6f74:6574::/64").arg(file);
    if let Some(key) = key {
        command.arg("--key").arg(key);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    objects(&output.stdout)
}

/// Of each frame what is above 802.15.4.
fn contents(frames: &[Value]) -> Vec<String> {
    let is_below = |layer: &&Value| {
        let name = layer["layer"].as_str().unwrap();
        ["mac", "security", "mic", "payload"].contains(&name)
    };
    frames
        .iter()
        .map(|frame| {
            let layers = frame["layers"].as_array().unwrap();
            let above = layers.iter().filter(|layer| !is_below(layer));
            above.map(Value::to_string).collect()
        })
        .collect()
}

/// What tshark reads of each frame above 802.15.4; none where it is not installed.
fn tshark(file: &Path, key: Option<&PathBuf>) -> Option<Vec<String>> {
    let mut command = std::process::Command::new("tshark");
    command
        .arg("-r")
        .arg(file)
        .args(["-d", "wpan.panid==0x4d54,6lowpan"]);
    if let Some(key) = key {
        let setting = keys(&["wireshark"], key);
        command
            .arg("-o")
            .arg(String::from_utf8(setting.stdout).unwrap().trim());
    }
    command.args(["-T", "fields", "-E", "separator=|"]);
    for field in [
        "ipv6.src",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "tcp.seq",
        "_ws.malformed",
    ] {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        let is_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!is_ci, "tshark is not installed");
        eprintln!("not run: tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn a_key_is_a_file_or_digits() {
    for (key, words) in [
        ("00112233445566778899aabbccddeef", "32 hexadecimal digits"),
        ("nothing.key", "no such file"),
    ] {
        assert_refused(&run(["decode", "/dev/null", "--key", key]), 2, &[words]);
    }
}
