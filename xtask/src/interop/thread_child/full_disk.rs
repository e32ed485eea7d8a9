//! A disk that is full while a child changes its parent: the child goes on, and says so once.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::attach::FIRST_RADIO;
use super::openthread::{Border, Mote};
use super::rig::{Bench, Child, Parts};
use super::transfer::outside;
use super::trouble::{BACK_S, KIB, PACE, verdict};
use crate::interop::rcp::echo::Echo;
use crate::interop::rcp::rig::run;
use crate::interop::report::{Report, Row};

/// The parent ends for good while nothing more can be stored.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "full-disk")?;
    let border = Border::start(&bench, None)?;
    let dataset = border.dataset()?;
    let mut router = Mote::join(&bench, 3, &dataset, None)?;
    border.control("parentpriority -1")?;
    router.console.ask("parentpriority 1")?;
    let state = bench.folder.join("disk");
    fs::create_dir_all(&state)?;
    run(Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(&state))?;
    let path = state.display().to_string();
    let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &["--state", &path])?;
    let parent = router.one("extaddr")?;
    ensure!(child.parent == parent, "the parent is {}", child.parent);
    let address = outside(&mut child)?;
    let filler = state.join("filler");
    fill(&filler)?;
    let mut echo = Echo::start_slowly(address, KIB, PACE)?;
    echo.await_part(0.3)?;
    let ended = Instant::now();
    drop(router);
    let name = "a full disk, and the parent ends for good";
    let row = verdict(name, echo, &[ended], BACK_S, Some(3.0));
    report.add(row.note(child.history()));
    fs::remove_file(&filler)?;
    let kept = child.node.await_line("kept again");
    let heard = child.node.heard.iter();
    let sentences = heard.filter(|line| line.contains(GOES_ON)).count();
    let check = "a full disk: sentences that say so, and one when it is over";
    let row = Row::new(
        check,
        sentences as f64,
        "sentences",
        sentences == 1 && kept.is_ok(),
    );
    report.add(row.note(kept.unwrap_or_else(|error| error.to_string())));
    Ok(())
}

/// Leaves no room on the disk that the file is on.
fn fill(path: &Path) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let page = [0; 4_096];
    while file.write_all(&page).is_ok() {}
    Ok(())
}

/// In what the mote says where its place cannot be kept.
const GOES_ON: &str = "the mote goes on and tries again";
