//! The functions behind the table: packetdrill's calls, each as libc's would be.
//!
//! Place: [`crate::interface`] puts them into the table. Left out: the meaning of a call, which
//! the host decides.

pub(crate) mod device;
pub(crate) mod options;
pub(crate) mod sockets;
pub(crate) mod transfer;
pub(crate) mod wait;

use std::ffi::{c_int, c_void};

use motet_conformance::host::{Errno, Host, Outcome};

use crate::marshal::{answer, fail, guard};
use crate::shared::Shared;

pub(crate) type User = *mut c_void;

pub(crate) fn shared_of<'a>(user: User) -> &'a Shared {
    // SAFETY: every caller hands in what `packetdrill_interface_init` put into the table: a
    // host that is never freed.
    unsafe { &*user.cast::<Shared>() }
}

/// A call of the script, or a packet, begins: the settings of commands that stand before it are
/// due.
fn enter(user: User) {
    guard(|| {
        shared_of(user).enter();
        0
    });
}

fn call(user: User, attempt: impl FnMut(&mut Host<'static>, bool) -> Outcome) -> i64 {
    guard(|| answer(shared_of(user).call(None, attempt)))
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
                // packetdrill has closed the old descriptor behind our back.
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
