//! Binds WebAssembly that was built with wasm-bindgen to JavaScript:
//! `motet-bind IN.wasm… OUT-FOLDER`.
//!
//! The library does what the command `wasm-bindgen` does. Its version is in the same Cargo.lock as
//! the macro's, because one reads what the other wrote.

use std::env;
use std::path::Path;
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
    let mut inputs: Vec<_> = env::args_os().skip(1).collect();
    let folder = inputs.pop().context("name the folder to write to")?;
    inputs
        .iter()
        .try_for_each(|input| bind(Path::new(input), Path::new(&folder)))
}

fn bind(input: &Path, folder: &Path) -> Result<()> {
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
