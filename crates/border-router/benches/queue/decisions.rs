//! What a policy's decisions cost, without the kernel.

use std::time::Instant;

use motet::time::{Duration, Instant as Now};
use motet_taim::{Config, Direction, Packet, PacketId, Policy, Router};

/// Prints how many packets a second each policy can decide about, with so many flows: data out of
/// the mesh and its acknowledgment in turn.
pub(super) fn report(flows: u32, scale: u32, segment: impl Fn(u32, u32) -> Vec<u8>) {
    println!("decisions about {flows} flows, packets a second (target 50000):");
    for name in Policy::NAMES {
        let policy: Policy = name.parse().expect("a name");
        let mut router = Router::new(Config::new(policy));
        let mut now = Now::ORIGIN;
        let rounds = (200_000 / scale / flows).max(1);
        let packets: Vec<(Direction, Vec<u8>)> = (0..rounds)
            .flat_map(|round| (0..flows).map(move |flow| (flow, round)))
            .flat_map(|(flow, round)| {
                let data = segment(flow, round);
                let answer = answer(&data);
                [(Direction::Up, data), (Direction::Down, answer)]
            })
            .collect();
        let begun = Instant::now();
        let mut left = 0_u64;
        for ((direction, packet), id) in packets.iter().zip(0..) {
            let offered = Packet {
                id: PacketId(id),
                direction: *direction,
                headers: packet,
                len: packet.len(),
            };
            let _ = router.on_packet(&offered, now);
            while router.poll(now).is_some() {
                left += 1;
            }
            now += SPACING;
        }
        let rate = packets.len() as f64 / begun.elapsed().as_secs_f64();
        let held = router.counters().held;
        println!(
            "  {name:<14} {rate:>9.0}     ({held} of {} held, {left} let go)",
            packets.len()
        );
    }
}

/// The acknowledgment of a segment.
fn answer(data: &[u8]) -> Vec<u8> {
    let len = u32::from(data[5]) - 20;
    let mut packet = data[..60].to_vec();
    packet[5] = 20;
    packet[8..24].copy_from_slice(&data[24..40]);
    packet[24..40].copy_from_slice(&data[8..24]);
    packet[40..42].copy_from_slice(&data[42..44]);
    packet[42..44].copy_from_slice(&data[40..42]);
    let seq = u32::from_be_bytes([data[44], data[45], data[46], data[47]]);
    packet[44..48].copy_from_slice(&data[48..52]);
    packet[48..52].copy_from_slice(&seq.wrapping_add(len).to_be_bytes());
    packet
}

/// From one packet to the next.
const SPACING: Duration = Duration::from_millis(1);
