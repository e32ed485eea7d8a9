//! A transfer in virtual time, against a host that runs this same stack.

use std::sync::Arc;

use motet::time::Instant;
use motet_lab::{
    Arena,
    apps::{App, Receiver, Sender},
};

use super::{
    Direction,
    transfer::{Follower, Outcome, PORT, Transfer, check_end, sha256, telemetry_text},
};
use crate::error::Error;

/// Events from one look at the transfer to the next: signals and the bar can wait that long.
const EVENTS_PER_LOOK: u32 = 256;

/// Carries the file. Deterministic: nothing here reads a clock but the progress bar.
pub(super) fn carry<'m>(transfer: &mut Transfer<'m>, arena: &'m Arena) -> Result<Outcome, Error> {
    let mote = transfer.chain.mote();
    let host = transfer.chain.host().unwrap_or_default();
    transfer.join()?;
    let (sender, receiver) = match transfer.direction {
        Direction::Up => (mote, host),
        Direction::Down => (host, mote),
    };
    let ends = transfer.chain.host_ends(arena);
    let ends = ends.with(|config| transfer.apply_to_host(config));
    let host_app = match transfer.direction {
        Direction::Up => App::Receiver(Receiver::new(PORT, ends)),
        Direction::Down => {
            let to = (transfer.chain.mote_addr(), PORT);
            App::Sender(Sender::new(Arc::clone(&transfer.content), to, ends))
        }
    };
    // The receiver first: its listener must be there when the SYN comes.
    let began = transfer.chain.world.now();
    match transfer.direction {
        Direction::Up => {
            transfer.chain.world.set_app(host, host_app);
            transfer.start_mote(arena);
        }
        Direction::Down => {
            transfer.start_mote(arena);
            transfer.chain.world.set_app(host, host_app);
        }
    }

    let mut follower = Follower::default();
    let finished = run(transfer, &mut follower, (sender, receiver), began)?;
    let counters = |node: usize| transfer.chain.world.node(node).tcp().counters();
    Ok(Outcome {
        sha256_received: sha256(transfer.received(receiver)),
        duration: finished.since(began),
        segments_sent: u64::from(counters(sender).sent),
        segments_received: u64::from(counters(receiver).received),
        sender: follower.figures(counters(sender)),
    })
}

/// Runs until both ends have closed; returns when the receiver had read everything.
fn run(
    transfer: &mut Transfer<'_>,
    follower: &mut Follower,
    (sender, receiver): (usize, usize),
    began: Instant,
) -> Result<Instant, Error> {
    let never = Instant::from_micros(u64::MAX);
    let mut events = 0u32;
    loop {
        let stuck = !transfer.chain.world.step(never);
        let now = transfer.chain.world.now();
        let (from, to) = (transfer.end(sender), transfer.end(receiver));
        follower.look(&from.telemetry, now);
        transfer.trace(sender, &from.telemetry)?;
        if let Some(finished) = to.finished {
            let counters = |node: usize| transfer.chain.world.node(node).tcp().counters();
            let on_their_way = counters(sender)
                .sent
                .saturating_sub(counters(receiver).received);
            let closed = from.closed && to.closed;
            if stuck || transfer.is_over(finished, closed, on_their_way.into()) {
                return Ok(finished);
            }
        } else {
            check_end("sender", &from, transfer.advice)?;
            check_end("receiver", &to, transfer.advice)?;
            if stuck {
                return Err(Error::failed("the simulated world came to a standstill"));
            }
        }
        events = events.wrapping_add(1);
        if events.is_multiple_of(EVENTS_PER_LOOK) {
            let delivered = transfer.received(receiver).len() as u64;
            transfer.look(delivered)?;
            transfer.show(began, || telemetry_text(&from.telemetry));
        }
    }
}
