//! How deep the call stack has been, from the paint that start-up code left on it.

use core::ptr;

/// What cortex-m-rt's `paint-stack` fills the stack with before `main`.
const PAINT: u32 = 0xcccc_cccc;

unsafe extern "C" {
    /// First word above the stack; set by the linker script.
    static _stack_start: u32;
    /// Lowest word the stack may use.
    static _stack_end: u32;
}

/// The most bytes of stack in use at any time since start-up.
pub(crate) fn high_water_bytes() -> usize {
    let top = &raw const _stack_start;
    let mut word = &raw const _stack_end;
    // SAFETY: the words between the two symbols are RAM, which nothing but the stack uses;
    // volatile, because they change behind the compiler's back.
    while word < top && unsafe { ptr::read_volatile(word) } == PAINT {
        word = word.wrapping_add(1);
    }
    top.addr() - word.addr()
}
