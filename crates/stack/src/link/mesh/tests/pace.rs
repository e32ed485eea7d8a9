//! Whom a measured pace leaves alone, and whom never.

use super::*;
use crate::link::arrival::Report;
use crate::link::mesh::{Mesh, MeshConfig, MeshMemory, Pacing};
use crate::lowpan::{HeaderForms, LinkPair, TcpForm};
use crate::mac::{
    Class, Config, Flow, Frame, FrameDrop, FrameSlot, Neighbor, Outcome, RadioCapabilities,
};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::LinkAddr;
use std::boxed::Box;
use std::vec;

const PARENT: LinkAddr = LinkAddr::Short(1);
const CHILD: LinkAddr = LinkAddr::Short(2);
const OTHER: LinkAddr = LinkAddr::Short(3);
const MS: fn(u64) -> Duration = Duration::from_millis;
const NOW: fn(u64) -> Instant = |ms| Instant::ORIGIN + MS(1_000 + ms);

/// 20 ms before `NOW(0)`.
const LATELY: Instant = Instant::from_micros(980_000);

/// A node two hops from the border router and two from the last mote, that has just begun.
fn mesh() -> Mesh<'static> {
    mesh_with(Pacing {
        hops_up: 2,
        hops_down: 2,
        ..Pacing::MEASURED
    })
}

fn mesh_with(pacing: Pacing) -> Mesh<'static> {
    let memory = MeshMemory {
        frames: Box::leak(vec![FrameSlot::EMPTY; 4].into()),
        neighbors: Box::leak(vec![Neighbor::EMPTY; 4].into()),
        records: &mut [],
        bodies: &mut [],
        body_len: 1_280,
        outgoing: Box::leak(vec![0; 1_280].into()),
        queue: Box::leak(vec![0; 1_280].into()),
        registrations: &mut [],
    };
    let config = MeshConfig {
        pacing,
        ..MeshConfig::default()
    };
    let mac = Config::new(1, [1; 8]);
    let mut rng = Rng::from_seed([1, 2]);
    let mut mesh = Mesh::new(config, (mac, RadioCapabilities::CC2420), memory, &mut rng).unwrap();
    // The radio is tuned, and listens.
    let mut out = [0; 127];
    while mesh.mac.poll_action(NOW(0), &mut rng, &mut out).is_some() {}
    mesh
}

/// A frame without a copy that took so long, until now.
fn taken(to: LinkAddr, now: Instant, ms: u64) -> Outcome {
    Outcome {
        token: 1,
        to,
        delivered: true,
        acknowledged: true,
        reason: None,
        attempts: 1,
        unsent: 0,
        started: Instant::from_micros(now.as_micros() - ms * 1_000),
        copied: Duration::ZERO,
    }
}

/// As if a packet had just gone to `to`: what follows is part of a flow.
fn went(mesh: &mut Mesh<'_>, to: LinkAddr, now: Instant) {
    let flow = Flow {
        token: 0,
        taken_at: now,
        ..Flow::NONE
    };
    mesh.mac.note_flow(to, flow);
}

/// When a frame to `to` that is queued now would begin.
fn begins(mesh: &mut Mesh<'_>, to: LinkAddr, now: Instant) -> Instant {
    let frame = Frame {
        to,
        token: 9,
        payload: &[1],
        class: Class::Control,
        since: now,
    };
    mesh.mac.enqueue(&frame).unwrap();
    let at = mesh.mac.next_deadline().unwrap().max(now);
    mesh.mac.cancel(9);
    at
}

/// Nodes measure their pace unless they are told not to, and retries go with it.
#[cfg(feature = "pace")]
#[test]
fn the_pace_is_measured_by_default() {
    let default = MeshConfig::default().pacing;
    assert_eq!(default, Pacing::MEASURED);
    assert!(mesh_with(default).mac.config().retry_doubles);
    let by_hand = Pacing {
        step: MS(7),
        hops_up: 2,
        ..Pacing::default()
    };
    let mut mesh = mesh_with(by_hand);
    assert!(!mesh.mac.config().retry_doubles);
    mesh.pace(true, &taken(PARENT, NOW(0), 2), NOW(0));
    assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(7));
    let mut mesh = mesh_with(Pacing::default());
    mesh.pace(true, &taken(PARENT, NOW(0), 2), NOW(0));
    assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(0));
}

/// Nothing is known yet: neither a request nor the first frame of a packet waits.
#[test]
fn the_first_frame_waits_for_nothing() {
    let mut mesh = mesh();
    assert_eq!(mesh.mac.exchange(PARENT), None);
    assert_eq!(mesh.mac.etx(PARENT), None);
    assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(0));
}

/// Each frame counts for itself, so that the pace of short ones between long ones is quick.
#[test]
fn a_pace_is_that_of_the_last_frame() {
    for ms in [2, 8, 2] {
        let mut mesh = mesh();
        went(&mut mesh, PARENT, LATELY);
        mesh.pace(true, &taken(PARENT, NOW(0), ms), NOW(0));
        // Twice as long as it took, from its start.
        assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(ms));
        assert_eq!(begins(&mut mesh, PARENT, NOW(ms + 1)), NOW(ms + 1));
    }
}

/// A packet that none has gone closely ahead of has the path for itself: none of its fragments
/// waits, but the packet behind it does, and it ends when its answer may have come.
#[test]
fn a_lone_packet_is_not_paced() {
    let mut mesh = mesh();
    let of = |token, now| Outcome {
        token,
        ..taken(PARENT, now, 4)
    };
    for ms in [0, 5, 10] {
        mesh.pace(true, &of(1, NOW(ms)), NOW(ms));
        assert_eq!(begins(&mut mesh, PARENT, NOW(ms)), NOW(ms));
    }
    mesh.pace(true, &of(2, NOW(20)), NOW(20));
    assert_eq!(begins(&mut mesh, PARENT, NOW(20)), NOW(24));
    // Sixteen exchanges of four milliseconds for each of two hops up and two down.
    for (token, ms, waits) in [(3, 20 + 259, true), (4, 279 + 260, false)] {
        mesh.pace(true, &of(token, NOW(ms)), NOW(ms));
        assert_eq!(begins(&mut mesh, PARENT, NOW(ms)) > NOW(ms), waits, "{ms}");
    }
    // What went to one neighbour says nothing of what goes to another.
    mesh.pace(false, &taken(CHILD, NOW(540), 4), NOW(540));
    assert_eq!(begins(&mut mesh, CHILD, NOW(540)), NOW(540));
}

/// What one neighbour took says nothing of another: several children, a parent that changed.
#[test]
fn a_pace_is_that_of_one_neighbour() {
    let mut mesh = mesh();
    went(&mut mesh, CHILD, LATELY);
    went(&mut mesh, PARENT, LATELY);
    mesh.pace(false, &taken(CHILD, NOW(0), 8), NOW(0));
    mesh.pace(true, &taken(PARENT, NOW(0), 4), NOW(0));
    assert_eq!(begins(&mut mesh, CHILD, NOW(0)), NOW(8));
    assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(4));
    assert_eq!(begins(&mut mesh, OTHER, NOW(0)), NOW(0));
}

/// Where RPL leads, the rank says how far frames go up, and the source route of a packet down how
/// far that goes; both hold for the next frame.
#[cfg(feature = "rpl")]
#[test]
fn routing_says_how_far_frames_go() {
    let mut mesh = mesh_with(Pacing::MEASURED);
    // Copies that take no time: four hops are in earshot.
    for (hops, waits_us) in [(1, 0), (2, 4_000), (3, 8_000), (9, 12_000)] {
        mesh.settle(None, hops);
        mesh.settings.pacing.note_down(Some(hops));
        for (is_router, to) in [(true, PARENT), (false, CHILD)] {
            let mut fresh = mesh_with(mesh.settings.pacing);
            went(&mut fresh, to, LATELY);
            fresh.pace(is_router, &taken(to, NOW(0), 4), NOW(0));
            let waits = begins(&mut fresh, to, NOW(0)).since(NOW(0));
            assert_eq!(waits.as_micros(), waits_us, "{hops}");
        }
    }
}

/// A packet for the relay itself is passed on by nobody: its next frame follows at once, while
/// those of other packets wait as ever.
#[test]
fn what_goes_no_further_is_not_paced() {
    let of = |token, now| Outcome {
        token,
        ..taken(CHILD, now, 4)
    };
    let mut mesh = mesh();
    for tag in 100..110 {
        mesh.last_hops.note(tag, false);
    }
    went(&mut mesh, CHILD, LATELY);
    mesh.pace(false, &of(109, NOW(0)), NOW(0));
    assert_eq!(begins(&mut mesh, CHILD, NOW(0)), NOW(0));
    // One that passed on long ago is forgotten.
    for tag in [7, 100] {
        let mut mesh = mesh_with(mesh.settings.pacing);
        mesh.last_hops.note(109, false);
        went(&mut mesh, CHILD, LATELY);
        mesh.pace(false, &of(tag, NOW(0)), NOW(0));
        assert_eq!(begins(&mut mesh, CHILD, NOW(0)), NOW(4), "{tag}");
    }
}

/// A flow to the relay itself takes the relay's time from others as any flow does: it is known as
/// one, and makes way where it contends with them.
#[cfg(feature = "pace")]
#[test]
fn a_flow_to_a_relay_itself_makes_way() {
    for (hops_up, failed, waits_us) in [(2, 0, 0), (2, 10, 4_500), (1, 10, 0)] {
        let mut mesh = mesh_with(Pacing {
            hops_up,
            ..Pacing::MEASURED
        });
        for attempt in 0..20 {
            let took = (attempt >= failed).then_some(MS(4));
            mesh.mac.note_attempt(PARENT, took, LATELY);
        }
        went(&mut mesh, PARENT, LATELY);
        mesh.last_hops.note(1, false);
        mesh.pace(true, &taken(PARENT, NOW(0), 4), NOW(0));
        let flow = mesh.mac.flow(PARENT);
        assert_eq!((flow.token, flow.taken_at), (1, NOW(0)), "{failed}");
        let waits = begins(&mut mesh, PARENT, NOW(0)).since(NOW(0));
        assert_eq!(waits.as_micros(), waits_us, "{hops_up} {failed}");
    }
}

/// Of two sources the one that loses slows down to half of its pace, and to little less: at a quarter
/// it would leave the air to the other. A busy channel slows nobody down: a lone source hears its own
/// relay.
#[cfg(feature = "pace")]
#[test]
fn a_source_that_loses_keeps_half_of_the_air() {
    let apart = |hops_up: u8, failed: usize, busy: usize, copy_us: u64| {
        let mut mesh = mesh_with(Pacing {
            hops_up,
            ..Pacing::MEASURED
        });
        for attempt in 0..24 {
            let took = (attempt >= failed).then_some(MS(4));
            mesh.mac.note_attempt(PARENT, took, LATELY);
        }
        (0..busy).for_each(|_| mesh.mac.note_busy_for(PARENT));
        went(&mut mesh, PARENT, LATELY);
        let frame = Outcome {
            copied: Duration::from_micros(copy_us),
            ..taken(PARENT, NOW(0), 4)
        };
        mesh.pace(true, &frame, NOW(0));
        // From the start of a frame, which took 4 ms and its copy, to the next one.
        begins(&mut mesh, PARENT, NOW(0)).since(NOW(0)) + MS(4) + frame.copied
    };
    for (hops, copy_us) in [(2, 0), (3, 0), (6, 0), (2, 1_000), (6, 1_000)] {
        let alone = apart(hops, 0, 0, copy_us).as_micros();
        // 1.3, 2, 3 and 12 attempts a frame.
        for (failed, percent) in [(6, 100), (12, 212), (16, 262), (22, 400)] {
            for busy in [0, 20] {
                let slowed = apart(hops, failed, busy, copy_us).as_micros();
                assert_eq!(
                    slowed * 100 / alone,
                    percent,
                    "{hops} {failed} {busy} {copy_us}"
                );
            }
        }
    }
}

/// A solicitation or a DIO to the router is no flow: a reading behind it is as free as before.
#[cfg(feature = "pace")]
#[test]
fn a_message_of_control_to_a_relay_is_no_flow() {
    for (is_control, follows) in [(true, false), (false, true)] {
        let mut mesh = mesh_with(Pacing {
            hops_up: 3,
            ..Pacing::MEASURED
        });
        mesh.last_hops.note(1, is_control);
        mesh.pace(true, &taken(PARENT, NOW(0), 4), NOW(0));
        let reading = Outcome {
            token: 2,
            copied: Duration::from_micros(500),
            ..taken(PARENT, NOW(50), 4)
        };
        mesh.pace(true, &reading, NOW(50));
        let waits = begins(&mut mesh, PARENT, NOW(50)) > NOW(50);
        assert_eq!(waits, follows, "{is_control}");
    }
}

/// A relay passes on a flow as if it were its own, and so as long as it comes: a source later yields
/// to others, although it has a child.
#[cfg(feature = "pace")]
#[test]
fn a_router_that_passed_on_a_flow_long_ago_is_a_source() {
    for (later_ms, yields) in [(100, false), (3_400, false), (3_600, true)] {
        let mut mesh = mesh();
        for attempt in 0..20 {
            let took = (attempt >= 10).then_some(MS(4));
            mesh.mac.note_attempt(PARENT, took, LATELY);
        }
        for ms in [0, 20] {
            mesh.mac.note_arrival(PARENT, CHILD, NOW(ms));
        }
        let now = NOW(20 + later_ms);
        went(&mut mesh, PARENT, now);
        mesh.pace(true, &taken(PARENT, now, 4), now);
        let waits = begins(&mut mesh, PARENT, now).since(now);
        assert_eq!(waits > MS(4), yields, "{later_ms}");
    }
}

/// A router whose child sends readings beside this node's own bulk data is a source; one that passes
/// on as much as it sends is a relay.
#[cfg(feature = "pace")]
#[test]
fn a_router_that_passes_on_little_beside_its_own_is_a_source() {
    for (passed_on, yields) in [(2, true), (10, true), (40, false)] {
        let mut mesh = mesh();
        for attempt in 0..20 {
            let took = (attempt >= 10).then_some(MS(4));
            mesh.mac.note_attempt(PARENT, took, LATELY);
        }
        // Of 110 own frames, as many each time before one of the child.
        for frame in 0..passed_on {
            mesh.mac.note_own(PARENT, 110 / passed_on);
            mesh.mac.note_arrival(PARENT, CHILD, NOW(20 * frame as u64));
        }
        let now = NOW(20 * passed_on as u64);
        went(&mut mesh, PARENT, now);
        mesh.pace(true, &taken(PARENT, now, 4), now);
        let waits = begins(&mut mesh, PARENT, now).since(now);
        assert_eq!(waits > MS(4), yields, "{passed_on}");
    }
}

/// A border router is one of several sources where packets of several frames come up against its own.
#[cfg(feature = "pace")]
#[test]
fn a_border_router_makes_way_for_what_comes_against_it() {
    for (failed, comes_up, yields) in [(10, true, true), (10, false, false), (0, true, false)] {
        // Later than ticks that a node which heard no fragment yet would take for its last one's.
        let now = NOW(9_000);
        let mut mesh = mesh_with(Pacing {
            hops_up: 0,
            hops_down: 3,
            ..Pacing::MEASURED
        });
        for attempt in 0..20 {
            let took = (attempt >= failed).then_some(MS(4));
            mesh.mac.note_attempt(CHILD, took, now);
        }
        if comes_up {
            mesh.mac.note_fragment(CHILD, now);
        }
        went(&mut mesh, CHILD, now);
        mesh.pace(false, &taken(CHILD, now, 4), now);
        let waits = begins(&mut mesh, CHILD, now).since(now);
        assert_eq!(waits > MS(20), yields, "{failed} {comes_up}: {waits:?}");
    }
}

/// A border router rests after some frames of a stream over one channel if packets go over several
/// hops; a mote never does.
#[cfg(all(feature = "entry", feature = "pace"))]
#[test]
fn a_border_router_rests_where_motes_may_not_hear_it() {
    for (hops_up, hops_down, is_router, comes_up, rest_ms) in [
        (0, 2, false, false, 8 * 4),
        (0, 2, false, true, 20 * 4),
        (0, 1, false, true, 0),
        (1, 2, false, true, 0),
        (1, 2, true, true, 0),
    ] {
        let mut mesh = mesh_with(Pacing {
            hops_up,
            hops_down,
            ..Pacing::MEASURED
        });
        let mut now = NOW(9_000);
        for addr in [CHILD, OTHER] {
            mesh.mac.note_attempt(addr, Some(MS(4)), now);
        }
        went(&mut mesh, CHILD, now);
        // The border router's frames for a neighbour have no pace.
        mesh.last_hops.note(1, false);
        let mut longest = MS(0);
        for _ in 0..60 {
            if comes_up {
                mesh.note_first_fragment(OTHER, true, now);
            }
            mesh.pace(is_router, &taken(CHILD, now, 4), now);
            let begins = begins(&mut mesh, CHILD, now);
            longest = longest.max(begins.since(now));
            now = now.max(begins) + MS(4);
        }
        let expected = MS(rest_ms);
        let slack = MS(24);
        assert!(
            longest >= expected && longest < expected + slack,
            "{hops_up} {hops_down} {is_router} {comes_up}: {longest:?}"
        );
    }
}

/// Of several flows of fragments, each from a sender to a node, the first fragment after so many
/// ms, the next ones so far apart: whether a relay makes the last one of each flow wait.
#[cfg(all(feature = "pace", feature = "cit"))]
fn wait_for_the_next(fragments: &[(LinkAddr, LinkAddr, u64, u64)]) -> vec::Vec<bool> {
    use crate::link::mesh::{Forwarding, forward::FragmentOrigin};
    use crate::mac::{Received, RxMeta};
    use crate::wire::lowpan_frag;

    let mut mesh = mesh();
    mesh.settings.forwarding = Forwarding::Immediate;
    for addr in [PARENT, CHILD, OTHER] {
        mesh.mac.note_attempt(addr, Some(MS(4)), NOW(0));
    }
    let mut all: vec::Vec<(u64, usize)> = vec![];
    for (which, (_, _, begin, apart)) in fragments.iter().enumerate() {
        all.extend((0..100).map(|n| (begin + n * apart, which)));
    }
    all.sort();
    let mut waits = vec![false; fragments.len()];
    for (ms, which) in all {
        let (src, to, ..) = fragments[which];
        let frame = Received {
            src,
            dst: LinkAddr::Short(9),
            payload: &[],
            pending: true,
            meta: RxMeta {
                rssi_dbm: -60,
                lqi: 255,
                channel: 26,
                at: NOW(ms),
            },
        };
        let came = FragmentOrigin::new(&frame, NOW(ms) + Duration::from_micros(2_200));
        let header = lowpan_frag::Header {
            datagram_size: 400,
            datagram_tag: 7,
            datagram_offset: Some(20),
        };
        let before = mesh.mac.counters().conditional;
        mesh.note_promise(came);
        mesh.relay_later(to, header, &[0; 80], came).unwrap();
        waits[which] = mesh.mac.counters().conditional > before;
        mesh.mac.cancel(7);
    }
    waits
}

/// A fragment waits for the next one of the same sender: how often others send says nothing of that,
/// nor where the next one goes. It waits from when it has been copied.
#[cfg(all(feature = "pace", feature = "cit"))]
#[test]
fn a_fragment_waits_only_for_a_sender_that_keeps_its_promises() {
    for (fragments, expected) in [
        (&[(CHILD, PARENT, 0, 31)][..], &[true][..]),
        (&[(CHILD, PARENT, 0, 33)], &[false]),
        // Two slow ones take turns.
        (
            &[(CHILD, PARENT, 0, 45), (OTHER, PARENT, 22, 45)],
            &[false, false],
        ),
        // A slow one beside a quick one.
        (
            &[(CHILD, PARENT, 0, 45), (OTHER, PARENT, 7, 20)],
            &[false, true],
        ),
        // A router sends to two nodes in turn.
        (
            &[(PARENT, CHILD, 0, 40), (PARENT, OTHER, 20, 40)],
            &[true, true],
        ),
    ] {
        assert_eq!(wait_for_the_next(fragments), expected, "{fragments:?}");
    }
}

/// A frame for all is passed on by nobody in particular.
#[test]
fn frames_for_all_are_not_paced() {
    let mut mesh = mesh();
    mesh.pace(true, &taken(LinkAddr::BROADCAST, NOW(0), 8), NOW(0));
    assert_eq!(begins(&mut mesh, LinkAddr::BROADCAST, NOW(0)), NOW(0));
    assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(0));
}

/// A neighbour that does not answer has nothing to pass on.
#[test]
fn a_neighbour_that_has_gone_is_not_waited_for() {
    let mut mesh = mesh();
    let gone = Outcome {
        delivered: false,
        reason: Some(FrameDrop::NoAck),
        ..taken(PARENT, NOW(0), 8)
    };
    mesh.on_outcome(None, &gone, NOW(0));
    assert_eq!(begins(&mut mesh, PARENT, NOW(0)), NOW(0));
}

/// A neighbour that does not answer is reported; a channel that stays busy is congestion, as is a
/// frame that has waited for too long.
#[test]
fn a_busy_channel_is_not_reported() {
    for (reason, is_reported) in [
        (FrameDrop::NoAck, true),
        (FrameDrop::Silent, true),
        (FrameDrop::RadioSilent, true),
        (FrameDrop::ChannelBusy, false),
        (FrameDrop::TooOld, false),
        (FrameDrop::Cancelled, false),
    ] {
        let mut mesh = mesh();
        let link = LinkPair {
            src: OTHER,
            dst: PARENT,
        };
        let forms = HeaderForms::from(TcpForm::Plain);
        mesh.outgoing.start(100, forms, link, 1, 80, 0).unwrap();
        let gone = Outcome {
            delivered: false,
            acknowledged: false,
            reason: Some(reason),
            ..taken(PARENT, NOW(0), 8)
        };
        mesh.on_outcome(None, &gone, NOW(0));
        let report = mesh.poll_report();
        let found = matches!(report, Some(Report::Undelivered(_)));
        assert_eq!(found, is_reported, "{reason:?}");
    }
}
