//! Conversions between C's memory and Rust's values.

use std::ffi::{c_int, c_void};
use std::net::Ipv6Addr;

use libc::{iovec, msghdr, sockaddr, sockaddr_in6, socklen_t};
use motet_conformance::host::{Address, Errno, Fail, Outcome, TcpInfo};

/// The C return value for `outcome`; sets errno.
pub(crate) fn answer(outcome: Outcome) -> i64 {
    match outcome {
        Ok(value) => value,
        Err(Fail::Errno(errno)) => fail(errno),
        Err(Fail::Block) => fail(Errno::EDEADLK),
    }
}

/// Sets errno, and returns -1.
pub(crate) fn fail(errno: Errno) -> i64 {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = errno.0 };
    -1
}

/// Runs `act`; a panic must not leave the library, and is an I/O error to the caller.
pub(crate) fn guard(act: impl FnOnce() -> i64) -> i64 {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).unwrap_or_else(|_| fail(Errno::EIO))
}

/// The address that `addr` points to.
///
/// # Safety
/// `addr` is null or points to `len` readable bytes.
pub(crate) unsafe fn read_address(addr: *const sockaddr, len: socklen_t) -> Result<Address, Errno> {
    if addr.is_null() || (len as usize) < size_of::<sockaddr_in6>() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: there are enough bytes, as the caller promises; alignment is not assumed.
    let addr = unsafe { addr.cast::<sockaddr_in6>().read_unaligned() };
    if c_int::from(addr.sin6_family) != libc::AF_INET6 {
        return Err(Errno::EAFNOSUPPORT);
    }
    let ip = Ipv6Addr::from(addr.sin6_addr.s6_addr);
    Ok((ip, u16::from_be(addr.sin6_port)))
}

/// Writes an address as far as there is room for it.
///
/// # Safety
/// Both are null, or `len` points to the number of bytes that `addr` points to.
pub(crate) unsafe fn write_address(addr: *mut sockaddr, len: *mut socklen_t, value: Address) {
    if addr.is_null() || len.is_null() {
        return;
    }
    let full = sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: value.1.to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr {
            s6_addr: value.0.octets(),
        },
        sin6_scope_id: 0,
    };
    // SAFETY: `len` is valid, and at most as many bytes as it says are written.
    unsafe {
        let room = (*len as usize).min(size_of::<sockaddr_in6>());
        let from = (&raw const full).cast::<u8>();
        addr.cast::<u8>().copy_from_nonoverlapping(from, room);
        *len = size_of::<sockaddr_in6>() as socklen_t;
    }
}

/// The bytes of a buffer to write from.
///
/// # Safety
/// `data` points to `len` readable bytes, or `len` is 0.
pub(crate) unsafe fn bytes<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    match data.is_null() || len == 0 {
        true => &[],
        // SAFETY: as the caller promises.
        false => unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) },
    }
}

/// The bytes of a buffer to read into.
///
/// # Safety
/// `data` points to `len` writable bytes without another user, or `len` is 0.
pub(crate) unsafe fn bytes_mut<'a>(data: *mut c_void, len: usize) -> &'a mut [u8] {
    match data.is_null() || len == 0 {
        true => &mut [],
        // SAFETY: as the caller promises.
        false => unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), len) },
    }
}

/// The buffers of a list.
///
/// # Safety
/// `list` points to `count` vectors.
pub(crate) unsafe fn vectors<'a>(list: *const iovec, count: usize) -> &'a [iovec] {
    match list.is_null() || count == 0 {
        true => &[],
        // SAFETY: as the caller promises.
        false => unsafe { std::slice::from_raw_parts(list, count) },
    }
}

/// Everything in a list of buffers, in a row.
///
/// # Safety
/// As [`vectors`] and [`bytes`].
pub(crate) unsafe fn gather(list: *const iovec, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    // SAFETY: as the caller promises.
    for one in unsafe { vectors(list, count) } {
        // SAFETY: as the caller promises.
        all.extend(unsafe { bytes(one.iov_base, one.iov_len) });
    }
    all
}

/// How many bytes a list of buffers holds.
///
/// # Safety
/// As [`vectors`].
pub(crate) unsafe fn capacity(list: *const iovec, count: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { vectors(list, count) }
        .iter()
        .map(|one| one.iov_len)
        .sum()
}

/// Spreads `data` over a list of buffers.
///
/// # Safety
/// As [`vectors`] and [`bytes_mut`].
pub(crate) unsafe fn scatter(list: *const iovec, count: usize, mut data: &[u8]) {
    // SAFETY: as the caller promises.
    for one in unsafe { vectors(list, count) } {
        let len = one.iov_len.min(data.len());
        let (now, later) = data.split_at(len);
        // SAFETY: as the caller promises.
        unsafe { bytes_mut(one.iov_base, len) }.copy_from_slice(now);
        data = later;
    }
}

/// Sets the lengths of a received message's name and control data to zero.
///
/// # Safety
/// `message` is valid.
pub(crate) unsafe fn clear_message(message: *mut msghdr) {
    // SAFETY: as the caller promises.
    unsafe {
        (*message).msg_namelen = 0;
        (*message).msg_controllen = 0;
        (*message).msg_flags = 0;
    }
}

/// Linux's `struct tcp_info` in `len` bytes: packetdrill wants the whole length, and fields that
/// the host does not keep are 0.
pub(crate) fn tcp_info(info: &TcpInfo, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    for (name, at, size) in LAYOUT {
        let value = info.get(name).unwrap_or(0).to_le_bytes();
        if let (Some(place), Some(bytes)) = (out.get_mut(at..at + size), value.get(..size)) {
            place.copy_from_slice(bytes);
        }
    }
    if let Some(scales) = out.get_mut(6) {
        let [ours, theirs] = ["tcpi_rcv_wscale", "tcpi_snd_wscale"];
        let nibble = |name| info.get(name).unwrap_or(0) as u8 & 0x0f;
        *scales = nibble(ours) << 4 | nibble(theirs);
    }
    out
}

/// Fields of `struct tcp_info`: name, offset and size, bytes.
const LAYOUT: [(&str, usize, usize); 34] = [
    ("tcpi_state", 0, 1),
    ("tcpi_ca_state", 1, 1),
    ("tcpi_retransmits", 2, 1),
    ("tcpi_backoff", 4, 1),
    ("tcpi_options", 5, 1),
    ("tcpi_rto", 8, 4),
    ("tcpi_ato", 12, 4),
    ("tcpi_snd_mss", 16, 4),
    ("tcpi_rcv_mss", 20, 4),
    ("tcpi_unacked", 24, 4),
    ("tcpi_sacked", 28, 4),
    ("tcpi_lost", 32, 4),
    ("tcpi_retrans", 36, 4),
    ("tcpi_last_data_sent", 44, 4),
    ("tcpi_last_data_recv", 52, 4),
    ("tcpi_last_ack_recv", 56, 4),
    ("tcpi_pmtu", 60, 4),
    ("tcpi_rtt", 68, 4),
    ("tcpi_rttvar", 72, 4),
    ("tcpi_snd_ssthresh", 76, 4),
    ("tcpi_snd_cwnd", 80, 4),
    ("tcpi_advmss", 84, 4),
    ("tcpi_reordering", 88, 4),
    ("tcpi_rcv_space", 96, 4),
    ("tcpi_total_retrans", 100, 4),
    ("tcpi_segs_out", 136, 4),
    ("tcpi_segs_in", 140, 4),
    ("tcpi_notsent_bytes", 144, 4),
    ("tcpi_min_rtt", 148, 4),
    ("tcpi_data_segs_in", 152, 4),
    ("tcpi_data_segs_out", 156, 4),
    ("tcpi_bytes_sent", 200, 8),
    ("tcpi_bytes_retrans", 208, 8),
    ("tcpi_snd_wnd", 228, 4),
];
