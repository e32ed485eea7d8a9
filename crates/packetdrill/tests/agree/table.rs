//! The library, loaded as packetdrill loads it.

use std::ffi::c_longlong;

use libc::timeval;
use motet_packetdrill::interface::Interface;

use crate::common::load;

/// The table, as two threads use it.
#[derive(Clone, Copy)]
pub(crate) struct Table(pub(crate) Interface);

// SAFETY: the library promises to be callable from packetdrill's two threads.
unsafe impl Send for Table {}

impl Table {
    /// The library's interface, with its own host.
    pub(crate) fn load(flags: &str) -> Self {
        Self(load(flags))
    }

    /// The time, µs.
    pub(crate) fn now(self) -> u64 {
        let mut time = timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        (self.0.gettimeofday)(self.0.userdata, &raw mut time, std::ptr::null_mut());
        time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64
    }

    /// Sleeps up to the last microseconds, and spins through those.
    pub(crate) fn wait_until(self, at: u64) {
        loop {
            let now = self.now();
            if now >= at {
                return;
            }
            if at - now > SPIN_US {
                let span = (at - now - SPIN_US).min(u64::from(u32::MAX));
                (self.0.usleep)(self.0.userdata, span as u32);
            }
        }
    }

    /// A packet for the stack.
    pub(crate) fn send(self, packet: &[u8]) {
        let sent = (self.0.netdev_send)(self.0.userdata, packet.as_ptr().cast(), packet.len());
        assert_eq!(sent, 0);
    }

    /// The stack's next packet and its time; an empty one is a bad one.
    pub(crate) fn receive(self) -> (u64, Vec<u8>) {
        let mut buffer = vec![0_u8; 65_600];
        let (mut count, mut us): (usize, c_longlong) = (buffer.len(), 0);
        loop {
            let place = buffer.as_mut_ptr().cast();
            let user = self.0.userdata;
            if (self.0.netdev_receive)(user, place, &raw mut count, &raw mut us) == 0 {
                buffer.truncate(count);
                return (us as u64, buffer);
            }
        }
    }
}

/// What packetdrill spins rather than sleeps.
const SPIN_US: u64 = 20;
