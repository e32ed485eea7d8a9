//! The table of C functions that packetdrill fills its calls from.
//!
//! Thirty-three pointers, each set: packetdrill calls without asking whether there is one.
//! Every function gets `userdata` first, returns what libc's would, and lets no panic out.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_ulong, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    epoll_event, iovec, linger, msghdr, nfds_t, off64_t, pollfd, size_t, sockaddr, socklen_t,
    ssize_t, timeval,
};
use motet::time::Duration;
use motet_conformance::host::{Errno, Fail, Host, How, OptionValue, Outcome, Settings};

use motet_conformance::run::set_first_knobs;

use crate::marshal::{
    answer, bytes, bytes_mut, capacity, clear_message, fail, gather, guard, read_address, scatter,
    tcp_info, write_address,
};
use crate::names;
use crate::shared::Shared;

type User = *mut c_void;
type Addr = *const sockaddr;
type AddrMut = *mut sockaddr;

/// `struct packetdrill_interface`: fields as packetdrill names them.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "they bear libc's names")]
pub struct Interface {
    pub userdata: User,
    pub free: extern "C" fn(User),
    pub socket: extern "C" fn(User, c_int, c_int, c_int) -> c_int,
    pub bind: extern "C" fn(User, c_int, Addr, socklen_t) -> c_int,
    pub listen: extern "C" fn(User, c_int, c_int) -> c_int,
    pub accept: extern "C" fn(User, c_int, AddrMut, *mut socklen_t) -> c_int,
    pub connect: extern "C" fn(User, c_int, Addr, socklen_t) -> c_int,
    pub read: extern "C" fn(User, c_int, *mut c_void, size_t) -> ssize_t,
    pub readv: extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t,
    pub recv: extern "C" fn(User, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    pub recvfrom:
        extern "C" fn(User, c_int, *mut c_void, size_t, c_int, AddrMut, *mut socklen_t) -> ssize_t,
    pub recvmsg: extern "C" fn(User, c_int, *mut msghdr, c_int) -> ssize_t,
    pub write: extern "C" fn(User, c_int, *const c_void, size_t) -> ssize_t,
    pub writev: extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t,
    pub send: extern "C" fn(User, c_int, *const c_void, size_t, c_int) -> ssize_t,
    pub sendto:
        extern "C" fn(User, c_int, *const c_void, size_t, c_int, Addr, socklen_t) -> ssize_t,
    pub sendmsg: extern "C" fn(User, c_int, *const msghdr, c_int) -> ssize_t,
    // Variadic in C; one more argument of a word's size is passed the same way on x86-64.
    pub fcntl: extern "C" fn(User, c_int, c_int, c_ulong) -> c_int,
    pub ioctl: extern "C" fn(User, c_int, c_ulong, *mut c_int) -> c_int,
    pub close: extern "C" fn(User, c_int) -> c_int,
    pub shutdown: extern "C" fn(User, c_int, c_int) -> c_int,
    pub getsockopt: extern "C" fn(User, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub setsockopt: extern "C" fn(User, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub poll: extern "C" fn(User, *mut pollfd, nfds_t, c_int) -> c_int,
    pub netdev_send: extern "C" fn(User, *const c_void, size_t) -> c_int,
    pub netdev_receive: extern "C" fn(User, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    pub usleep: extern "C" fn(User, c_uint) -> c_int,
    pub gettimeofday: extern "C" fn(User, *mut timeval, *mut c_void) -> c_int,
    pub epoll_create: extern "C" fn(User, c_int) -> c_int,
    pub epoll_ctl: extern "C" fn(User, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub epoll_wait: extern "C" fn(User, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub pipe: extern "C" fn(User, *mut c_int) -> c_int,
    pub splice:
        extern "C" fn(User, c_int, *mut off64_t, c_int, *mut off64_t, size_t, c_uint) -> c_int,
}

/// Where packetdrill starts. Flags that make no sense end the process: nothing here could
/// return them, and a script must not be judged by other settings than it was given.
///
/// # Safety
/// `flags` is null or a C string; `interface` points to a zeroed or filled table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut Interface,
) {
    let text = match flags.is_null() {
        true => String::new(),
        // SAFETY: a C string, as the caller promises.
        false => unsafe { CStr::from_ptr(flags) }
            .to_string_lossy()
            .into_owned(),
    };
    let settings = Settings::from_flags(&text).map(with_knobs);
    let shared = settings.and_then(Shared::new);
    let shared = shared.unwrap_or_else(|message| {
        eprintln!("libmotet_packetdrill: --so_flags: {message}");
        std::process::exit(1);
    });
    let shared: &'static Shared = Box::leak(Box::new(shared));
    let user = (&raw const *shared).cast_mut().cast::<c_void>();
    // SAFETY: the table is valid, as the caller promises.
    unsafe { interface.write(table(user)) };
    SHARED.store(user.cast(), Ordering::Release);
    offer_hook();
}

/// Sets the knobs that packetdrill's script sets at its start. The shell that packetdrill gives
/// them to cannot reach this library; nothing else of the script is looked at.
fn with_knobs(mut settings: Settings) -> Settings {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let script = arguments.rfind(|name| name.extension().is_some_and(|ending| ending == "pkt"));
    if let Some(text) = script.and_then(|name| std::fs::read_to_string(name).ok())
        && let Err(wrong) = set_first_knobs(&text, &mut settings)
        && !settings.quiet
    {
        eprintln!("libmotet_packetdrill: {}", wrong.join("; "));
    }
    settings
}

fn table(userdata: User) -> Interface {
    Interface {
        userdata,
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    }
}

/// The host of the process, for the hook, which is called without `userdata`.
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

type Hook = extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;

/// packetdrill's assertions call libc's `getsockopt` on the descriptor itself. A preloaded
/// library may offer a place for a function that answers for us.
fn offer_hook() {
    // SAFETY: a valid name; the place, if there is one, holds a function pointer of this type.
    unsafe {
        let place = libc::dlsym(libc::RTLD_DEFAULT, c"pd_getsockopt_hook".as_ptr());
        if !place.is_null() {
            place.cast::<Option<Hook>>().write(Some(hook));
        }
    }
}

/// -2: not one of ours.
extern "C" fn hook(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let shared = SHARED.load(Ordering::Acquire);
    if shared.is_null() {
        return -2;
    }
    let mut mine = false;
    let result = guard(|| {
        let shared = shared_of(shared.cast());
        mine = shared.look(|host| host.has(fd));
        match mine {
            true => i64::from(getsockopt(
                (&raw const *shared).cast_mut().cast(),
                fd,
                level,
                name,
                value,
                len,
            )),
            false => 0,
        }
    });
    if mine { result as c_int } else { -2 }
}

fn shared_of<'a>(user: User) -> &'a Shared {
    // SAFETY: every caller hands in what `packetdrill_interface_init` put into the table: a
    // host that is never freed.
    unsafe { &*user.cast::<Shared>() }
}

fn call(user: User, attempt: impl FnMut(&mut Host<'static>, bool) -> Outcome) -> i64 {
    guard(|| answer(shared_of(user).call(None, attempt)))
}

extern "C" fn free(user: User) {
    guard(|| {
        shared_of(user).act(|_| ());
        0
    });
}

/// A real descriptor: packetdrill closes what a script leaves open by itself.
fn descriptor() -> Result<c_int, Errno> {
    // SAFETY: a C string.
    let fd = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if fd < 0 { Err(Errno::EMFILE) } else { Ok(fd) }
}

fn release(fd: c_int) {
    // SAFETY: a descriptor that `descriptor` gave out.
    unsafe { libc::close(fd) };
}

/// Opens something under a new descriptor.
fn open(user: User, mut open: impl FnMut(&mut Host<'static>, c_int) -> Outcome) -> c_int {
    guard(|| {
        let fd = match descriptor() {
            Ok(fd) => fd,
            Err(errno) => return fail(errno),
        };
        let outcome = shared_of(user).call(None, |host, _| {
            if host.has(fd) {
                // packetdrill has closed the old one behind our back.
                host.close(fd)?;
            }
            open(host, fd)
        });
        if outcome.is_err() {
            release(fd);
        }
        answer(outcome.map(|_| i64::from(fd)))
    }) as c_int
}

extern "C" fn socket(user: User, domain: c_int, kind: c_int, _protocol: c_int) -> c_int {
    let nonblocking = kind & libc::SOCK_NONBLOCK != 0;
    let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    if domain != libc::AF_INET6 {
        return fail(Errno::EAFNOSUPPORT) as c_int;
    }
    if kind != libc::SOCK_STREAM {
        return fail(Errno::EPROTONOSUPPORT) as c_int;
    }
    open(user, |host, fd| {
        host.socket(fd)?;
        host.set_nonblocking(fd, nonblocking)
    })
}

extern "C" fn bind(user: User, fd: c_int, addr: Addr, len: socklen_t) -> c_int {
    // SAFETY: libc's contract of bind.
    let addr = unsafe { read_address(addr, len) };
    call(user, |host, _| host.bind(fd, addr?.1)) as c_int
}

extern "C" fn listen(user: User, fd: c_int, backlog: c_int) -> c_int {
    call(user, |host, _| host.listen(fd, i64::from(backlog))) as c_int
}

extern "C" fn accept(user: User, fd: c_int, addr: AddrMut, len: *mut socklen_t) -> c_int {
    let mut peer = None;
    let new = open(user, |host, new| {
        peer = Some(host.accept(fd, new)?);
        Ok(0)
    });
    if let Some(peer) = peer {
        // SAFETY: libc's contract of accept.
        unsafe { write_address(addr, len, peer) };
    }
    new
}

extern "C" fn connect(user: User, fd: c_int, addr: Addr, len: socklen_t) -> c_int {
    // SAFETY: libc's contract of connect.
    let addr = unsafe { read_address(addr, len) };
    call(user, |host, _| host.connect(fd, addr?)) as c_int
}

fn receive(user: User, fd: c_int, out: &mut [u8], flags: c_int) -> i64 {
    if flags & !(libc::MSG_PEEK | libc::MSG_DONTWAIT) != 0 {
        return fail(Errno::EOPNOTSUPP);
    }
    call(user, |host, _| {
        let outcome = host.read(fd, out, flags & libc::MSG_PEEK != 0);
        match outcome {
            Err(Fail::Block) if flags & libc::MSG_DONTWAIT != 0 => Err(Errno::EAGAIN.into()),
            outcome => outcome,
        }
    })
}

fn transmit(user: User, fd: c_int, data: &[u8], flags: c_int) -> i64 {
    if flags & !(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) != 0 {
        return fail(Errno::EOPNOTSUPP);
    }
    let mut done = 0;
    call(user, |host, _| match host.write(fd, data, &mut done) {
        Err(Fail::Block) if flags & libc::MSG_DONTWAIT != 0 => match done {
            0 => Err(Errno::EAGAIN.into()),
            done => Ok(done as i64),
        },
        outcome => outcome,
    })
}

extern "C" fn read(user: User, fd: c_int, data: *mut c_void, len: size_t) -> ssize_t {
    recv(user, fd, data, len, 0)
}

extern "C" fn readv(user: User, fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    let count = count.max(0) as usize;
    // SAFETY: libc's contract of readv.
    let mut all = vec![0; unsafe { capacity(list, count) }];
    let got = receive(user, fd, &mut all, 0);
    // SAFETY: as above.
    unsafe {
        scatter(
            list,
            count,
            all.get(..got.max(0) as usize).unwrap_or_default(),
        );
    };
    got as ssize_t
}

extern "C" fn recv(user: User, fd: c_int, data: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    if data.is_null() && len > 0 {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of recv.
    receive(user, fd, unsafe { bytes_mut(data, len) }, flags) as ssize_t
}

extern "C" fn recvfrom(
    user: User,
    fd: c_int,
    data: *mut c_void,
    len: size_t,
    flags: c_int,
    _addr: AddrMut,
    addr_len: *mut socklen_t,
) -> ssize_t {
    if !addr_len.is_null() {
        // SAFETY: libc's contract of recvfrom; a stream socket gives no address.
        unsafe { *addr_len = 0 };
    }
    recv(user, fd, data, len, flags)
}

extern "C" fn recvmsg(user: User, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of recvmsg.
    let (list, count) = unsafe { ((*message).msg_iov.cast_const(), (*message).msg_iovlen) };
    // SAFETY: as above.
    let mut all = vec![0; unsafe { capacity(list, count) }];
    let got = receive(user, fd, &mut all, flags);
    // SAFETY: as above.
    unsafe {
        scatter(
            list,
            count,
            all.get(..got.max(0) as usize).unwrap_or_default(),
        );
        clear_message(message);
    }
    got as ssize_t
}

extern "C" fn write(user: User, fd: c_int, data: *const c_void, len: size_t) -> ssize_t {
    send(user, fd, data, len, 0)
}

extern "C" fn writev(user: User, fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: libc's contract of writev.
    let all = unsafe { gather(list, count.max(0) as usize) };
    transmit(user, fd, &all, 0) as ssize_t
}

extern "C" fn send(
    user: User,
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    if data.is_null() && len > 0 {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of send.
    transmit(user, fd, unsafe { bytes(data, len) }, flags) as ssize_t
}

extern "C" fn sendto(
    user: User,
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
    _addr: Addr,
    _addr_len: socklen_t,
) -> ssize_t {
    send(user, fd, data, len, flags)
}

extern "C" fn sendmsg(user: User, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of sendmsg.
    let all = unsafe { gather((*message).msg_iov, (*message).msg_iovlen) };
    transmit(user, fd, &all, flags) as ssize_t
}

extern "C" fn fcntl(user: User, fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    call(user, |host, _| match command {
        libc::F_GETFL => host
            .is_nonblocking(fd)
            .map(|on| i64::from(libc::O_RDWR | if on { libc::O_NONBLOCK } else { 0 })),
        libc::F_SETFL => host.set_nonblocking(fd, argument & libc::O_NONBLOCK as c_ulong != 0),
        libc::F_GETFD | libc::F_SETFD => host.is_nonblocking(fd).map(|_| 0),
        _ => Err(Errno::EINVAL.into()),
    }) as c_int
}

extern "C" fn ioctl(user: User, fd: c_int, request: c_ulong, value: *mut c_int) -> c_int {
    call(user, |host, _| {
        let (readable, unacknowledged) = host.queues(fd)?;
        let number = match request {
            libc::FIONREAD => readable,
            libc::TIOCOUTQ => unacknowledged,
            _ => return Err(Errno::EINVAL.into()),
        };
        if value.is_null() {
            return Err(Errno::EFAULT.into());
        }
        // SAFETY: libc's contract of these two requests.
        unsafe { *value = number as c_int };
        Ok(0)
    }) as c_int
}

extern "C" fn close(user: User, fd: c_int) -> c_int {
    guard(|| {
        let outcome = shared_of(user).call(None, |host, _| host.close(fd));
        if outcome.is_ok() {
            release(fd);
        }
        answer(outcome)
    }) as c_int
}

extern "C" fn shutdown(user: User, fd: c_int, how: c_int) -> c_int {
    let how = match how {
        libc::SHUT_RD => How::Read,
        libc::SHUT_WR => How::Write,
        libc::SHUT_RDWR => How::Both,
        _ => return fail(Errno::EINVAL) as c_int,
    };
    call(user, |host, _| host.shutdown(fd, how)) as c_int
}

extern "C" fn getsockopt(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if value.is_null() || len.is_null() {
        return fail(Errno::EFAULT) as c_int;
    }
    let put = |bytes: &[u8]| {
        // SAFETY: libc's contract of getsockopt; no more is written than there is room for.
        unsafe {
            let count = bytes.len().min(*len as usize);
            bytes_mut(value, count).copy_from_slice(bytes.get(..count).unwrap_or_default());
            *len = count as socklen_t;
        }
    };
    call(user, |host, _| {
        if (level, name) == (libc::IPPROTO_TCP, libc::TCP_INFO) {
            put(&tcp_info(&host.tcp_info(fd)?));
            return Ok(0);
        }
        let name = names::option(level, name).ok_or(Errno::ENOPROTOOPT)?;
        match host.option(fd, name)? {
            OptionValue::Number(number) => put(&(number as c_int).to_ne_bytes()),
            OptionValue::Linger(on, time) => {
                let halves = [c_int::from(on).to_ne_bytes(), (time as c_int).to_ne_bytes()];
                put(&halves.concat());
            }
        }
        Ok(0)
    }) as c_int
}

extern "C" fn setsockopt(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: libc's contract of setsockopt.
    let given = unsafe { bytes(value, len as usize) };
    let word = |at: usize| {
        let bytes = given.get(at..at + 4)?;
        Some(c_int::from_ne_bytes(bytes.try_into().ok()?))
    };
    let is_linger = (level, name) == (libc::SOL_SOCKET, libc::SO_LINGER);
    let value = match (is_linger, word(0), word(4)) {
        (true, Some(on), Some(time)) if given.len() >= size_of::<linger>() => {
            Some(OptionValue::Linger(on != 0, time as u32))
        }
        (false, Some(number), _) => Some(OptionValue::Number(i64::from(number))),
        _ => None,
    };
    call(user, |host, _| {
        let name = names::option(level, name).ok_or(Errno::ENOPROTOOPT)?;
        host.set_option(fd, name, value.ok_or(Errno::EINVAL)?)?;
        Ok(0)
    }) as c_int
}

/// How long a call with a timeout in milliseconds waits; `None`: for ever.
fn span(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

extern "C" fn poll(user: User, list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let list = match list.is_null() {
        true => &mut [][..],
        // SAFETY: libc's contract of poll.
        false => unsafe { std::slice::from_raw_parts_mut(list, count as usize) },
    };
    let watches: Vec<(i32, u32)> = list
        .iter()
        .map(|one| (one.fd, u32::from(one.events as u16)))
        .collect();
    let mut seen = vec![0; watches.len()];
    guard(|| {
        let outcome = shared_of(user).call(span(timeout), |host, is_over| {
            match host.poll(&watches, &mut seen) {
                0 if !is_over => Err(Fail::Block),
                count => Ok(count),
            }
        });
        for (one, seen) in list.iter_mut().zip(&seen) {
            one.revents = *seen as i16;
        }
        answer(outcome)
    }) as c_int
}

extern "C" fn netdev_send(user: User, packet: *const c_void, len: size_t) -> c_int {
    // SAFETY: packetdrill's contract: a whole packet.
    let packet = unsafe { bytes(packet, len) };
    guard(|| {
        shared_of(user).deliver(packet);
        0
    }) as c_int
}

extern "C" fn netdev_receive(
    user: User,
    buffer: *mut c_void,
    count: *mut size_t,
    us: *mut c_longlong,
) -> c_int {
    if buffer.is_null() || count.is_null() || us.is_null() {
        return fail(Errno::EFAULT) as c_int;
    }
    // SAFETY: packetdrill's contract: `count` holds the buffer's size.
    let room = unsafe { *count };
    let mut received = None;
    guard(|| {
        received = shared_of(user).receive();
        0
    });
    // Nothing will ever come: no packet at all, which the script takes for a bad one.
    let (at, packet) = received.unwrap_or_default();
    let len = packet.len().min(room);
    // SAFETY: as above.
    unsafe {
        bytes_mut(buffer, len).copy_from_slice(packet.get(..len).unwrap_or_default());
        *count = len;
        *us = at.as_micros() as c_longlong;
    }
    0
}

extern "C" fn usleep(user: User, us: c_uint) -> c_int {
    guard(|| {
        shared_of(user).pass(Duration::from_micros(u64::from(us)));
        0
    }) as c_int
}

extern "C" fn gettimeofday(user: User, time: *mut timeval, _zone: *mut c_void) -> c_int {
    guard(|| {
        let us = shared_of(user).time().as_micros();
        if !time.is_null() {
            let value = timeval {
                tv_sec: (us / 1_000_000) as libc::time_t,
                tv_usec: (us % 1_000_000) as libc::suseconds_t,
            };
            // SAFETY: libc's contract of gettimeofday.
            unsafe { time.write(value) };
        }
        0
    }) as c_int
}

extern "C" fn epoll_create(user: User, _size: c_int) -> c_int {
    open(user, Host::epoll_create)
}

extern "C" fn epoll_ctl(
    user: User,
    fd: c_int,
    op: c_int,
    target: c_int,
    event: *mut epoll_event,
) -> c_int {
    let (events, data) = match event.is_null() {
        true => (0, 0),
        // SAFETY: libc's contract of epoll_ctl; the struct may be packed.
        false => unsafe {
            let event = event.read_unaligned();
            (event.events, event.u64)
        },
    };
    call(user, |host, _| host.epoll_ctl(fd, op, target, events, data)) as c_int
}

extern "C" fn epoll_wait(
    user: User,
    fd: c_int,
    list: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    let Some(max) = usize::try_from(max)
        .ok()
        .filter(|max| *max > 0 && !list.is_null())
    else {
        return fail(Errno::EINVAL) as c_int;
    };
    guard(|| {
        let outcome = shared_of(user).call(span(timeout), |host, is_over| {
            let found = host.epoll_wait(fd, max)?;
            if found.is_empty() && !is_over {
                return Err(Fail::Block);
            }
            for (at, (events, data)) in found.iter().enumerate() {
                let event = epoll_event {
                    events: *events,
                    u64: *data,
                };
                // SAFETY: libc's contract of epoll_wait; there are at most `max`.
                unsafe { list.add(at).write_unaligned(event) };
            }
            Ok(found.len() as i64)
        });
        answer(outcome)
    }) as c_int
}

extern "C" fn pipe(user: User, pair: *mut c_int) -> c_int {
    if pair.is_null() {
        return fail(Errno::EFAULT) as c_int;
    }
    let mut read = -1;
    let write = open(user, |host, write| {
        // The descriptor of the other end; both are real.
        read = descriptor()?;
        host.pipe(read, write)
    });
    if write < 0 {
        if read >= 0 {
            release(read);
        }
        return -1;
    }
    // SAFETY: libc's contract of pipe: room for two.
    unsafe {
        pair.write(read);
        pair.add(1).write(write);
    }
    0
}

extern "C" fn splice(
    user: User,
    from: c_int,
    from_at: *mut off64_t,
    to: c_int,
    to_at: *mut off64_t,
    len: size_t,
    flags: c_uint,
) -> c_int {
    if !from_at.is_null() || !to_at.is_null() {
        return fail(Errno::ESPIPE) as c_int;
    }
    let nonblocking = flags & libc::SPLICE_F_NONBLOCK != 0;
    let len = len.min(1 << 24);
    call(user, |host, _| host.splice(from, to, len, nonblocking)) as c_int
}

// 33 pointers, as packetdrill lays them out.
const _: () = assert!(size_of::<Interface>() == 33 * size_of::<usize>());
