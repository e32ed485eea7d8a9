//! Other TCPs beside Motet: on the same air, and under the same counter.
//!
//! Purpose: figures of Motet mean little without those of its neighbours, taken in the same place.
//! [`endpoint`] is what each of them looks like from outside, [`pipe`] joins two of them by a plain
//! lossy pipe, [`air`] by the lab's air; [`compare`], [`plain`] and [`instructions`] measure;
//! [`crowd`] judges a router's policy by motes that are not Motet's, [`update`] by lwIP as a
//! device.
//! Left out: other stacks' own 6LoWPAN and MAC. Each TCP's packets go over Motet's.

pub mod air;
pub mod compare;
pub mod count;
pub mod crowd;
pub mod endpoint;
pub mod frames;
pub mod instructions;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod memory;
pub mod pipe;
pub mod plain;
pub mod report;
pub mod stacks;
pub mod transfer;
pub mod update;
