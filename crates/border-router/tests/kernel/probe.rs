//! What runs inside the namespace.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv6Addr, Shutdown, SocketAddrV6, TcpStream, UdpSocket},
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use motet_router::{
    namespace::{self, Namespace, NamespaceError, Refusal},
    port::{LinkKind, PacketPort, PortConfig, PortError, precise_timers},
};
use nix::{
    sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket},
    unistd::alarm,
};

use crate::mote::{ECHO_PORT, Mote};

/// Exit status of a probe that the machine refused what it needs.
pub(crate) const NOT_PERMITTED: u8 = 77;

/// Exit status of a probe with nothing to test for this user.
pub(crate) const NOT_APPLICABLE: u8 = 78;

/// First word of a held probe.
pub(crate) const READY: &str = "ready";

const MOTE: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 7);
const MESH: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0), 64);
const MTU: usize = 1280;

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let [probe, link] = arguments else {
        println!("usage: probe NAME LINK");
        return ExitCode::FAILURE;
    };
    // A probe that hangs is ended by SIGALRM, which the runner reports.
    const PROBE_SECONDS_MAX: u32 = 60;
    alarm::set(PROBE_SECONDS_MAX);
    let link = match link.as_str() {
        "tun" => Some(LinkKind::Tun),
        "veth" => Some(LinkKind::Veth),
        _ => None,
    };
    let namespace = match namespace::enter() {
        Ok(namespace) => namespace,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(NOT_PERMITTED);
        }
    };
    match probe.as_str() {
        "traffic" => traffic(&namespace, link),
        "reopen" => reopen(&namespace, link),
        "hold" => hold(&namespace, link),
        "limits" => limits(&namespace),
        _ => panic!("no such probe"),
    }
    ExitCode::SUCCESS
}

fn open(namespace: &Namespace, link: Option<LinkKind>) -> PacketPort {
    let config = PortConfig {
        routes: &[MESH],
        link,
        ..PortConfig::default()
    };
    match PacketPort::open(namespace, &config) {
        Ok(port) => port,
        Err(error) => {
            println!("{error}");
            std::process::exit(NOT_PERMITTED.into());
        }
    }
}

/// ICMPv6, UDP and TCP between kernel sockets and a mote behind the port, then
/// what the port costs in time.
fn traffic(namespace: &Namespace, link: Option<LinkKind>) {
    let start = Instant::now();
    let mut port = open(namespace, link);
    let opening = start.elapsed();
    if let Some(link) = link {
        assert_eq!(port.kind(), link, "the link asked for");
    }
    let mut mote = Mote::new(MOTE);
    serve(&mut port, &mut mote, ping);
    serve(&mut port, &mut mote, udp_echo);
    let sent = serve(&mut port, &mut mote, tcp_upload);
    assert!(
        mote.tcp_received() == sent,
        "TCP bytes differ from those sent"
    );
    refusals(&mut port);

    let before = timer_lateness(&port);
    precise_timers().expect("prctl");
    let after = timer_lateness(&port);
    let rtt = udp_round_trip(&mut port, &mut mote);
    let drops = port.drops();
    assert_eq!((drops.not_ipv6, drops.truncated), (0, 0), "{drops:?}");
    println!(
        "{}, user namespace {}, open in {opening:?}, UDP round trip {rtt:?}, wake-up late by {before:?}, precise {after:?}, {drops:?}",
        port.kind(),
        namespace.has_user_namespace(),
    );
}

/// Runs `client` on a kernel socket while the mote answers through the port.
fn serve<T: Send + 'static>(
    port: &mut PacketPort,
    mote: &mut Mote,
    client: impl FnOnce() -> T + Send + 'static,
) -> T {
    let client = thread::spawn(client);
    let mut buf = [0; MTU];
    while !client.is_finished() {
        port.wait(Some(Duration::from_millis(1))).expect("ppoll");
        while let Some(len) = port.recv(&mut buf).expect("recv") {
            if let Some(answer) = mote.on_packet(&buf[..len]) {
                port.send(&answer).expect("send");
            }
        }
    }
    client.join().expect("the client is content")
}

fn mote_address() -> SocketAddrV6 {
    SocketAddrV6::new(MOTE, ECHO_PORT, 0, 0)
}

const CLIENT_TIMEOUT: Option<Duration> = Some(Duration::from_secs(5));

fn ping() {
    let raw = socket(
        AddressFamily::Inet6,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::IcmpV6,
    )
    .expect("uid 0 of a namespace may open raw sockets");
    // Connect, send and receive are the same calls for a raw socket.
    let socket = UdpSocket::from(raw);
    socket
        .connect(SocketAddrV6::new(MOTE, 0, 0, 0))
        .expect("a route into the mesh");
    socket.set_read_timeout(CLIENT_TIMEOUT).expect("a timeout");
    let request = [128, 0, 0, 0, 0x12, 0x34, 0, 1, b'm', b'o', b't', b'e', b't'];
    socket.send(&request).expect("a route into the mesh");
    let mut reply = [0; 64];
    let len = socket.recv(&mut reply).expect("an echo reply");
    assert_eq!(reply[0], 129, "ICMPv6 type");
    assert_eq!(
        reply[4..len],
        request[4..],
        "identifier, sequence number and data"
    );
}

fn udp_socket() -> UdpSocket {
    let socket =
        UdpSocket::bind((PortConfig::default().host, 0)).expect("the host's address is up");
    socket
        .connect(mote_address())
        .expect("a route into the mesh");
    socket.set_read_timeout(CLIENT_TIMEOUT).expect("a timeout");
    socket
}

fn udp_echo() {
    const IPV6_AND_UDP_HEADER_LEN: usize = 48;
    let socket = udp_socket();
    for len in [0, 1, 100, MTU - IPV6_AND_UDP_HEADER_LEN] {
        let datagram: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        socket.send(&datagram).expect("a route into the mesh");
        let mut echo = [0; MTU];
        let echo_len = socket.recv(&mut echo).expect("an echo");
        assert_eq!(echo[..echo_len], datagram, "datagram of {len} bytes");
    }
}

/// Enough bytes at once to tempt the kernel into segments beyond the MTU.
fn tcp_upload() -> Vec<u8> {
    const UPLOAD_LEN: usize = 200_000;
    let bytes: Vec<u8> = (0..UPLOAD_LEN).map(|i| (i / 251 + i) as u8).collect();
    let mut stream = TcpStream::connect(mote_address()).expect("the mote accepts");
    stream.set_read_timeout(CLIENT_TIMEOUT).expect("a timeout");
    stream.write_all(&bytes).expect("the mote reads");
    stream
        .shutdown(Shutdown::Write)
        .expect("an open connection");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the mote closes too");
    assert!(rest.is_empty(), "the mote sends no data");
    bytes
}

/// What is no packet for the kernel is refused before it gets there.
fn refusals(port: &mut PacketPort) {
    let mut oversized = vec![0; MTU + 1];
    oversized[0] = 0x60;
    let payload_len = u16::try_from(oversized.len() - 40).expect("a small packet");
    oversized[4..6].copy_from_slice(&payload_len.to_be_bytes());
    for bad in [&[][..], &[0x45; 40], &oversized, &oversized[..1000]] {
        let error = port.send(bad).expect_err("not a packet");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    assert_eq!(
        port.recv(&mut [0; MTU]).expect("recv"),
        None,
        "nobody sends now"
    );
}

/// Median over the way kernel socket, port, mote, port, kernel socket.
fn udp_round_trip(port: &mut PacketPort, mote: &mut Mote) -> Duration {
    const ROUNDS: usize = 500;
    let socket = udp_socket();
    let mut buf = [0; MTU];
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            socket.send(&[0; 100]).expect("a route into the mesh");
            assert!(port.wait(CLIENT_TIMEOUT).expect("ppoll"), "a packet");
            let len = port.recv(&mut buf).expect("recv").expect("a packet");
            let echo = mote.on_packet(&buf[..len]).expect("an echo");
            port.send(&echo).expect("send");
            socket.recv(&mut [0; MTU]).expect("an echo");
            start.elapsed()
        })
        .collect();
    median(&mut times)
}

/// Median excess of a wait in which nothing arrives.
fn timer_lateness(port: &PacketPort) -> Duration {
    const ROUNDS: usize = 200;
    const WAIT: Duration = Duration::from_micros(300);
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            assert!(!port.wait(Some(WAIT)).expect("ppoll"), "nobody sends now");
            let waited = start.elapsed();
            assert!(waited >= WAIT, "woken early: {waited:?}");
            waited - WAIT
        })
        .collect();
    median(&mut times)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// An interface goes with its port, and a command run inside sees it meanwhile.
fn reopen(namespace: &Namespace, link: Option<LinkKind>) {
    let own = || fs::read_to_string("/proc/net/dev").expect("/proc is mounted");
    for _ in 0..2 {
        let port = open(namespace, link);
        assert!(own().contains("motet0:"), "{}", own());
        let child = Command::new("cat")
            .arg("/proc/net/dev")
            .output()
            .expect("cat runs");
        assert!(
            String::from_utf8_lossy(&child.stdout).contains("motet0:"),
            "a child sees it"
        );
        let taken = PortConfig {
            link: Some(LinkKind::Veth),
            ..PortConfig::default()
        };
        let error = PacketPort::open(namespace, &taken).expect_err("the name is taken");
        assert!(matches!(error, PortError::Veth(_)), "{error}");
        drop(port);
        assert!(!own().contains("motet0"), "{}", own());
    }
    for name in ["", "motet0-long", "a/b", "a%d"] {
        let bad = PortConfig {
            name,
            ..PortConfig::default()
        };
        let error = PacketPort::open(namespace, &bad).expect_err("no interface name");
        assert!(matches!(error, PortError::BadConfig), "{error}");
    }
    println!("gone after each drop");
}

/// Waits to be killed.
fn hold(namespace: &Namespace, link: Option<LinkKind>) {
    let mut port = open(namespace, link);
    println!("{READY} {}", port.kind());
    let mut buf = [0; MTU];
    loop {
        port.wait(None).expect("ppoll");
        port.recv(&mut buf).expect("recv");
    }
}

/// A limit of zero, which a namespace may set for those below it, is named.
fn limits(namespace: &Namespace) {
    // The limits belong to the user namespace; without one of its own, this would
    // change the machine's.
    if !namespace.has_user_namespace() {
        println!("root needs no user namespace here");
        std::process::exit(NOT_APPLICABLE.into());
    }
    for kind in ["user", "net"] {
        let path = format!("/proc/sys/user/max_{kind}_namespaces");
        if let Err(error) = fs::write(&path, "0") {
            println!("cannot write {path}: {error}");
            std::process::exit(NOT_PERMITTED.into());
        }
    }
    let error = namespace::enter().expect_err("no namespace is left");
    let cause = match &error {
        NamespaceError::Refused { cause, .. } => *cause,
        other => panic!("{other}"),
    };
    assert_eq!(cause, Refusal::LimitReached, "{error}");
    println!("{error}");
}
