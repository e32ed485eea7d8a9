//! The Linux ends of the connections: sockets of this machine's own kernel, in a process of their
//! own, so that each may live in another network.

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// A mote that is silent for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// What a connection brought, as the server prints it and the caller reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) from: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    /// The mote ended its stream.
    pub(crate) is_whole: bool,
}

impl Received {
    /// The word by which the line of a connection is known.
    pub(crate) const WORD: &str = "received";

    /// Reads what [`serve`] printed.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(Self::WORD)?.split_whitespace();
        Some(Self {
            from: words.next()?.to_owned(),
            bytes: words.next()?.parse().ok()?,
            sha256: words.next()?.to_owned(),
            is_whole: words.next()? == "whole",
        })
    }
}

/// Accepts connections without end, and prints a line for each that has ended.
pub(crate) fn serve(port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .with_context(|| format!("cannot listen on port {port}"))?;
    println!("listening on {port}");
    for stream in listener.incoming() {
        let stream = stream.context("cannot accept a connection")?;
        thread::spawn(move || {
            if let Err(error) = receive(stream) {
                println!("failed: {error:#}");
            }
        });
    }
    Ok(())
}

fn receive(mut stream: TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let SocketAddr::V6(peer) = stream.peer_addr()? else {
        return Ok(());
    };
    let (mut digest, mut bytes) = (Sha256::new(), 0_u64);
    let mut buffer = [0; 4096];
    let end = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break "whole".to_owned(),
            Ok(count) => {
                digest.update(buffer.get(..count).unwrap_or_default());
                bytes += count as u64;
            }
            Err(error) => break format!("cut: {error}"),
        }
    };
    let sha256 = hex(&digest.finalize());
    println!("{} {} {bytes} {sha256} {end}", Received::WORD, peer.ip());
    Ok(())
}

/// The digest of `bytes`, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Connects to a mote, writes `text` and ends the stream; returns once the mote has ended its own.
pub(crate) fn send(mote: Ipv6Addr, port: u16, text: &str) -> Result<()> {
    let addr = SocketAddr::from((mote, port));
    let mut stream = TcpStream::connect_timeout(&addr, SILENCE)
        .with_context(|| format!("{mote} does not accept a connection"))?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    println!("sent {}", text.len());
    // A mote that still sends, or resets, has got everything: its console says so.
    let _ = stream.read_to_end(&mut Vec::new());
    println!("ended");
    Ok(())
}
