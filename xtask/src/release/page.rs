//! The live page as one archive, for any static server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Archive, Builder, HeaderMode};

use super::image::append;
use super::{Release, contents, line};
use crate::apps::Line;
use crate::web::Page;

/// Builds the page and packs it; what was packed is unpacked again, and opened by a browser.
pub(super) fn make(release: &Release<'_>) -> Result<Vec<Line>> {
    let page = Page::build(release.workspace)?;
    let name = format!("motet-page-{}", release.version);
    let path = release.folder.join(format!("{name}.tar.gz"));
    pack(page.folder(), &name, &path)?;
    let bytes = fs::metadata(&path)?.len();
    let unpacked = release.workspace.scratch()?.join("page");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    let file = fs::File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Archive::new(GzDecoder::new(file)).unpack(&unpacked)?;
    let folder = unpacked.join(&name);
    let mut found = BTreeSet::new();
    list(&folder, "", &mut found)?;
    let wanted = WANTED.iter().map(|name| (*name).to_owned()).collect();
    let whole = "files in it: whole, with licences, and no others";
    let (passed, failed) = page.opens(&folder, FIRST_VIEW)?;
    Ok(vec![
        line("page", "archive", bytes as f64, "B", true),
        contents("page", whole, &found, &wanted, is_asset),
        line(
            "page",
            "first view of what was unpacked, in Chromium",
            f64::from(passed),
            "",
            passed == 1 && failed == 0,
        ),
    ])
}

/// The same bytes whenever it is made of the same files.
fn pack(folder: &Path, name: &str, path: &Path) -> Result<()> {
    let file =
        fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut tar = Builder::new(GzEncoder::new(file, Compression::best()));
    tar.mode(HeaderMode::Deterministic);
    append(&mut tar, folder, Path::new(""), Path::new(name))?;
    tar.into_inner()?.finish()?;
    Ok(())
}

/// Paths of all files below `folder`.
fn list(folder: &Path, inside: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{inside}{}", entry.file_name().display());
        match entry.file_type()?.is_dir() {
            true => list(&entry.path(), &format!("{path}/"), found)?,
            false => drop(found.insert(path)),
        }
    }
    Ok(())
}

/// Code, styles and the lab, named by their digests.
fn is_asset(name: &str) -> bool {
    let ends = [".js", ".css", ".wasm"];
    name.starts_with("assets/") && ends.iter().any(|end| name.ends_with(end))
}

const WANTED: [&str; 4] = ["icon.svg", "index.html", "licences.txt", "sw.js"];

/// The test of the page's own suite that is tried with what was unpacked.
const FIRST_VIEW: &str = "the first view";
