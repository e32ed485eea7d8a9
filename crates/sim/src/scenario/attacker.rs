//! `[[attacker]]`: transmitters that do not belong to the mesh.

use serde::Deserialize;
use toml::Table;

use super::defaults::{fill, into, repeated};
use super::error::ScenarioError;
use super::keys::Kind::{Choice, File, Integer, Number};
use super::keys::{Section, key};
use super::sources::ScenarioFiles;
use super::tables::NODE_LAST;
use crate::net::attack::{AttackOptions, Forgery, Frames, PER_S_MAX};
use crate::net::network::{Joining, NetworkOptions};

/// The keys of `[[attacker]]`.
pub(super) const SECTION: Section = Section {
    name: "attacker",
    repeated: true,
    doc: "Somebody who does not belong to the mesh and puts frames on its air, from the start to the end: beside a node, heard by whoever hears that node, and by it. It knows what can be overheard, but no key.",
    keys: &[
        key(
            "near",
            Integer(0, NODE_LAST),
            None,
            "The node that it is beside, and aims at. Always needed.",
        ),
        key(
            "per_s",
            Number(0.001, PER_S_MAX),
            Some("10.0"),
            "Frames each second. It listens before it talks, but for 30 ms at most.",
        ),
        key(
            "kind",
            Choice(KINDS),
            None,
            "What it sends: `ra`: router advertisements of the parent's with another prefix; `tag`: first fragments in a neighbour's name; `dsn`: data in a neighbour's name, with the sequence numbers to come; `source`: data of neighbours that do not exist; `bodies`: first fragments of long packets from two such neighbours; `ack`: ACKs; `head`: later fragments in a neighbour's name; `poll`: data requests in a neighbour's name; `children`: data requests of 64 neighbours that do not exist; `ns`: solicitations that end a neighbour's registration; `na`: advertisements of the parent's that call the node's address another's; with `joining = \"rpl\"` also, in the names of the node and its neighbours, `dao`: DAOs that name another parent; `no-path`: DAOs that end a route; `dao-ack`: answers of the root's; `dis`: DIS to all; `dis-to-one`: DIS to the node alone, of neighbours that do not exist; and DIOs: `version`: of a newer version; `mode`: of another mode; `dtsn`: that ask for DAOs; `poison`: without a rank; `rank`: of a wrong rank; `prefix`: with another prefix; `pcap`: the frames of a file. Always needed. Where the mesh has a key, forged frames have a security header, and a MIC of chance.",
        ),
        key(
            "file",
            File,
            None,
            "`pcap`: a capture of IEEE 802.15.4 frames, of any kind that `motet decode` reads, gzipped or not, sent over and over; frames whose FCS was wrong have a wrong one again.",
        ),
    ],
};

const KINDS: &[&str] = &[
    "ra",
    "tag",
    "dsn",
    "source",
    "bodies",
    "ack",
    "head",
    "poll",
    "children",
    "ns",
    "na",
    "dao",
    "no-path",
    "dao-ack",
    "dis",
    "dis-to-one",
    "version",
    "mode",
    "dtsn",
    "poison",
    "rank",
    "prefix",
    "pcap",
];

#[derive(Deserialize)]
struct Keys {
    near: Option<usize>,
    per_s: f64,
    kind: Option<String>,
    file: Option<String>,
}

/// Gives the network its attackers.
///
/// # Errors
/// A node that is none, a capture that cannot be read, keys that do nothing.
pub(super) fn apply(
    network: &mut NetworkOptions,
    table: &Table,
    files: ScenarioFiles<'_>,
) -> Result<(), ScenarioError> {
    for (attacker, number) in repeated(table, SECTION.name).into_iter().zip(1..) {
        let options = into(SECTION.name, fill(&SECTION, attacker))
            .and_then(|keys| options(&keys, network, files))
            .map_err(|error| error.of_table(SECTION.name, number))?;
        network.attackers.push(options);
    }
    Ok(())
}

fn options(
    keys: &Keys,
    network: &NetworkOptions,
    files: ScenarioFiles<'_>,
) -> Result<AttackOptions, ScenarioError> {
    let wrong = |sentence: String| ScenarioError::new(sentence);
    let missing =
        |name: &str, what: &str| wrong(format!("there is no attacker.{name}, but it must {what}"));
    let nodes = network.nodes.len();
    let near = keys
        .near
        .ok_or_else(|| missing("near", "say which node it is beside"))?;
    let kind = keys.kind.as_deref();
    let kind = kind.ok_or_else(|| missing("kind", "say what it sends"))?;
    if near >= nodes {
        return Err(wrong(format!(
            "attacker.near is {near}, but must be the number of a node, 0 to {}",
            nodes - 1
        )));
    }
    if !network.has_mesh() {
        return Err(wrong(
            "[[attacker]] must be left out with radio.kind \"ble\", whose frames are others".into(),
        ));
    }
    if network.is_ble(near) {
        return Err(wrong(format!(
            "attacker.near is {near}, but must be a node of the mesh: node {near} is on Bluetooth LE"
        )));
    }
    let forgery = Forgery::ALL.iter().find(|(name, _)| *name == kind);
    if forgery.is_some_and(|(_, forgery)| forgery.is_routing()) && network.joining != Joining::Rpl {
        return Err(wrong(format!(
            "attacker.kind \"{kind}\" needs joining = \"rpl\": no other mesh has messages of RPL"
        )));
    }
    let frames = match (forgery, &keys.file) {
        (Some((_, forgery)), None) => Frames::Forged(*forgery),
        (Some(_), Some(_)) => {
            return Err(wrong(format!(
                "attacker.file must be left out with attacker.kind \"{kind}\", which makes its own frames"
            )));
        }
        (None, None) => return Err(missing("file", "name the capture of kind \"pcap\"")),
        (None, Some(file)) => Frames::Recorded(files.frames("attacker.file", file)?),
    };
    Ok(AttackOptions {
        near,
        per_s: keys.per_s,
        frames,
        is_elsewhere: false,
    })
}
