//! Every public error says what is wrong: it has `Display` and `core::error::Error`, also where
//! there is no `std`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use motet::lowpan::{self, datagram, fragment};
use motet::tcp::{self, Buffers};
use motet::tcphc;
use motet::wire::{
    cursor, icmpv6, ieee802154, ipv6, lowpan_dispatch, lowpan_frag, lowpan_iphc, lowpan_nhc, ndp,
    tcphc as wire_tcphc, udp,
};
use motet::{ip, link, mac, node, rpl, wire};

/// One of each type, by the file that defines it and its name there.
fn samples() -> Vec<(&'static str, Box<dyn Error>)> {
    let lent = || Buffers::new(&mut [], &mut []);
    let failed = tcp::Error::Reset;
    vec![
        #[cfg(feature = "ble")]
        (
            "ble/counters.rs ChannelDrop",
            Box::new(motet::ble::ChannelDrop::CutSdu),
        ),
        #[cfg(feature = "ble")]
        (
            "wire/l2cap.rs SignalError",
            Box::new(wire::l2cap::SignalError::Malformed),
        ),
        ("ip/drops.rs PacketDrop", Box::new(ip::PacketDrop::NoRoute)),
        (
            "lowpan/compress.rs CompressError",
            Box::new(lowpan::CompressError::Full),
        ),
        (
            "lowpan/datagram.rs FragmentDrop",
            Box::new(datagram::FragmentDrop::Timeout),
        ),
        (
            "lowpan/fragment.rs FragmentError",
            Box::new(fragment::FragmentError::NoRoom),
        ),
        (
            "lowpan/restored.rs DecompressError",
            Box::new(lowpan::DecompressError::Context),
        ),
        (
            "tcphc/counters.rs HeaderDrop",
            Box::new(tcphc::HeaderDrop::Malformed(
                wire_tcphc::ParseError::Unknown,
            )),
        ),
        ("tcphc/mod.rs Plain", Box::new(tcphc::Plain)),
        ("mac/counters.rs FrameDrop", Box::new(mac::FrameDrop::NoAck)),
        (
            "link/counters.rs LinkDrop",
            Box::new(link::LinkDrop::Dispatch),
        ),
        (
            "node/datagram.rs DatagramError",
            Box::new(node::DatagramError::TooLong),
        ),
        (
            "node/segment.rs ConnectError",
            Box::new(node::ConnectError::Tcp(tcp::OpenError::NoSlot)),
        ),
        (
            "node/segment.rs Rejected",
            Box::new(node::Rejected {
                error: node::ConnectError::NoRoute,
                buffers: lent(),
            }),
        ),
        (
            "rpl/drops.rs MessageDrop",
            Box::new(rpl::MessageDrop::BadSource),
        ),
        ("tcp/mod.rs SegmentDrop", Box::new(tcp::SegmentDrop::NoSlot)),
        ("tcp/types.rs Error", Box::new(failed)),
        ("tcp/types.rs IcmpError", Box::new(tcp::IcmpError::Hard)),
        (
            "tcp/types.rs ListenError",
            Box::new(tcp::ListenError::InUse),
        ),
        ("tcp/types.rs OpenError", Box::new(tcp::OpenError::NoSlot)),
        (
            "tcp/types.rs RecvError",
            Box::new(tcp::RecvError::Failed(failed)),
        ),
        (
            "tcp/types.rs Rejected",
            Box::new(tcp::Rejected {
                error: tcp::OpenError::NoPort,
                buffers: lent(),
            }),
        ),
        (
            "tcp/types.rs SendError",
            Box::new(tcp::SendError::Failed(failed)),
        ),
        ("wire/cursor.rs Full", Box::new(cursor::Full)),
        ("wire/cursor.rs Truncated", Box::new(cursor::Truncated)),
        (
            "wire/icmpv6.rs ParseError",
            Box::new(icmpv6::ParseError::Code),
        ),
        (
            "wire/ieee802154.rs ParseError",
            Box::new(ieee802154::ParseError::Fcs),
        ),
        (
            "wire/ipv6.rs ParseError",
            Box::new(ipv6::ParseError::Version),
        ),
        (
            "wire/lorh.rs ParseError",
            Box::new(wire::lorh::ParseError::Critical),
        ),
        (
            "wire/lowpan_dispatch.rs Unsupported",
            Box::new(lowpan_dispatch::Unsupported::Mesh),
        ),
        (
            "wire/lowpan_frag.rs ParseError",
            Box::new(lowpan_frag::ParseError::Offset),
        ),
        (
            "wire/lowpan_iphc.rs ParseError",
            Box::new(lowpan_iphc::ParseError::Dispatch),
        ),
        (
            "wire/lowpan_nhc.rs ParseError",
            Box::new(lowpan_nhc::ParseError::Unknown),
        ),
        ("wire/ndp.rs Malformed", Box::new(ndp::Malformed)),
        (
            "wire/rpl/options.rs ParseError",
            Box::new(wire::rpl::ParseError::Secure),
        ),
        (
            "wire/source_route.rs ParseError",
            Box::new(wire::source_route::ParseError::Type),
        ),
        (
            "wire/tcp.rs ParseError",
            Box::new(wire::tcp::ParseError::Truncated),
        ),
        (
            "wire/tcphc.rs ParseError",
            Box::new(wire_tcphc::ParseError::Unknown),
        ),
        ("wire/udp.rs ParseError", Box::new(udp::ParseError::Length)),
        (
            "wire/lowpan_mesh.rs ParseError",
            Box::new(wire::lowpan_mesh::ParseError::Dispatch),
        ),
        #[cfg(feature = "thread")]
        (
            "thread/child/types.rs MleDrop",
            Box::new(motet::thread::MleDrop::Replayed),
        ),
        #[cfg(feature = "thread")]
        (
            "thread/dataset.rs DatasetError",
            Box::new(motet::thread::DatasetError::NoKey),
        ),
        #[cfg(feature = "thread")]
        (
            "thread/mle.rs MleError",
            Box::new(motet::thread::mle::MleError::Forged),
        ),
        #[cfg(feature = "join")]
        (
            "join/exchange.rs JoinError",
            Box::new(motet::join::JoinError::Forged),
        ),
    ]
}

#[test]
fn errors_say_what_is_wrong_and_what_caused_them() {
    for (name, error) in samples() {
        let text = error.to_string();
        assert!(text.len() > 8 && !text.ends_with('.'), "{name}: {text:?}");
    }
    let failed = tcp::RecvError::Failed(tcp::Error::Reset);
    let source = failed.source().map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("connection reset by the peer"));
    assert!(tcp::RecvError::Empty.source().is_none());
    let rejected = node::Rejected {
        error: node::ConnectError::Tcp(tcp::OpenError::NoSlot),
        buffers: Buffers::new(&mut [], &mut []),
    };
    let source = rejected.source().and_then(Error::source);
    assert!(source.is_some_and(|source| source.to_string().contains("slot")));
}

/// A type that is named as errors are, and is not in the list above.
#[test]
fn no_error_is_missing() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for file in files(&source) {
        let text = fs::read_to_string(&file).expect("readable source");
        let at = file
            .strip_prefix(&source)
            .expect("below it")
            .display()
            .to_string();
        for line in text.lines() {
            let rest = line
                .strip_prefix("pub enum ")
                .or_else(|| line.strip_prefix("pub struct "));
            let name: String = rest
                .unwrap_or_default()
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            let is_error = ["Error", "Drop"].iter().any(|end| name.ends_with(end));
            // Files of a build without Bluetooth LE, in which nothing of it can be named.
            let is_absent = at.starts_with("ble/") || at == "wire/l2cap.rs";
            if is_absent && cfg!(not(feature = "ble")) {
                continue;
            }
            if at.starts_with("join/") && cfg!(not(feature = "join")) {
                continue;
            }
            if at.starts_with("thread/") && cfg!(not(feature = "thread")) {
                continue;
            }
            if is_error || NAMES.contains(&&name[..]) {
                found.insert(format!("{at} {name}"));
            }
        }
    }
    let listed: BTreeSet<String> = samples()
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(found, listed);
}

/// Names of errors that do not end in `Error`, nor in `Drop`.
const NAMES: [&str; 6] = [
    "Full",
    "Malformed",
    "Plain",
    "Rejected",
    "Truncated",
    "Unsupported",
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut all = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all
}
