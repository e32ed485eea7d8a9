//! Motet's command line.
fn main() {}
