//! This machine's kernel as a judge of what Motet's routing puts into packets.
//!
//! The packets are those of a mesh of the lab, taken off its air. Each router of Linux is a process
//! with a network of its own, which holds the address of a mote and gets what that mote got. What
//! the kernel sends is compared with what the mote sent.
//!
//! Without arguments the checks that need no more than seconds, as a table; `--live` adds those
//! in real time, in which programs of this machine speak with motes; `--json` prints a line a check.
//! Any other word selects the checks whose names hold it.

#[cfg(target_os = "linux")]
mod air;
#[cfg(target_os = "linux")]
mod coap;
#[cfg(target_os = "linux")]
mod forwarding;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod judge;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod peer;
#[cfg(target_os = "linux")]
mod settings;
#[cfg(target_os = "linux")]
mod tshark;

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match arguments.split_first() {
            Some((first, rest)) if first == peer::COMMAND => peer::main(rest),
            _ => judge::main(&arguments),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        println!("not run: needs Linux");
        std::process::ExitCode::SUCCESS
    }
}
