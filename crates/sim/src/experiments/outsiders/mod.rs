//! What others' networks have shown, and what ours have to stand: settings that were found outside.

pub mod siblings;
