//! Opening, connecting and closing.

use std::ffi::c_int;

use libc::socklen_t;
use motet_conformance::host::{Errno, How};

use super::{User, call, descriptor, enter, open, release, shared_of};
use crate::interface::{Addr, AddrMut};
use crate::marshal::{answer, fail, guard, read_address, write_address};

pub(crate) extern "C" fn socket(user: User, domain: c_int, kind: c_int, _protocol: c_int) -> c_int {
    enter(user);
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

pub(crate) extern "C" fn bind(user: User, fd: c_int, addr: Addr, len: socklen_t) -> c_int {
    enter(user);
    // SAFETY: libc's contract of bind.
    let addr = unsafe { read_address(addr, len) };
    call(user, |host, _| host.bind(fd, addr?.1)) as c_int
}

pub(crate) extern "C" fn listen(user: User, fd: c_int, backlog: c_int) -> c_int {
    enter(user);
    call(user, |host, _| host.listen(fd, i64::from(backlog))) as c_int
}

pub(crate) extern "C" fn accept(
    user: User,
    fd: c_int,
    addr: AddrMut,
    len: *mut socklen_t,
) -> c_int {
    enter(user);
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

pub(crate) extern "C" fn connect(user: User, fd: c_int, addr: Addr, len: socklen_t) -> c_int {
    enter(user);
    // SAFETY: libc's contract of connect.
    let addr = unsafe { read_address(addr, len) };
    call(user, |host, _| host.connect(fd, addr?)) as c_int
}

pub(crate) extern "C" fn close(user: User, fd: c_int) -> c_int {
    enter(user);
    guard(|| {
        let outcome = shared_of(user).call(None, |host, _| host.close(fd));
        if outcome.is_ok() {
            release(fd);
        }
        answer(outcome)
    }) as c_int
}

pub(crate) extern "C" fn shutdown(user: User, fd: c_int, how: c_int) -> c_int {
    enter(user);
    let how = match how {
        libc::SHUT_RD => How::Read,
        libc::SHUT_WR => How::Write,
        libc::SHUT_RDWR => How::Both,
        _ => return fail(Errno::EINVAL) as c_int,
    };
    call(user, |host, _| host.shutdown(fd, how)) as c_int
}

pub(crate) extern "C" fn pipe(user: User, pair: *mut c_int) -> c_int {
    enter(user);
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
