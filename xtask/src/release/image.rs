//! An image for containers: the static command and nothing else, for every machine, in the layout
//! of the Open Container Initiative (image-spec 1.1).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::{MACHINES, Machine, Release, digest_of, line, write};
use crate::apps::Line;
use crate::tools::SKOPEO;

/// Writes the image, and lets skopeo read, verify and copy it.
pub(super) fn make(release: &Release<'_>) -> Result<Vec<Line>> {
    let layout = Layout::begin(release.workspace.scratch()?.join("oci"))?;
    let mut manifests = Vec::new();
    for machine in &MACHINES {
        manifests.push(layout.put_machine(release, machine)?);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": manifests,
    });
    let mut index = layout.put(
        index.to_string().as_bytes(),
        "application/vnd.oci.image.index.v1+json",
    )?;
    index["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    let top = json!({ "schemaVersion": 2, "manifests": [index] });
    write(
        &layout.folder.join("index.json"),
        top.to_string().as_bytes(),
    )?;
    write(
        &layout.folder.join("oci-layout"),
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    let lines = layout.judge(release)?;
    layout.pack(release)?;
    Ok(lines)
}

/// A folder of blobs, each named by its digest.
struct Layout {
    folder: PathBuf,
}

impl Layout {
    fn begin(folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).with_context(|| format!("cannot create {}", blobs.display()))?;
        Ok(Self { folder })
    }

    /// Keeps a blob; gives its descriptor.
    fn put(&self, bytes: &[u8], media_type: &str) -> Result<Value> {
        let digest = digest_of(bytes);
        write(&self.folder.join("blobs/sha256").join(&digest), bytes)?;
        Ok(
            json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len() }),
        )
    }

    /// The image of one machine; gives the descriptor of its manifest.
    fn put_machine(&self, release: &Release<'_>, machine: &Machine) -> Result<Value> {
        let layer = layer(&fs::read(release.binary(machine))?)?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&layer)?;
        let config = json!({
            "architecture": machine.architecture,
            "os": "linux",
            "config": {
                "Entrypoint": ["/usr/bin/motet"],
                "Labels": {
                    "org.opencontainers.image.title": "motet",
                    "org.opencontainers.image.version": release.version,
                    "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                    "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
                },
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest_of(&layer))] },
        });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.put(config.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json")?,
            "layers": [self.put(&packed.finish()?, "application/vnd.oci.image.layer.v1.tar+gzip")?],
        });
        let mut manifest = self.put(manifest.to_string().as_bytes(), MANIFEST)?;
        manifest["platform"] = json!({ "architecture": machine.architecture, "os": "linux" });
        Ok(manifest)
    }

    /// skopeo verifies every digest while it copies, and says what the image is for.
    fn judge(&self, release: &Release<'_>) -> Result<Vec<Line>> {
        let source = format!("oci:{}:{}", self.folder.display(), release.version);
        let copies = release.workspace.scratch()?.join("oci-copy");
        if copies.exists() {
            fs::remove_dir_all(&copies)?;
        }
        let mut skopeo = Command::new(SKOPEO.program);
        skopeo.args(["copy", "--all", "--insecure-policy", "--quiet", &source]);
        release.run(skopeo.arg(format!("oci:{}:copy", copies.display())))?;
        MACHINES
            .iter()
            .map(|machine| self.judge_machine(release, machine, &source))
            .collect()
    }

    fn judge_machine(
        &self,
        release: &Release<'_>,
        machine: &Machine,
        source: &str,
    ) -> Result<Line> {
        let mut skopeo = Command::new(SKOPEO.program);
        skopeo.args([
            "--override-arch",
            machine.architecture,
            "--override-os",
            "linux",
        ]);
        let output = release.run(skopeo.args(["inspect", source]))?;
        let said: Value = serde_json::from_str(&output).context("skopeo printed no JSON")?;
        let is_right = said["Architecture"] == machine.architecture
            && said["Labels"]["org.opencontainers.image.version"] == release.version.as_str();
        let layers = said["Layers"].as_array().map_or(0, Vec::len);
        let pass = is_right && layers == 1;
        let check = "image's layers, as skopeo reads it";
        Ok(line(machine.architecture, check, layers as f64, "", pass))
    }

    /// The layout as the one file that people download.
    fn pack(&self, release: &Release<'_>) -> Result<()> {
        let path = release
            .folder
            .join(format!("motet-{}-oci.tar", release.version));
        let mut tar = Builder::new(fs::File::create(path)?);
        tar.mode(tar::HeaderMode::Deterministic);
        append(&mut tar, &self.folder, Path::new(""), Path::new(""))?;
        tar.into_inner()?;
        Ok(())
    }
}

/// A folder's files from `inside` on, in the order of their names; in the archive they are below
/// `below`.
pub(super) fn append<W: Write>(
    tar: &mut Builder<W>,
    folder: &Path,
    inside: &Path,
    below: &Path,
) -> Result<()> {
    let entries = fs::read_dir(folder.join(inside))?;
    let mut names = entries
        .map(|entry| Ok(inside.join(entry?.file_name())))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        match folder.join(&name).is_dir() {
            true => append(tar, folder, &name, below)?,
            false => tar.append_path_with_name(folder.join(&name), below.join(&name))?,
        }
    }
    Ok(())
}

/// A root file system with one program in it.
fn layer(program: &[u8]) -> Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    for folder in ["usr/", "usr/bin/"] {
        tar.append_data(&mut header(EntryType::Directory, 0), folder, &[][..])?;
    }
    let mut file = header(EntryType::Regular, program.len() as u64);
    tar.append_data(&mut file, "usr/bin/motet", program)?;
    Ok(tar.into_inner()?)
}

/// Of root, readable and executable by all, with no time.
fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o755);
    header.set_mtime(0);
    header
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
