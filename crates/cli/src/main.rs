//! The command `motet`.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use std::process::ExitCode;

fn main() -> ExitCode {
    motet_cli::main()
}
