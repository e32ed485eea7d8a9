//! The port against this machine's own kernel, as root and as uid 65534.
//!
//! Runner and probe in one binary: without arguments it copies itself where any
//! user may run it and starts one probe per case, each a fresh process that has
//! no thread yet. What the machine does not permit is reported as `not run`,
//! under `CI=true` as a failure.

#[cfg(target_os = "linux")]
mod mote;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod runner;

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments.split_first() {
            Some((first, rest)) if first == "probe" => probe::main(rest),
            _ => runner::main(&arguments),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        println!("not run: needs Linux");
        std::process::ExitCode::SUCCESS
    }
}
