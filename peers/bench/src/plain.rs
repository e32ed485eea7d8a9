//! Against a peer without SACK and without timestamps, as lwIP is on most devices: how long a
//! transfer takes over a pipe that loses, doubles and reorders, with Motet and with `TCPlp` at the
//! other end.
//!
//! There a round trip is measured by what was sent once alone, and losses are told by duplicate
//! ACKs and timeouts alone.

use anyhow::{Context, Result};
use rayon::prelude::*;

use crate::compare::{Estimate, estimate};
use crate::endpoint::Stack;
use crate::pipe::{Harm, transfer};
use crate::transfer::content;

/// One point: a stack that sends to lwIP, or receives from it.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The stack that is measured.
    pub stack: Stack,
    /// Whether it sends.
    pub sends: bool,
    /// What the pipe does.
    pub harm: Harm,
    /// From the first packet to the last byte read, s.
    pub seconds: Estimate,
}

/// Packet losses that are compared.
pub const LOSSES: [f64; 5] = [0.02, 0.04, 0.06, 0.08, 0.10];

/// The stacks that are compared.
pub const STACKS: [Stack; 2] = [Stack::Motet, Stack::Tcplp];

/// Bytes of a transfer.
pub const CONTENT_LEN: usize = 100_000;

/// Measures every point with so many seeds, on all processors; points of one place stand side by
/// side.
///
/// # Errors
/// A transfer that did not end, or gave other bytes.
pub fn measure(seeds: u64) -> Result<Vec<Transfer>> {
    let content = content(CONTENT_LEN, 1);
    let mut places = Vec::new();
    for sends in [true, false] {
        for is_wild in [false, true] {
            for loss in LOSSES {
                for stack in STACKS {
                    places.push((
                        stack,
                        sends,
                        Harm {
                            loss,
                            ..harm(is_wild)
                        },
                    ));
                }
            }
        }
    }
    places
        .into_par_iter()
        .map(|(stack, sends, harm)| {
            let ends = if sends {
                [stack, Stack::Lwip]
            } else {
                [Stack::Lwip, stack]
            };
            let seconds = (1..=seeds).map(|seed| {
                let outcome = transfer(ends, &content, harm, seed).filter(|outcome| outcome.closed);
                let outcome = outcome.with_context(|| format!("{ends:?}, {harm:?}, seed {seed}"));
                Ok(outcome?.took.as_micros() as f64 / 1e6)
            });
            let seconds = seconds.collect::<Result<Vec<_>>>()?;
            Ok(Transfer {
                stack,
                sends,
                harm,
                seconds: estimate(seconds.into_iter()),
            })
        })
        .collect()
}

/// With packets that come twice or late, or without.
fn harm(is_wild: bool) -> Harm {
    match is_wild {
        true => Harm {
            loss: 0.0,
            duplication: 0.05,
            reordering: 0.2,
        },
        false => Harm::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_sack_and_timestamps_a_transfer_takes_no_longer_than_tcplp_s() {
        let transfers = measure(30).expect("every transfer");
        let mut missed = Vec::new();
        for pair in transfers.chunks(STACKS.len()) {
            let [motet, tcplp] = pair else {
                panic!("a stack beside another")
            };
            if motet.seconds.mean > 1.1 * tcplp.seconds.mean {
                missed.push(format!("{motet:?}, TCPlp {:?}", tcplp.seconds));
            }
        }
        assert!(missed.is_empty(), "{}", missed.join("\n"));
    }
}
