//! What tshark, with the network's key, says of the frames that Motet's child sent.

use std::process::Command;

use anyhow::Result;
use serde::Deserialize;

use super::openthread::{KEY, PREFIX};
use super::rig::{Bench, Child, word_after};
use crate::interop::rcp::rig::run;
use crate::interop::report::Row;

/// tshark, which reads this bench's capture with the key.
fn tshark(bench: &Bench<'_>) -> Command {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(bench.capture()).args(["-n", "-q"]);
    let key = format!("uat:ieee802154_keys:\"{KEY}\",\"1\",\"Thread hash\"");
    for option in [
        key.as_str(),
        "thread.thr_use_pan_id_in_key:FALSE",
        "thread.thr_auto_acq_thr_seq_ctr:TRUE",
        "6lowpan.context0:fd00:db8::/64",
        &format!("6lowpan.context1:{PREFIX}/64"),
    ] {
        command.args(["-o", option]);
    }
    command
}

/// Ends the capture; gives what is wrong with the frames of these children.
pub(super) fn judge(bench: &mut Bench<'_>, name: &str, children: &mut [Child]) -> Result<[Row; 2]> {
    bench.end_capture();
    let filter = children.iter_mut().map(of).collect::<Vec<_>>().join(" || ");
    let mut command = tshark(bench);
    command.args(["-Y", &filter, "-T", "fields"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let text = run(&mut command)?;
    let frames: Vec<Frame<'_>> = text.lines().map(Frame::read).collect();
    let all = frames.len();
    let closed = frames.iter().filter(|frame| !frame.is_named()).count();
    let wrong = frames.iter().filter(|frame| frame.is_wrong()).count();
    let mle = frames.iter().filter(|frame| !frame.mle.is_empty()).count();
    let secured = frames.iter().filter(|frame| frame.is_secured()).count();
    let commands = frames.iter().filter(|frame| frame.is_command()).count();
    let row = |check: &str, count: usize| {
        let check = format!("tshark: frames of ours that {check} ({name})");
        Row::new(check, count as f64, "frames", count == 0 && all > 0)
    };
    let note = format!("of {all}: {secured} secured, {mle} of MLE, {commands} commands");
    Ok([
        row("it cannot open or name", closed).note(note),
        row("are malformed", wrong),
    ])
}

/// A display filter of a child's frames, by all addresses that it has had.
fn of(child: &mut Child) -> String {
    let mut filter = format!("wpan.src64 == {}", with_colons(&child.extended));
    for short in shorts(child) {
        filter += &format!(" || wpan.src16 == 0x{short}");
    }
    filter
}

fn with_colons(digits: &str) -> String {
    let bytes: Vec<_> = digits
        .as_bytes()
        .chunks(2)
        .map(String::from_utf8_lossy)
        .collect();
    bytes.join(":")
}

/// The keys that a child has sealed frames with.
#[derive(Deserialize)]
pub(super) struct Keys {
    /// Their indices, in the order of their first use.
    pub(super) used: Vec<u64>,
    /// The one of the last frame.
    pub(super) last: Option<u64>,
}

/// The keys of a child's frames so far, while the recorder goes on.
pub(super) fn keys(bench: &Bench<'_>, child: &mut Child) -> Result<Keys> {
    let mut command = bench.python();
    command.arg("keys").arg(bench.capture()).arg("--sources");
    command.args([child.extended.clone()]).args(shorts(child));
    Ok(serde_json::from_str(&run(&mut command)?)?)
}

/// All short addresses that a child has had, in hexadecimal digits.
fn shorts(child: &mut Child) -> Vec<String> {
    child.node.said();
    let lines = child.node.heard.iter();
    let named = lines.filter(|line| line.contains("attached as"));
    let words = named.filter_map(|line| word_after(line, "as"));
    words
        .map(|word| word.trim_start_matches("0x").to_owned())
        .collect()
}

/// Data requests of a child to its parent, once the capture has ended. One that this machine was
/// too slow to acknowledge, and that was sent again with its number, counts once.
pub(super) fn polls(bench: &Bench<'_>, child: &mut Child) -> Result<usize> {
    let filter = format!("wpan.frame_type == 3 && ({})", of(child));
    let text = run(tshark(bench).args(["-Y", &filter, "-T", "fields", "-e", "wpan.seq_no"]))?;
    let mut numbers: Vec<_> = text.lines().collect();
    numbers.dedup();
    Ok(numbers.len())
}

const FIELDS: [&str; 10] = [
    "wpan.src64",
    "wpan.dst64",
    "wpan.security",
    "wpan.key_number",
    "wpan.frame_type",
    "wpan.cmd",
    "frame.protocols",
    "mle.cmd",
    "_ws.malformed",
    "_ws.expert.severity",
];

/// The command of a data request, as tshark writes it.
const DATA_REQUEST: &str = "0x04";

/// What tshark says of a frame.
struct Frame<'t> {
    src: &'t str,
    dst: &'t str,
    security: &'t str,
    /// The key whose MIC was right.
    key: &'t str,
    kind: &'t str,
    command: &'t str,
    protocols: &'t str,
    mle: &'t str,
    malformed: &'t str,
    severity: &'t str,
}

impl<'t> Frame<'t> {
    fn read(line: &'t str) -> Self {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        Self {
            src: next(),
            dst: next(),
            security: next(),
            key: next(),
            kind: next(),
            command: next(),
            protocols: next(),
            mle: next(),
            malformed: next(),
            severity: next(),
        }
    }

    fn is_secured(&self) -> bool {
        ["1", "True"].contains(&self.security)
    }

    fn is_command(&self) -> bool {
        self.kind.ends_with('3')
    }

    /// In clear and to itself: before it starts, a mote asks so for others with its address.
    fn is_probe(&self) -> bool {
        !self.is_secured() && !self.src.is_empty() && self.src == self.dst
    }

    /// Opened, where it is secured; and a data request, a message of MLE with its name, or a
    /// packet.
    fn is_named(&self) -> bool {
        let is_open = !self.is_secured() || !self.key.is_empty();
        let is_mle = self.protocols.contains(":mle");
        let has_name = match self.is_command() {
            true => self.command == DATA_REQUEST && (self.is_secured() || self.is_probe()),
            false => self.protocols.contains("6lowpan") && (!is_mle || !self.mle.is_empty()),
        };
        is_open && has_name
    }

    fn is_wrong(&self) -> bool {
        // Wireshark's number of the severity "error".
        !self.malformed.is_empty() || self.severity.split(',').any(|part| part == "8388608")
    }
}
