//! `motet_fuzz_targets`' target `counters` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| motet_fuzz_targets::run("counters", input));
