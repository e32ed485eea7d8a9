//! UDP datagrams.
//!
//! Place: under `ip`; what follows is named by its ports.
//! Sources: RFC 768, RFC 8200 §8.1.

use std::net::IpAddr;

use motet::wire::udp::{self, Header};

use super::ip;
use crate::Decoder;
use crate::model::{Frame, Layer, hex16};
use crate::next::{Next, Upper};

/// Explains a datagram.
pub(super) fn explain<'a>(decoder: &Decoder, frame: &mut Frame, upper: Upper<'a>) -> Next<'a> {
    let (header, payload) = match Header::parse(upper.bytes) {
        Ok(found) => found,
        Err(error) => {
            frame.say_broken("UDP");
            frame.layers.extend(ip::ports("udp", upper.bytes));
            return frame.malformed("udp", error.reason());
        }
    };
    // Over IPv4 the checksum may be absent, and only ZEP is of interest there.
    let checksum_ok = match (
        upper.src,
        upper.dst,
        upper.bytes.get(..udp::HEADER_LEN + payload.len()),
    ) {
        (IpAddr::V6(src), IpAddr::V6(dst), Some(datagram)) => {
            Some(udp::is_checksum_valid(&src, &dst, datagram))
        }
        _ => None,
    };
    let title = format!("{} → {}", header.src_port, header.dst_port);
    frame.say(format_args!("UDP {title} len {}", payload.len()));
    frame.push(
        Layer::new("udp", title)
            .hidden("src_port", header.src_port)
            .hidden("dst_port", header.dst_port)
            .with("len", payload.len())
            .hidden("checksum", udp::checksum_field(upper.bytes).map(hex16))
            .hidden("checksum_ok", checksum_ok)
            .remark("checksum_wrong", checksum_ok == Some(false)),
    );
    // Checksums of datagrams that the capturing machine sent are often left to its network card.
    if checksum_ok == Some(false) && decoder.now.heard_from.is_some() {
        frame.malformed("udp", "UDP checksum wrong");
        frame.payload(payload);
        return Next::End;
    }
    let ends = [(upper.src, header.src_port), (upper.dst, header.dst_port)];
    Next::Datagram(ends, payload)
}
