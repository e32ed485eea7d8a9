//! One connection's segments through compressor and decompressor, for an instruction count.
//!
//! Data with timestamps one way, acknowledgments back, in default mode and in order. The
//! functions that count are kept out of line; see `docs/reference/tcphc.md` for the command.

use std::hint::black_box;
use std::net::Ipv6Addr;

use motet::random::Rng;
use motet::tcphc::{Compressed, Config, Context, End, Flow, HeaderDrop, Origin, Plain};
use motet::tcphc::{Restored, Tcphc};
use motet::time::{Duration, Instant};
use motet::wire::tcp::{self, Flags, Header};

const SEGMENTS: u32 = 10_000;

#[inline(never)]
fn counted_compress(
    table: &mut Tcphc<'_>,
    flow: &Flow,
    segment: &[u8],
    now: Instant,
    out: &mut [u8],
) -> Result<Compressed, Plain> {
    table.compress(black_box(flow), segment, Origin::Own, now, out)
}

#[inline(never)]
fn counted_restore(
    table: &mut Tcphc<'_>,
    flow: &Flow,
    bytes: &[u8],
    now: Instant,
    out: &mut [u8],
) -> Result<Restored, HeaderDrop> {
    table.decompress(black_box(flow), bytes, now, out)
}

/// The segments of one connection, in the order in which they are sent: a handshake, then data
/// one way and acknowledgments back.
struct Conversation {
    addrs: [Ipv6Addr; 2],
    payload_len: usize,
    /// The next sequence number at each end.
    next: [u32; 2],
}

impl Conversation {
    /// Segment `number`, and the end that sends it.
    fn segment(&mut self, number: u32) -> (usize, Vec<u8>) {
        let from = (number % 2) as usize;
        let flags = match number {
            0 => Flags::SYN,
            1 => Flags::SYN | Flags::ACK,
            _ => Flags::ACK,
        };
        let len = if from == 0 && number > 2 {
            self.payload_len
        } else {
            0
        };
        let header = Header {
            src_port: 4_000 + from as u16,
            dst_port: 4_001 - from as u16,
            seq: self.next[from],
            ack: if number == 0 { 0 } else { self.next[1 - from] },
            flags,
            window: 1_848,
            ..Header::default()
        };
        self.next[from] += len as u32 + u32::from(number < 2);
        let mut segment = vec![0x5a; tcp::HEADER_LEN + len];
        header.emit(&mut segment).expect("room");
        tcp::fill_checksum(&self.addrs[from], &self.addrs[1 - from], &mut segment);
        (from, segment)
    }

    /// The addresses as the end `local` sees them.
    const fn flow(&self, local: usize) -> Flow {
        Flow {
            local: self.addrs[local],
            remote: self.addrs[1 - local],
            within_mesh: false,
        }
    }
}

fn main() {
    let payload_len = std::env::args().nth(1).and_then(|len| len.parse().ok());
    let payload_len: usize = payload_len.unwrap_or(48);
    let mut rng = Rng::from_seed([1, 2]);
    let mut contexts = [[Context::EMPTY; 4]; 2];
    let mut ends = [End::Mote, End::Router].into_iter().zip(&mut contexts);
    let mut tables = std::array::from_fn::<_, 2, _>(|_| {
        let (end, contexts) = ends.next().expect("there are two");
        let config = Config {
            end,
            quiet: Duration::ZERO,
            ..Config::DEFAULT
        };
        Tcphc::new(contexts, config, Instant::ORIGIN, &mut rng)
    });
    let mut conversation = Conversation {
        addrs: [1_u128, 2].map(|host| Ipv6Addr::from(0xfd00 << 112 | host)),
        payload_len,
        next: [0x1234_5678, 0x5678_1234],
    };
    let mut compressed_len = 0;
    for number in 0..SEGMENTS {
        let now = Instant::from_micros(u64::from(number) * 50_000);
        let (from, segment) = conversation.segment(number);
        let (sender, receiver) = (conversation.flow(from), conversation.flow(1 - from));
        let mut out = [0; 64];
        let made = counted_compress(&mut tables[from], &sender, &segment, now, &mut out)
            .expect("there is a context");
        compressed_len += made.compressed_len;
        let bytes = [
            &out[..made.compressed_len],
            &segment[made.uncompressed_len..],
        ]
        .concat();
        let restored = counted_restore(&mut tables[1 - from], &receiver, &bytes, now, &mut out)
            .expect("nothing is lost");
        assert_eq!(out[..restored.uncompressed_len], segment[..tcp::HEADER_LEN]);
    }
    println!(
        "{SEGMENTS} segments, every other with {payload_len} B of data: headers of {:.2} B",
        compressed_len as f64 / f64::from(SEGMENTS)
    );
}
