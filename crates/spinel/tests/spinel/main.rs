//! A session against a radio that the tests play, against the dialogue of a real one, and the
//! framing against other implementations of it.

mod bench;
mod fake;
mod start;
mod tables;
mod trace;
mod traffic;
mod vectors;
