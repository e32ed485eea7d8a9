//! The driver of the nRF52840's radio on the model of its registers: whatever is on the air,
//! whatever is asked, whichever interrupts are lost, its receiver runs on.

use motet_nrf::Frames;

use crate::input::Input;
use model::Bench;
use model::turns::{Turn, runs_on};

#[path = "../../nrf/tests/model/mod.rs"]
mod model;

thread_local! {
    /// The memory that a driver borrows is never returned, so all runs of a thread share it.
    static FRAMES: &'static Frames = Box::leak(Box::new(Frames::new()));
}

/// Takes the steps that the input says.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let bench = Bench::over(FRAMES.with(|frames| *frames), input.u32());
    let turns = std::iter::from_fn(|| (!input.is_empty()).then(|| turn(&mut input)));
    runs_on(bench, turns.take(TURNS_MAX));
}

fn turn(input: &mut Input<'_>) -> Turn {
    match input.u8() & 15 {
        0 => Turn::Frame {
            phr: input.u8(),
            is_crc_good: input.flag(),
            bytes: input.block().to_vec(),
        },
        1 => Turn::Mine(input.u8()),
        2 => Turn::Act(input.u8() % 7, input.u8()),
        3 => Turn::Wait(input.u16() % 6_000),
        4 => Turn::Lose,
        5 => Turn::Latency(input.u8()),
        6 => Turn::Poll,
        7 => Turn::Access(input.u8()),
        _ => Turn::Check,
    }
}

/// For [`run`]: frames of the shortest and the longest lengths, with a sum that is right and with
/// one that is not; frames for this node; each action; an interrupt that is lost, one that is late,
/// and registers that are slow.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    const WAIT: [u8; 3] = [3, 20, 0];
    let mut seeds = Vec::new();
    for phr in [0, 1, 2, 3, 5, 126, 127, 128, 255] {
        for is_crc_good in [0, 1] {
            let bytes = [0x41; 130];
            let mut seed = vec![0, 0, 0, 7, 0, phr, is_crc_good, 130];
            seed.extend(bytes);
            seed.extend(WAIT);
            seeds.push(seed);
        }
    }
    let start = [0xff, 0xff, 0xff, 0xf0];
    for kind in 0..7 {
        for value in [0, 26, 60, 127, 200] {
            seeds.push([&start[..], &[2, kind, value], &WAIT, &[1, 9], &WAIT, &[6]].concat());
        }
    }
    for turn in [&[4][..], &[5, 90], &[7, 100], &[8]] {
        seeds.push([&start[..], turn, &[1, 1], &WAIT, &[1, 2], &WAIT, &[8]].concat());
    }
    seeds
}

/// As many steps as the model takes within milliseconds.
const TURNS_MAX: usize = 60;
