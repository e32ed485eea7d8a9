//! One seed, one air: two runs in virtual time write the same capture, byte for byte.

use std::{fs, path::Path};

use crate::common::{file, folder, motet, said};

fn air(path: &Path, pcap: &Path, seed: &str) -> Vec<u8> {
    let output = motet()
        .arg("send")
        .arg(path)
        .args([
            "--virtual",
            "--json",
            "--frame-loss",
            "0.05",
            "--seed",
            seed,
            "--pcap",
        ])
        .arg(pcap)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    fs::read(pcap).unwrap()
}

#[test]
fn the_seed_decides_everything() {
    let folder = folder();
    let path = file(folder.path(), 20 * 1024);
    let [first, second, other] =
        [("first", "7"), ("second", "7"), ("other", "8")].map(|(name, seed)| {
            air(
                &path,
                &folder.path().join(name).with_extension("pcap"),
                seed,
            )
        });
    assert!(
        first.len() > 20 * 1024,
        "the capture holds the file's frames"
    );
    assert!(first == second, "the same seed gave another air");
    assert!(first != other, "another seed gave the same air");
}

/// The algorithm is the only difference: reports name it, and losses show it.
#[test]
fn congestion_control_is_the_sender_s_choice() {
    let folder = folder();
    let path = file(folder.path(), 20 * 1024);
    let report = |congestion: &str| {
        let mut send = motet();
        send.arg("send").arg(&path);
        send.args("--virtual --json --packet-loss 0.1 --window 16 --seed 7".split(' '));
        let output = send.args(["--congestion", congestion]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let [reno, cubic] = ["reno", "cubic"].map(report);
    assert_eq!(
        [&reno["congestion"], &cubic["congestion"]],
        ["reno", "cubic"]
    );
    assert_ne!(reno["seconds"], cubic["seconds"]);
    let unknown = motet()
        .arg("send")
        .arg(&path)
        .args(["--virtual", "--congestion", "bbr"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("'bbr'"), "{}", said(&unknown));
}
