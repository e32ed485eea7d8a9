//! Points the linker at esp-hal's script.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Tlinkall.x");
    println!("cargo:rerun-if-changed=build.rs");
}
