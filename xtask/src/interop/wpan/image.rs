//! The initial file system of a Linux that runs in an emulator: modules, programs with their
//! libraries, a script that is run first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools;

/// The contents of such a file system, by path.
pub(super) struct Image {
    files: BTreeMap<String, Vec<u8>>,
    /// A folder with files of Debian's packages.
    parts: PathBuf,
}

impl Image {
    pub(super) fn new(parts: &Path) -> Self {
        Self {
            files: BTreeMap::new(),
            parts: parts.to_owned(),
        }
    }

    pub(super) fn file(&mut self, place: &str, contents: Vec<u8>) {
        self.files.insert(place.to_owned(), contents);
    }

    /// The first file in the parts with this name.
    pub(super) fn part(&self, name: &str) -> Result<PathBuf> {
        let found = all_below(&self.parts)?
            .into_iter()
            .find(|path| path.ends_with(name));
        found.with_context(|| format!("{} has no {name}: remove it", self.parts.display()))
    }

    /// A program, and the libraries that it is linked with.
    pub(super) fn program(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.file(&format!("bin/{name}"), read(path)?);
        let folders = ["usr/lib", "lib"].map(|folder| self.parts.join(folder));
        let folders = folders.map(|folder| folder.join("x86_64-linux-gnu"));
        let search = folders.map(|folder| folder.display().to_string()).join(":");
        let listed = Command::new("ldd")
            .arg(path)
            .env("LD_LIBRARY_PATH", search)
            .output()
            .context("cannot run `ldd`")?;
        // It fails for programs that are linked statically, and lists nothing then.
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for library in listed
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            let name = Path::new(library).file_name().unwrap_or_default();
            let place = match library.contains("/ld-linux") {
                // Programs name their loader by its whole path.
                true => library.trim_start_matches('/').to_owned(),
                false => format!("lib/x86_64-linux-gnu/{}", name.to_string_lossy()),
            };
            self.file(&place, read(Path::new(library))?);
        }
        Ok(())
    }

    /// Modules of the kernel, in an order in which they load, which `order` lists.
    pub(super) fn modules(&mut self, names: &[&str]) -> Result<()> {
        let paths = all_below(&self.parts)?;
        let modules: BTreeMap<_, _> = paths
            .iter()
            .filter_map(|path| Some((module_name(path)?, path.as_path())))
            .collect();
        let mut order = Vec::new();
        for name in names {
            let is_there = modules.contains_key(*name);
            ensure!(is_there, "{} has no module {name}", self.parts.display());
            add(name, &modules, &mut order)?;
        }
        let listed = order.iter().map(|(name, _)| format!("{name}\n"));
        self.file("order", listed.collect::<String>().into_bytes());
        for (name, contents) in order {
            self.file(&format!("lib/modules/{name}.ko"), contents);
        }
        Ok(())
    }

    /// The file system in the format newc of cpio, which the kernel unpacks.
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut folders: Vec<_> = FOLDERS.iter().map(ToString::to_string).collect();
        for place in self.files.keys() {
            let above = place
                .match_indices('/')
                .map(|(at, _)| place[..at].to_owned());
            folders.extend(above);
        }
        folders.sort();
        folders.dedup();
        let mut out = Vec::new();
        for folder in &folders {
            entry(&mut out, folder, 0o040755, &[]);
        }
        for (place, contents) in &self.files {
            entry(&mut out, place, 0o100755, contents);
        }
        entry(&mut out, "TRAILER!!!", 0, &[]);
        out
    }
}

fn entry(out: &mut Vec<u8>, name: &str, mode: u32, contents: &[u8]) {
    let number = out.len() as u32;
    let (len, name_len) = (contents.len() as u32, name.len() as u32 + 1);
    let fields = [number, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, name_len, 0];
    out.extend(b"070701");
    for field in fields {
        out.extend(format!("{field:08X}").bytes());
    }
    out.extend(name.bytes().chain([0]));
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(contents);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Adds a module behind those that it needs.
fn add(
    name: &str,
    modules: &BTreeMap<String, &Path>,
    order: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    // A part of the kernel itself has no file.
    let Some(path) = modules.get(name) else {
        return Ok(());
    };
    if order.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let contents = match path.extension().is_some_and(|end| end == "xz") {
        false => read(path)?,
        true => {
            let output = Command::new(tools::XZ.program)
                .args(["--decompress", "--stdout"])
                .arg(path)
                .output()
                .context("cannot run `xz`")?;
            ensure!(output.status.success(), "{} is broken", path.display());
            output.stdout
        }
    };
    for needed in needs(&contents) {
        add(&needed, modules, order)?;
    }
    order.push((name.to_owned(), contents));
    Ok(())
}

/// The names of the modules that a module says it needs.
fn needs(module: &[u8]) -> Vec<String> {
    const MARK: &[u8] = b"\0depends=";
    let at = module.windows(MARK.len()).position(|bytes| bytes == MARK);
    let listed = at.and_then(|at| module.get(at + MARK.len()..));
    let listed = listed.and_then(|bytes| bytes.split(|byte| *byte == 0).next());
    let listed = String::from_utf8_lossy(listed.unwrap_or_default()).replace('-', "_");
    let names = listed.split(',').filter(|name| !name.is_empty());
    names.map(ToOwned::to_owned).collect()
}

/// The kernel's name of the module in this file; none where it holds no module.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".xz").unwrap_or(name);
    Some(name.strip_suffix(".ko")?.replace('-', "_"))
}

fn all_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Folders that are empty at first.
const FOLDERS: [&str; 7] = ["dev", "etc", "proc", "root", "run", "sys", "tmp"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_names_those_that_it_needs() {
        let module = b"\x7fELF\0license=GPL\0depends=ieee802154,6lowpan-x\0name=a\0";
        assert_eq!(needs(module), ["ieee802154", "6lowpan_x"]);
        assert!(needs(b"\0depends=\0name=a\0").is_empty());
        assert!(needs(b"").is_empty());
    }

    #[test]
    fn a_packed_file_system_holds_folders_before_files() {
        let mut image = Image::new(Path::new("/"));
        image.file("bin/a/b", b"hello".to_vec());
        let packed = image.pack();
        assert_eq!(packed.len() % 4, 0);
        let find = |name: &[u8]| packed.windows(name.len()).position(|bytes| bytes == name);
        let places = [
            &b"bin\0"[..],
            b"bin/a\0",
            b"bin/a/b\0",
            b"hello",
            b"TRAILER!!!\0",
        ];
        let places = places.map(|name| find(name).unwrap());
        assert!(places.is_sorted(), "{places:?}");
        assert!(packed.starts_with(b"070701"));
    }

    #[test]
    fn modules_are_known_by_the_kernels_names() {
        let name = |path: &str| module_name(Path::new(path));
        assert_eq!(name("/a/nhc-udp.ko").as_deref(), Some("nhc_udp"));
        assert_eq!(name("/a/6lowpan.ko.xz").as_deref(), Some("6lowpan"));
        assert_eq!(name("/a/vmlinuz"), None);
    }
}
