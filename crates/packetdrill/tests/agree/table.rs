//! The library, loaded as packetdrill loads it.

use std::ffi::{CString, c_char, c_longlong};
use std::mem::MaybeUninit;

use libc::timeval;
use motet_packetdrill::interface::Interface;

/// The table, as two threads use it.
#[derive(Clone, Copy)]
pub(crate) struct Table(pub(crate) Interface);

// SAFETY: the library promises to be callable from packetdrill's two threads.
unsafe impl Send for Table {}

impl Table {
    /// Loads the library that cargo built beside this test.
    pub(crate) fn load(flags: &str) -> Self {
        let mut path = std::env::current_exe().unwrap();
        path.set_file_name("libmotet_packetdrill.so");
        let path = CString::new(path.to_str().unwrap()).unwrap();
        let flags = CString::new(flags).unwrap();
        let mut table = MaybeUninit::<Interface>::zeroed();
        // SAFETY: the library exports this function with this signature, and fills the table.
        unsafe {
            let mode =
                libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE | libc::RTLD_DEEPBIND;
            let handle = libc::dlopen(path.as_ptr(), mode);
            assert!(!handle.is_null(), "cannot load {path:?}");
            let symbol = libc::dlsym(handle, c"packetdrill_interface_init".as_ptr());
            assert!(!symbol.is_null());
            let init: extern "C" fn(*const c_char, *mut Interface) = std::mem::transmute(symbol);
            init(flags.as_ptr(), table.as_mut_ptr());
            Self(table.assume_init())
        }
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
