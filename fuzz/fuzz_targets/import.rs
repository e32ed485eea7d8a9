//! `motet_fuzz_targets`' target `import` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| motet_fuzz_targets::run("import", input));
