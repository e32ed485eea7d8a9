//! What others' networks have shown, and what those can do to a mesh who do not belong to it.

pub mod siblings;
pub mod strangers;
