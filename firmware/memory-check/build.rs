//! Points the linker at cortex-m-rt's script and at this device's memory map.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    println!("cargo:rustc-link-search={here}");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rerun-if-changed=build.rs");
}
