//! A small driver that plays packetdrill's part against the library, loaded as packetdrill
//! loads it.

mod common;

use std::ffi::{c_int, c_longlong, c_void};
use std::net::Ipv6Addr;
use std::process::Command;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{sockaddr, sockaddr_in6, socklen_t, timeval};
use motet_conformance::packet::{ACK, FIN, Packet, SYN, Segment, TcpOption};
use motet_packetdrill::interface::Interface;

use common::{LEN, address, load};

const LOCAL: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const REMOTE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

/// A table as two threads use it: packetdrill does.
#[derive(Clone, Copy)]
struct Driver(Interface);

// SAFETY: the library promises to be callable from packetdrill's two threads.
unsafe impl Send for Driver {}

impl Driver {
    fn new(more: &str) -> Self {
        Self(load(&format!("local={LOCAL},mtu=1500{more}")))
    }

    fn now(self) -> u64 {
        let mut time = timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        (self.0.gettimeofday)(self.0.userdata, &raw mut time, std::ptr::null_mut());
        time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64
    }

    fn usleep(self, us: u32) {
        (self.0.usleep)(self.0.userdata, us);
    }

    fn inject(self, segment: Segment) {
        let packet = Packet {
            src: REMOTE,
            dst: LOCAL,
            traffic_class: 0,
            hop_limit: 64,
            segment,
        };
        let len = packet.segment.len;
        let bytes = packet.emit(&vec![7; len]);
        let result = (self.0.netdev_send)(self.0.userdata, bytes.as_ptr().cast(), bytes.len());
        assert_eq!(result, 0);
    }

    fn receive(self) -> Option<(u64, Segment)> {
        let mut buffer = vec![0_u8; 4096];
        let (mut count, mut us): (usize, c_longlong) = (buffer.len(), 0);
        let place = buffer.as_mut_ptr().cast();
        let result = (self.0.netdev_receive)(self.0.userdata, place, &raw mut count, &raw mut us);
        assert_eq!(result, 0);
        let (packet, _) = Packet::parse(&buffer[..count])?;
        assert_eq!((packet.src, packet.dst), (LOCAL, REMOTE));
        Some((us as u64, packet.segment))
    }

    fn listener(self) -> c_int {
        let user = self.0.userdata;
        let fd = (self.0.socket)(user, libc::AF_INET6, libc::SOCK_STREAM, 0);
        assert!(fd >= 0);
        let addr = address(LOCAL, 8080);
        assert_eq!((self.0.bind)(user, fd, pointer(&addr), LEN), 0);
        assert_eq!((self.0.listen)(user, fd, 1), 0);
        fd
    }

    /// Our side of a handshake; returns the stack's ISN.
    fn open(self, port: u16) -> u32 {
        self.inject(Segment {
            options: vec![
                TcpOption::Mss(1440),
                TcpOption::SackOk,
                TcpOption::Eol,
                TcpOption::Eol,
            ],
            flags: SYN,
            ..segment(port, 0, 0)
        });
        let (_, reply) = self.receive().unwrap();
        assert_eq!(reply.flags, SYN | ACK);
        assert_eq!(reply.ack, 1);
        self.inject(Segment {
            flags: ACK,
            ..segment(port, 1, reply.seq.wrapping_add(1))
        });
        reply.seq
    }

    fn accept(self, fd: c_int) -> (c_int, Ipv6Addr, u16) {
        let mut addr = address(Ipv6Addr::UNSPECIFIED, 0);
        let mut len = LEN;
        let place = (&raw mut addr).cast::<sockaddr>();
        let new = (self.0.accept)(self.0.userdata, fd, place, &raw mut len);
        let ip = Ipv6Addr::from(addr.sin6_addr.s6_addr);
        (new, ip, u16::from_be(addr.sin6_port))
    }

    fn option(self, fd: c_int, level: c_int, name: c_int) -> (c_int, c_int) {
        let (mut value, mut len): (c_int, socklen_t) = (-7, 4);
        let place = (&raw mut value).cast::<c_void>();
        let result = (self.0.getsockopt)(self.0.userdata, fd, level, name, place, &raw mut len);
        (result, value)
    }
}

fn segment(port: u16, seq: u32, ack: u32) -> Segment {
    Segment {
        src_port: port,
        dst_port: 8080,
        seq,
        ack,
        window: 32_767,
        ..Segment::default()
    }
}

fn pointer(addr: &sockaddr_in6) -> *const sockaddr {
    (&raw const *addr).cast()
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

#[test]
fn a_connection_goes_through_its_life() {
    let driver = Driver::new(",profile=freebsd");
    let user = driver.0.userdata;
    let fd = driver.listener();
    assert_eq!(
        driver.option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF),
        (0, 65_536)
    );
    let isn = driver.open(5555);
    let (conn, ip, port) = driver.accept(fd);
    assert!(conn >= 0);
    assert_eq!((ip, port), (REMOTE, 5555));
    assert_eq!(
        driver.option(conn, libc::SOL_SOCKET, libc::SO_RCVBUF),
        (0, 66_240)
    );
    // 1 is ESTABLISHED in Linux's TCP_INFO.
    let (result, state) = driver.option(conn, libc::IPPROTO_TCP, libc::TCP_INFO);
    assert_eq!((result, state & 0xff), (0, 1));

    let data = [1_u8; 100];
    assert_eq!((driver.0.write)(user, conn, data.as_ptr().cast(), 100), 100);
    let (_, sent) = driver.receive().unwrap();
    assert_eq!(
        (sent.seq, sent.len, sent.window),
        (isn.wrapping_add(1), 100, 65_535)
    );

    driver.inject(Segment {
        flags: ACK,
        len: 50,
        ..segment(5555, 1, isn.wrapping_add(101))
    });
    let before = driver.now();
    let (at, ack) = driver.receive().unwrap();
    assert_eq!((ack.ack, ack.len), (51, 0));
    let delay = at - before;
    assert!(
        (39_000..=40_000).contains(&delay),
        "a delayed ACK, not one after {delay} us"
    );
    let mut buffer = [0_u8; 80];
    assert_eq!(
        (driver.0.read)(user, conn, buffer.as_mut_ptr().cast(), 80),
        50
    );
    assert_eq!(&buffer[..51], [&[7; 50][..], &[0]].concat());

    assert_eq!((driver.0.close)(user, conn), 0);
    let (_, fin) = driver.receive().unwrap();
    assert_eq!(fin.flags, FIN | ACK);
    assert_eq!((driver.0.close)(user, fd), 0);
    (driver.0.free)(user);
}

#[test]
fn a_blocked_call_returns_at_its_own_time() {
    let driver = Driver::new("");
    let fd = driver.listener();
    let start = driver.now();
    let second = std::thread::spawn(move || {
        let driver = driver;
        let (conn, _, _) = driver.accept(fd);
        (conn, driver.now())
    });
    // packetdrill waits until the other thread sleeps; so do we.
    std::thread::sleep(std::time::Duration::from_millis(100));
    driver.usleep(300_000);
    driver.open(6666);
    // Were time to go on before the other thread has looked at the clock, it would be late.
    driver.usleep(500_000);
    let (conn, at) = second.join().unwrap();
    assert!(conn >= 0);
    assert!((300_000..300_100).contains(&(at - start)), "{}", at - start);
}

#[test]
fn a_call_that_blocks_the_driver_itself_fails() {
    let driver = Driver::new("");
    let fd = driver.listener();
    assert_eq!(driver.accept(fd).0, -1);
    assert_eq!(errno(), libc::EDEADLK);
    let user = driver.0.userdata;
    let flags = (libc::O_RDWR | libc::O_NONBLOCK) as std::ffi::c_ulong;
    assert_eq!((driver.0.fcntl)(user, fd, libc::F_GETFL, 0), libc::O_RDWR);
    assert_eq!((driver.0.fcntl)(user, fd, libc::F_SETFL, flags), 0);
    assert_eq!(driver.accept(fd).0, -1);
    assert_eq!(errno(), libc::EAGAIN);
}

#[test]
fn the_clock_creeps_and_sleeps_of_any_length_pass() {
    let driver = Driver::new("");
    let first = driver.now();
    assert!(driver.now() > first);
    driver.usleep(u32::MAX);
    assert!(driver.now() - first >= u64::from(u32::MAX));
}

#[test]
fn when_nothing_will_ever_come_the_packet_is_empty() {
    let driver = Driver::new("");
    assert!(driver.receive().is_none());
}

#[test]
fn options_and_calls_that_do_not_exist_say_so() {
    let driver = Driver::new("");
    let user = driver.0.userdata;
    let fd = driver.listener();
    assert_eq!(driver.option(fd, libc::SOL_SOCKET, 9999).0, -1);
    assert_eq!(errno(), libc::ENOPROTOOPT);
    assert_eq!((driver.0.close)(user, 999), -1);
    assert_eq!(errno(), libc::EBADF);
    assert_eq!(
        (driver.0.socket)(user, libc::AF_INET, libc::SOCK_STREAM, 0),
        -1
    );
    assert_eq!(errno(), libc::EAFNOSUPPORT);
}

#[test]
fn splice_moves_what_came_into_a_pipe_and_out_again() {
    let driver = Driver::new("");
    let user = driver.0.userdata;
    let fd = driver.listener();
    let isn = driver.open(5555);
    let (conn, _, _) = driver.accept(fd);
    let mut pair = [0; 2];
    assert_eq!((driver.0.pipe)(user, pair.as_mut_ptr()), 0);
    let [from, into] = pair;
    driver.inject(Segment {
        flags: ACK,
        len: 50,
        ..segment(5555, 1, isn.wrapping_add(1))
    });
    let none = std::ptr::null_mut();
    let flags = libc::SPLICE_F_NONBLOCK;
    let splice = |a, b, len| (driver.0.splice)(user, a, none, b, none, len, flags);
    assert_eq!(splice(conn, into, 1000), 50);
    assert_eq!((splice(conn, into, 1000), errno()), (-1, libc::EAGAIN));
    assert_eq!(splice(from, conn, 30), 30);
    let mut rest = [0_u8; 40];
    let place = rest.as_mut_ptr().cast();
    assert_eq!((driver.0.read)(user, from, place, 40), 20);
    assert_eq!(&rest[..21], [&[7; 20][..], &[0]].concat());
    assert_eq!(driver.receive().unwrap().1.len, 30, "it went out");
    assert_eq!((splice(conn, from, 1), errno()), (-1, libc::EINVAL));
    assert_eq!((driver.0.close)(user, into), 0);
    assert_eq!((driver.0.read)(user, from, place, 40), 0, "nobody writes");
}

#[test]
fn junk_from_the_network_is_ignored() {
    let driver = Driver::new("");
    let user = driver.0.userdata;
    for len in 0..80 {
        let junk = vec![0x60 | len as u8; len];
        assert_eq!((driver.0.netdev_send)(user, junk.as_ptr().cast(), len), 0);
    }
    assert!(driver.receive().is_none());
}

/// For tests that need a process of their own, because they look at the environment or end the
/// process: this test runs itself again, and a variable says which part to play.
#[test]
fn states_are_written_and_unknown_flags_end_the_process() {
    match std::env::var("MOTET_INNER").as_deref() {
        Ok("states") => return inner_states(),
        Ok("flags") => return inner_flags(),
        _ => {}
    }
    let this = std::env::current_exe().unwrap();
    let file = std::env::temp_dir().join(format!("motet-pd-state-{}", std::process::id()));
    let inside = |part: &str| {
        let mut command = Command::new(&this);
        let name = "states_are_written_and_unknown_flags_end_the_process";
        command.args(["--exact", name, "--nocapture"]);
        command.env("PD_STATE", &file).env("MOTET_INNER", part);
        command.output().unwrap()
    };
    let output = inside("states");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let output = inside("flags");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown flag `bogus`"));
    std::fs::remove_file(&file).unwrap();
}

fn inner_states() {
    let path = std::env::var("PD_STATE").unwrap();
    let lines = || std::fs::read_to_string(&path).unwrap();
    let driver = Driver::new("");
    let fd = driver.listener();
    assert_eq!(
        lines(),
        format!("root packetdril 1 {fd} tcp6 *:8080 *:* LISTEN\n")
    );
    driver.open(7777);
    let (conn, _, _) = driver.accept(fd);
    let line = format!("root packetdril 1 {conn} tcp6 [{LOCAL}]:8080 [{REMOTE}]:7777 ESTABLISHED");
    assert!(lines().contains(&line), "{}", lines());
}

fn inner_flags() {
    load("bogus=1");
}

/// A wait in vain is explained on standard error, unless the flag `quiet` is set; the log has
/// every packet either way.
#[test]
fn the_log_has_every_packet_and_quiet_means_it() {
    if let Ok(log) = std::env::var("MOTET_INNER_LOG") {
        let driver = Driver::new(&log);
        driver.listener();
        driver.usleep(250_000);
        driver.open(5555);
        assert!(driver.receive().is_none());
        return;
    }
    let file = std::env::temp_dir().join(format!("motet-pd-log-{}", std::process::id()));
    let inside = |more: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "the_log_has_every_packet_and_quiet_means_it",
            "--nocapture",
        ]);
        command.env("MOTET_INNER_LOG", format!(",log={}{more}", file.display()));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (said, std::fs::read_to_string(&file).unwrap())
    };
    let (said, log) = inside("");
    assert!(said.contains("no segment will ever come"), "{said}");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].starts_with("0.250"), "{log}");
    assert!(lines[0].contains(" < S 0:0(0) win 32767 <mss 1440,sackOK,eol,eol>"));
    assert!(lines[1].contains(" > S. "), "{log}");
    assert!(lines[2].contains(" < . 1:1(0) ack "), "{log}");
    let (said, _) = inside(",quiet");
    assert!(!said.contains("libmotet_packetdrill"), "{said}");
    std::fs::remove_file(&file).unwrap();
    // Refused at once where it cannot be written.
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "the_log_has_every_packet_and_quiet_means_it",
        "--nocapture",
    ]);
    command.env("MOTET_INNER_LOG", ",log=/nowhere/at/all");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write /nowhere/at/all"));
}

/// The place that a preloaded library offers; here, the program itself does.
#[unsafe(no_mangle)]
pub static pd_getsockopt_hook: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// In a process of its own: there is one hook, and it asks the host made last.
#[test]
fn the_hook_answers_for_our_descriptors_only() {
    let name = "the_hook_answers_for_our_descriptors_only";
    if std::env::var_os("MOTET_INNER_HOOK").is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name]).env("MOTET_INNER_HOOK", "1");
        assert!(command.status().unwrap().success());
        return;
    }
    let driver = Driver::new("");
    let fd = driver.listener();
    let place = pd_getsockopt_hook.load(Ordering::Acquire);
    assert!(!place.is_null(), "the library has not set the hook");
    type Hook = extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    // SAFETY: the library stored a function of this type.
    let hook: Hook = unsafe { std::mem::transmute(place) };
    let mut info = [0_u8; 104];
    let mut len = 104;
    let ask = |fd, info: &mut [u8; 104], len: &mut socklen_t| {
        hook(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            len,
        )
    };
    assert_eq!(ask(fd, &mut info, &mut len), 0);
    assert_eq!((info[0], len), (10, 104), "LISTEN");
    let isn = driver.open(5555);
    let (conn, _, _) = driver.accept(fd);
    assert_eq!(ask(conn, &mut info, &mut len), 0);
    assert_eq!((info[0], info[5]), (1, 2), "ESTABLISHED, with SACK");
    driver.inject(Segment {
        flags: FIN | ACK,
        ..segment(5555, 1, isn.wrapping_add(1))
    });
    assert_eq!(ask(conn, &mut info, &mut len), 0);
    assert_eq!(info[0], 8, "CLOSE-WAIT");
    assert_eq!(ask(9999, &mut info, &mut len), -2, "not ours");
}

/// A script's knobs mean the same to the runner and to the library, which is loaded by a
/// process that has the script among its arguments.
#[test]
fn knobs_of_the_script_act_on_the_library_too() {
    let name = "knobs_of_the_script_act_on_the_library_too";
    if std::env::var("MOTET_INNER_KNOBS").is_ok_and(|refused| refused == "1") {
        let _never = Driver::new("");
        return;
    }
    if std::env::var_os("MOTET_INNER_KNOBS").is_some() {
        let driver = Driver::new(",profile=freebsd,quiet");
        let fd = driver.listener();
        let recv = driver.option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF);
        assert_eq!(recv, (0, 20_000));
        driver.inject(Segment {
            options: vec![
                TcpOption::Mss(1440),
                TcpOption::SackOk,
                TcpOption::Eol,
                TcpOption::Eol,
            ],
            flags: SYN,
            ..segment(5555, 0, 0)
        });
        let (_, reply) = driver.receive().unwrap();
        assert!(!reply.options.contains(&TcpOption::SackOk), "{reply}");
        // Socket, bind, listen, a question and a packet: what comes next is behind the knob.
        let fd = (driver.0.socket)(driver.0.userdata, libc::AF_INET6, libc::SOCK_STREAM, 0);
        let recv = driver.option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF);
        assert_eq!(recv, (0, 30_000));
        return;
    }
    let script = "--mtu=1280\n0 `sysctl -w net.inet.tcp.sack.enable=0`\n\
                  +0 `sysctl -w net.inet.tcp.recvspace=20000`\n\
                  +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                  +0 bind(3, ..., ...) = 0\n\
                  +0 listen(3, 1) = 0\n\
                  +0 getsockopt(3, SOL_SOCKET, SO_RCVBUF, [20000], [4]) = 0\n\
                  +0 < S 0:0(0) win 32767 <mss 1440,sackOK,eol,eol>\n\
                  +0 `sysctl -w net.inet.tcp.recvspace=30000`\n";
    let inner = |script: &str, what: &str| {
        let name_of_file = format!("motet-pd-knobs-{}.pkt", std::process::id());
        let file = std::env::temp_dir().join(name_of_file);
        std::fs::write(&file, script).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name]).arg(&file);
        let output = command.env("MOTET_INNER_KNOBS", what).output().unwrap();
        std::fs::remove_file(&file).unwrap();
        output
    };
    let output = inner(script, "2");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    // No other settings than the script asks for.
    let output = inner("0 `sysctl -w net.inet.tcp.unheard_of=1`\n", "1");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("unheard_of"),
        "{said}"
    );
}
