//! The image's own functions for memory and division (`minimal_node::memory`,
//! `minimal_node::division`), held against the language.

use core::ffi::c_void;
use core::hint::black_box;

/// Room around each place that is written, so that a byte too many is seen.
const ROOM: usize = 64;

/// Copies longer than nine words, with every rest.
const LEN_MAX: usize = 39;

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
    fn memset(at: *mut c_void, value: i32, len: usize) -> *mut c_void;
    fn __aeabi_memclr(at: *mut c_void, len: usize);
    fn __aeabi_memset(at: *mut c_void, len: usize, value: i32);
}

/// Copies, moves and fills of each length from and to each alignment, and what C gets back.
pub(crate) fn memory_is_right() -> bool {
    let all = (0..=LEN_MAX).all(|len| {
        (0..4).all(|from| (0..4).all(|to| copies(len, from, to)))
            && (0..4).all(|at| fills(len, at, 0) && fills(len, at, 0xa5) && clears(len, at))
            && (0..12).all(|from| (0..12).all(|to| moves(len, from, to)))
    });
    all && returns_its_first_argument()
}

/// Quotients and remainders at the edges, and of numbers in between: multiplied, which is an
/// instruction of its own, they give the dividend back.
pub(crate) fn division_is_right() -> bool {
    let edges = (0..32).flat_map(|shift| {
        let power = 1_u32 << shift;
        [power.wrapping_sub(1), power, power.wrapping_add(1), !power]
    });
    edges.clone().all(|dividend| {
        let mixed = dividend.wrapping_mul(0x9e37_79b9);
        let divisors = edges.clone().chain([10, 125, 1000]);
        divisors.filter(|divisor| *divisor != 0).all(|divisor| {
            let divisor = black_box(divisor);
            [dividend, mixed].into_iter().all(|dividend| {
                // The compiler knows how the two belong together, unless it does not see them.
                let (quotient, rest) = black_box((dividend / divisor, dividend % divisor));
                let product = u64::from(quotient) * u64::from(divisor) + u64::from(rest);
                rest < divisor && product == u64::from(dividend)
            })
        })
    })
}

/// As [`division_is_right`], of numbers of 64 bits.
pub(crate) fn long_division_is_right() -> bool {
    let edges = (0..64).flat_map(|shift| {
        let power = 1_u64 << shift;
        [power.wrapping_sub(1), power, power.wrapping_add(1), !power]
    });
    edges.clone().all(|dividend| {
        let mixed = dividend.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let divisors = edges.clone().chain([10, 125, 2_400_000_000]);
        divisors.filter(|divisor| *divisor != 0).all(|divisor| {
            let divisor = black_box(divisor);
            [dividend, mixed].into_iter().all(|dividend| {
                let (quotient, rest) = black_box((dividend / divisor, dividend % divisor));
                let product = quotient.checked_mul(divisor);
                let product = product.and_then(|product| product.checked_add(rest));
                rest < divisor && product == Some(dividend)
            })
        })
    })
}

/// As C has it; `aeabi` functions return nothing.
fn returns_its_first_argument() -> bool {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    type Fill = unsafe extern "C" fn(*mut c_void, i32, usize) -> *mut c_void;
    // The compiler takes for granted what they return, unless it does not know them.
    let [copy, shift] = black_box([memcpy as Copy, memmove as Copy]);
    let fill = black_box(memset as Fill);
    let (from, mut to) = (painted(), [0; ROOM]);
    let (from, to) = (from.as_ptr().cast(), to.as_mut_ptr().cast::<c_void>());
    (0..=LEN_MAX).all(|len| {
        // SAFETY: both ends have ROOM bytes, more than `len`, and lie apart.
        let returned = unsafe { [copy(to, from, len), shift(to, from, len), fill(to, 7, len)] };
        returned == [to; 3]
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
    // Around it is what was there before.
    target.iter().take(to).all(|&byte| byte == 0xee)
        && target.iter().skip(to + len).all(|&byte| byte == 0xee)
        && (0..len).all(|offset| target.get(to + offset) == Some(&original(from + offset)))
}

fn moves(len: usize, from: usize, to: usize) -> bool {
    let mut bytes = painted();
    bytes.copy_within(from..from + black_box(len), to);
    holds(&bytes, (len, to), |offset| original(from + offset))
}

/// By the names that the compiler calls where it knows the value, and where it does not.
fn clears(len: usize, at: usize) -> bool {
    let mut bytes = painted();
    let Some(room) = bytes.get_mut(at..at + len) else {
        return false;
    };
    let room = room.as_mut_ptr().cast();
    // SAFETY: there are `len` bytes at `room`.
    unsafe {
        __aeabi_memset(room, len, 0x5a);
        __aeabi_memclr(room, len);
    }
    holds(&bytes, (len, at), |_| 0)
}

fn fills(len: usize, at: usize, value: u8) -> bool {
    let mut bytes = painted();
    let Some(room) = bytes.get_mut(at..at + black_box(len)) else {
        return false;
    };
    room.fill(black_box(value));
    holds(&bytes, (len, at), |_| value)
}

/// Whether `len` bytes at `at` are those that `within` gives, and all others those that were there.
fn holds(bytes: &[u8; ROOM], (len, at): (usize, usize), within: impl Fn(usize) -> u8) -> bool {
    (0..ROOM).zip(bytes).all(|(place, &byte)| {
        byte == match place.checked_sub(at) {
            Some(offset) if offset < len => within(offset),
            _ => original(place),
        }
    })
}
