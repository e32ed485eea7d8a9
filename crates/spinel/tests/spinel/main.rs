//! The framing against other implementations of it.

mod vectors;
