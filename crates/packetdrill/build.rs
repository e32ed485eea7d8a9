//! Lets the tests offer `pd_getsockopt_hook` as a preloaded library would.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol=pd_getsockopt_hook");
}
