//! The inbox: datagrams that came in, until the application reads them. Feature `inbox`.

use core::net::Ipv6Addr;

use crate::remote::Remote;
use crate::storage::packet_queue::{Front, PacketQueue};
use crate::wire::cursor::{Reader, copy};
use crate::wire::udp::{Header, is_checksum_valid};

/// Datagrams that came in and wait for the application, over borrowed bytes.
#[derive(Debug)]
pub struct Inbox<'m> {
    ports: &'m [u16],
    /// Ports that come and go; 0: a free place.
    bound: &'m mut [u16],
    queue: PacketQueue<'m>,
    counters: UdpCounters,
}

/// Counters of datagrams; all wrap at 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UdpCounters {
    /// Datagrams handed to the application by [`Inbox::recv`].
    pub received: u32,
    /// Dropped: the inbox was full, or its port's share of it was.
    pub full: u32,
    /// Dropped: malformed, with a wrong checksum, or longer than any that is taken.
    pub bad: u32,
}

/// A datagram handed to the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The sender: where an answer goes.
    pub from: Remote,
    /// The inbox's port to which the datagram came.
    pub port: u16,
    /// Bytes of payload, at the start of the caller's buffer.
    pub len: usize,
}

impl<'m> Inbox<'m> {
    /// An inbox for `ports`; `bytes` hold each waiting datagram with 46 bytes besides. Where
    /// several ports are open, a port gets no more of them than it leaves free.
    pub fn new(ports: &'m [u16], bytes: &'m mut [u8]) -> Self {
        Self::over(ports, &mut [], bytes)
    }

    /// An inbox whose ports come and go by [`Self::bind`] and [`Self::unbind`], as many at one time
    /// as `places` holds; `bytes` as in [`Self::new`].
    pub fn with_places(places: &'m mut [u16], bytes: &'m mut [u8]) -> Self {
        places.fill(NO_PORT);
        Self::over(&[], places, bytes)
    }

    fn over(ports: &'m [u16], bound: &'m mut [u16], bytes: &'m mut [u8]) -> Self {
        Self {
            ports,
            bound,
            queue: PacketQueue::new(bytes),
            counters: UdpCounters::default(),
        }
    }

    /// Gives back the ports and the bytes it was lent.
    pub fn into_memory(self) -> (&'m [u16], &'m mut [u8]) {
        (self.ports, self.queue.into_memory())
    }

    /// Opens `port`; false where it is open already, is 0, or every place is taken.
    pub fn bind(&mut self, port: u16) -> bool {
        if self.is_open(port) {
            return false;
        }
        let free = self.bound.iter_mut().find(|bound| **bound == NO_PORT);
        let Some(place) = free.filter(|_| port != NO_PORT) else {
            return false;
        };
        *place = port;
        if self.open_ports() > 1 {
            self.share();
        }
        true
    }

    /// Whether [`Self::bind`] has a place for another port.
    pub fn has_place(&self) -> bool {
        self.bound.contains(&NO_PORT)
    }

    /// Closes a `port` that [`Self::bind`] opened; what waits for it is lost.
    pub fn unbind(&mut self, port: u16) {
        for place in self.bound.iter_mut().filter(|bound| **bound == port) {
            *place = NO_PORT;
        }
        while self.drop_oldest(port) {}
    }

    /// How many datagrams wait, for all ports.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Takes the oldest whole datagram into `out`, cut to what that holds.
    pub fn recv(&mut self, out: &mut [u8]) -> Option<Received> {
        self.recv_first(|_| true, out)
    }

    /// As [`Self::recv`], the oldest one for `port`; those of other ports keep their order.
    pub fn recv_at(&mut self, port: u16, out: &mut [u8]) -> Option<Received> {
        self.recv_first(|front| port_of(front.meta) == port, out)
    }

    fn recv_first(
        &mut self,
        mut is_meant: impl FnMut(Front) -> bool,
        out: &mut [u8],
    ) -> Option<Received> {
        loop {
            let index = self.position(&mut is_meant)?;
            let received = self.take(index, out);
            let counter = match received {
                Some(_) => &mut self.counters.received,
                None => &mut self.counters.bad,
            };
            *counter = counter.wrapping_add(1);
            if received.is_some() {
                return received;
            }
        }
    }

    /// Removes the datagram with that many before it; `None`: it was malformed.
    fn take(&mut self, index: usize, out: &mut [u8]) -> Option<Received> {
        let after = self.queue.len().saturating_sub(index).saturating_sub(1);
        let mut record = [0; RECORD_LEN_MAX];
        self.rotate(index, &mut record);
        let front = self.queue.front()?;
        let len = self.queue.peek(&mut record);
        self.queue.pop();
        let whole = record.get(..len).filter(|_| len == front.len);
        let received = whole.and_then(|record| unwrap(record, zone_of(front.meta), out));
        self.rotate(after, &mut record);
        received
    }

    /// Puts the oldest `count` datagrams behind the others.
    fn rotate(&mut self, count: usize, record: &mut [u8; RECORD_LEN_MAX]) {
        for _ in 0..count {
            let Some(front) = self.queue.front() else {
                return;
            };
            let len = self.queue.peek(record);
            self.queue.pop();
            // None is longer than that: `put` has seen to it.
            self.queue
                .push(record.get(..len).unwrap_or_default(), front.meta);
        }
    }

    fn is_open(&self, port: u16) -> bool {
        port != NO_PORT && (self.ports.contains(&port) || self.bound.contains(&port))
    }

    /// The counters of datagrams so far.
    pub const fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// Keeps a datagram from `src` to `dst`, addresses of this `zone`; false when no port here is
    /// meant.
    pub(crate) fn put(
        &mut self,
        src: &Ipv6Addr,
        dst: &Ipv6Addr,
        zone: u8,
        datagram: &[u8],
    ) -> bool {
        let Some(port) = destination_port(datagram) else {
            self.counters.bad = self.counters.bad.wrapping_add(1);
            return true;
        };
        if !self.is_open(port) {
            return false;
        }
        let mut addresses = [0; ADDRESSES_LEN];
        copy(&mut addresses, &src.octets());
        copy(addresses.get_mut(16..).unwrap_or_default(), &dst.octets());
        // While several ports are open, no port may take more memory than it leaves to the others:
        // if two ports are never read, each ends up with a third.
        let len = ADDRESSES_LEN.saturating_add(datagram.len());
        if len > RECORD_LEN_MAX {
            // A wire may carry longer ones, which no buffer here takes.
            self.counters.bad = self.counters.bad.wrapping_add(1);
            return true;
        }
        let theirs = self.bytes_of(port).saturating_add(len);
        let is_fair = self.open_ports() == 1 || theirs <= self.queue.room();
        let parts: [&[u8]; 2] = [&addresses, datagram];
        if !is_fair || !self.queue.push_parts(parts, meta(port, zone)) {
            self.counters.full = self.counters.full.wrapping_add(1);
        }
        true
    }

    /// Drops the oldest datagrams of ports that have more than they leave to the others.
    fn share(&mut self) {
        for index in 0..self.ports.len().saturating_add(self.bound.len()) {
            let mut ports = self.ports.iter().chain(self.bound.iter());
            let port = ports.nth(index).map_or(NO_PORT, |port| *port);
            while self.bytes_of(port) > self.queue.room() && self.drop_oldest(port) {
                self.counters.full = self.counters.full.wrapping_add(1);
            }
        }
    }

    fn open_ports(&self) -> usize {
        let ports = self.ports.iter().chain(self.bound.iter());
        ports.filter(|port| **port != NO_PORT).count()
    }

    /// Bytes that wait for `port`.
    fn bytes_of(&self, port: u16) -> usize {
        let packets = self.queue.packets();
        let theirs = packets.filter(|front| port_of(front.meta) == port);
        theirs.fold(0, |sum, front| sum.saturating_add(front.len))
    }

    fn drop_oldest(&mut self, port: u16) -> bool {
        let Some(index) = self.position(|front| port_of(front.meta) == port) else {
            return false;
        };
        self.take(index, &mut []);
        true
    }

    fn position(&self, is_meant: impl FnMut(Front) -> bool) -> Option<usize> {
        self.queue.packets().position(is_meant)
    }
}

/// The word that a datagram waits with.
fn meta(port: u16, zone: u8) -> u32 {
    u32::from(port) << 8 | u32::from(zone)
}

const fn port_of(meta: u32) -> u16 {
    (meta >> 8) as u16
}

const fn zone_of(meta: u32) -> u8 {
    meta as u8
}

fn destination_port(datagram: &[u8]) -> Option<u16> {
    let port = datagram.get(DST_PORT_AT..)?.first_chunk()?;
    Some(u16::from_be_bytes(*port))
}

/// A record of the inbox: both addresses, then the datagram.
fn unwrap(record: &[u8], zone: u8, out: &mut [u8]) -> Option<Received> {
    let mut reader = Reader::new(record);
    let src = Ipv6Addr::from(*reader.slice(16).ok()?.first_chunk::<16>()?);
    let dst = Ipv6Addr::from(*reader.slice(16).ok()?.first_chunk::<16>()?);
    let datagram = record.get(ADDRESSES_LEN..)?;
    let (header, payload) = Header::parse(datagram).ok()?;
    if !is_checksum_valid(&src, &dst, datagram) {
        return None;
    }
    let len = payload.len().min(out.len());
    copy(out, payload.get(..len)?);
    Some(Received {
        from: Remote {
            addr: src,
            port: header.src_port,
            zone,
        },
        port: header.dst_port,
        len,
    })
}

/// Reserved (RFC 768, RFC 6335 §6): no datagram is for it.
const NO_PORT: u16 = 0;
const ADDRESSES_LEN: usize = 32;
const DST_PORT_AT: usize = 2;

/// The longest packet that reaches this node, its header replaced by the two addresses.
#[cfg(not(feature = "fragments"))]
const RECORD_LEN_MAX: usize = crate::limits::IPV6_MTU_MIN;
#[cfg(feature = "fragments")]
const RECORD_LEN_MAX: usize = crate::limits::REASSEMBLED_LEN_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::header;
    use std::vec::Vec;

    const SRC: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const DST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
        let ports = Header {
            src_port: 7,
            dst_port: port,
        };
        let mut bytes = header(&SRC, &DST, ports, payload).unwrap().to_vec();
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn datagrams_wait_for_the_application_in_order() {
        let mut memory = [0; 200];
        let mut inbox = Inbox::new(&[80, 81], &mut memory);
        assert!(inbox.put(&SRC, &DST, 0, &datagram(80, b"one")));
        assert!(inbox.put(&SRC, &DST, 0, &datagram(81, b"two")));
        assert!(!inbox.put(&SRC, &DST, 0, &datagram(82, b"closed")));
        let mut out = [0; 8];
        let first = inbox.recv(&mut out).unwrap();
        assert_eq!((first.from, first.port), ((SRC, 7).into(), 80));
        assert_eq!(out[..first.len], *b"one");
        assert_eq!(inbox.recv(&mut out).map(|second| second.port), Some(81));
        assert_eq!(inbox.recv(&mut out), None);
    }

    #[test]
    fn ports_come_and_go_and_each_keeps_its_order() {
        let (mut places, mut memory) = ([9; 2], [0; 400]);
        let mut inbox = Inbox::with_places(&mut places, &mut memory);
        assert!(!inbox.put(&SRC, &DST, 0, &datagram(9, b"of another use")));
        assert!(!inbox.put(&SRC, &DST, 0, &datagram(0, b"no port")));
        assert!(!inbox.bind(0));
        assert!(inbox.bind(80) && inbox.bind(81));
        assert!(!inbox.bind(80), "open already");
        assert!(!inbox.bind(82) && !inbox.has_place());
        for (port, payload) in [(80, b"a"), (81, b"b"), (80, b"c"), (81, b"d")] {
            assert!(inbox.put(&SRC, &DST, 0, &datagram(port, payload)));
        }
        let take = |inbox: &mut Inbox<'_>, port| {
            let mut out = [0; 1];
            inbox.recv_at(port, &mut out).map(|_| out[0])
        };
        assert_eq!(take(&mut inbox, 81), Some(b'b'));
        assert_eq!(take(&mut inbox, 80), Some(b'a'));
        inbox.unbind(81);
        assert_eq!(inbox.waiting(), 1, "what waited for a closed port is lost");
        assert!(inbox.bind(82));
        assert_eq!(take(&mut inbox, 81), None);
        assert_eq!(take(&mut inbox, 80), Some(b'c'));
        assert_eq!(take(&mut inbox, 80), None);
    }

    #[test]
    fn a_port_that_nobody_reads_leaves_room_for_others() {
        let (mut places, mut memory) = ([0; 3], [0; 400]);
        let mut inbox = Inbox::with_places(&mut places, &mut memory);
        assert!(inbox.bind(80) && inbox.bind(53) && inbox.bind(81));
        let put = |inbox: &mut Inbox<'_>, port, payload: &[u8]| {
            assert!(inbox.put(&SRC, &DST, 0, &datagram(port, payload)));
        };
        let mut out = [0; 100];
        let mut take = |inbox: &mut Inbox<'_>, port| {
            let received = inbox.recv_at(port, &mut out)?;
            Some(out[..received.len].to_vec())
        };
        put(&mut inbox, 81, b"kept");
        (0..50).for_each(|n| put(&mut inbox, 80, &[n; 10]));
        assert_eq!(inbox.waiting(), 4, "three of port 80 leave as much");
        assert_eq!(inbox.counters().full, 47);
        put(&mut inbox, 53, &[9; 40]);
        assert_eq!(take(&mut inbox, 53), Some([9; 40].to_vec()));
        assert_eq!(take(&mut inbox, 81), Some(b"kept".to_vec()));
        inbox.unbind(81);
        inbox.unbind(53);
        // Alone, it has all; another port's opening takes its oldest.
        (50..100).for_each(|n| put(&mut inbox, 80, &[n; 10]));
        assert_eq!(inbox.waiting(), 7);
        assert!(inbox.bind(53));
        for n in [51, 52, 53] {
            assert_eq!(take(&mut inbox, 80), Some([n; 10].to_vec()));
        }
        assert_eq!((take(&mut inbox, 80), inbox.waiting()), (None, 0));
    }

    #[test]
    fn what_is_wrong_or_too_much_is_counted() {
        let mut memory = [0; 100];
        let mut inbox = Inbox::new(&[80], &mut memory);
        let mut wrong = datagram(80, b"data");
        wrong[9] ^= 1;
        assert!(inbox.put(&SRC, &DST, 0, &wrong));
        assert!(inbox.put(&SRC, &DST, 0, &[0; 3]));
        assert!(inbox.put(&SRC, &DST, 0, &datagram(80, &[0; 90])));
        assert_eq!(inbox.recv(&mut [0; 4]), None);
        let expected = UdpCounters {
            received: 0,
            full: 1,
            bad: 2,
        };
        assert_eq!(*inbox.counters(), expected);
        assert!(inbox.put(&SRC, &DST, 0, &datagram(80, b"long")));
        let cut = inbox.recv(&mut [0; 2]).unwrap();
        assert_eq!(cut.len, 2);
    }
}
