//! `docs/reference/tcp-requirements.md` points at what exists, and leaves no requirement of
//! RFC 9293 out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use motet::ip::{self, Address, InterfaceId, Ip, Neighbour, NextHop};
use motet::link::{Cable, Link};
use motet::node::{Action, Node};
use motet::random::Rng;
use motet::tcp::{Buffers, Config, Memory, Slot, Tcp};
use motet::time::Instant;

/// Rows that may be marked as shown by nothing.
const NOT_TESTED_MAX: usize = 0;

/// The labels of RFC 9293 run from 1 to these.
const LABELS: [(&str, u32); 4] = [("MUST", 69), ("SHLD", 31), ("MAY", 18), ("REC", 1)];

#[derive(Debug)]
struct Row<'a> {
    requirement: &'a str,
    status: &'a str,
    evidence: &'a str,
}

/// The rows of every table whose first column is `requirement`.
fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[requirement, _, status, evidence] = cells.as_slice() else {
            panic!("not four columns: {line}");
        };
        if requirement != "requirement" {
            rows.push(Row {
                requirement,
                status,
                evidence,
            });
        }
    }
    rows
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What is wrong with a pointer to a test, `file: function` or a script; `None`: nothing, or it
/// is no pointer.
fn broken(pointer: &str) -> Option<String> {
    if pointer.ends_with(".pkt") {
        return (!root().join(pointer).is_file()).then(|| format!("no script {pointer}"));
    }
    let (file, test) = pointer.split_once(": ")?;
    let Ok(source) = fs::read_to_string(root().join(file)) else {
        return Some(format!("no file {file}"));
    };
    let function = format!("fn {test}(");
    let found = source
        .lines()
        .any(|line| line.trim_start().starts_with(&function));
    (!found).then(|| format!("no {test} in {file}"))
}

/// The pieces of a cell between backticks that name a test or a script.
fn pointers(evidence: &str) -> Vec<&str> {
    let quoted = evidence.split('`').skip(1).step_by(2);
    quoted
        .filter(|piece| piece.ends_with(".pkt") || piece.contains(".rs: "))
        .collect()
}

/// What the cell says beside pointers.
fn reason(evidence: &str) -> String {
    let plain: String = evidence.split('`').step_by(2).collect();
    plain.trim_matches([';', ' ']).to_owned()
}

fn problems(rows: &[Row<'_>]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut not_tested = 0;
    for row in rows {
        let pointers = pointers(row.evidence);
        let has_reason = reason(row.evidence).len() > 5;
        let complaint = match row.status {
            "holds" if pointers.is_empty() => Some("names no test"),
            "differs" | "does not apply" if !has_reason => Some("gives no reason"),
            "holds" | "differs" | "does not apply" => None,
            "not tested" => {
                not_tested += 1;
                (not_tested > NOT_TESTED_MAX).then_some("is not tested")
            }
            _ => Some("has no known status"),
        };
        let complaints = complaint.map(str::to_owned).into_iter();
        for complaint in complaints.chain(pointers.into_iter().filter_map(broken)) {
            problems.push(format!("{}: {complaint}", row.requirement));
        }
    }
    let named: BTreeSet<&str> = rows.iter().map(|row| row.requirement).collect();
    for (word, last) in LABELS {
        let labels = (1..=last).map(|number| format!("{word}-{number}"));
        for label in labels.filter(|label| !named.contains(label.as_str())) {
            problems.push(format!("{label} is missing"));
        }
    }
    if named.len() != rows.len() {
        problems.push("a requirement stands twice".to_owned());
    }
    problems
}

#[test]
fn every_requirement_points_at_what_exists() {
    let text = fs::read_to_string(root().join("docs/reference/tcp-requirements.md")).unwrap();
    let rows = rows(&text);
    for status in ["holds", "differs", "does not apply", "not tested"] {
        let count = rows.iter().filter(|row| row.status == status).count();
        println!("{status}: {count}");
    }
    let problems = problems(&rows);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The check above can fail.
#[test]
fn rows_that_point_at_nothing_are_found() {
    let table = "\
| requirement | rule | status | shown by, or reason |
|---|---|---|---|
| MUST-1 | a | holds | `crates/stack/tests/requirements.rs: rows` |
| MUST-2 | a | holds | `crates/stack/tests/requirements.rs: row` |
| MUST-3 | a | holds | `crates/stack/tests/nothing.rs: rows` |
| MUST-4 | a | holds | `conformance/nothing.pkt` |
| MUST-5 | a | holds | as anybody sees |
| MUST-6 | a | differs | `crates/stack/tests/requirements.rs: rows` |
| MUST-7 | a | does not apply | |
| MUST-8 | a | not tested | |
| MUST-9 | a | fine | |
";
    let found = problems(&rows(table));
    let expected = [
        "MUST-2: no row in crates/stack/tests/requirements.rs",
        "MUST-3: no file crates/stack/tests/nothing.rs",
        "MUST-4: no script conformance/nothing.pkt",
        "MUST-5: names no test",
        "MUST-6: gives no reason",
        "MUST-7: gives no reason",
        "MUST-8: is not tested",
        "MUST-9: has no known status",
    ];
    assert_eq!(found[..expected.len()], expected);
    assert_eq!(found[expected.len()], "MUST-10 is missing");
}

/// MUST-49 and SHLD-22: segments leave with the hop limit that the node was given, and with
/// the connection's DSCP.
#[test]
fn the_hop_limit_can_be_set() {
    static SETTINGS: Config = Config {
        dscp: 46,
        ecn: false,
        ..Config::DEFAULT
    };
    for hop_limit in [1, 64, 255] {
        let (mut connections, mut queue) = ([Slot::EMPTY], [0; 4096]);
        let (mut send, mut recv, mut routes) = ([0; 8], [0; 8], [None]);
        let mut rng = Rng::from_seed([1, 2]);
        let now = Instant::ORIGIN;
        let memory = Memory {
            connections: &mut connections,
            listeners: &mut [],
            half_open: &mut [],
        };
        let tcp = Tcp::new(memory, &mut rng);
        let config = ip::Config {
            hop_limit,
            ..ip::Config::default()
        };
        let mut ip = Ip::new(config, &mut routes);
        let interface = InterfaceId(0);
        ip.add_address(Address {
            addr: "fd00::1".parse().unwrap(),
            interface,
        });
        ip.set_default_route(Some(NextHop {
            interface,
            neighbour: Neighbour::Only,
        }));
        let wire = Cable::new(&mut queue, 1280);
        let mut interfaces = [Link::Cable(wire)];
        let mut node = Node::new(&mut interfaces, ip, tcp, rng, now);
        let far = ("fd00::2".parse().unwrap(), 7);
        let buffers = Buffers::new(&mut send, &mut recv);
        node.connect(far, buffers, &SETTINGS, now).unwrap();
        let mut out = [0; 1280];
        let action = node.poll_action(now, &mut out);
        assert!(matches!(action, Some((_, Action::Cable { .. }))));
        assert_eq!(out[7], hop_limit);
        let class = u16::from_be_bytes([out[0], out[1]]) >> 4 & 0xff;
        assert_eq!(class, 46 << 2);
    }
}
