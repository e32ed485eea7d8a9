//! Options and flags of sockets.

use std::ffi::{c_int, c_ulong, c_void};

use libc::{linger, socklen_t};
use motet_conformance::host::{Errno, OptionValue};

use super::{User, call, enter};
use crate::marshal::{bytes, bytes_mut, fail, tcp_info};
use crate::names;

pub(crate) extern "C" fn fcntl(user: User, fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    enter(user);
    call(user, |host, _| match command {
        libc::F_GETFL => host
            .is_nonblocking(fd)
            .map(|on| i64::from(libc::O_RDWR | if on { libc::O_NONBLOCK } else { 0 })),
        libc::F_SETFL => host.set_nonblocking(fd, argument & libc::O_NONBLOCK as c_ulong != 0),
        libc::F_GETFD | libc::F_SETFD => host.is_nonblocking(fd).map(|_| 0),
        _ => Err(Errno::EINVAL.into()),
    }) as c_int
}

pub(crate) extern "C" fn ioctl(
    user: User,
    fd: c_int,
    request: c_ulong,
    value: *mut c_int,
) -> c_int {
    enter(user);
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

pub(crate) extern "C" fn getsockopt(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    enter(user);
    option(user, fd, (level, name), value, len)
}

/// Reads an option's value; the hook calls this function too.
pub(crate) fn option(
    user: User,
    fd: c_int,
    (level, name): (c_int, c_int),
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
        match (level, name) {
            (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                // SAFETY: not null, and libc's contract of getsockopt.
                let room = unsafe { *len } as usize;
                put(&tcp_info(&host.tcp_info(fd)?, room.min(INFO_MAX)));
                return Ok(0);
            }
            // As a congestion control that has nothing to tell.
            (libc::IPPROTO_TCP, TCP_CC_INFO) => {
                host.tcp_info(fd)?;
                put(&[]);
                return Ok(0);
            }
            (libc::SOL_SOCKET, SO_MEMINFO) => {
                put(&host.memory_info(fd)?.map(u32::to_ne_bytes).concat());
                return Ok(0);
            }
            _ => {}
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

pub(crate) extern "C" fn setsockopt(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    enter(user);
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

/// Linux's numbers of two options that packetdrill reads before each assertion.
const TCP_CC_INFO: c_int = 26;
const SO_MEMINFO: c_int = 55;
/// More than any kernel's `struct tcp_info` has, bytes.
const INFO_MAX: usize = 1024;
