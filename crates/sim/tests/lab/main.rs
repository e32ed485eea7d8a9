//! What the lab's public interface gives, seen from outside.
//!
//! One binary for all of it, since each links the whole lab. A file that is added here is named below.

mod architecture;
mod ble;
mod faults;
mod independent;
mod large_packets;
mod leaf;
mod link_timing;
mod mesh_records;
mod mesh_techniques;
mod pace;
mod reports;
mod thread;
