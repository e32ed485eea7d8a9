//! lwIP's TCP as an end point of one connection: packets in, packets out, time as an argument.
//!
//! Purpose: to stand beside Motet on the same air, and to be counted beside it; lwIP is the TCP of
//! ESP-IDF and of many others, and has neither SACK nor timestamps there. Place: `host.c` gives
//! lwIP an interface and an application; this file makes the calls safe. lwIP writes and checks
//! IPv6 headers and checksums itself. Left out: several connections, everything else of lwIP.

use std::ffi::c_void;
use std::net::Ipv6Addr;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use motet::time::{Duration, Instant};

/// A socket of lwIP, active or passive, and an lwIP of its own.
#[derive(Debug)]
pub struct Socket {
    host: NonNull<c_void>,
}

/// Where a socket sits, and how large it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// Its own address and port.
    pub local: (Ipv6Addr, u16),
    /// The other end's address and port.
    pub remote: (Ipv6Addr, u16),
    /// Whether it opens the connection.
    pub opens: bool,
    /// Bytes of its full segments, either way.
    pub mss: u16,
    /// Bytes of its send buffer.
    pub send_len: u16,
    /// Bytes of its receive buffer: its window.
    pub recv_len: u16,
    /// What its first sequence number is made of.
    pub seed: u32,
    /// Of its packets.
    pub hop_limit: u8,
}

/// The state of a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The application may hand over more.
    pub may_send: bool,
    /// The peer has sent all, and all of it was read.
    pub finished: bool,
    /// Over, or only waiting for late segments.
    pub closed: bool,
}

impl Socket {
    /// A socket that opens its connection, or waits for one.
    pub fn new(seat: &Seat, now: Instant) -> Self {
        let raw = RawSeat {
            local: seat.local.0.octets(),
            remote: seat.remote.0.octets(),
            local_port: seat.local.1,
            remote_port: seat.remote.1,
            mss: seat.mss,
            send_size: seat.send_len,
            receive_size: seat.recv_len,
            seed: seat.seed,
            hop_limit: seat.hop_limit,
            opens: seat.opens,
        };
        let _alone = alone();
        // SAFETY: `raw` is live and only read; the result is this value's alone, until `drop`.
        let host = unsafe { lwip_host_new(&raw const raw, ms(now)) };
        let host = NonNull::new(host).expect("memory for a socket");
        Self { host }
    }

    /// Takes an IPv6 packet.
    pub fn on_packet(&mut self, packet: &[u8], now: Instant) {
        let _alone = alone();
        // SAFETY: `host` is live, and `packet` has the bytes that are read.
        unsafe { lwip_host_input(self.host.as_ptr(), packet.as_ptr(), packet.len(), ms(now)) }
    }

    /// The next packet to send.
    pub fn poll_packet(&mut self, now: Instant) -> Option<&[u8]> {
        let _alone = alone();
        let mut len = 0;
        // SAFETY: `host` is live.
        unsafe { lwip_host_poll(self.host.as_ptr(), ms(now)) };
        // SAFETY: `host` is live, and `len` is what the callee fills.
        let packet = NonNull::new(unsafe { lwip_host_output(self.host.as_ptr(), &raw mut len) })?;
        // SAFETY: the callee says that `packet` has `len` bytes, and leaves them alone until the
        // next call on this value; no other value's calls know them.
        Some(unsafe { std::slice::from_raw_parts(packet.as_ptr(), len) })
    }

    /// When [`Self::poll_packet`] must be called at the latest.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let _alone = alone();
        let mut wait = 0;
        // SAFETY: `host` is live, and `wait` is what the callee fills.
        let runs = unsafe { lwip_host_deadline(self.host.as_ptr(), ms(now), &raw mut wait) };
        // lwIP's clock has whole milliseconds: the deadline is at one.
        let tick = now.as_micros() / 1_000 * 1_000;
        runs.then(|| Instant::from_micros(tick) + Duration::from_millis(wait.into()))
    }

    /// Copies what fits of `data` to the send buffer; gives how many bytes that is.
    pub fn send(&mut self, data: &[u8], now: Instant) -> usize {
        let _alone = alone();
        // SAFETY: `host` is live, and `data` has the bytes that are read.
        unsafe { lwip_host_send(self.host.as_ptr(), data.as_ptr(), data.len(), ms(now)) }
    }

    /// Copies received bytes to `out`; gives how many.
    pub fn recv(&mut self, out: &mut [u8], now: Instant) -> usize {
        let _alone = alone();
        // SAFETY: `host` is live, and `out` has room for the bytes that are written.
        unsafe { lwip_host_receive(self.host.as_ptr(), out.as_mut_ptr(), out.len(), ms(now)) }
    }

    /// Half-close.
    pub fn shutdown(&mut self, now: Instant) {
        let _alone = alone();
        // SAFETY: `host` is live.
        unsafe { lwip_host_shutdown(self.host.as_ptr(), ms(now)) }
    }

    /// What the connection is like.
    pub fn state(&self) -> State {
        let _alone = alone();
        // SAFETY: `host` is live.
        unsafe { lwip_host_state(self.host.as_ptr()) }
    }
}

/// Bytes of the structures of an active and of a passive socket, here; a Cortex-M0+ needs less.
pub fn socket_sizes() -> (usize, usize) {
    // SAFETY: both only give a number.
    unsafe { (lwip_host_active_size(), lwip_host_passive_size()) }
}

// SAFETY: the memory behind `host` is this value's alone; lwIP's variables are shared, and `alone`
// lets one thread at them.
unsafe impl Send for Socket {}

impl Drop for Socket {
    fn drop(&mut self) {
        let _alone = alone();
        // SAFETY: `host` is live, and is not used after this.
        unsafe { lwip_host_free(self.host.as_ptr()) }
    }
}

/// Held during every call: lwIP's variables are those of the socket that is called.
fn alone() -> MutexGuard<'static, ()> {
    static LWIP: Mutex<()> = Mutex::new(());
    LWIP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// lwIP's clock: milliseconds, which wrap.
fn ms(now: Instant) -> u32 {
    (now.as_micros() / 1_000) as u32
}

#[repr(C)]
struct RawSeat {
    local: [u8; 16],
    remote: [u8; 16],
    local_port: u16,
    remote_port: u16,
    mss: u16,
    send_size: u16,
    receive_size: u16,
    seed: u32,
    hop_limit: u8,
    opens: bool,
}

// As `host.h` declares them.
unsafe extern "C" {
    fn lwip_host_new(seat: *const RawSeat, now: u32) -> *mut c_void;
    fn lwip_host_free(host: *mut c_void);
    fn lwip_host_input(host: *mut c_void, packet: *const u8, length: usize, now: u32);
    fn lwip_host_output(host: *mut c_void, length: *mut usize) -> *mut u8;
    fn lwip_host_send(host: *mut c_void, bytes: *const u8, length: usize, now: u32) -> usize;
    fn lwip_host_receive(host: *mut c_void, bytes: *mut u8, length: usize, now: u32) -> usize;
    fn lwip_host_shutdown(host: *mut c_void, now: u32);
    fn lwip_host_poll(host: *mut c_void, now: u32);
    fn lwip_host_deadline(host: *mut c_void, now: u32, wait: *mut u32) -> bool;
    fn lwip_host_state(host: *mut c_void) -> State;
    fn lwip_host_active_size() -> usize;
    fn lwip_host_passive_size() -> usize;
}
