//! The command `motet`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    motet_cli::main()
}
