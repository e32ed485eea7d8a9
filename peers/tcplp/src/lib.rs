//! `TCPlp`'s protocol core as an end point of one connection: packets in, packets out, time as
//! an argument.
//!
//! Purpose: to stand beside Motet on the same air, and to be counted beside it.
//! Place: `host.c` gives the core the functions that `OpenThread` gives it; this file makes the
//! calls safe, and does what `OpenThread` does outside the core: IPv6 headers and checksums. Left
//! out: several connections, Fast Open, everything of `OpenThread` itself.

use std::ffi::c_void;
use std::net::Ipv6Addr;
use std::ptr::NonNull;

use motet::time::{Duration, Instant};
use motet::wire::ipv6::{self, Header, TrafficClass};
use motet::wire::tcp;

/// A socket of `TCPlp`, active or passive.
#[derive(Debug)]
pub struct Socket {
    host: NonNull<c_void>,
    hop_limit: u8,
}

/// The state of a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The handshake is done, or was once.
    pub established: bool,
    /// The application may hand over more.
    pub may_send: bool,
    /// The peer has sent all, and all of it was read.
    pub finished: bool,
    /// Over, or only waiting for late segments.
    pub closed: bool,
}

/// The MSS that the core is compiled with: five frames (`tcp_const.h`).
pub const MSS: u16 = 474;

impl Socket {
    /// A socket at an address and a port.
    ///
    /// `send_len`, `recv_len`: bytes of its buffers. `initial_number`: its first sequence
    /// number.
    pub fn new(
        local: (Ipv6Addr, u16),
        (send_len, recv_len): (usize, usize),
        initial_number: u32,
        hop_limit: u8,
    ) -> Self {
        // SAFETY: takes no pointers; the result is this value's alone, until `drop`.
        let host = unsafe { host_new(send_len, recv_len, initial_number) };
        let host = NonNull::new(host).expect("memory for a socket");
        // SAFETY: `host` is live, and the address has the 16 bytes that are read.
        unsafe { host_bind(host.as_ptr(), local.0.octets().as_ptr(), local.1) };
        Self { host, hop_limit }
    }

    /// Begins a handshake with a port of `remote`; says whether it did.
    pub fn connect(&mut self, remote: (Ipv6Addr, u16), now: Instant) -> bool {
        let address = remote.0.octets();
        // SAFETY: `host` is live, and the address has the 16 bytes that are read.
        unsafe { host_connect(self.host.as_ptr(), address.as_ptr(), remote.1, ms(now)) }
    }

    /// Waits for one connection.
    pub fn listen(&mut self, now: Instant) {
        // SAFETY: `host` is live.
        unsafe { host_listen(self.host.as_ptr(), ms(now)) }
    }

    /// Takes an IPv6 packet; one that is not TCP, or is damaged, is dropped.
    pub fn on_packet(&mut self, packet: &[u8], now: Instant) {
        let Ok((header, segment)) = Header::parse(packet) else {
            return;
        };
        let is_sound = header.next_header == tcp::NEXT_HEADER
            && tcp::is_checksum_valid(&header.src, &header.dst, segment);
        if is_sound {
            let len = ipv6::HEADER_LEN + segment.len();
            // SAFETY: `host` is live; `Header::parse` found so many bytes in `packet`, which
            // the callee only reads.
            unsafe { host_input(self.host.as_ptr(), packet.as_ptr(), len, ms(now)) };
        }
    }

    /// The next packet to send.
    pub fn poll_packet(&mut self, now: Instant) -> Option<&[u8]> {
        let mut segment = Segment::default();
        // SAFETY: `host` is live.
        unsafe { host_poll(self.host.as_ptr(), ms(now)) };
        // SAFETY: `host` is live, and `segment` is what the callee fills.
        if !unsafe { host_output(self.host.as_ptr(), &raw mut segment) } {
            return None;
        }
        let len = ipv6::HEADER_LEN + usize::from(segment.len);
        // SAFETY: the callee says that `packet` has room for an IPv6 header and the segment of
        // `len` bytes behind it, and leaves it alone until the next call on this value.
        let packet = unsafe { std::slice::from_raw_parts_mut(segment.packet, len) };
        let header = Header {
            traffic_class: TrafficClass(segment.ecn),
            flow_label: 0,
            payload_len: segment.len,
            next_header: tcp::NEXT_HEADER,
            hop_limit: self.hop_limit,
            src: Ipv6Addr::from(segment.src),
            dst: Ipv6Addr::from(segment.dst),
        };
        let (head, body) = packet.split_at_mut_checked(ipv6::HEADER_LEN)?;
        header.emit(head).ok()?;
        tcp::fill_checksum(&header.src, &header.dst, body);
        Some(packet)
    }

    /// When [`Self::poll_packet`] must be called at the latest.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let mut wait = 0;
        // SAFETY: `host` is live, and `wait` is what the callee fills.
        let runs = unsafe { host_deadline(self.host.as_ptr(), ms(now), &raw mut wait) };
        // The core's clock has whole milliseconds: the deadline is at one.
        let tick = now.as_micros() / 1_000 * 1_000;
        runs.then(|| Instant::from_micros(tick) + Duration::from_millis(wait.into()))
    }

    /// Copies what fits of `data` to the send buffer; gives how many bytes that is.
    pub fn send(&mut self, data: &[u8], now: Instant) -> usize {
        // SAFETY: `host` is live, and `data` has the bytes that are read.
        unsafe { host_send(self.host.as_ptr(), data.as_ptr(), data.len(), ms(now)) }
    }

    /// Copies received bytes to `out`; gives how many.
    pub fn recv(&mut self, out: &mut [u8], now: Instant) -> usize {
        // SAFETY: `host` is live, and `out` has room for the bytes that are written.
        unsafe { host_receive(self.host.as_ptr(), out.as_mut_ptr(), out.len(), ms(now)) }
    }

    /// Half-close.
    pub fn shutdown(&mut self, now: Instant) {
        // SAFETY: `host` is live.
        unsafe { host_shutdown(self.host.as_ptr(), ms(now)) }
    }

    /// What the connection is like.
    pub fn state(&self) -> State {
        // SAFETY: `host` is live.
        unsafe { host_state(self.host.as_ptr()) }
    }
}

/// Bytes of the structures of an active and of a passive socket, here; a Cortex-M0+ needs less.
pub fn socket_sizes() -> (usize, usize) {
    // SAFETY: both only give a number.
    unsafe { (host_active_size(), host_passive_size()) }
}

// SAFETY: the memory behind `host` is this value's alone, and the core's only other state is
// set by each call for its own thread.
unsafe impl Send for Socket {}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: `host` is live, and is not used after this.
        unsafe { host_free(self.host.as_ptr()) }
    }
}

/// The core's clock: milliseconds, which wrap.
fn ms(now: Instant) -> u32 {
    (now.as_micros() / 1_000) as u32
}

#[repr(C)]
struct Segment {
    src: [u8; 16],
    dst: [u8; 16],
    packet: *mut u8,
    len: u16,
    ecn: u8,
}

impl Default for Segment {
    fn default() -> Self {
        Self {
            src: [0; 16],
            dst: [0; 16],
            packet: std::ptr::null_mut(),
            len: 0,
            ecn: 0,
        }
    }
}

// As `host.h` declares them.
unsafe extern "C" {
    fn host_new(send_size: usize, receive_size: usize, initial_number: u32) -> *mut c_void;
    fn host_free(host: *mut c_void);
    fn host_bind(host: *mut c_void, address: *const u8, port: u16);
    fn host_connect(host: *mut c_void, address: *const u8, port: u16, now: u32) -> bool;
    fn host_listen(host: *mut c_void, now: u32);
    fn host_input(host: *mut c_void, packet: *const u8, length: usize, now: u32);
    fn host_output(host: *mut c_void, segment: *mut Segment) -> bool;
    fn host_send(host: *mut c_void, bytes: *const u8, length: usize, now: u32) -> usize;
    fn host_receive(host: *mut c_void, bytes: *mut u8, length: usize, now: u32) -> usize;
    fn host_shutdown(host: *mut c_void, now: u32);
    fn host_poll(host: *mut c_void, now: u32);
    fn host_deadline(host: *const c_void, now: u32, wait: *mut u32) -> bool;
    fn host_state(host: *const c_void) -> State;
    fn host_active_size() -> usize;
    fn host_passive_size() -> usize;
}
