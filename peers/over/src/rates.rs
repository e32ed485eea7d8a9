//! How fast both stacks are above the same driver, link and losses, with the same peer.

use std::net::SocketAddrV6;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::clock::{self, Executor, now_us};
use crate::device::{BUFFERS, End, Kind, Task};
use crate::host::{HOST, Host, PORT};
use crate::link::{Air, Loss, carry};
use crate::report::{Report, Row, rounded};
use crate::shim::Shim;

/// One comparison.
struct Case {
    check: &'static str,
    sends: bool,
    loss: Loss,
    /// How many times as fast as embassy-net Motet has to be, and what would be better.
    must: f64,
    moonshot: f64,
}

const CASES: &[Case] = &[
    Case {
        check: "sending, nothing lost",
        sends: true,
        loss: Loss::Packets(0.0),
        must: 1.0,
        moonshot: 1.05,
    },
    Case {
        check: "sending, 3 % of packets lost",
        sends: true,
        loss: Loss::Packets(0.03),
        must: 1.2,
        moonshot: 1.5,
    },
    Case {
        check: "sending, 10 % of packets lost",
        sends: true,
        loss: Loss::Packets(0.1),
        must: 1.3,
        moonshot: 2.0,
    },
    Case {
        check: "sending, 1 % of 80-byte frames lost",
        sends: true,
        loss: Loss::Frames(0.01),
        must: 1.5,
        moonshot: 2.5,
    },
    Case {
        check: "receiving, nothing lost",
        sends: false,
        loss: Loss::Packets(0.0),
        must: 1.0,
        moonshot: 1.05,
    },
    Case {
        check: "receiving, 3 % of packets lost",
        sends: false,
        loss: Loss::Packets(0.03),
        must: 1.0,
        moonshot: 1.2,
    },
    Case {
        check: "receiving, 10 % of packets lost",
        sends: false,
        loss: Loss::Packets(0.1),
        must: 1.0,
        moonshot: 1.2,
    },
];

/// Runs every case with each size of buffers and so many seeds; the note has both rates for each
/// size.
pub(crate) fn run(report: &mut Report, seeds: u64) -> Result<()> {
    for case in CASES {
        // Whole seconds of each size count alike.
        let (mut sums, mut notes) = ([0.0; 2], Vec::new());
        for buffer in BUFFERS {
            let mut seconds = [0.0; 2];
            for seed in 1..=seeds {
                for (kind, sum) in [Kind::Motet, Kind::EmbassyNet]
                    .into_iter()
                    .zip(&mut seconds)
                {
                    let took = transfer(kind, case, buffer, seed);
                    *sum += took.with_context(|| format!("{kind:?}, {}, {seed}", case.check))?;
                }
            }
            let [ours, theirs] = seconds.map(|sum| seeds as f64 * LEN as f64 / 1000.0 / sum);
            notes.push(format!("{ours:.2}/{theirs:.2}"));
            sums = [sums[0] + seconds[0], sums[1] + seconds[1]];
        }
        let ratio = sums[1] / sums[0];
        let note = format!("{} kB/s", notes.join(", "));
        let row = Row::new(case.check, ratio, "x", rounded(ratio) >= case.must);
        report.add(row.moonshot(rounded(ratio) >= case.moonshot).note(note));
    }
    Ok(())
}

/// Carries [`LEN`] bytes; gives the seconds until the last of them was read.
fn transfer(kind: Kind, case: &Case, buffer: usize, seed: u64) -> Result<f64> {
    let (sends, loss) = (case.sends, case.loss);
    clock::restart(false);
    let mut executor = Executor::default();
    let shim = Shim::default();
    let (task, of_host) = match sends {
        true => (Task::Send(LEN), 0),
        false => (Task::Receive, LEN),
    };
    let air = Air::new(&shim, Host::new(of_host, seed), loss, seed);
    executor.spawn(carry(air.clone()));
    let remote = SocketAddrV6::new(HOST, PORT, 0, 0);
    let (_, outcome) = kind.start(&mut executor, &shim, (remote, task), (buffer, seed));
    let is_over = || match sends {
        true => air.borrow().host.read >= LEN || outcome.end.get() == End::Failed,
        false => outcome.read.get() >= LEN || outcome.end.get() != End::Open,
    };
    ensure!(executor.run_until(LIMIT, is_over), "it hangs");
    let read = match sends {
        true => air.borrow().host.read,
        false => outcome.read.get(),
    };
    ensure!(read == LEN, "{read} of {LEN} bytes came");
    Ok(now_us() as f64 / 1e6)
}

/// Bytes of a transfer.
const LEN: usize = 100_000;
/// Virtual time.
const LIMIT: Duration = Duration::from_secs(3600);
