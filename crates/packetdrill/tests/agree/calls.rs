//! The script's calls, through the table.

use std::ffi::{c_int, c_ulong, c_void};
use std::mem::{MaybeUninit, size_of};
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libc::{epoll_event, iovec, linger, msghdr, pollfd, sockaddr, socklen_t};
use motet_conformance::host::{Errno, LOCAL, REMOTE, TcpInfo};
use motet_conformance::run::kit::{constant, first, port_of};
use motet_conformance::script::{Call, Value};

use crate::common::{LEN, address};
use crate::player::Player;
use crate::table::Table;

/// What a call did.
pub(crate) struct Done {
    value: i64,
    errno: Option<i32>,
    /// Values written through pointers that differ from the line.
    pub(crate) wrong: Vec<String>,
    /// Descriptors that it opened behind its result: the script's and the library's.
    opened: Vec<(i32, i32)>,
}

pub(crate) type Job = Box<dyn FnOnce(Table) -> Done + Send>;

/// A call on the second thread.
pub(crate) struct Background {
    pub(crate) call: Call,
    /// When it must return, µs on the script's scale.
    pub(crate) until: u64,
    thread: JoinHandle<(Done, u64)>,
}

impl Background {
    /// Starts a call, and waits until its thread sleeps or is over, as packetdrill does.
    pub(crate) fn start(table: Table, job: Job, call: &Call, until: u64) -> Self {
        let (tell, told): (_, Receiver<i32>) = channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: no arguments, no memory.
            tell.send(unsafe { libc::gettid() }).unwrap();
            let done = job(table);
            (done, table.now())
        });
        let id = told.recv().unwrap();
        let stat = format!("/proc/self/task/{id}/stat");
        while !thread.is_finished() && !sleeps(&stat) {
            std::thread::yield_now();
        }
        Self {
            call: call.clone(),
            until,
            thread,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// What it did, and when; virtual time passes as far as it may take.
    pub(crate) fn join(self, table: Table, start: u64) -> Result<(Done, u64), String> {
        if !self.thread.is_finished() {
            table.wait_until(start + self.until);
        }
        let begun = Instant::now();
        while !self.thread.is_finished() {
            if begun.elapsed() > Duration::from_secs(2) {
                return Err(format!("{} never returned", self.call.name));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        self.thread.join().map_err(|_| "a panic".to_owned())
    }
}

/// libc's `getsockopt` as it is with a preloaded library before it, which asks the hook first:
/// the buffer filled, as far as the answer says; `None`: refused.
fn getsockopt(fd: c_int, (level, name): (c_int, c_int), len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0_u8; len];
    let mut told = len as socklen_t;
    let hook = pd_getsockopt_hook.load(Ordering::Acquire);
    let place = bytes.as_mut_ptr().cast();
    let mut result = -2;
    if !hook.is_null() {
        // SAFETY: the library stored a function of this type.
        let hook: Hook = unsafe { std::mem::transmute(hook) };
        result = hook(fd, level, name, place, &raw mut told);
    }
    if result == -2 {
        // SAFETY: the buffer has as many bytes as `told` says.
        result = unsafe { libc::getsockopt(fd, level, name, place, &raw mut told) };
    }
    bytes.truncate(told as usize);
    (result >= 0).then_some(bytes)
}

type Hook = extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;

/// The place that a preloaded library offers to the library under test.
#[unsafe(no_mangle)]
pub(crate) static pd_getsockopt_hook: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// packetdrill's `struct _tcp_info`, bytes.
const TCP_INFO_LEN: usize = 280;

/// Whether a thread sleeps: the letter behind its name in parentheses.
fn sleeps(stat: &str) -> bool {
    let text = std::fs::read_to_string(stat).unwrap_or_default();
    text.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('S'))
}

fn done(value: i64) -> Done {
    let errno = std::io::Error::last_os_error().raw_os_error();
    Done {
        value,
        errno: errno.filter(|_| value < 0),
        wrong: Vec::new(),
        opened: Vec::new(),
    }
}

fn number(value: &Value) -> Result<i64, String> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::Or(parts) => parts
            .iter()
            .try_fold(0, |bits, part| Ok(bits | number(part)?)),
        Value::Word(word) => constant(word).ok_or(format!("the name `{word}`")),
        _ => Err("no number".to_owned()),
    }
}

fn field(fields: &[Value], wanted: &str) -> Result<Option<i64>, String> {
    for one in fields {
        if let Value::Field(name, value) = one
            && name == wanted
        {
            return number(value).map(Some);
        }
    }
    Ok(None)
}

fn data_of(fields: &[Value]) -> Result<Option<i64>, String> {
    for name in ["fd", "ptr", "u32", "u64"] {
        if let Some(value) = field(fields, name)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// The lengths in a list of `{..., length}`, or in a msghdr with one.
fn lengths(value: &Value) -> Result<Vec<usize>, String> {
    match value {
        Value::List(parts) => {
            let all: Result<Vec<_>, _> = parts.iter().map(lengths).collect();
            Ok(all?.concat())
        }
        Value::Struct(parts) => match parts.as_slice() {
            [Value::Any, len] => Ok(vec![number(len)? as usize]),
            parts => {
                let inner = parts.iter().find_map(|part| match part {
                    Value::Field(name, inner) if name == "msg_iov" => Some(inner),
                    _ => None,
                });
                inner.map_or(Ok(Vec::new()), |inner| lengths(inner))
            }
        },
        _ => Err("no list of lengths".to_owned()),
    }
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Word(word) if word == "NULL")
}

/// C's numbers of an option.
fn option(name: &str) -> Result<(c_int, c_int), String> {
    let socket = |name| Ok((libc::SOL_SOCKET, name));
    let tcp = |name| Ok((libc::IPPROTO_TCP, name));
    match name {
        "SO_ERROR" => socket(libc::SO_ERROR),
        "SO_RCVBUF" => socket(libc::SO_RCVBUF),
        "SO_SNDBUF" => socket(libc::SO_SNDBUF),
        "SO_REUSEADDR" => socket(libc::SO_REUSEADDR),
        "SO_KEEPALIVE" => socket(libc::SO_KEEPALIVE),
        "SO_LINGER" => socket(libc::SO_LINGER),
        "SO_TYPE" => socket(libc::SO_TYPE),
        "SO_ACCEPTCONN" => socket(libc::SO_ACCEPTCONN),
        "TCP_NODELAY" => tcp(libc::TCP_NODELAY),
        "TCP_MAXSEG" => tcp(libc::TCP_MAXSEG),
        "TCP_KEEPIDLE" => tcp(libc::TCP_KEEPIDLE),
        "TCP_KEEPINTVL" => tcp(libc::TCP_KEEPINTVL),
        "TCP_KEEPCNT" => tcp(libc::TCP_KEEPCNT),
        "TCP_USER_TIMEOUT" => tcp(libc::TCP_USER_TIMEOUT),
        // FreeBSD's, by its numbers.
        "TCP_KEEPINIT" => tcp(128),
        "TCP_NOOPT" => tcp(8),
        "IPV6_UNICAST_HOPS" => Ok((libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS)),
        "IPV6_TCLASS" => Ok((libc::IPPROTO_IPV6, libc::IPV6_TCLASS)),
        "IP_TTL" => Ok((libc::IPPROTO_IP, libc::IP_TTL)),
        "IP_TOS" => Ok((libc::IPPROTO_IP, libc::IP_TOS)),
        name => Err(format!("the option `{name}`")),
    }
}

impl Player {
    fn fd(&self, value: &Value) -> Result<c_int, String> {
        let said = number(value)? as i32;
        Ok(self.descriptors.get(&said).copied().unwrap_or(said))
    }

    /// The result and the errno against the line; a descriptor is learned.
    pub(crate) fn judge_value(&mut self, call: &Call, done: &Done) -> Result<(), String> {
        self.descriptors.extend(done.opened.iter().copied());
        let name = call.name.as_str();
        if name == "close" && done.value == 0 {
            let said = number(call.args.first().ok_or("no argument")?)? as i32;
            self.descriptors.remove(&said);
        }
        if call.result == Value::Any {
            return Ok(());
        }
        let wanted = number(&call.result)?;
        let opens = ["socket", "accept", "accept4", "epoll_create"].contains(&name);
        if opens && wanted >= 0 && done.value >= 0 {
            self.descriptors.insert(wanted as i32, done.value as i32);
            match name {
                "socket" => self.flows.on_socket(wanted as i32),
                "accept" | "accept4" => self.flows.on_accept(wanted as i32),
                _ => {}
            }
            return Ok(());
        }
        if wanted != done.value {
            return Err(format!("{name} = {}, not {wanted}", done.value));
        }
        let errno = call
            .errno
            .as_deref()
            .and_then(Errno::of)
            .map(|errno| errno.0);
        match wanted < 0 && errno != done.errno {
            true => Err(format!("{name}: errno {:?}, not {errno:?}", done.errno)),
            false => Ok(()),
        }
    }

    /// What packetdrill asks for before the code of an assertion is looked at: three options of
    /// the socket under test, in this order, by libc's `getsockopt`. If one is refused, or
    /// answered with less than it needs, the script is over.
    pub(crate) fn tcp_info(&self) -> Result<TcpInfo, String> {
        let fd = self.flows.under_test().ok_or("no socket to use for code")?;
        let fd = self.descriptors.get(&fd).copied().unwrap_or(-1);
        let info = getsockopt(fd, (libc::IPPROTO_TCP, libc::TCP_INFO), TCP_INFO_LEN)
            .ok_or("can't find getsockopt to get TCP info")?;
        if info.len() < TCP_INFO_LEN {
            return Err(format!("a tcp_info of {} bytes", info.len()));
        }
        // As long as it is answered, packetdrill takes what it knows and nothing else.
        getsockopt(fd, (libc::IPPROTO_TCP, 26), 20)
            .ok_or("can't find getsockopt to get TCP_CC_INFO")?;
        let memory = getsockopt(fd, (libc::SOL_SOCKET, 55), 36)
            .ok_or("can't find getsockopt to get sk_meminfo")?;
        if memory.len() < 36 {
            return Err(format!("a meminfo of {} bytes", memory.len()));
        }
        let byte = |at: usize| u64::from(info[at]);
        let word = |at: usize| u32::from_le_bytes(info[at..at + 4].try_into().unwrap()).into();
        let long = |at: usize| u64::from_le_bytes(info[at..at + 8].try_into().unwrap());
        // As `struct tcp_info` of Linux lies in memory.
        Ok(TcpInfo::new(vec![
            ("tcpi_state", byte(0)),
            ("tcpi_ca_state", byte(1)),
            ("tcpi_retransmits", byte(2)),
            ("tcpi_probes", byte(3)),
            ("tcpi_backoff", byte(4)),
            ("tcpi_options", byte(5)),
            ("tcpi_snd_wscale", byte(6) & 15),
            ("tcpi_rcv_wscale", byte(6) >> 4),
            ("tcpi_rto", word(8)),
            ("tcpi_ato", word(12)),
            ("tcpi_snd_mss", word(16)),
            ("tcpi_rcv_mss", word(20)),
            ("tcpi_unacked", word(24)),
            ("tcpi_sacked", word(28)),
            ("tcpi_lost", word(32)),
            ("tcpi_retrans", word(36)),
            ("tcpi_last_data_sent", word(44)),
            ("tcpi_last_data_recv", word(52)),
            ("tcpi_last_ack_recv", word(56)),
            ("tcpi_pmtu", word(60)),
            ("tcpi_rtt", word(68)),
            ("tcpi_rttvar", word(72)),
            ("tcpi_snd_ssthresh", word(76)),
            ("tcpi_snd_cwnd", word(80)),
            ("tcpi_advmss", word(84)),
            ("tcpi_reordering", word(88)),
            ("tcpi_rcv_space", word(96)),
            ("tcpi_total_retrans", word(100)),
            ("tcpi_segs_out", word(136)),
            ("tcpi_segs_in", word(140)),
            ("tcpi_notsent_bytes", word(144)),
            ("tcpi_min_rtt", word(148)),
            ("tcpi_data_segs_in", word(152)),
            ("tcpi_data_segs_out", word(156)),
            ("tcpi_bytes_sent", long(200)),
            ("tcpi_bytes_retrans", long(208)),
            ("tcpi_snd_wnd", word(228)),
        ]))
    }

    /// What a line's call does when its time has come.
    pub(crate) fn job(&mut self, call: &Call) -> Result<Job, String> {
        let arg = |at: usize| {
            call.args
                .get(at)
                .ok_or(format!("{} lacks arguments", call.name))
        };
        let name = call.name.clone();
        Ok(match name.as_str() {
            "socket" => {
                let kind = number(arg(1)?)? as c_int;
                Box::new(move |t| {
                    let user = t.0.userdata;
                    done((t.0.socket)(user, libc::AF_INET6, kind, libc::IPPROTO_TCP).into())
                })
            }
            "bind" => {
                let (fd, port) = (
                    self.fd(arg(0)?)?,
                    port_of(arg(1)?).unwrap_or(self.bind_port),
                );
                Box::new(move |t| {
                    let addr = address(LOCAL, port);
                    let place = (&raw const addr).cast::<sockaddr>();
                    done((t.0.bind)(t.0.userdata, fd, place, LEN).into())
                })
            }
            "listen" => {
                let (fd, backlog) = (self.fd(arg(0)?)?, number(arg(1)?)? as c_int);
                self.flows.on_listen();
                Box::new(move |t| done((t.0.listen)(t.0.userdata, fd, backlog).into()))
            }
            "accept" | "accept4" => {
                let fd = self.fd(arg(0)?)?;
                Box::new(move |t| {
                    let mut addr = address(Ipv6Addr::UNSPECIFIED, 0);
                    let mut len = LEN;
                    let place = (&raw mut addr).cast::<sockaddr>();
                    let mut done = done((t.0.accept)(t.0.userdata, fd, place, &raw mut len).into());
                    let peer = Ipv6Addr::from(addr.sin6_addr.s6_addr);
                    if done.value >= 0 && peer != REMOTE {
                        done.wrong.push(format!("from {peer}"));
                    }
                    done
                })
            }
            "connect" => {
                let fd = self.fd(arg(0)?)?;
                let port = port_of(arg(1)?).unwrap_or(self.connect_port);
                if !self.connected.contains(&fd) {
                    self.connected.push(fd);
                    self.flows.on_connect(port, 0);
                }
                Box::new(move |t| {
                    let addr = address(REMOTE, port);
                    let place = (&raw const addr).cast::<sockaddr>();
                    done((t.0.connect)(t.0.userdata, fd, place, LEN).into())
                })
            }
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => self.read_job(call)?,
            "write" | "send" | "sendto" | "writev" | "sendmsg" => self.write_job(call)?,
            "close" => {
                let fd = self.fd(arg(0)?)?;
                self.connected.retain(|one| *one != fd);
                Box::new(move |t| done((t.0.close)(t.0.userdata, fd).into()))
            }
            "shutdown" => {
                let (fd, how) = (self.fd(arg(0)?)?, number(arg(1)?)? as c_int);
                Box::new(move |t| done((t.0.shutdown)(t.0.userdata, fd, how).into()))
            }
            "fcntl" => {
                let (fd, command) = (self.fd(arg(0)?)?, number(arg(1)?)? as c_int);
                let flags = call.args.get(2).map_or(Ok(0), number)? as c_ulong;
                Box::new(move |t| done((t.0.fcntl)(t.0.userdata, fd, command, flags).into()))
            }
            "ioctl" => self.ioctl_job(call)?,
            "getsockopt" | "setsockopt" => self.option_job(call)?,
            "poll" => self.poll_job(call)?,
            "epoll_create" => Box::new(move |t| done((t.0.epoll_create)(t.0.userdata, 1).into())),
            "epoll_ctl" | "epoll_wait" => self.epoll_job(call)?,
            "pipe" => {
                let Value::List(ends) = arg(0)? else {
                    return Err("pipe takes a list".to_owned());
                };
                let said: Result<Vec<i64>, String> = ends.iter().map(number).collect();
                let said = said?;
                Box::new(move |t| {
                    let mut pair = [0; 2];
                    let mut done = done((t.0.pipe)(t.0.userdata, pair.as_mut_ptr()).into());
                    let said = said.iter().map(|fd| *fd as i32);
                    done.opened = said.zip(pair).collect();
                    done
                })
            }
            "splice" => {
                let (from, to) = (self.fd(arg(0)?)?, self.fd(arg(2)?)?);
                let (len, flags) = (number(arg(4)?)? as usize, number(arg(5)?)? as u32);
                Box::new(move |t| {
                    let none = std::ptr::null_mut();
                    let user = t.0.userdata;
                    done((t.0.splice)(user, from, none, to, none, len, flags).into())
                })
            }
            name => return Err(format!("the call `{name}`")),
        })
    }

    fn read_job(&self, call: &Call) -> Result<Job, String> {
        let (fd, name) = (self.fd(&call.args[0])?, call.name.clone());
        let gathers = matches!(name.as_str(), "readv" | "recvmsg");
        let lens = match gathers {
            true => lengths(&call.args[1])?,
            false => vec![number(&call.args[2])? as usize],
        };
        let flags = match name.as_str() {
            "recv" | "recvfrom" => number(&call.args[3])?,
            "recvmsg" => number(&call.args[2])?,
            _ => 0,
        } as c_int;
        let null = is_null(&call.args[1]);
        Ok(Box::new(move |t| {
            let user = t.0.userdata;
            let mut room: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
            let list = vectors(&mut room);
            let place = match (null, list.first()) {
                (false, Some(first)) => first.iov_base,
                _ => std::ptr::null_mut(),
            };
            let len = lens.first().copied().unwrap_or(0);
            let none = std::ptr::null_mut();
            let mut message = message(&list);
            done(match name.as_str() {
                "read" => (t.0.read)(user, fd, place, len),
                "recv" => (t.0.recv)(user, fd, place, len, flags),
                "recvfrom" => {
                    (t.0.recvfrom)(user, fd, place, len, flags, none, std::ptr::null_mut())
                }
                "readv" => (t.0.readv)(user, fd, list.as_ptr(), list.len() as c_int),
                _ => (t.0.recvmsg)(user, fd, &raw mut message, flags),
            } as i64)
        }))
    }

    fn write_job(&self, call: &Call) -> Result<Job, String> {
        let (fd, name) = (self.fd(&call.args[0])?, call.name.clone());
        let gathers = matches!(name.as_str(), "writev" | "sendmsg");
        let lens = match gathers {
            true => lengths(&call.args[1])?,
            false => vec![number(&call.args[2])? as usize],
        };
        let flags = match name.as_str() {
            "send" | "sendto" => number(&call.args[3])?,
            "sendmsg" => number(&call.args[2])?,
            _ => 0,
        } as c_int;
        let null = is_null(&call.args[1]);
        Ok(Box::new(move |t| {
            let user = t.0.userdata;
            let mut data: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
            let list = vectors(&mut data);
            let place: *const c_void = match (null, list.first()) {
                (false, Some(first)) => first.iov_base,
                _ => std::ptr::null(),
            };
            let len = lens.first().copied().unwrap_or(0);
            let message = message(&list);
            done(match name.as_str() {
                "write" => (t.0.write)(user, fd, place, len),
                "send" => (t.0.send)(user, fd, place, len, flags),
                "sendto" => (t.0.sendto)(user, fd, place, len, flags, std::ptr::null(), 0),
                "writev" => (t.0.writev)(user, fd, list.as_ptr(), list.len() as c_int),
                _ => (t.0.sendmsg)(user, fd, &raw const message, flags),
            } as i64)
        }))
    }

    fn ioctl_job(&self, call: &Call) -> Result<Job, String> {
        let fd = self.fd(&call.args[0])?;
        let request = match &call.args[1] {
            Value::Word(word) if word == "SIOCINQ" || word == "FIONREAD" => libc::FIONREAD,
            Value::Word(word) if word == "SIOCOUTQ" || word == "TIOCOUTQ" => libc::TIOCOUTQ,
            _ => return Err("this ioctl".to_owned()),
        };
        let wanted = first(&call.args[2]).clone();
        Ok(Box::new(move |t| {
            let mut value: c_int = -1;
            let mut done = done((t.0.ioctl)(t.0.userdata, fd, request, &raw mut value).into());
            done.compare(&wanted, value.into());
            done
        }))
    }

    fn option_job(&self, call: &Call) -> Result<Job, String> {
        let fd = self.fd(&call.args[0])?;
        let Value::Word(name) = &call.args[2] else {
            return Err("an option has a name".to_owned());
        };
        let (level, option) = option(name)?;
        let said = first(&call.args[3]).clone();
        let lingers = match &said {
            Value::Struct(fields) => Some((
                field(fields, "onoff")?.unwrap_or(0),
                field(fields, "linger")?.unwrap_or(0),
            )),
            _ => None,
        };
        if call.name == "getsockopt" {
            return Ok(Box::new(move |t| {
                let mut value = [-7_i32; 2];
                let mut len = if lingers.is_some() { 8 } else { 4 };
                let place = value.as_mut_ptr().cast::<c_void>();
                let user = t.0.userdata;
                let result = (t.0.getsockopt)(user, fd, level, option, place, &raw mut len);
                let mut done = done(result.into());
                match lingers {
                    Some((on, time))
                        if (i64::from(value[0]), i64::from(value[1])) != (on, time) =>
                    {
                        done.wrong.push(format!("linger {value:?}"));
                    }
                    Some(_) => {}
                    None if result == 0 => done.compare(&said, value[0].into()),
                    None => {}
                }
                done
            }));
        }
        let value = match lingers {
            Some(_) => 0,
            None => number(&said)?,
        } as c_int;
        Ok(Box::new(move |t| {
            let user = t.0.userdata;
            let long = lingers.map(|(on, time)| linger {
                l_onoff: on as c_int,
                l_linger: time as c_int,
            });
            done(i64::from(match &long {
                Some(long) => {
                    let place = (&raw const *long).cast();
                    (t.0.setsockopt)(user, fd, level, option, place, size_of::<linger>() as u32)
                }
                None => (t.0.setsockopt)(user, fd, level, option, (&raw const value).cast(), 4),
            }))
        }))
    }

    fn poll_job(&self, call: &Call) -> Result<Job, String> {
        let Value::List(items) = &call.args[0] else {
            return Err("poll takes a list".to_owned());
        };
        let (mut list, mut wanted) = (Vec::new(), Vec::new());
        for item in items {
            let Value::Struct(fields) = item else {
                return Err("poll takes a list of structs".to_owned());
            };
            let said = field(fields, "fd")?.unwrap_or(-1) as i32;
            list.push(pollfd {
                fd: self.descriptors.get(&said).copied().unwrap_or(said),
                events: field(fields, "events")?.unwrap_or(0) as i16,
                revents: 0,
            });
            wanted.push(field(fields, "revents")?);
        }
        let timeout = number(&call.args[2])? as c_int;
        Ok(Box::new(move |t| {
            let count = list.len() as libc::nfds_t;
            let mut done = done((t.0.poll)(t.0.userdata, list.as_mut_ptr(), count, timeout).into());
            for (wanted, seen) in wanted.iter().zip(&list) {
                if wanted.is_some_and(|wanted| wanted as i16 != seen.revents) {
                    done.wrong.push(format!("revents {:#x}", seen.revents));
                }
            }
            done
        }))
    }

    fn epoll_job(&self, call: &Call) -> Result<Job, String> {
        let fd = self.fd(&call.args[0])?;
        if call.name == "epoll_ctl" {
            let op = number(&call.args[1])? as c_int;
            let target = self.fd(&call.args[2])?;
            let Value::Struct(fields) = &call.args[3] else {
                return Err("epoll_ctl takes a struct".to_owned());
            };
            let events = field(fields, "events")?.unwrap_or(0) as u32;
            let data = data_of(fields)?.unwrap_or(0) as u64;
            return Ok(Box::new(move |t| {
                let mut event = epoll_event { events, u64: data };
                done((t.0.epoll_ctl)(t.0.userdata, fd, op, target, &raw mut event).into())
            }));
        }
        let wanted = match &call.args[1] {
            Value::List(items) => items.clone(),
            Value::Any => Vec::new(),
            one => vec![one.clone()],
        };
        let mut pairs = Vec::new();
        for one in &wanted {
            if let Value::Struct(fields) = one {
                pairs.push((field(fields, "events")?, data_of(fields)?));
            }
        }
        let max = number(&call.args[2])?.max(0) as usize;
        let timeout = number(&call.args[3])? as c_int;
        Ok(Box::new(move |t| {
            let mut list = vec![epoll_event { events: 0, u64: 0 }; max];
            let place = list.as_mut_ptr();
            let result = (t.0.epoll_wait)(t.0.userdata, fd, place, max as c_int, timeout);
            let mut done = done(result.into());
            for ((mask, data), seen) in pairs.iter().zip(list.iter().take(result.max(0) as usize)) {
                let (events, value) = (seen.events, seen.u64);
                if mask.is_some_and(|mask| mask as u32 != events) {
                    done.wrong.push(format!("events {events:#x}"));
                }
                if data.is_some_and(|data| data as u64 != value) {
                    done.wrong.push(format!("data {value}"));
                }
            }
            done
        }))
    }
}

impl Done {
    fn compare(&mut self, wanted: &Value, seen: i64) {
        match number(wanted) {
            _ if *wanted == Value::Any => {}
            Ok(wanted) if wanted == seen => {}
            wanted => self.wrong.push(format!("value {seen}, not {wanted:?}")),
        }
    }
}

fn vectors(room: &mut [Vec<u8>]) -> Vec<iovec> {
    let vector = |bytes: &mut Vec<u8>| iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    room.iter_mut().map(vector).collect()
}

fn message(list: &[iovec]) -> msghdr {
    // SAFETY: all zeros is a message without anything.
    let mut message: msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = list.as_ptr().cast_mut();
    message.msg_iovlen = list.len();
    message
}
