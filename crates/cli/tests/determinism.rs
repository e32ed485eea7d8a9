//! One seed, one air: two runs in virtual time write the same capture, byte for byte.

mod common;

use std::{fs, path::Path};

use common::{file, folder, motet, said};

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
