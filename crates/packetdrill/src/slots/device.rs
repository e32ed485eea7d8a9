//! The network and the clock.

use std::ffi::{c_int, c_longlong, c_uint, c_void};

use libc::{size_t, timeval};
use motet::time::Duration;
use motet_conformance::host::Errno;

use super::{User, enter, shared_of};
use crate::marshal::{bytes, bytes_mut, fail, guard};

pub(crate) extern "C" fn free(user: User) {
    guard(|| {
        shared_of(user).act(|_| ());
        0
    });
}

pub(crate) extern "C" fn netdev_send(user: User, packet: *const c_void, len: size_t) -> c_int {
    enter(user);
    // SAFETY: packetdrill's contract: a whole packet.
    let packet = unsafe { bytes(packet, len) };
    guard(|| {
        shared_of(user).deliver(packet);
        0
    }) as c_int
}

pub(crate) extern "C" fn netdev_receive(
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
    // No segment will ever come: the script gets an empty packet, which it takes for a bad one.
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

pub(crate) extern "C" fn usleep(user: User, us: c_uint) -> c_int {
    guard(|| {
        shared_of(user).pass(Duration::from_micros(u64::from(us)));
        0
    }) as c_int
}

pub(crate) extern "C" fn gettimeofday(user: User, time: *mut timeval, _zone: *mut c_void) -> c_int {
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
