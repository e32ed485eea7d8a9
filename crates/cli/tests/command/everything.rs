//! All of Motet at once, met by programs that know nothing of it: this machine's TCP, curl, iperf3
//! and tshark.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{folder, has, motet, said};
use serde_json::Value;

/// In `scenarios/everything.toml` mote 12 is four hops away, 31 on Bluetooth LE, 11 asleep.
const SCRIPT: &str = "
    ask() { curl -s -m 130 -o page -w '%{http_code} %{size_download}\\n' http://$1/; }
    ask mote12; ask mote31
    iperf3 -J -n 10K -c mote5 > down.json
    iperf3 -J -n 100K -R -c mote31 > up.json
    ask mote11";

#[test]
fn curl_and_iperf3_reach_motes_of_every_kind_and_tshark_reads_their_air_with_the_key() {
    if ["curl", "iperf3", "tshark"].iter().any(|it| !has(it)) {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = fs::read_to_string(scenarios.join("everything.toml")).unwrap();
    let with_file = scenario.replace("lab_key = true", "key = \"team.key\"");
    assert_ne!(scenario, with_file);
    fs::write(path("everything.toml"), with_file).unwrap();
    let made = motet()
        .args(["keys", "new"])
        .arg(path("team.key"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", said(&made));

    let mut up = motet();
    up.args([
        "up",
        "--app",
        "http",
        "--pcap",
        "air.pcap",
        "--scenario",
        "everything.toml",
    ]);
    up.args(["--", "sh", "-c", SCRIPT])
        .current_dir(folder.path());
    let output = up.output().unwrap();
    let answers = String::from_utf8_lossy(&output.stdout);
    let page = "200 18";
    assert_eq!(
        answers.lines().collect::<Vec<_>>(),
        [page; 3],
        "{}",
        said(&output)
    );
    assert!(output.status.success(), "{}", said(&output));
    assert!(received(&path("down.json")) >= 10 * 1_024);
    assert!(received(&path("up.json")) >= 100 * 1_024);
    is_read_with_the_key_alone(folder.path());
}

/// Bytes that have arrived, as iperf3 says it.
fn received(report: &Path) -> u64 {
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let bytes = &report["end"]["sum_received"]["bytes"];
    bytes.as_u64().unwrap_or_else(|| panic!("{report}"))
}

/// Without the key no frame of the mesh can be read. With it every frame is decrypted, and none is
/// malformed.
fn is_read_with_the_key_alone(folder: &Path) {
    let setting = motet()
        .args(["keys", "wireshark"])
        .arg(folder.join("team.key"))
        .output()
        .unwrap();
    let setting = String::from_utf8(setting.stdout).unwrap();
    let count = |key: Option<&str>, filter: &str| {
        let mut tshark = Command::new("tshark");
        // Not with the user's own keys.
        tshark.env("WIRESHARK_CONFIG_DIR", folder);
        tshark.arg("-r").arg(folder.join("air.pcap"));
        tshark.args(["-Y", filter]);
        tshark.args(key.into_iter().flat_map(|key| ["-o", key.trim()]));
        let output: Output = tshark.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout.split(|byte| *byte == b'\n').count() - 1
    };
    let sealed = "_ws.expert.message contains \"ecrypt\"";
    assert!(count(None, sealed) > 1_000);
    assert_eq!(count(None, "6lowpan || ipv6 || tcp"), 0);
    let key = Some(setting.as_str());
    assert_eq!(count(key, sealed), 0);
    assert_eq!(count(key, "_ws.malformed"), 0);
    assert!(count(key, "ipv6") > 100);
}
