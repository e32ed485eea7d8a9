//! A router of Linux: a process with a network of its own, whose one interface is a TUN device.
//!
//! The judge gives it packets and gets back what its kernel sends.

use std::{
    fs,
    io::{self, Read, Write},
    net::Ipv6Addr,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use motet::wire::icmpv6;
use motet_router::{
    namespace,
    port::{PacketPort, PortConfig},
};

/// The first argument that makes this program a router.
pub(crate) const COMMAND: &str = "router";

/// Why there can be no router here.
#[derive(Debug)]
pub(crate) struct NotPermitted(pub(crate) String);

/// A running router.
pub(crate) struct Peer {
    child: Child,
    commands: ChildStdin,
    answers: ChildStdout,
}

/// What the judge asks of a router.
const PACKET: u8 = b'p';
const WRITE: u8 = b'w';
const COUNTERS: u8 = b'c';

/// Room for a packet of IPv6's minimum MTU within a tunnel with the longest source route.
const MTU: u16 = 2_048;

impl Peer {
    /// A router with this address, which passes packets on and takes source routes.
    pub(crate) fn start(addr: Ipv6Addr) -> Result<Self, NotPermitted> {
        let program = std::env::current_exe().expect("/proc is mounted");
        let mut child = Command::new(program)
            .args([COMMAND, &addr.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a copy of this program starts");
        let mut peer = Self {
            commands: child.stdin.take().expect("a pipe"),
            answers: child.stdout.take().expect("a pipe"),
            child,
        };
        match peer.answer().as_slice() {
            [] => Ok(peer),
            why => Err(NotPermitted(String::from_utf8_lossy(why).into_owned())),
        }
    }

    /// What the kernel sends when it gets `packet`, but for redirects and other news of neighbours.
    pub(crate) fn give(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        self.ask(PACKET, packet);
        let count = self.answer();
        (0..count[0]).map(|_| self.answer()).collect()
    }

    /// Writes a setting below /proc/sys/net/ipv6.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.ask(WRITE, format!("{name}\0{value}").as_bytes());
        let error = self.answer();
        assert!(
            error.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(&error)
        );
    }

    /// A counter of /proc/net/snmp6.
    pub(crate) fn counter(&mut self, name: &str) -> u64 {
        self.ask(COUNTERS, &[]);
        let text = String::from_utf8(self.answer()).expect("text");
        let mut lines = text.lines().map(str::split_whitespace);
        let line = lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()));
        let value = line.flatten().and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("{name} is no counter of this kernel"))
    }

    fn ask(&mut self, what: u8, bytes: &[u8]) {
        self.commands.write_all(&[what]).expect("the router lives");
        send(&mut self.commands, bytes).expect("the router lives");
    }

    fn answer(&mut self) -> Vec<u8> {
        receive(&mut self.answers).expect("the router lives")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

fn receive(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The router's side: ends when the judge does.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let addr = arguments.first().and_then(|addr| addr.parse().ok());
    let addr = addr.expect("the judge names an address");
    let (mut commands, mut answers) = (io::stdin().lock(), io::stdout().lock());
    let mut router = match Router::open(addr) {
        Ok(router) => router,
        Err(why) => {
            let _ = send(&mut answers, why.as_bytes());
            return ExitCode::FAILURE;
        }
    };
    let _ = send(&mut answers, &[]);
    let mut what = [0];
    while commands.read_exact(&mut what).is_ok() {
        let bytes = receive(&mut commands).expect("the judge finishes its sentence");
        let done = match what[0] {
            PACKET => {
                let packets = router.carry(&bytes);
                let count = send(&mut answers, &[packets.len() as u8]);
                count.and_then(|()| packets.iter().try_for_each(|one| send(&mut answers, one)))
            }
            WRITE => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let (name, value) = text.split_once('\0').expect("a name and a value");
                let error = set(name, value).err().map(|error| error.to_string());
                send(&mut answers, error.unwrap_or_default().as_bytes())
            }
            _ => send(
                &mut answers,
                &fs::read("/proc/net/snmp6").unwrap_or_default(),
            ),
        };
        if done.is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn set(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv6/{name}"), value)
}

struct Router {
    port: PacketPort,
    addr: Ipv6Addr,
    fences: u16,
}

const INTERFACE: &str = "mesh0";

impl Router {
    fn open(addr: Ipv6Addr) -> Result<Self, String> {
        let namespace = namespace::enter().map_err(|error| error.to_string())?;
        let config = PortConfig {
            name: INTERFACE,
            host: addr,
            routes: &[(Ipv6Addr::UNSPECIFIED, 0)],
            mtu: MTU,
            ..PortConfig::default()
        };
        let port = PacketPort::open(&namespace, &config).map_err(|error| error.to_string())?;
        for (name, value) in [
            ("conf/all/forwarding", "1"),
            ("conf/all/rpl_seg_enabled", "1"),
            ("conf/mesh0/rpl_seg_enabled", "1"),
            // Every error is wanted, not the first of a second.
            ("icmp/ratelimit", "0"),
        ] {
            set(name, value).map_err(|error| format!("cannot set {name}: {error}"))?;
        }
        Ok(Self {
            port,
            addr,
            fences: 0,
        })
    }

    /// Gives the kernel a packet, behind it an echo request, and gets all that it sends up to the
    /// reply and shortly behind it.
    fn carry(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        self.fences = self.fences.wrapping_add(1);
        let fence = self.fence();
        let mut sent = Vec::new();
        if self.port.send(packet).is_err() || self.port.send(&fence).is_err() {
            return sent;
        }
        let give_up = Instant::now() + Duration::from_secs(2);
        let mut is_behind = false;
        let mut buffer = vec![0; usize::from(MTU)];
        while Instant::now() < give_up {
            let wait = match is_behind {
                true => Duration::from_millis(3),
                false => Duration::from_millis(100),
            };
            if !self.port.wait(Some(wait)).unwrap_or(false) && is_behind {
                break;
            }
            while let Ok(Some(len)) = self.port.recv(&mut buffer) {
                let packet = &buffer[..len];
                match packet {
                    _ if self.is_fence(packet) => is_behind = true,
                    _ if is_discovery(packet) => {}
                    _ => sent.push(packet.to_vec()),
                }
            }
        }
        sent
    }

    fn fence(&self) -> Vec<u8> {
        let mut packet = vec![0; 48];
        packet[0] = 0x60;
        packet[4..8].copy_from_slice(&[0, 8, icmpv6::NEXT_HEADER, 64]);
        packet[8..24].copy_from_slice(&FENCE.octets());
        packet[24..40].copy_from_slice(&self.addr.octets());
        packet[40] = 128;
        packet[46..48].copy_from_slice(&self.fences.to_be_bytes());
        icmpv6::fill_checksum(&FENCE, &self.addr, &mut packet[40..]);
        packet
    }

    fn is_fence(&self, packet: &[u8]) -> bool {
        packet.len() == 48 && packet[24..40] == FENCE.octets() && packet[40] == 129
    }
}

/// From here come the echo requests that end a carriage.
const FENCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xfe, 0xce, 0, 0, 0, 1);

/// Neighbour discovery and redirects.
fn is_discovery(packet: &[u8]) -> bool {
    packet.len() > 40 && packet[6] == icmpv6::NEXT_HEADER && (133..=137).contains(&packet[40])
}
