//! The air as a radio of its own hears it, and tshark's opinion of it.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::rig::{Bench, Node, PAN, run};
use crate::interop::report::Row;

/// `motet sniff` on a radio that no other program has.
pub(super) struct Sniffer {
    node: Node,
    name: String,
    capture: PathBuf,
    summary: PathBuf,
}

impl Sniffer {
    /// Begins to listen; `line`: what line.py does to the radio's line.
    pub(super) fn start(bench: &Bench<'_>, name: &str, line: &[&str]) -> Result<Self> {
        let capture = bench.folder.join("air.pcap");
        let summary = bench.folder.join("air.json");
        let mut command = bench.motet();
        command
            .args(["sniff", "--radio", &bench.radio(RADIO, line)])
            .args(["--channel", "26", "--force", "--json", "--pcap"])
            .arg(&capture);
        let summary_file = File::create(&summary)
            .with_context(|| format!("cannot write {}", summary.display()))?;
        let mut node = Node::start_into("the sniffer", &mut command, Stdio::from(summary_file))?;
        node.await_line("listens on channel")?;
        Ok(Self {
            node,
            name: name.to_owned(),
            capture,
            summary,
        })
    }

    /// Ends it; gives its own account.
    pub(super) fn end(&mut self) -> Result<Value> {
        self.node.end();
        let said = self.node.said();
        let text = std::fs::read_to_string(&self.summary)?;
        serde_json::from_str(&text).with_context(|| format!("the sniffer gave no JSON: {said}"))
    }

    /// Ends it; gives what tshark finds wrong with the frames.
    pub(super) fn judge(mut self) -> Result<Row> {
        let heard = self.end()?;
        let heard = heard.get("frames").and_then(Value::as_u64).unwrap_or(0);
        let frames = self.count("wpan")?;
        let wrong = self.count(WRONG)?;
        let segments = self.count("tcp")?;
        let check = format!("tshark finds an error or a malformed frame ({})", self.name);
        let pass = wrong == 0 && frames > 0 && frames as u64 == heard;
        let row = Row::new(check, wrong as f64, "frames", pass);
        Ok(row.note(format!("of {frames}; {segments} are seen to hold TCP")))
    }

    /// Data requests of a simulated radio to another one, once the capture has ended.
    pub(super) fn polls(&self, radio: u8) -> Result<usize> {
        // The EUI-64 of a simulated radio ends in its number.
        let radio = format!("18:b4:30:00:00:00:00:{radio:02x}");
        let filter =
            format!("wpan.frame_type == 3 && wpan.src64 == {radio} && wpan.dst64 != {radio}");
        self.count(&filter)
    }

    fn count(&self, filter: &str) -> Result<usize> {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&self.capture);
        tshark.args(["-d", &format!("wpan.panid=={PAN},6lowpan")]);
        // The contexts that a border router of Motet hands out.
        for (id, prefix) in ["fd6d:6f74:6574:1::", "fd6d:6f74:6574::"]
            .iter()
            .enumerate()
        {
            tshark.args(["-o", &format!("6lowpan.context{id}:{prefix}/64")]);
        }
        let text = run(tshark.args(["-Y", filter]))?;
        Ok(text.lines().count())
    }
}

/// The radio that listens: above those of nodes.
const RADIO: u8 = 30;

const WRONG: &str = "_ws.malformed || _ws.expert.severity == error";
