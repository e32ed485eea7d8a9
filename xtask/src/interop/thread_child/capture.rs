//! What tshark, with the network's key, says of the frames that Motet's child sent.

use std::process::Command;

use anyhow::Result;

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
    let row = |check: &str, count: usize| {
        let check = format!("tshark: frames of ours that {check} ({name})");
        Row::new(check, count as f64, "frames", count == 0 && all > 0)
    };
    let note = format!("of {all}: {secured} secured, {mle} of MLE");
    Ok([
        row("it cannot open or name", closed).note(note),
        row("are malformed", wrong),
    ])
}

/// A display filter of a child's frames, by all addresses that it has had.
fn of(child: &mut Child) -> String {
    let mut filter = format!("wpan.src64 == {}", with_colons(&child.extended));
    child.node.said();
    for line in &child.node.heard {
        if let Some(short) = line.contains("attached as").then(|| word_after(line, "as")) {
            filter += &format!(" || wpan.src16 == {}", short.unwrap_or_default());
        }
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

/// Data requests of a child to its parent, once the capture has ended. One that this machine was
/// too slow to acknowledge, and that was sent again with its number, counts once.
pub(super) fn polls(bench: &Bench<'_>, child: &mut Child) -> Result<usize> {
    let filter = format!("wpan.frame_type == 3 && ({})", of(child));
    let text = run(tshark(bench).args(["-Y", &filter, "-T", "fields", "-e", "wpan.seq_no"]))?;
    let mut numbers: Vec<_> = text.lines().collect();
    numbers.dedup();
    Ok(numbers.len())
}

const FIELDS: [&str; 6] = [
    "wpan.security",
    "wpan.frame_type",
    "frame.protocols",
    "mle.cmd",
    "_ws.malformed",
    "_ws.expert.severity",
];

/// What tshark says of a frame.
struct Frame<'t> {
    security: &'t str,
    kind: &'t str,
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
            security: next(),
            kind: next(),
            protocols: next(),
            mle: next(),
            malformed: next(),
            severity: next(),
        }
    }

    fn is_secured(&self) -> bool {
        ["1", "True"].contains(&self.security)
    }

    /// A command, a message of MLE with its name, or a packet.
    fn is_named(&self) -> bool {
        let is_command = self.kind.ends_with('3');
        let is_mle = self.protocols.contains(":mle");
        is_command || (self.protocols.contains("6lowpan") && (!is_mle || !self.mle.is_empty()))
    }

    fn is_wrong(&self) -> bool {
        // Wireshark's number of the severity "error".
        !self.malformed.is_empty() || self.severity.split(',').any(|part| part == "8388608")
    }
}
