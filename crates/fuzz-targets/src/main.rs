//! Writes the corpora that the fuzzer starts from: `motet-fuzz-corpus FOLDER`.
//!
//! Files are named by their content, as libFuzzer's are; files that exist stay.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use motet_fuzz_targets::TARGETS;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("error: name the folder to write to, e.g. `motet-fuzz-corpus fuzz/corpus`");
        return ExitCode::from(2);
    };
    let folder = PathBuf::from(folder);
    match write(&folder) {
        Ok(count) => {
            println!("{count} seeds in {}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<usize> {
    let mut count = 0;
    for target in TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for seed in (target.seeds)() {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            fs::write(folder.join(format!("seed-{:016x}", hasher.finish())), seed)?;
            count += 1;
        }
    }
    Ok(count)
}
