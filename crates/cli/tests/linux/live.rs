//! Programs of this machine and its kernel's TCP speak with motes, through the root of a mesh that
//! RPL has formed: four hops, in real time.

use std::{fs, process::Command};

use motet_lab::net::plan;

use crate::judge::{Routers, Row, missing};
use crate::peer::NotPermitted;

const SCENARIO: &str = "\
[topology]
joining = \"rpl\"
matrix = \"chain.txt\"
[[flow]]
from = 1
";

/// Nobody hears more than its neighbours.
const MATRIX: &str = "\
- -60 - - -
-60 - -60 - -
- -60 - -60 -
- - -60 - -60
- - - -60 -
";

/// `$M` is the mote four hops away, `$N` an address that no mote has. Each part prints a line: its
/// name, and what the program said of it.
const SCRIPT: &str = "
    say() { echo \"$1 $(cat)\"; }
    ping -c 5 -i 0.5 -W 5 $M | tail -2 | tr '\\n' ' ' | say ping
    ping -c 5 -W 5 -s 1232 $M | tail -2 | tr '\\n' ' ' | say large
    ping -c 1 -W 5 -s 1300 -M do $M 2>&1 | grep -o 'mtu[=: ]*1280' | head -1 | say mtu
    ping -c 1 -W 10 $N | grep -io 'unreachable' | head -1 | say nobody
    nc -v -w 20 $M 4444 < /dev/null 2>&1 | grep -o refused | head -1 | say closed
    head -c 8000 /dev/urandom > sent; nc -N -w 60 $M 7 < sent > came
    cmp sent came && echo same | say echo
    iperf3 -c $M -t 8 -J | tr -d '\\n\\t ' | say up
    iperf3 -c $M -t 8 -R -J | tr -d '\\n\\t ' | say down
";

pub(crate) fn checks(_: &mut Routers) -> Result<Vec<Row>, NotPermitted> {
    let programs = ["ping", "nc", "iperf3"];
    let absent: Vec<Row> = programs.into_iter().filter_map(missing).collect();
    if !absent.is_empty() {
        return Ok(absent);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("mesh.toml");
    fs::write(&scenario, SCENARIO).expect("room for a scenario");
    fs::write(folder.path().join("chain.txt"), MATRIX).expect("room for a matrix");
    let nobody = plan::mesh_addr(99);
    let output = Command::new(env!("CARGO_BIN_EXE_motet"))
        .current_dir(folder.path())
        .arg("up")
        .arg("--scenario")
        .arg(&scenario)
        .args(["--", "sh", "-c", SCRIPT])
        .env("M", plan::mesh_addr(4).to_string())
        .env("N", nobody.to_string())
        .output()
        .expect("motet starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        return Err(NotPermitted(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let said = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(first, _)| *first == name)
            .map_or("", |(_, rest)| rest)
    };
    let holds = |check: &str, name: &str, word: &str| Row {
        check: check.to_owned(),
        value: f64::from(u8::from(said(name).to_lowercase().contains(word))),
        unit: "1",
        pass: said(name).to_lowercase().contains(word),
        note: said(name).to_owned(),
    };
    Ok(vec![
        round_trip("ping over four hops", said("ping")),
        round_trip("ping over four hops, 1,280 bytes", said("large")),
        holds("a longer packet is told the MTU", "mtu", "1280"),
        holds(
            "an address without a mote is unreachable",
            "nobody",
            "unreachable",
        ),
        holds(
            "a closed port refuses the kernel's TCP",
            "closed",
            "refused",
        ),
        holds("nc: 8,000 bytes come back over TCP", "echo", "same"),
        goodput("iperf3, to the mote four hops away", said("up")),
        goodput("iperf3, from the mote four hops away", said("down")),
    ])
}

/// The average of the replies, of which four in five are to come.
fn round_trip(check: &str, said: &str) -> Row {
    let received = number_before(said, " received").unwrap_or(0.0);
    let times = said.split_once(" = ").map_or("", |(_, times)| times);
    let average = times.split('/').nth(1).and_then(|time| time.parse().ok());
    Row {
        check: check.to_owned(),
        value: f64::round(average.unwrap_or(0.0)),
        unit: "ms",
        pass: received >= 4.0,
        note: format!("{received} of 5 answered"),
    }
}

fn number_before(text: &str, word: &str) -> Option<f64> {
    let (before, _) = text.split_once(word)?;
    before.rsplit([' ', ',']).next()?.parse().ok()
}

/// What the receiver has got.
fn goodput(check: &str, said: &str) -> Row {
    let report: serde_json::Value = serde_json::from_str(said).unwrap_or_default();
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
    let kbps = rate.unwrap_or(0.0) / 1_000.0;
    Row {
        check: check.to_owned(),
        value: (kbps * 10.0).round() / 10.0,
        unit: "kb/s",
        pass: kbps > 1.0,
        note: "of TCP's bytes, in eight seconds".to_owned(),
    }
}
