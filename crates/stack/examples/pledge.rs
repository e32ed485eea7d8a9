//! A device that wants to join, on this machine: asks a registrar once, and prints what it is
//! given.
//!
//! ```text
//! cargo run -p motet --features join --example pledge -- [::1]:5683 KEY EUI64 PAN SEQUENCE
//! ```
//!
//! KEY has 32 hexadecimal digits, EUI64 has 16, PAN has 4. SEQUENCE is a number that no request
//! with this key had: a device keeps it in memory that outlives a reboot.

use std::env;
use std::error::Error;
use std::net::{Ipv6Addr, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use motet::join::{DATAGRAM_LEN_MAX, JoinKey, Pledge, Request};

/// Longer than a registrar on this machine or the next one takes.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match join() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Asks once.
fn join() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [registrar, key, eui64, pan, sequence] = arguments.as_slice() else {
        return Err("arguments: REGISTRAR KEY EUI64 PAN SEQUENCE".into());
    };
    let key = u128::from_str_radix(key, 16)?.to_be_bytes();
    let eui64 = u64::from_str_radix(eui64, 16)?.to_be_bytes();
    let pan = u16::from_str_radix(pan, 16)?;
    let mut pledge = Pledge::new(&JoinKey::new(key), eui64, sequence.parse()?);

    let mut datagram = [0; DATAGRAM_LEN_MAX];
    let len = pledge
        .ask(&Request { pan }, &mut datagram)
        .ok_or("there is no further sequence number")?;
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    socket.connect(registrar)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(&datagram[..len])?;
    let len = socket.recv(&mut datagram)?;
    let configuration = pledge.on_answer(&datagram[..len])?;
    let key = u128::from_be_bytes(*configuration.network.as_bytes());
    println!("{key:032x} {}", configuration.sequence);
    Ok(())
}
