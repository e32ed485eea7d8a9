//! Reading and writing.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, msghdr, off64_t, size_t, socklen_t, ssize_t};
use motet_conformance::host::{Errno, Fail};

use super::{User, call, enter};
use crate::interface::{Addr, AddrMut};
use crate::marshal::{bytes, bytes_mut, capacity, clear_message, fail, gather, scatter};

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

/// Receives into memory of C's.
fn receive_at(user: User, fd: c_int, data: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    if data.is_null() && len > 0 {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of recv.
    receive(user, fd, unsafe { bytes_mut(data, len) }, flags) as ssize_t
}

/// Sends from memory of C's.
fn transmit_at(user: User, fd: c_int, data: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    if data.is_null() && len > 0 {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of send.
    transmit(user, fd, unsafe { bytes(data, len) }, flags) as ssize_t
}

pub(crate) extern "C" fn read(user: User, fd: c_int, data: *mut c_void, len: size_t) -> ssize_t {
    enter(user);
    receive_at(user, fd, data, len, 0)
}

pub(crate) extern "C" fn readv(user: User, fd: c_int, list: *const iovec, count: c_int) -> ssize_t {
    enter(user);
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

pub(crate) extern "C" fn recv(
    user: User,
    fd: c_int,
    data: *mut c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    enter(user);
    receive_at(user, fd, data, len, flags)
}

pub(crate) extern "C" fn recvfrom(
    user: User,
    fd: c_int,
    data: *mut c_void,
    len: size_t,
    flags: c_int,
    _addr: AddrMut,
    addr_len: *mut socklen_t,
) -> ssize_t {
    enter(user);
    if !addr_len.is_null() {
        // SAFETY: libc's contract of recvfrom; a stream socket gives no address.
        unsafe { *addr_len = 0 };
    }
    receive_at(user, fd, data, len, flags)
}

pub(crate) extern "C" fn recvmsg(
    user: User,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    enter(user);
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

pub(crate) extern "C" fn write(user: User, fd: c_int, data: *const c_void, len: size_t) -> ssize_t {
    enter(user);
    transmit_at(user, fd, data, len, 0)
}

pub(crate) extern "C" fn writev(
    user: User,
    fd: c_int,
    list: *const iovec,
    count: c_int,
) -> ssize_t {
    enter(user);
    // SAFETY: libc's contract of writev.
    let all = unsafe { gather(list, count.max(0) as usize) };
    transmit(user, fd, &all, 0) as ssize_t
}

pub(crate) extern "C" fn send(
    user: User,
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    enter(user);
    transmit_at(user, fd, data, len, flags)
}

pub(crate) extern "C" fn sendto(
    user: User,
    fd: c_int,
    data: *const c_void,
    len: size_t,
    flags: c_int,
    _addr: Addr,
    _addr_len: socklen_t,
) -> ssize_t {
    enter(user);
    transmit_at(user, fd, data, len, flags)
}

pub(crate) extern "C" fn sendmsg(
    user: User,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    enter(user);
    if message.is_null() {
        return fail(Errno::EFAULT) as ssize_t;
    }
    // SAFETY: libc's contract of sendmsg.
    let all = unsafe { gather((*message).msg_iov, (*message).msg_iovlen) };
    transmit(user, fd, &all, flags) as ssize_t
}

pub(crate) extern "C" fn splice(
    user: User,
    from: c_int,
    from_at: *mut off64_t,
    to: c_int,
    to_at: *mut off64_t,
    len: size_t,
    flags: c_uint,
) -> c_int {
    enter(user);
    if !from_at.is_null() || !to_at.is_null() {
        return fail(Errno::ESPIPE) as c_int;
    }
    let nonblocking = flags & libc::SPLICE_F_NONBLOCK != 0;
    let len = len.min(1 << 24);
    call(user, |host, _| host.splice(from, to, len, nonblocking)) as c_int
}
