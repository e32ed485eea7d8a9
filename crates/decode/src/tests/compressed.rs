//! Captures of the lab's own air with compressed TCP headers: every one restored, and to the
//! bytes that were sent.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use motet::tcphc::Mode;
use motet::time::Duration;
use motet_lab::Arena;
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::capture::{Capture as Recording, Records};
use motet_lab::net::chain::{Chain, ChainOptions};

use super::super::Decoder;
use super::super::capture::Capture;
use super::super::model::{Frame, Status, Value};
use super::field;

const PORT: u16 = 4_242;

/// What was captured of a transfer, in a folder of its own.
struct Captured {
    folder: tempfile::TempDir,
    /// Segments to the mote that never reached it.
    lost: usize,
}

impl Captured {
    /// Sends some kilobytes along a chain; the air and the wire are captured.
    fn transfer(options: ChainOptions, up: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arena = Arena::new();
        let mut chain = Chain::new(options, &arena);
        let air = Recording::create(&folder.path().join("air.pcap"), Records::Frames, false);
        chain.world.set_capture(Some(air.unwrap()));
        let wire = Recording::create(&folder.path().join("wire.pcap"), Records::Packets, false);
        chain.world.wire_mut().unwrap().set_capture(wire.unwrap());
        assert!(chain.join(Duration::from_secs(60)));
        let host = chain.host().unwrap();
        let (at_mote, at_host) = (chain.mote_ends(&arena), chain.host_ends(&arena));
        let (sender, sending, receiver, receiving) = match up {
            true => (chain.mote(), at_mote, host, at_host),
            false => (host, at_host, chain.mote(), at_mote),
        };
        let to = match up {
            true => motet_lab::net::plan::HOST,
            false => chain.mote_addr(),
        };
        let content: std::sync::Arc<[u8]> = (0..30_000_u32).map(|n| (n * 7) as u8).collect();
        let receiving = Receiver::new(PORT, receiving);
        chain.world.set_app(receiver, App::Receiver(receiving));
        let sending = Sender::new(content, (to, PORT), sending);
        chain.world.set_app(sender, App::Sender(sending));
        let until = chain.world.now() + Duration::from_secs(120);
        chain.world.run_until(until);
        let finished = chain.world.app(receiver).progress().unwrap().finished;
        assert!(finished.is_some(), "{options:?}");
        chain.world.take_capture().unwrap().finish().unwrap();
        chain.world.wire_mut().unwrap().finish_capture().unwrap();
        let counters = |node: usize| chain.world.node(node).tcp().counters();
        let lost = counters(host).sent - counters(chain.mote()).received;
        Self {
            folder,
            lost: lost as usize,
        }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// The frames, and how many datagrams were never whole on the air.
    fn decoded(&self, name: &str, skip: usize) -> (Vec<Frame>, usize) {
        let bytes = std::fs::read(self.file(name)).unwrap();
        let mut capture = Capture::of_bytes(bytes).unwrap();
        let prefixes = [
            motet_lab::net::plan::MESH_PREFIX,
            motet_lab::net::plan::WIRED_PREFIX,
        ];
        let contexts = [0, 1].map(|id| super::Context {
            id,
            prefix: prefixes[usize::from(id)],
            len: 64,
        });
        let mut decoder = Decoder::new(&contexts);
        let frames = std::iter::from_fn(|| capture.next_record())
            .skip(skip)
            .map(|record| decoder.decode(&record.unwrap()))
            .collect();
        let incomplete = decoder.reassembly.pending() + decoder.reassembly.abandoned;
        (frames, incomplete as usize)
    }

    fn frames(&self, name: &str, skip: usize) -> Vec<Frame> {
        self.decoded(name, skip).0
    }
}

/// The TCP segments of frames that were explained to the end, each once.
fn segments(frames: &[Frame]) -> BTreeSet<Vec<u8>> {
    let whole = frames
        .iter()
        .filter(|frame| frame.status == Status::Decoded);
    let whole = whole.filter(|frame| frame.layers.iter().any(|layer| layer.name == "tcp"));
    whole
        .map(|frame| match field(frame, "ipv6", "packet") {
            Value::Bytes(packet) => packet[40..].to_vec(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn forms(frames: &[Frame]) -> BTreeSet<String> {
    let layers = frames.iter().flat_map(|frame| &frame.layers);
    let compressed = layers.filter(|layer| layer.name == "tcphc");
    let form = |title: &str| title.split(',').next().unwrap_or_default().to_owned();
    compressed.map(|layer| form(&layer.title)).collect()
}

#[test]
fn every_header_is_restored_as_it_was_sent() {
    for (hops, up, frame_loss, mode) in [
        (1, true, 0.0, Mode::Default),
        (3, true, 0.0, Mode::Default),
        (3, false, 0.0, Mode::Strict),
        (3, true, 0.1, Mode::Default),
        (3, false, 0.1, Mode::InOrder),
    ] {
        let options = ChainOptions {
            hops,
            frame_loss,
            compression: Some(mode),
            ..ChainOptions::default()
        };
        let captured = Captured::transfer(options, up);
        let (air, incomplete) = captured.decoded("air.pcap", 0);
        for frame in &air {
            let problem = frame.status.problem();
            assert!(
                problem.is_none(),
                "{options:?}, {}: {problem:?}",
                frame.number
            );
        }
        let (heard, passed) = (segments(&air), segments(&captured.frames("wire.pcap", 0)));
        let missing: Vec<_> = passed.difference(&heard).collect();
        // The ports and the sequence number.
        let place = |segment: &Vec<u8>| segment[..8].to_vec();
        let places: BTreeSet<_> = heard.iter().map(place).collect();
        // Whatever went up to the wire was put together from frames on the air. Of what comes
        // down the border router may give up on a packet half way, where frames get lost: its
        // segment never reached the mote, and was sent again.
        if up || frame_loss == 0.0 {
            assert_eq!(missing.len(), 0, "{options:?}");
        }
        let given_up = captured.lost.min(incomplete);
        assert!(missing.len() <= given_up, "{missing:?}: {options:?}");
        for segment in missing {
            assert!(places.contains(&place(segment)), "{segment:?}: {options:?}");
        }
        if frame_loss == 0.0 {
            // Hidden senders collide: what was lost on its way has the ports and the sequence
            // number of what came instead.
            let came: BTreeSet<_> = passed.iter().map(place).collect();
            let lost: Vec<_> = heard.difference(&passed).map(place).collect();
            assert!(
                lost.len() <= 2,
                "{options:?}: nearly all that was sent arrived"
            );
            assert!(lost.iter().all(|lost| came.contains(lost)), "{options:?}");
        }
        assert!(passed.len() > 60);
        assert!(forms(&air).contains("compressed header") && forms(&air).contains("full header"));
        is_well_formed(&captured.file("wire.pcap"));
    }
}

#[test]
fn who_listens_late_reads_nothing_wrong() {
    let options = ChainOptions {
        frame_loss: 0.2,
        compression: Some(Mode::Default),
        ..ChainOptions::default()
    };
    let captured = Captured::transfer(options, true);
    let unknown = |skip| {
        let air = captured.frames("air.pcap", skip);
        let problems = air.iter().filter_map(|frame| match &frame.status {
            Status::Malformed(problem) => panic!("{}: {problem:?}", frame.number),
            status => status.problem().cloned(),
        });
        let problems: Vec<_> = problems.collect();
        for problem in &problems {
            assert_eq!(problem.layer, "tcphc", "{problem:?}");
            assert!(problem.reason.contains("not known"), "{problem:?}");
        }
        problems.len()
    };
    assert_eq!(unknown(0), 0);
    assert!(unknown(500) > 10);
}

/// tshark does not know compressed headers, hence it is asked about the plain side.
fn is_well_formed(file: &Path) {
    let filter = "_ws.malformed || tcp.checksum.status == 0";
    let tshark = Command::new("tshark")
        .args(["-o", "tcp.check_checksum:TRUE", "-Y", filter, "-r"])
        .arg(file)
        .output();
    let Ok(output) = tshark else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "tshark is missing"
        );
        eprintln!("not run: tshark is not installed");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// The value of a field of a compressed header that is in line, by its words; `None`: elided.
fn in_line(value: &Value) -> Option<(u64, u64)> {
    let Value::Text(words) = value else {
        panic!("{value:?}");
    };
    let (mode, number) = words.rsplit_once(' ')?;
    let mask = match mode {
        "low 8 bits" => 0xff,
        "low 16 bits" => 0xffff,
        "whole" => u64::from(u32::MAX),
        other => panic!("{other}"),
    };
    Some((number.parse().unwrap(), mask))
}

fn number(value: &Value) -> u64 {
    match value {
        Value::Number(number) | Value::Hex(number, _) => *number,
        other => panic!("{other:?}"),
    }
}

/// What the emitter itself sent of each form, each field beside that of the header it stands
/// for: the same low bits, and all of them in a mostly compressed one.
#[test]
fn each_form_is_shown_field_by_field_beside_its_header() {
    let options = ChainOptions {
        hops: 2,
        packet_loss: 0.1,
        compression: Some(Mode::Default),
        ..ChainOptions::default()
    };
    let air = Captured::transfer(options, true).frames("air.pcap", 0);
    let mut seen = [("full", 0), ("mostly", 0), ("compressed", 0)];
    for frame in &air {
        let has = |name| frame.layers.iter().any(|layer| layer.name == name);
        if !has("tcphc") || !has("tcp") {
            continue;
        }
        let Value::Text(form) = field(frame, "tcphc", "form") else {
            panic!("{}: a form has a name", frame.number);
        };
        let kind = seen
            .iter_mut()
            .find(|(kind, _)| form.starts_with(kind))
            .unwrap();
        kind.1 += 1;
        let Value::Bytes(packet) = field(frame, "ipv6", "packet") else {
            panic!("{}: the packet is whole", frame.number);
        };
        let tcp = motet::wire::tcp::Header::parse(&packet[40..]).unwrap().0;
        assert_eq!(number(field(frame, "tcp", "seq")), u64::from(tcp.seq));
        assert!(number(field(frame, "tcphc", "cid")) < 256);
        if kind.0 == "full" {
            continue;
        }
        let checksum = u64::from(u16::from_be_bytes([packet[56], packet[57]]));
        assert_eq!(number(field(frame, "tcphc", "checksum")), checksum);
        let Value::List(stamps) = field(frame, "tcphc", "timestamps") else {
            panic!("{}: timestamps are a list", frame.number);
        };
        let Some(Value::Group(stamps)) = stamps.first() else {
            panic!("{}: it has timestamps", frame.number);
        };
        let (tsval, tsecr) = tcp.options.timestamps.unwrap();
        let fields = [
            (field(frame, "tcphc", "seq"), tcp.seq),
            (field(frame, "tcphc", "ack"), tcp.ack),
            (field(frame, "tcphc", "window"), u32::from(tcp.window)),
            (&stamps[0].value, tsval),
            (&stamps[1].value, tsecr),
        ];
        for (shown, whole) in fields {
            let Some((value, mask)) = in_line(shown) else {
                assert_eq!(kind.0, "compressed", "only there a field is elided");
                continue;
            };
            assert_eq!(value, u64::from(whole) & mask, "{}", frame.number);
            assert!(kind.0 == "compressed" || mask > 0xffff, "all is whole");
        }
    }
    assert!(seen.iter().all(|(_, count)| *count > 2), "{seen:?}");
}
