//! `motet send --trace`: every line is a record, and nothing sent again is missing.

use std::{collections::BTreeMap, fs};

use serde_json::Value;

use crate::common::{assert_refused, file, folder, motet, report, said};

const STATE: [&str; 7] = [
    "cwnd",
    "ssthresh",
    "srtt_ms",
    "rttvar_ms",
    "rto_ms",
    "inflight",
    "snd_wnd",
];

#[test]
fn a_trace_tells_each_change_and_each_retransmission() {
    let folder = folder();
    let path = file(folder.path(), 20 * 1024);
    for direction in ["up", "down"] {
        let trace = folder.path().join(direction);
        let output = motet()
            .arg("send")
            .arg(&path)
            .args(["--virtual", "--json", "--packet-loss", "0.1"])
            .args(["--direction", direction, "--trace"])
            .arg(&trace)
            .output()
            .unwrap();
        let report = report(&output);
        assert_eq!(report["trace"], trace.to_str().unwrap());
        let mut causes = BTreeMap::<String, u64>::new();
        let mut before = (0.0, Value::Null);
        let mut states = 0;
        for line in fs::read_to_string(&trace).unwrap().lines() {
            let mut record: Value = serde_json::from_str(line).unwrap();
            let time = record["time_s"].as_f64().unwrap();
            assert!(time >= before.0, "{line}");
            before.0 = time;
            match record["event"].as_str() {
                Some("retransmission") => {
                    let cause = record["cause"].as_str().unwrap().to_owned();
                    *causes.entry(cause).or_default() += 1;
                }
                Some("state") => {
                    assert!(STATE.iter().all(|key| record.get(key).is_some()), "{line}");
                    assert!(record["cwnd"].as_u64() > Some(0), "{line}");
                    record["time_s"].take();
                    assert_ne!(before.1, record, "no change: {line}");
                    before.1 = record;
                    states += 1;
                }
                _ => panic!("{line}"),
            }
        }
        assert!(states > 20, "{states}");
        assert!(before.1["srtt_ms"].as_u64() > Some(0));
        assert!(report["retransmissions"].as_u64() > Some(0), "{report}");
        assert_eq!(
            serde_json::to_value(causes).unwrap(),
            report["retransmissions_by_cause"]
        );
    }
}

#[test]
fn a_trace_overwrites_nothing_unasked() {
    let folder = folder();
    let path = file(folder.path(), 1);
    let taken = folder.path().join("taken");
    fs::write(&taken, "precious").unwrap();
    let send = |arguments: &[&str]| {
        motet()
            .arg("send")
            .arg(&path)
            .args(["--virtual", "--hops", "1", "--trace"])
            .arg(&taken)
            .args(arguments)
            .output()
            .unwrap()
    };
    assert_refused(&send(&[]), 2, &["exists", "--force"]);
    let both = ["--force", "--pcap", taken.to_str().unwrap()];
    assert_refused(&send(&both), 2, &["two files"]);
    assert_eq!(fs::read(&taken).unwrap(), b"precious");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);

    let forced = send(&["--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert!(fs::read_to_string(&taken).unwrap().starts_with('{'));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
