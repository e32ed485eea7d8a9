//! The sets of features of the crate `motet` that are judged.
//!
//! The step `features` compiles each of them once, with every warning an error. The crate's README
//! has the same list as a table. Tests hold the two to one another, and to what the crates for
//! devices and the examples ask for in their Cargo.toml. Left out: sets that nobody asks for, of
//! which there are too many. Tests that only a smaller set has run here, too.

use anyhow::Result;

use crate::step::{StepOutcome, essence, run_logged};
use crate::workspace::{Workspace, locked};

/// Compiles the stack with each set. The compiler judges alone: sets differ only in what they leave
/// out, and Clippy sees all of it in the step `test`.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let log = workspace.scratch()?.join("features.log");
    let (mut good, mut output) = (true, String::new());
    for (set, _) in SETS {
        let mut stack = workspace.cargo("check");
        stack.args(["--package", "motet", "--no-default-features"]);
        stack.args(["--features", set]).args(locked());
        let (this_good, said) = run_logged(&mut stack, &log)?;
        if !this_good || said.lines().any(|line| line.starts_with("warning")) {
            good = false;
            let said = essence(&said);
            output.push_str(&format!("with the features `{set}`:\n{said}"));
        }
    }
    let note = format!("{} sets of features", SETS.len());
    let sets = StepOutcome::single(good, note, output);
    Ok(match run_with_less(workspace)? {
        None => sets,
        Some(output) => StepOutcome::single(false, "tests without plain-rpl, or rotation", output),
    })
}

/// What the tests of a mote without `plain-rpl`, and of a MAC without `rotation`, print, unless all
/// of them hold: those of the workspace have every feature on.
fn run_with_less(workspace: &Workspace) -> Result<Option<String>> {
    let runs: [(&str, &[&str], &[&str]); 2] = [
        ("rpl", &["--test", "compressed_routes"], &[]),
        (
            NODES_WITH_LESS,
            &["--lib"],
            &["--", "mac::", "node::tests::source_routes"],
        ),
    ];
    for (features, which, names) in runs {
        let mut tests = workspace.cargo("test");
        tests.args(["--package", "motet", "--no-default-features"]);
        tests.args(["--features", features]);
        tests.args(which).args(locked()).args(names);
        let (good, said) = run_logged(&mut tests, &workspace.scratch()?.join("features.log"))?;
        if !good {
            return Ok(Some(essence(&said)));
        }
    }
    Ok(None)
}

/// What the tests of whole nodes, and of the MAC with a key, need: the default features and those
/// of keys and sleep, without `plain-rpl` and `rotation`.
const NODES_WITH_LESS: &str = "border,cable,channels,cit,copies,cubic,entry,inbox,leaves,mesh,\
    offload,pace,relay,root,rpl,security,serial,sleepy,slices,tcp,tcphc";

/// Features, separated by commas and without `default`, and who asks for them.
pub(crate) const SETS: [(&str, &str); 77] = [
    ("mesh", "what a radio's driver needs"),
    ("inbox,mesh", "datagrams by radio"),
    ("mesh,relay", "the same, passing on what others send"),
    (
        "rpl",
        "a relay of a mesh without TCP, whose contexts its application sets",
    ),
    (
        "advertise,rpl",
        "the same, passing on the contexts of the mesh",
    ),
    (
        "leaves",
        "the same, for neighbours that take no part in RPL, too",
    ),
    (
        "plain-rpl,rpl",
        "the same, for roots that do not compress routing headers, too",
    ),
    ("rpl,root", "the root of a mesh without TCP"),
    ("relay,security", "a relay with a key, without TCP"),
    (
        "relay,rotation,security",
        "a relay whose keys follow one another, without TCP",
    ),
    ("relay,sleepy", "a parent of nodes that sleep, without TCP"),
    (
        "copies,relay,sleepy",
        "the same, which keeps one copy of a segment",
    ),
    ("ble", "Bluetooth LE without TCP"),
    ("tcp", "what every node with TCP has, without a link"),
    ("inbox,tcp", "`motet-embassy` without a link"),
    ("mesh,tcp", "the minimal node"),
    ("inbox,mesh,tcp", "the smallest `motet-embassy` of a mesh"),
    (
        "mesh,tcp-small",
        "a sensor with the smallest TCP, which opens its connections itself",
    ),
    ("listen,mesh", "a sensor to which others connect, too"),
    ("mesh,prediction", "a sensor that sends much"),
    ("mesh,slices", "a sensor that sends its own data in place"),
    ("mesh,slices,tcp", "the minimal node that does"),
    ("mesh,sack", "a sensor with SACK beside it"),
    ("mesh,recovery", "a sensor with all of loss recovery"),
    ("mesh,timestamps", "a sensor with timestamps"),
    ("ecn,mesh", "a sensor that takes congestion marks"),
    (
        "mesh,syn-cookies",
        "a sensor that answers any number of SYNs",
    ),
    (
        "inbox,offload,tcp",
        "`motet-c`, the smallest `motet-embassy` for a radio that makes attempts by itself",
    ),
    ("mesh,relay,tcp", "a relay with applications"),
    (
        "rpl,tcp",
        "a mote of a mesh, whose contexts its application sets",
    ),
    (
        "advertise,rpl,tcp",
        "the same, passing on the contexts of the mesh",
    ),
    (
        "leaves,tcp",
        "the same, for neighbours that take no part in RPL, too",
    ),
    (
        "plain-rpl,rpl,tcp",
        "the same, for roots that do not compress routing headers, too",
    ),
    ("security,tcp", "a leaf with a key"),
    (
        "rotation,security,tcp",
        "a leaf whose keys follow one another",
    ),
    (
        "inbox,rotation,security,tcp",
        "the smallest `motet-embassy` with a key",
    ),
    (
        "inbox,offload,rotation,security,tcp",
        "`motet-c` with a key",
    ),
    ("copies,inbox,offload,sleepy,tcp", "`motet-c` that sleeps"),
    (
        "copies,inbox,leaves,offload,plain-rpl,sleepy,tcp",
        "`motet-c` as a router of the mesh, whose neighbours may sleep",
    ),
    (
        "inbox,join,offload,tcp",
        "`motet-c` that joins with a key of its own",
    ),
    (
        "copies,inbox,leaves,offload,plain-rpl,rotation,security,sleepy,tcp",
        "`motet-c` as a router of a mesh with a key",
    ),
    (
        "copies,inbox,join,leaves,offload,plain-rpl,sleepy,tcp,tcphc",
        "`motet-c` with all that it has",
    ),
    (
        "inbox,offload,tcp,tcphc",
        "`motet-c` with compressed TCP headers",
    ),
    ("relay,security,tcp", "a relay with a key and applications"),
    (
        "relay,rotation,security,tcp",
        "a relay whose keys follow one another, with applications",
    ),
    ("copies,sleepy,tcp", "a node that sleeps"),
    (
        "copies,inbox,sleepy,tcp",
        "the smallest `motet-embassy` that sleeps",
    ),
    ("tcp,thread", "a child in Thread networks"),
    (
        "relay,sleepy,thread",
        "the image by which the cost of a child is measured",
    ),
    (
        "relay,sleepy,tcp,thread",
        "the smallest echo node as a child that may sleep",
    ),
    (
        "offload,sleepy,tcp,thread",
        "one that may sleep, over a radio that makes attempts by itself",
    ),
    (
        "relay,sleepy,tcp",
        "a parent of nodes that sleep, with applications",
    ),
    (
        "copies,relay,sleepy,tcp",
        "the same, which keeps one copy of a segment",
    ),
    ("ble,tcp", "Bluetooth LE"),
    ("tcple", "Bluetooth LE with TCPlE"),
    ("tcp,tcphc", "a leaf with compressed TCP headers"),
    (
        "inbox,tcp,tcphc",
        "the smallest `motet-embassy` with compressed TCP headers",
    ),
    ("cit,tcp", "a relay that passes frames on without copying"),
    ("linux-acks", "a host whose ACKs are Linux's"),
    ("pace,tcp", "a leaf that measures its pace"),
    ("channels,tcp", "a leaf of a mesh on several channels"),
    (
        "fragments,mesh,tcp",
        "a leaf that takes packets in fragments",
    ),
    (
        "cable,inbox,tcp",
        "a host at a cable; `motet-embassy` above another stack",
    ),
    ("serial,tcp", "a host at a serial line"),
    ("icmp,tcp", "what every node with TCP has, with answers"),
    (
        "icmp,inbox,tcp",
        "`motet-embassy` without a link, with answers",
    ),
    (
        "cable,icmp,inbox,tcp",
        "`motet-embassy` above another stack, which answers for itself",
    ),
    ("router,tcp", "a router whose routes are configured"),
    (
        "cit,inbox,leaves,pace,router,tcp",
        "`motet-embassy` as a router that passes no compressed TCP headers on",
    ),
    ("cit,inbox,leaves,pace,router,tcp,tcphc", "`motet-embassy`"),
    (
        "cit,inbox,leaves,offload,pace,router,tcp,tcphc",
        "`motet-embassy` for a radio that makes attempts by itself",
    ),
    (
        "cit,inbox,leaves,pace,rotation,router,security,tcp,tcphc",
        "`motet-embassy` with a key",
    ),
    (
        "cit,copies,inbox,leaves,pace,router,sleepy,tcp,tcphc",
        "`motet-embassy` that sleeps, or keeps packets for others that do",
    ),
    (
        "channels,cit,copies,inbox,leaves,pace,rotation,security,sleepy,tcphc,tcple",
        "a mote with all parts, whose size is measured",
    ),
    ("default", "what is on by default"),
    ("default,join", "a node that gets its key by CoJP"),
    (
        "default,ble,fragments,join,linux-acks,security,sleepy,tcple,thread",
        "everything: the lab and the command `motet`",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use std::process::Command;
    use std::{env, fs};

    use serde::Deserialize;

    use super::SETS;

    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }

    #[derive(Deserialize)]
    struct Package {
        name: String,
        features: BTreeMap<String, Vec<String>>,
        dependencies: Vec<Dependency>,
        targets: Vec<Target>,
    }

    #[derive(Deserialize)]
    struct Dependency {
        name: String,
        /// `None`: not for tests or build scripts alone.
        kind: Option<String>,
        features: Vec<String>,
        uses_default_features: bool,
    }

    #[derive(Deserialize)]
    struct Target {
        kind: Vec<String>,
        #[serde(default, rename = "required-features")]
        required: Vec<String>,
    }

    type Features = BTreeSet<String>;

    /// The packages of the workspace in this folder, by their Cargo.toml files.
    fn packages(folder: &str) -> Vec<Package> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(root().join(folder))
            .output()
            .unwrap();
        let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap();
        metadata.packages
    }

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    fn named<'p>(packages: &'p [Package], name: &str) -> Option<&'p Package> {
        packages.iter().find(|package| package.name == name)
    }

    impl Package {
        /// These features and all that they bring, those of dependencies as `name/feature`.
        fn with_all_they_bring<'f>(&self, wanted: impl IntoIterator<Item = &'f str>) -> Features {
            let mut all = Features::new();
            let mut open: Vec<&str> = wanted.into_iter().collect();
            while let Some(feature) = open.pop() {
                if all.insert(feature.to_owned()) {
                    let brought = self.features.get(feature).into_iter().flatten();
                    open.extend(brought.map(String::as_str));
                }
            }
            all
        }

        /// The features of `motet` in a build of this package with these features of its own.
        fn of_motet(&self, packages: &[Package], wanted: &Features) -> Features {
            let own = self.with_all_they_bring(wanted.iter().map(String::as_str));
            if self.name == "motet" {
                let is_real = |feature: &&String| self.features.contains_key(*feature);
                let real = own.iter().filter(is_real).cloned();
                return real.filter(|feature| feature != "default").collect();
            }
            let mut of_motet = Features::new();
            for dependency in self.dependencies.iter().filter(|one| one.kind.is_none()) {
                let Some(package) = named(packages, &dependency.name) else {
                    continue;
                };
                let mut wanted: Features = dependency.features.iter().cloned().collect();
                if dependency.uses_default_features {
                    wanted.insert("default".to_owned());
                }
                let prefix = format!("{}/", dependency.name);
                let brought = own.iter().filter_map(|one| one.strip_prefix(&prefix));
                wanted.extend(brought.map(str::to_owned));
                of_motet.append(&mut package.of_motet(packages, &wanted));
            }
            of_motet
        }

        /// The ways to build it: with its default features and without, alone and with each other
        /// feature.
        fn ways(&self) -> Vec<Features> {
            let others = self.features.keys().filter(|name| *name != "default");
            let mut ways = vec![Features::new()];
            ways.extend(others.map(|name| Features::from([name.clone()])));
            for way in ways.clone() {
                ways.push(way.into_iter().chain(["default".to_owned()]).collect());
            }
            ways
        }
    }

    /// What devices and examples ask of `motet`, and which package asks.
    fn asked(packages: &[Package], devices: &[String]) -> BTreeMap<Features, String> {
        let mut asked = BTreeMap::new();
        for name in devices {
            let device = named(packages, name).unwrap();
            for way in device.ways() {
                let set = device.of_motet(packages, &way);
                asked.insert(set, format!("{name} with {way:?}"));
            }
        }
        let motet = named(packages, "motet").unwrap();
        let is_example = |target: &&Target| target.kind == ["example"];
        for example in motet.targets.iter().filter(is_example) {
            let mut way: Features = example.required.iter().cloned().collect();
            way.insert("default".to_owned());
            let set = motet.of_motet(packages, &way);
            asked.insert(set, format!("an example with {way:?}"));
        }
        asked
    }

    fn of_commas(text: &str) -> Features {
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }

    #[test]
    fn every_set_that_devices_and_examples_ask_for_is_judged() {
        let [mut packages, firmware, apps] = [".", "firmware", "apps"].map(packages);
        let nested = firmware.iter().chain(&apps);
        let mut devices: Vec<String> = nested.map(|package| package.name.clone()).collect();
        devices.extend(["motet-embassy", "motet-c", "motet-nrf"].map(str::to_owned));
        packages.extend(firmware.into_iter().chain(apps));
        let motet = named(&packages, "motet").unwrap();
        let judged: Vec<Features> = SETS
            .iter()
            .map(|(set, _)| motet.of_motet(&packages, &of_commas(set)))
            .collect();
        for (set, who) in asked(&packages, &devices) {
            assert!(judged.contains(&set), "{who}: nobody judges {set:?}");
        }
    }

    #[test]
    fn the_readme_has_the_same_list_and_names_every_feature() {
        let readme = fs::read_to_string(root().join("crates/stack/README.md")).unwrap();
        let rows = SETS.map(|(set, who)| {
            let names = of_commas(set).into_iter().map(|name| format!("`{name}`"));
            let names = names.collect::<Vec<_>>().join(", ");
            let names = if names.is_empty() { "none" } else { &names };
            format!("| {names} | {who} |\n")
        });
        let table = rows.concat();
        let between = readme.split_once("| set | who asks for it |\n|---|---|\n");
        let (listed, _) = between.unwrap().1.split_once("\n\n").unwrap();
        assert_eq!(format!("{listed}\n"), table, "the table should be\n{table}");
        let packages = packages(".");
        let features = named(&packages, "motet").unwrap().features.keys();
        for feature in features.filter(|name| *name != "default") {
            let row = format!("\n| `{feature}` | ");
            assert!(readme.contains(&row), "no row says what {feature} is");
        }
    }
}
