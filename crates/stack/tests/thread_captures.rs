//! The codec of Thread against captures of OpenThread, and against tshark's reading of them.
#![cfg(feature = "thread")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use motet::lowpan::{Contexts, LinkPair, decompress};
use motet::mac::security::NetworkKey;
use motet::thread::mle::{self, Builder, Ends, MleError, command, tlv_type};
use motet::thread::network_data::{NetworkData, flag};
use motet::thread::{Dataset, DatasetError};
use motet::wire::ieee802154::{Header, check_fcs};
use motet::wire::{ipv6, udp};
use pcap_file::pcap::PcapReader;

/// The network key of all captures.
const KEY: NetworkKey = NetworkKey::new([
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
]);

const CAPTURES: [&str; 6] = [
    "attach-mtd-rx-on",
    "attach-mtd-sleepy",
    "child-ext",
    "child-rx-on",
    "child-sleepy",
    "child-tcp",
];

/// A capture of the shared data, or `None` where it is not there and need not be.
fn capture(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let file = root.join(format!("data/captures/thread/{name}.pcap"));
    if file.exists() {
        return Some(file);
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{} is missing; set MOTET_SHARED", file.display());
    println!("not run: {} is missing; set MOTET_SHARED", file.display());
    None
}

/// Every datagram of MLE in a capture: its ends, and its payload as it came.
fn datagrams(path: &Path) -> Vec<(Ends, Vec<u8>)> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut found = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let psdu = packet.unwrap().data.into_owned();
        let Ok((header, None, payload)) = Header::parse_secured(check_fcs(&psdu).unwrap()) else {
            continue;
        };
        let (Some(src), Some(dst)) = (header.src, header.dst) else {
            continue;
        };
        let link = LinkPair {
            src: src.addr,
            dst: dst.addr,
        };
        let mut out = [0; 1280];
        let done = decompress(payload, link, &Contexts::new(), None, &mut out).unwrap();
        let packet = [
            &out[..done.uncompressed_len],
            &payload[done.compressed_len..],
        ]
        .concat();
        let (header, datagram) = ipv6::Header::parse(&packet).unwrap();
        assert!(udp::is_checksum_valid(&header.src, &header.dst, datagram));
        let (ports, payload) = udp::Header::parse(datagram).unwrap();
        assert_eq!((ports.src_port, ports.dst_port), (mle::PORT, mle::PORT));
        assert_eq!(header.hop_limit, 255);
        let ends = Ends {
            src: header.src,
            dst: header.dst,
        };
        found.push((ends, payload.to_vec()));
    }
    found
}

/// The command and the types and lengths of the TLVs of each message, as tshark shows them.
fn tshark(path: &Path) -> Option<Vec<String>> {
    let output = Command::new("tshark")
        .args(["-o", "wpan.802154_fcs_ok:FALSE"])
        .args(["-o", "thread.thr_seq_ctr:00000000"])
        .args(["-o", "thread.thr_use_pan_id_in_key:FALSE"])
        .args(["-o", "thread.thr_auto_acq_thr_seq_ctr:TRUE"])
        .arg("-o")
        .arg("uat:ieee802154_keys:\"00112233445566778899aabbccddeeff\",\"1\",\"Thread hash\"")
        .args(["-Y", "mle", "-T", "fields"])
        .args(["-e", "mle.cmd", "-e", "mle.tlv.type", "-e", "mle.tlv.len"])
        .arg("-r")
        .arg(path)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn every_message_opens_as_tshark_opens_it() {
    for name in CAPTURES {
        let Some(path) = capture(name) else { return };
        let mut lines = Vec::new();
        for (ends, mut payload) in datagrams(&path) {
            let message = mle::open(&KEY, &ends, &mut payload).unwrap();
            // tshark lists the types in a TLV Request as if they were TLVs.
            let types = message.tlvs.flat_map(|(kind, value)| {
                let named = value.iter().filter(move |_| kind == tlv_type::TLV_REQUEST);
                core::iter::once(kind).chain(named.copied())
            });
            let types: Vec<_> = types.map(|kind| kind.to_string()).collect();
            let lens = message.tlvs.map(|(_, value)| value.len().to_string());
            let lens: Vec<_> = lens.collect();
            let (types, lens) = (types.join(","), lens.join(","));
            lines.push(format!("{}\t{types}\t{lens}", message.command));
        }
        assert!(lines.len() > 8, "{name}: {} messages", lines.len());
        if let Some(theirs) = tshark(&path) {
            assert_eq!(lines, theirs, "{name}");
        } else {
            println!("not compared: tshark is not installed");
        }
    }
}

#[test]
fn what_is_sealed_again_has_the_same_bytes() {
    for name in CAPTURES {
        let Some(path) = capture(name) else { return };
        for (ends, payload) in datagrams(&path) {
            let mut opened = payload.clone();
            let message = mle::open(&KEY, &ends, &mut opened).unwrap();
            let mut out = [0; 127];
            let mut builder = Builder::new(message.command, &mut out);
            for (kind, value) in message.tlvs {
                builder.tlv(kind, &[value]);
            }
            let len = builder.seal(&KEY, &ends, message.numbers).unwrap();
            assert_eq!(out[..len], payload);
        }
    }
}

#[test]
fn a_changed_message_is_forged() {
    let Some(path) = capture("child-rx-on") else {
        return;
    };
    for (ends, payload) in datagrams(&path) {
        for at in 0..payload.len() {
            for bit in 0..8 {
                let mut changed = payload.clone();
                changed[at] ^= 1 << bit;
                let error = mle::open(&KEY, &ends, &mut changed).unwrap_err();
                // The suite, the control byte, the key source and the key index are checked before.
                let expected = match at {
                    0 | 1 | 10 => MleError::Unsecured,
                    6..=9 => error,
                    _ => MleError::Forged,
                };
                assert_eq!(error, expected, "byte {at}, bit {bit}");
            }
        }
        for len in 0..payload.len() {
            assert!(mle::open(&KEY, &ends, &mut payload[..len].to_vec()).is_err());
        }
        let other = Ends {
            src: ends.dst,
            ..ends
        };
        let error = mle::open(&KEY, &other, &mut payload.clone()).unwrap_err();
        assert_eq!(error, MleError::Forged);
    }
}

#[test]
fn network_data_names_the_prefix_of_a_border_router() {
    let Some(path) = capture("child-tcp") else {
        return;
    };
    let mut found = Vec::new();
    for (ends, mut payload) in datagrams(&path) {
        let message = mle::open(&KEY, &ends, &mut payload).unwrap();
        let data = message.tlvs.find(tlv_type::NETWORK_DATA);
        for prefix in data
            .into_iter()
            .flat_map(|data| NetworkData::parse(data).unwrap())
        {
            let router = prefix.border_routers().next().unwrap();
            assert!(router.is(flag::SLAAC | flag::ON_MESH | flag::DEFAULT_ROUTE));
            assert!(prefix.is_stable && !router.is(flag::DNS));
            let context = prefix.context().unwrap();
            assert!(context.compresses && context.bits == 64);
            found.push((message.command, prefix.addr, prefix.bits, context.id));
        }
    }
    let addr = "fd11:22:33:44::".parse().unwrap();
    let expected = [command::DATA_RESPONSE, command::CHILD_ID_RESPONSE];
    assert_eq!(found, expected.map(|command| (command, addr, 64, 1)));
}

/// `netdata show` of an OpenThread leader with `prefix add fd11:22:33:44::/64 paros`, and a route.
#[test]
fn prefixes_are_read_with_their_details() {
    let data = [
        0x03, 0x14, 0x00, 0x40, 0xfd, 0x11, 0x00, 0x22, 0x00, 0x33, 0x00, 0x44, // prefix
        0x07, 0x02, 0x11, 0x40, // context 1, compress
        0x05, 0x04, 0x74, 0x00, 0x33, 0x00, // border router
        0x0b, 0x01, 0x00, // a service: skipped
        0x03, 0x08, 0x00, 0x07, 0xfc, 0x01, 0x03, 0x78, 0x00, 0x00, // fc00::/7, external
    ];
    let mut prefixes = NetworkData::parse(&data).unwrap();
    let prefix = prefixes.next().unwrap();
    assert_eq!(
        (prefix.addr, prefix.bits),
        ("fd11:22:33:44::".parse().unwrap(), 64)
    );
    let context = prefix.context().unwrap();
    assert_eq!(
        (context.id, context.bits, context.compresses),
        (1, 64, true)
    );
    assert!(prefix.is_stable);
    let router = prefix.border_routers().next().unwrap();
    assert_eq!(router.rloc16, 0x7400);
    assert!(router.is(flag::SLAAC | flag::PREFERRED | flag::DEFAULT_ROUTE | flag::ON_MESH));
    assert!(!router.is(flag::DNS));
    let outside = prefixes.next().unwrap();
    assert_eq!((outside.addr, outside.bits), ("fc00::".parse().unwrap(), 7));
    assert_eq!(outside.external_routes().next().unwrap().rloc16, 0x7800);
    assert!(prefixes.next().is_none());
    for len in 0..data.len() {
        // Only whole TLVs are network data.
        let is_whole = [0, 22, 25].contains(&len);
        assert_eq!(
            NetworkData::parse(&data[..len]).is_ok(),
            is_whole,
            "{len} bytes"
        );
    }
}

/// A dataset as `ot-ctl dataset active -x` prints it, in its order.
const DATASET: &str = "0e080000000000010000000300000f35060004001fffe00208dead00beef00cafe0708\
                       fd000db800000000051000112233445566778899aabbccddeeff030a4f70656e5468726561\
                       640102abcd04100102030405060708090a0b0c0d0e0f100c0402a0f7f8";

#[test]
fn a_dataset_is_read_from_what_its_owner_copies() {
    let dataset = Dataset::parse_hex(&format!("{DATASET}\r\nDone\r\n")).unwrap();
    assert_eq!((dataset.channel, dataset.pan), (15, 0xabcd));
    assert_eq!(dataset.network, KEY);
    assert_eq!(dataset.mesh_local_prefix, [0xfd, 0, 0x0d, 0xb8, 0, 0, 0, 0]);
    assert_eq!(dataset.timestamp, [0, 0, 0, 0, 0, 1, 0, 0]);
    // Without one of its TLVs it says which.
    let without = |tlv: &str| Dataset::parse_hex(&DATASET.replacen(tlv, "", 1));
    let missing = [
        ("000300000f", DatasetError::NoChannel),
        ("0102abcd", DatasetError::NoPan),
        ("051000112233445566778899aabbccddeeff", DatasetError::NoKey),
        ("0708fd000db800000000", DatasetError::NoPrefix),
        ("0e080000000000010000", DatasetError::NoTimestamp),
    ];
    for (tlv, error) in missing {
        assert_eq!(without(tlv), Err(error), "{tlv}");
    }
    let other = DATASET.replacen("000300000f", "0003000001", 1);
    assert_eq!(Dataset::parse_hex(&other), Err(DatasetError::OtherBand));
    assert_eq!(Dataset::parse_hex("0x12"), Err(DatasetError::NotHex));
    assert_eq!(Dataset::parse_hex("123"), Err(DatasetError::NotHex));
    assert_eq!(Dataset::parse_hex(""), Err(DatasetError::NoChannel));
    assert_eq!(Dataset::parse_hex("0510"), Err(DatasetError::Truncated));
    assert_eq!(
        Dataset::parse_hex(&"00".repeat(255)),
        Err(DatasetError::TooLong)
    );
}

/// Whatever bytes come: an answer, and no panic.
#[test]
fn mutated_bytes_are_refused_or_read() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let clean: Vec<u8> = (0..DATASET.len() / 2)
        .map(|at| u8::from_str_radix(&DATASET[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let data = [
        0x03, 0x14, 0x00, 0x40, 0xfd, 0x11, 0x00, 0x22, 0x00, 0x33, 0x00, 0x44, 0x07, 0x02, 0x11,
        0x40, 0x05, 0x04, 0x74, 0x00, 0x33, 0x00,
    ];
    let mut readable = 0;
    for _ in 0..20_000 {
        for bytes in [&clean[..], &data] {
            let mut bytes = bytes.to_vec();
            for _ in 0..=next() % 4 {
                let at = next() as usize % bytes.len();
                bytes[at] = next() as u8;
            }
            bytes.truncate(bytes.len() - next() as usize % 3);
            readable += usize::from(Dataset::parse(&bytes).is_ok());
            let Ok(prefixes) = NetworkData::parse(&bytes) else {
                continue;
            };
            for prefix in prefixes {
                readable += prefix.border_routers().count() + prefix.external_routes().count();
                readable += usize::from(prefix.context().is_some());
            }
        }
    }
    assert!(readable > 1_000, "only {readable} were readable");
}
