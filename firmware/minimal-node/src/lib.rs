//! What the measured images share: the radio's registers, the clock, the panic handler.
#![no_std]

mod panic;
pub mod radio;
