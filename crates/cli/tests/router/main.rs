//! `motet router` with real packets: Linux's own TCP through its own packet filter and queue, or
//! with motes on the lab's air, in networks that are made for each case, without root.
//!
//! Without arguments every case, each a process of its own that enters a namespace first; a word
//! selects the cases whose names hold it.

#[cfg(target_os = "linux")]
mod air;
#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod flood;
#[cfg(target_os = "linux")]
mod nets;
#[cfg(target_os = "linux")]
mod outside;

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments.split_first() {
            Some((first, rest)) if first == "case" => cases::main(rest),
            _ => cases::all(&arguments),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        println!("not run: needs Linux");
        std::process::ExitCode::SUCCESS
    }
}
