//! The image's own functions for memory (`minimal_node::memory`), held against the language.

use core::hint::black_box;

/// Room around each place that is written, so that a byte too many is seen.
const ROOM: usize = 64;

/// Copies longer than nine words, with every rest.
const LEN_MAX: usize = 39;

/// Copies, moves and fills of each length from and to each alignment.
pub(crate) fn memory_is_right() -> bool {
    (0..=LEN_MAX).all(|len| {
        (0..4).all(|from| (0..4).all(|to| copies(len, from, to)))
            && (0..4).all(|at| fills(len, at, 0) && fills(len, at, 0xa5))
            && (0..12).all(|from| (0..12).all(|to| moves(len, from, to)))
    })
}

/// Bytes that differ from their neighbours.
const fn original(place: usize) -> u8 {
    (place * 7 + 3) as u8
}

fn painted() -> [u8; ROOM] {
    core::array::from_fn(original)
}

fn copies(len: usize, from: usize, to: usize) -> bool {
    let source = painted();
    let mut target = [0xee; ROOM];
    let (Some(source), Some(room)) = (
        source.get(from..from + black_box(len)),
        target.get_mut(to..to + black_box(len)),
    ) else {
        return false;
    };
    room.copy_from_slice(source);
    (0..ROOM).zip(&target).all(|(place, &byte)| {
        byte == match place.checked_sub(to) {
            Some(offset) if offset < len => original(from + offset),
            _ => 0xee,
        }
    })
}

fn moves(len: usize, from: usize, to: usize) -> bool {
    let mut bytes = painted();
    bytes.copy_within(from..from + black_box(len), to);
    (0..ROOM).zip(&bytes).all(|(place, &byte)| {
        byte == match place.checked_sub(to) {
            Some(offset) if offset < len => original(from + offset),
            _ => original(place),
        }
    })
}

fn fills(len: usize, at: usize, value: u8) -> bool {
    let mut bytes = painted();
    let Some(room) = bytes.get_mut(at..at + black_box(len)) else {
        return false;
    };
    room.fill(black_box(value));
    (0..ROOM).zip(&bytes).all(|(place, &byte)| {
        byte == match place.checked_sub(at) {
            Some(offset) if offset < len => value,
            _ => original(place),
        }
    })
}
