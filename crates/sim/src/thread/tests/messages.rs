use motet::mac::RadioCapabilities;
use motet::mac::security::NetworkKey;
use motet::random::Rng;

use super::super::RouterOptions;
use super::*;

const KEY: NetworkKey = NetworkKey::new([7; 16]);
const ROUTER: [u8; 8] = [0x02, 1, 1, 1, 1, 1, 1, 1];
const CHILD: [u8; 8] = [0x02, 2, 2, 2, 2, 2, 2, 2];

fn router() -> Router {
    let options = RouterOptions {
        network: KEY,
        sequence: 0,
        pan: 0xabcd,
        extended: ROUTER,
        mesh_local: [0xfd, 0, 0, 0, 0, 0, 0, 0],
        prefix: "fd11:22::".parse().unwrap(),
        timestamp: [0; 8],
        children_max: 4,
        radio: RadioCapabilities::OFFLOADING,
    };
    Router::new(options, Rng::from_seed([1, 2]), Instant::ORIGIN)
}

fn local(extended: [u8; 8]) -> Ipv6Addr {
    let iid = LinkAddr::Extended(extended).iid();
    Ipv6Addr::from_bits(LINK_LOCAL | u128::from(u64::from_be_bytes(iid)))
}

/// A message of the child: its ends, and its payload.
fn message(command: u8, counter: u32, tlvs: &[(u8, &[u8])]) -> (Ends, Vec<u8>) {
    let ends = Ends {
        src: local(CHILD),
        dst: local(ROUTER),
    };
    let mut out = [0; 200];
    let mut builder = Builder::new(command, &mut out);
    for (kind, value) in tlvs {
        builder.tlv(*kind, &[value]);
    }
    let numbers = Numbers {
        sequence: 0,
        counter,
    };
    let len = builder.seal(&KEY, &ends, numbers).unwrap();
    (ends, out[..len].to_vec())
}

/// Its challenge is answered once: a recording takes nothing from a child that is there.
#[test]
fn a_recorded_request_for_an_address_is_refused() {
    let mut router = router();
    let asks = [
        (tlv_type::MODE, &[0x0d][..]),
        (tlv_type::CHALLENGE, &[3; 8]),
        (tlv_type::SCAN_MASK, &[ASKS_ROUTERS]),
    ];
    let (ends, payload) = message(command::PARENT_REQUEST, 1, &asks);
    router.on_mle(ends, payload, Instant::ORIGIN);
    let challenge = router.children.by_extended(CHILD).unwrap().challenge;
    let challenge = challenge.unwrap();
    let asks = [
        (tlv_type::RESPONSE, &challenge[..]),
        (tlv_type::MODE, &[0x0d]),
        (tlv_type::TIMEOUT, &[0, 0, 0, 240]),
    ];
    let (ends, request) = message(command::CHILD_ID_REQUEST, 2, &asks);
    router.on_mle(ends, request.clone(), Instant::ORIGIN);
    assert_eq!(router.counters().attached, 1);
    let (_, update) = message(command::CHILD_UPDATE_REQUEST, 3, &asks[1..]);
    router.on_mle(ends, update, Instant::ORIGIN);
    let before = router.children.by_extended(CHILD).unwrap().mle;
    router.on_mle(ends, request, Instant::ORIGIN);
    let counters = router.counters();
    assert_eq!((counters.attached, counters.refused), (1, 1));
    assert_eq!(router.children.by_extended(CHILD).unwrap().mle, before);
}
