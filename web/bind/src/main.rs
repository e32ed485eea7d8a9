//! Binds WebAssembly that was built with wasm-bindgen to JavaScript:
//! `motet-bind IN.wasm OUT-FOLDER`.
//!
//! The library does what the command `wasm-bindgen` does. Its version is in the same Cargo.lock as
//! the macro's, because one reads what the other wrote.

use std::env;
use std::process::ExitCode;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let input = arguments.next().context("name the wasm file")?;
    let folder = arguments.next().context("name the folder to write to")?;
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(input)
        .web(true)?
        .typescript(true)
        .omit_default_module_path(false);
    bindgen
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen.generate(folder)
}
