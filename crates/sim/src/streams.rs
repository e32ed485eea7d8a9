//! Independent random streams, one for each node and purpose.
//!
//! Purpose: the random numbers of one node never depend on how many another node has drawn. So a
//! change in one place of a scenario does not change the rest, and runs stay comparable.

use motet::random::Rng;

/// The purpose of a stream of random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// The stack's own randomness: backoffs, ISNs, tags.
    Stack = 1,
    /// Whether a frame with bit errors survives at this receiver.
    Reception = 2,
    /// Frame loss injected at this receiver.
    FrameLoss = 3,
    /// Packet loss injected at the border router.
    PacketLoss = 4,
    /// The variation of processor time.
    CpuJitter = 5,
    /// Shadowing and per-node offsets of the air.
    Shadowing = 6,
    /// Choices of the simulated application.
    Application = 7,
    /// Which moment of a recording is heard first.
    Interference = 8,
    /// Where motes of a generated floor are.
    Floor = 9,
    /// When a node is switched on.
    SwitchOn = 10,
    /// Losses and chance on the air of Bluetooth LE.
    Bluetooth = 11,
    /// The frames of attackers, and their times.
    Attack = 12,
    /// When a mote asks for its key.
    Joining = 13,
    /// The backoffs, times and challenges of a Thread router.
    Thread = 14,
}

/// The generator of `node` for `purpose` in the run seeded with `seed`.
///
/// SipHash keyed with the triple: streams are as independent as its output is random.
pub fn stream(seed: u64, node: u32, purpose: Purpose) -> Rng {
    Rng::from_seed([seed, (u64::from(node) << 8) | u64::from(purpose as u8)])
}

/// Draws whether an event of probability `p` happens; consumes one number in every case.
pub fn happens(rng: &mut Rng, p: f64) -> bool {
    // 53 bits: each value is exact in f64, so that the comparison is the same everywhere.
    let unit = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    unit < p
}

/// Draws of all nodes for one purpose, each node's from its own [`stream`].
///
/// All that is kept of a node is how often it has drawn: a frame lets each node in earshot draw,
/// and most outcomes nobody needs.
#[derive(Debug)]
pub(crate) struct Draws {
    seed: u64,
    purpose: Purpose,
    /// How many values were drawn, by node.
    drawn: Vec<u64>,
}

impl Draws {
    /// Streams from which nothing was drawn yet.
    pub(crate) fn new(seed: u64, purpose: Purpose, nodes: usize) -> Self {
        Self {
            seed,
            purpose,
            drawn: vec![0; nodes],
        }
    }

    /// Draws whether an event of probability `p` happens at `node`.
    pub(crate) fn happens(&mut self, node: usize, p: f64) -> bool {
        // Lossless: no world has four thousand million nodes.
        let mut rng = stream(self.seed, node as u32, self.purpose);
        rng.skip(self.drawn[node]);
        self.pass(node);
        happens(&mut rng, p)
    }

    /// As [`Self::happens`], where nobody needs to know.
    pub(crate) fn pass(&mut self, node: usize) {
        self.drawn[node] += 1;
    }
}

/// A standard normal variate (Box and Muller).
pub(crate) fn gaussian(rng: &mut Rng) -> f64 {
    let unit = |rng: &mut Rng| ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, angle) = (unit(rng), unit(rng));
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * std::f64::consts::PI * angle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_node_and_purpose_and_repeat() {
        let first = |seed, node, purpose| stream(seed, node, purpose).next_u64();
        let base = first(1, 1, Purpose::Stack);
        assert_eq!(base, first(1, 1, Purpose::Stack));
        for other in [
            first(2, 1, Purpose::Stack),
            first(1, 2, Purpose::Stack),
            first(1, 1, Purpose::Reception),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn draws_of_many_nodes_are_those_of_their_streams() {
        let mut draws = Draws::new(7, Purpose::Reception, 3);
        let mut streams = [0, 1, 2].map(|node| stream(7, node, Purpose::Reception));
        for round in 0..60 {
            let node = round % 3;
            let expected = happens(&mut streams[node], 0.5);
            match round % 4 {
                0 => draws.pass(node),
                _ => assert_eq!(draws.happens(node, 0.5), expected, "{round}"),
            }
        }
    }

    #[test]
    fn probabilities_are_met() {
        let mut rng = stream(7, 0, Purpose::FrameLoss);
        assert!(!(0..1000).any(|_| happens(&mut rng, 0.0)));
        assert!((0..1000).all(|_| happens(&mut rng, 1.0)));
        let hits = (0..20_000).filter(|_| happens(&mut rng, 0.1)).count();
        assert!((1_850..2_150).contains(&hits), "{hits} of 20000 at p = 0.1");
    }
}
