//! The least that kernel sockets take for a mote: it echoes ICMPv6 and UDP and
//! swallows one TCP upload. It checks what it is sent as a parser with no
//! offloading would: sizes, checksums, order.

use std::net::Ipv6Addr;

pub(crate) const ECHO_PORT: u16 = 7;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const HEADER_LEN: usize = 40;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

pub(crate) struct Mote {
    address: Ipv6Addr,
    snd_nxt: u32,
    rcv_nxt: u32,
    received: Vec<u8>,
}

impl Mote {
    pub(crate) fn new(address: Ipv6Addr) -> Self {
        Self {
            address,
            snd_nxt: 0,
            rcv_nxt: 0,
            received: Vec::new(),
        }
    }

    pub(crate) fn tcp_received(&self) -> &[u8] {
        &self.received
    }

    /// The answer to `packet`, if it asks for one.
    pub(crate) fn on_packet(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (header, payload) = packet.split_at(HEADER_LEN);
        if header[24..40] != self.address.octets() {
            return None;
        }
        let next_header = header[6];
        let sum = sum_of(&packet[8..24], &packet[24..40], next_header, payload);
        assert_eq!(
            sum, 0xffff,
            "the kernel left the checksum to hardware, next header {next_header}"
        );
        let mut answer = packet.to_vec();
        answer[8..24].copy_from_slice(&header[24..40]);
        answer[24..40].copy_from_slice(&header[8..24]);
        match next_header {
            ICMPV6 if payload[0] == 128 => {
                answer[HEADER_LEN] = 129;
                Some(with_checksum(answer, 2))
            }
            // Both ports swapped: the checksum stays what it was.
            UDP => {
                answer[HEADER_LEN..][..2].copy_from_slice(&payload[2..4]);
                answer[HEADER_LEN + 2..][..2].copy_from_slice(&payload[..2]);
                Some(answer)
            }
            TCP => self.on_segment(answer, payload),
            _ => None,
        }
    }

    fn on_segment(&mut self, mut answer: Vec<u8>, segment: &[u8]) -> Option<Vec<u8>> {
        let seq = u32::from_be_bytes(segment[4..8].try_into().expect("four bytes"));
        let data = &segment[usize::from(segment[12] >> 4) * 4..];
        let flags = segment[13];
        assert_eq!(flags & RST, 0, "the kernel resets the connection");
        let mut answer_flags = ACK;
        if flags & SYN != 0 {
            (self.rcv_nxt, self.snd_nxt) = (seq.wrapping_add(1), 0);
            self.received.clear();
            answer_flags |= SYN;
        } else if data.is_empty() && flags & FIN == 0 {
            return None;
        } else if seq == self.rcv_nxt {
            self.received.extend_from_slice(data);
            let fin = u32::from(flags & FIN);
            self.rcv_nxt = seq.wrapping_add(data.len() as u32).wrapping_add(fin);
            answer_flags |= flags & FIN;
        }
        answer.truncate(HEADER_LEN);
        answer[4..6].copy_from_slice(&24_u16.to_be_bytes());
        answer.extend_from_slice(&segment[2..4]);
        answer.extend_from_slice(&segment[..2]);
        answer.extend_from_slice(&self.snd_nxt.to_be_bytes());
        answer.extend_from_slice(&self.rcv_nxt.to_be_bytes());
        // Six words; a window of 64 KiB lets the kernel build large segments;
        // MSS 1220 on SYN, else four bytes of padding.
        answer.extend_from_slice(&[6 << 4, answer_flags, 0xff, 0xff, 0, 0, 0, 0]);
        let mss = if answer_flags & SYN != 0 {
            [2, 4, 0x04, 0xc4]
        } else {
            [1, 1, 1, 0]
        };
        answer.extend_from_slice(&mss);
        self.snd_nxt += u32::from(answer_flags & (SYN | FIN) != 0);
        Some(with_checksum(answer, 16))
    }
}

/// Fills in the checksum at `offset` of the payload.
fn with_checksum(mut packet: Vec<u8>, offset: usize) -> Vec<u8> {
    packet[HEADER_LEN + offset..][..2].fill(0);
    let sum = sum_of(
        &packet[8..24],
        &packet[24..40],
        packet[6],
        &packet[HEADER_LEN..],
    );
    packet[HEADER_LEN + offset..][..2].copy_from_slice(&(!sum).to_be_bytes());
    packet
}

/// RFC 8200 section 8.1, before the final complement: 0xffff if it is right.
fn sum_of(src: &[u8], dst: &[u8], next_header: u8, payload: &[u8]) -> u16 {
    let words = [src, dst, payload]
        .into_iter()
        .flat_map(|part| part.chunks(2))
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum = words.sum::<u32>() + payload.len() as u32 + u32::from(next_header);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
