//! Waiting for several sockets.

use std::ffi::c_int;

use libc::{epoll_event, nfds_t, pollfd};
use motet::time::Duration;
use motet_conformance::host::{Errno, Fail, Host};

use super::{User, call, enter, open, shared_of};
use crate::marshal::{answer, fail, guard};

/// How long a call with a timeout in milliseconds waits; `None`: for ever.
fn span(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

pub(crate) extern "C" fn poll(
    user: User,
    list: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
) -> c_int {
    enter(user);
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

pub(crate) extern "C" fn epoll_create(user: User, _size: c_int) -> c_int {
    enter(user);
    open(user, Host::epoll_create)
}

pub(crate) extern "C" fn epoll_ctl(
    user: User,
    fd: c_int,
    op: c_int,
    target: c_int,
    event: *mut epoll_event,
) -> c_int {
    enter(user);
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

pub(crate) extern "C" fn epoll_wait(
    user: User,
    fd: c_int,
    list: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    enter(user);
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
