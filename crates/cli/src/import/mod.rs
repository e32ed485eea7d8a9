//! `motet import`: topologies of other simulators and testbeds, as a scenario.
//!
//! ```text
//! file -> format (by its content) -> Topology -> TOML
//! ```
//!
//! Place: each format's module makes a [`Topology`]; this file writes it. What a scenario has no
//! words for is named in comments. Left out: firmware, traffic and mobility of those simulators.

mod cooja;
mod otns;
mod tables;

use std::io;
use std::path::{Path, PathBuf};

use motet_lab::files::write_file;

use crate::error::Error;
use crate::files::{self, write_error};
use crate::output;

/// Make a scenario of a topology of OTNS, Cooja, TOSSIM, a K7 trace or a CSV file.
///
/// The format is found out from the content: OTNS's YAML, Cooja's .csc, TOSSIM's gains, a
/// connectivity trace in the K7 format, or CSV with positions (id, x, y) or links (from, to, and
/// one of gain, rssi and pdr). What the scenario has no words for is named in comments at its
/// top. Add flows and settings as you need them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet import office.yaml | motet run -\n  \
                        motet import grid.csc --out grid.toml\n  \
                        motet import linkgain.out --out testbed/gains.toml")]
pub(crate) struct Args {
    /// The file; - reads standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the scenario to this file.
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,

    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
}

/// Nodes and what they hear of each other.
#[derive(Clone, PartialEq, Debug)]
struct Topology {
    /// What the file is called there, and its format.
    title: String,
    format: &'static str,
    /// The names of the nodes there; the first is the border router.
    names: Vec<String>,
    layout: Layout,
    /// What was not taken over, a sentence each.
    remarks: Vec<String>,
}

#[derive(Clone, PartialEq, Debug)]
enum Layout {
    /// Metres.
    Positions(Vec<[f64; 2]>),
    /// From, to, gain in dB.
    Links(Vec<(usize, usize, f64)>),
}

/// Runs `motet import`.
///
/// # Errors
/// [`Error::Input`]: the file cannot be read, or is of none of these formats.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let bytes = files::read(&args.file)?;
    let name = match args.file.as_os_str() == "-" {
        true => "standard input".into(),
        false => args.file.display().to_string(),
    };
    let title = args
        .file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let title = title
        .filter(|title| title != "-")
        .unwrap_or_else(|| "imported".into());
    let scenario = scenario(&bytes, &title)
        .map_err(|reason| Error::input(format!("cannot import {name}: {reason}")))?;
    write(&scenario, args.out.as_deref(), args.force)
}

/// Writes a scenario to a file, or to standard output.
pub(crate) fn write(scenario: &str, out: Option<&Path>, force: bool) -> Result<(), Error> {
    match out {
        None => output::text(scenario),
        Some(path) => {
            write_file(path, scenario.as_bytes(), force).map_err(|error| write_error(path, &error))
        }
    }
}

/// Refuses a file that is there, unless it may be overwritten.
pub(crate) fn check_free(out: Option<&Path>, force: bool) -> Result<(), Error> {
    match out.filter(|path| !force && path.exists()) {
        Some(path) => Err(write_error(path, &io::ErrorKind::AlreadyExists.into())),
        None => Ok(()),
    }
}

/// The scenario that a file's bytes describe.
///
/// # Errors
/// Why not, in words that end a sentence.
pub(crate) fn scenario(bytes: &[u8], title: &str) -> Result<String, String> {
    let topology = topology(bytes, title)?;
    let nodes = topology.names.len();
    if nodes < 2 {
        return Err(format!(
            "it has {nodes} nodes, but a mesh has at least two, a border router and a mote"
        ));
    }
    check_nodes(nodes)?;
    Ok(topology.text())
}

/// Refuses more nodes than a scenario has: before each is compared with each other.
fn check_nodes(nodes: usize) -> Result<(), String> {
    match nodes > NODES_MAX {
        true => Err(format!(
            "it has {nodes} nodes, but a scenario has at most {NODES_MAX}"
        )),
        false => Ok(()),
    }
}

fn topology(bytes: &[u8], title: &str) -> Result<Topology, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        // Traces are published gzipped; nothing else is.
        return tables::k7(bytes, title)
            .map_err(|reason| format!("it is no text, nor a gzipped trace: {reason}"));
    };
    let text = text.trim_start_matches('\u{feff}');
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines().next().ok_or("it is empty")?;
    if text.contains("<simconf") {
        return cooja::topology(text, title);
    }
    if first.starts_with('<') {
        return Err("it is XML, but no simulation of Cooja".into());
    }
    if first.starts_with('{') || first.to_ascii_lowercase().starts_with("datetime,") {
        return tables::k7(bytes, title);
    }
    if lines().any(|line| line.starts_with("gain ") || line.starts_with("gain\t")) {
        return tables::tossim(text, title);
    }
    if lines().all(|line| line.parse::<i32>().is_ok()) {
        return Err(
            "it is a noise trace, as TOSSIM has them: name it in interference.trace of a scenario"
                .into(),
        );
    }
    if lines().any(|line| line.starts_with("nodes:")) {
        return otns::topology(text, title);
    }
    tables::csv(text, title)
}

impl Topology {
    /// The scenario in TOML.
    fn text(&self) -> String {
        let title = clean(&self.title);
        let mut text = format!(
            "# From {title}, {}. Node 0 is the border router.\n",
            self.format
        );
        let names = self
            .names
            .iter()
            .zip(0..)
            .map(|(name, node)| format!("{node} is {}", clean(name)));
        for line in crate::grid::folded(&names.collect::<Vec<_>>().join(", "), 98, 0) {
            text += &format!("# {}\n", line.trim());
        }
        for remark in &self.remarks {
            for line in crate::grid::folded(&format!("Not taken over: {remark}"), 98, 2) {
                text += &format!("# {line}\n");
            }
        }
        let name = title.replace('\\', "\\\\").replace('"', "\\\"");
        text += &format!("name = \"{name}\"\n\n[topology]\n");
        match &self.layout {
            Layout::Positions(positions) => {
                text += "positions = [\n";
                for [x, y] in positions {
                    text += &format!("    [{x:.2}, {y:.2}],\n");
                }
                text += "]\n";
            }
            Layout::Links(links) => {
                text += "links = [\n";
                for (from, to, gain) in links {
                    text += &format!("    [{from}, {to}, {gain:.2}],\n");
                }
                text += "]\n";
            }
        }
        text += "\n# The last node sends to a host as much as TCP takes.\n[[flow]]\n";
        text
    }
}

/// A name as a comment can have it.
fn clean(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(80)
        .collect()
}

/// Puts the node at `root` first, the others in their order; returns the new number of each.
fn renumber(nodes: usize, root: usize) -> Vec<usize> {
    (0..nodes)
        .map(|node| match node {
            node if node == root => 0,
            node if node < root => node + 1,
            node => node,
        })
        .collect()
}

/// Gains by distance in metres, as `[path_loss]` has them by default, where two dimensions are
/// too few.
fn gain_at(distance_m: f64) -> f64 {
    -(LOSS_1M_DB + 10.0 * EXPONENT * distance_m.max(1.0).log10())
}

/// The gain of a link that delivers this share of frames.
fn gain_of(delivery: f64) -> Option<f64> {
    let noise_dbm = motet_lab::air::profile::Profile::HAMILTON.noise_dbm();
    match delivery.clamp(0.0, 1.0) {
        lossless if lossless >= 0.995 => Some(STRONG_DB),
        lossy => motet_lab::air::k7::gain_of_delivery(lossy, noise_dbm),
    }
}

/// A link of which nothing is lost.
const STRONG_DB: f64 = -70.0;
/// The defaults of `[path_loss]`.
const LOSS_1M_DB: f64 = 40.2;
const EXPONENT: f64 = 3.0;
/// A weaker signal disturbs nobody.
const GAIN_MIN_DB: f64 = -110.0;
const NODES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use motet_lab::scenario::{Overrides, Plan};
    use proptest::prelude::*;

    use super::*;

    const OTNS: &str = "# two floors\nnetwork:\n    pos-shift: [10, 0, 0]\n    radio: x\nnodes:\n    - id: 7\n      \
                        type: sed\n      pos: [100, 100, 0]\n    - {id: 3, type: br, pos: [200, 100, 30]}\n";

    const COOJA: &str = "<simconf><simulation><title>Grid</title><radiomedium>\n\
        org.contikios.cooja.radiomediums.UDGM<transmitting_range>50</transmitting_range>\
        <interference_range>90</interference_range><success_ratio_tx>1.0</success_ratio_tx>\
        <success_ratio_rx>1.0</success_ratio_rx></radiomedium>\
        <motetype>x<identifier>m1</identifier><description>Client</description></motetype>\
        <motetype>x<identifier>m2</identifier><description>Border router</description></motetype>\
        <mote><interface_config>a.b.Position<x>0</x><y>0</y><z>0</z></interface_config>\
        <interface_config>a.MoteID<id>1</id></interface_config><motetype_identifier>m1</motetype_identifier></mote>\
        <mote><interface_config>a.b.Position<x>40</x><y>0</y></interface_config>\
        <interface_config>a.MoteID<id>2</id></interface_config><motetype_identifier>m2</motetype_identifier></mote>\
        <mote><interface_config>a.b.Position<pos x=\"120\" y=\"0\"/></interface_config>\
        <interface_config>a.MoteID<id>3</id></interface_config><motetype_identifier>m1</motetype_identifier></mote>\
        </simulation></simconf>";

    fn of(text: &str) -> Topology {
        topology(text.as_bytes(), "file").unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn otns_puts_the_border_router_first_and_names_what_it_leaves() {
        let topology = of(OTNS);
        assert_eq!(topology.names, ["3 (br)", "7 (sed)"]);
        // 10 m and 3 m up.
        let Layout::Links(links) = &topology.layout else {
            panic!("{topology:?}")
        };
        assert_eq!(links.len(), 2);
        assert!(
            (links[0].2 - gain_at(109.0_f64.sqrt())).abs() < 1e-9,
            "{links:?}"
        );
        let remarks = topology.remarks.join("; ");
        assert!(
            remarks.contains("radio of network") && remarks.contains("7 (sed)")
                || remarks.contains("the sleep of 7"),
            "{remarks}"
        );
        let flat = of(&OTNS.replace("30", "0"));
        assert_eq!(
            flat.layout,
            Layout::Positions(vec![[21.0, 10.0], [11.0, 10.0]])
        );
    }

    #[test]
    fn coojas_disks_become_links_from_the_root_on() {
        let topology = of(COOJA);
        assert_eq!(
            (topology.title.as_str(), topology.names[0].as_str()),
            ("Grid", "2 (Border router)")
        );
        let Layout::Links(links) = &topology.layout else {
            panic!("{topology:?}")
        };
        // Motes 1 and 2 hear each other; 2 and 3 disturb each other; 1 and 3 do neither.
        let pairs: Vec<(usize, usize)> = links.iter().map(|(from, to, _)| (*from, *to)).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (2, 0)]);
        assert!(links[0].2 > -75.0 && links[1].2 < -100.0, "{links:?}");
    }

    #[test]
    fn tables_of_links_and_places_are_read() {
        let gains = of("gain 10 2 -65.0\ngain 2 10 -66\nnoise 2 -105 4\n");
        assert_eq!(gains.names, ["2", "10"]);
        assert_eq!(
            gains.layout,
            Layout::Links(vec![(0, 1, -66.0), (1, 0, -65.0)])
        );
        let pdr = of("src;dst;PDR\na;b;1.0\nb;a;0\n");
        assert_eq!(pdr.layout, Layout::Links(vec![(0, 1, STRONG_DB)]));
        let places = of("id,x,y\n1,0,0\n2,3.5,4\n");
        assert_eq!(
            places.layout,
            Layout::Positions(vec![[0.0, 0.0], [3.5, 4.0]])
        );
    }

    #[test]
    fn what_is_written_runs() {
        for text in [
            OTNS,
            COOJA,
            "gain 1 2 -65\ngain 2 1 -65\n",
            "x,y\n0,0\n9,0\n",
        ] {
            let scenario = scenario(text.as_bytes(), "a \"title\"\n").unwrap();
            let plan = Plan::parse(&scenario, Path::new("-"), Overrides::default());
            let error = plan
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            // Mote 3 of Cooja's is out of reach, which the lab says.
            assert!(
                error.is_empty() || text == COOJA && error.contains("cannot work"),
                "{error}\n{scenario}"
            );
        }
    }

    #[test]
    fn a_name_of_any_letters_is_toml() {
        let name = "a \u{200b}\\ \"b\" \u{e000}";
        let scenario = scenario(b"x,y\n0,0\n9,0\n", name).unwrap();
        let plan = Plan::parse(&scenario, Path::new("-"), Overrides::default()).unwrap();
        assert_eq!(plan.title, name);
    }

    #[test]
    fn ratios_that_are_none_make_no_gain_that_is_none() {
        for ratio in ["nan", "-3", "1e300", "inf"] {
            let text = COOJA.replace("tx>1.0", &format!("tx>{ratio}"));
            let scenario = scenario(text.as_bytes(), "file").unwrap();
            assert!(!scenario.to_ascii_lowercase().contains("nan"), "{scenario}");
            assert!(
                !scenario.contains("inf,") && !scenario.contains("inf]"),
                "{scenario}"
            );
        }
    }

    #[test]
    fn what_is_no_topology_is_refused_in_words() {
        let deep = format!("nodes: {}", "[".repeat(100_000));
        let mote = "<mote><interface_config>Position<x>0</x><y>0</y></interface_config></mote>";
        for (text, words) in [
            ("", "empty"),
            ("# prose\nfrom here", "neither"),
            ("<html></html>", "no simulation of Cooja"),
            (
                "<simconf><mote><interface_config/></mote></simconf>",
                "no position",
            ),
            ("nodes: 5", "no list"),
            ("nodes:\n  - id: 1\n", "no pos"),
            ("nodes:\n  - &a {id: 1}\n", "anchors"),
            (&deep, "deeply"),
            ("gain 1 2 5\n", "no gain"),
            ("x,y\n1\n", "line 2"),
            ("x,y\n1,1\n", "1 nodes"),
            ("-98\n-97\n", "noise trace"),
            (
                &format!("x,y\n{}", "1,1\n".repeat(NODES_MAX + 1)),
                "at most",
            ),
            (
                &COOJA.replace(
                    "</simulation>",
                    &format!("{}</simulation>", mote.repeat(NODES_MAX)),
                ),
                "at most",
            ),
        ] {
            let refused = scenario(text.as_bytes(), "file").unwrap_err();
            assert!(refused.contains(words), "{refused}");
            assert_eq!(refused.lines().count(), 1, "{refused}");
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_give_a_scenario_or_a_sentence(
            start in prop::sample::select(vec!["", OTNS, COOJA, "gain 1 2 -5\n", "x,y\n1,2\n", "from,to,pdr\n"]),
            cut in 0_usize..400,
            junk in "[ -~\\n]{0,60}",
        ) {
            let head: String = start.chars().take(cut).collect();
            let _ = scenario(format!("{head}{junk}").as_bytes(), "file");
        }
    }
}
