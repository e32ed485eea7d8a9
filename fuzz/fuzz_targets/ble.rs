//! `motet_fuzz_targets`' target `ble` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| motet_fuzz_targets::run("ble", input));
