//! What the packet queue costs: packets a second, time added to a packet, lateness of a verdict.
//!
//! `cargo bench -p motet-router` prints each figure beside its target, without root. Packets go
//! from one TUN interface to another, both of which this program plays, through this kernel and
//! its packet filter: without the queue and with it, in turns, so that the ratios hold on a busy
//! machine too.

#[cfg(target_os = "linux")]
#[path = "queue/linux.rs"]
mod linux;

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
    #[cfg(not(target_os = "linux"))]
    println!("not run: needs Linux");
}
