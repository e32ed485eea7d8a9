//! Points the linker at the chip's scripts: esp-hal's, or cortex-m-rt's and a memory map.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_ESP32C6").is_some() {
        println!("cargo:rustc-link-arg-bins=-Tlinkall.x");
    }
    if std::env::var_os("CARGO_FEATURE_NRF52840").is_some() {
        let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
        println!("cargo:rustc-link-search={here}/../nrf52840");
        println!("cargo:rustc-link-arg-bins=-Tlink.x");
        println!("cargo:rerun-if-changed=../nrf52840/memory.x");
    }
}
