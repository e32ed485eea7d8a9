//! Segments and ICMPv6 errors.

use super::cursor::Cursor;
use super::{Action, EcnSpec, IcmpSpec, IpSpec, SegmentSpec, SyntaxError};
use crate::packet::{FLAG_NAMES, TcpOption, encode_options};

/// Reads the segment that follows `<`.
pub(super) fn inbound(cursor: &mut Cursor<'_>) -> Result<Action, SyntaxError> {
    let ip = ip_spec(cursor)?;
    if cursor.sees("[") {
        // The newer place of a quoted segment: in front of the message.
        let quoted = quoted(cursor)?;
        if !cursor.take_word("icmp") {
            return Err(cursor.expected("`icmp` behind a quoted segment"));
        }
        return icmp(cursor, Some(quoted));
    }
    if cursor.take_word("icmp") {
        return icmp(cursor, None);
    }
    let before = *cursor;
    let spec = segment(cursor, ip)?;
    if spec.options.is_none() {
        return Err(before.error("`<...>` is for segments that the stack sends"));
    }
    if spec.seq.is_none() {
        return Err(before.error("`...` as a number is for segments that the stack sends"));
    }
    if matches!(ip.ecn, Some(EcnSpec::Ect01)) {
        return Err(before.error("[ect01] is for segments that the stack sends"));
    }
    Ok(Action::Inject(spec))
}

/// Reads the segment that follows `>`.
pub(super) fn outbound(cursor: &mut Cursor<'_>) -> Result<Action, SyntaxError> {
    let ip = ip_spec(cursor)?;
    if cursor.take_word("icmp") || cursor.sees("[") {
        return Err(cursor.error("ICMP from the stack cannot be expected: TCP sends none"));
    }
    Ok(Action::Expect(segment(cursor, ip)?))
}

fn ip_spec(cursor: &mut Cursor<'_>) -> Result<IpSpec, SyntaxError> {
    let mut spec = IpSpec::default();
    let before = *cursor;
    let close = if cursor.take("(") {
        ")"
    } else if cursor.take("[") {
        "]"
    } else {
        return Ok(spec);
    };
    if close == "]" && cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        // A quoted segment, not marks.
        *cursor = before;
        return Ok(spec);
    }
    loop {
        let here = *cursor;
        match cursor.word() {
            Some("noecn") => spec.ecn = Some(EcnSpec::Is(0)),
            Some("ect1") => spec.ecn = Some(EcnSpec::Is(1)),
            Some("ect0") => spec.ecn = Some(EcnSpec::Is(2)),
            Some("ce") => spec.ecn = Some(EcnSpec::Is(3)),
            Some("ect01") => spec.ecn = Some(EcnSpec::Ect01),
            Some("tos" | "class") => {
                spec.traffic_class = Some(cursor.number("a traffic class", 0xff)? as u8);
            }
            Some("ttl" | "hlim") => {
                spec.hop_limit = Some(cursor.number("a hop limit", 0xff)? as u8);
            }
            Some("flowlabel") => {
                return Err(here.error("flow labels are not TCP's: cannot be expressed"));
            }
            Some("udp") => return Err(here.error("UDP cannot be expressed")),
            _ => return Err(here.expected("noecn, ect0, ect1, ect01, ce, class, tos, hlim or ttl")),
        }
        if !cursor.take(",") {
            break;
        }
    }
    cursor.expect(close)?;
    Ok(spec)
}

fn segment(cursor: &mut Cursor<'_>, ip: IpSpec) -> Result<SegmentSpec, SyntaxError> {
    let mut spec = SegmentSpec {
        ip,
        ..SegmentSpec::default()
    };
    cursor.skip_blanks();
    for other in ["udp", "gre", "mpls", "ipv4", "ipv6", "sctp", "udplite"] {
        let mut ahead = *cursor;
        if ahead.take_word(other) {
            return Err(cursor.error(&format!("{other} packets cannot be expressed: TCP only")));
        }
    }
    if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        let src = port(cursor)?;
        cursor.expect(">")?;
        spec.ports = Some((src, port(cursor)?));
    }
    spec.flags = flags(cursor)?;
    let (seq, len) = seq(cursor)?;
    spec.seq = seq;
    spec.len = len;
    if cursor.take_word("ack") {
        spec.ack = Some(cursor.number("an acknowledgment number", u64::from(u32::MAX))? as u32);
    }
    if cursor.take_word("win") {
        spec.window = Some(cursor.number("a window", u64::from(u16::MAX))? as u16);
    }
    if cursor.take_word("urg") {
        spec.urgent = cursor.number("an urgent pointer", u64::from(u16::MAX))? as u16;
    }
    spec.options = Some(Vec::new());
    // Every event starts with its time: a `<` here can only be an option list.
    if cursor.take("<") {
        spec.options = options(cursor)?;
    }
    if cursor.sees("{") {
        return Err(cursor.error("fuzzing cannot be expressed"));
    }
    Ok(spec)
}

fn port(cursor: &mut Cursor<'_>) -> Result<u16, SyntaxError> {
    Ok(cursor.number("a port", u64::from(u16::MAX))? as u16)
}

fn flags(cursor: &mut Cursor<'_>) -> Result<u16, SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    if cursor.take("-") {
        return Ok(0);
    }
    let text = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
    let mut flags = 0;
    for letter in text.chars() {
        let ace = letter.to_digit(8).filter(|_| flags & 0x10 != 0);
        let bit = FLAG_NAMES.iter().find(|(_, name)| *name == letter);
        flags |= match (ace, bit) {
            // The ACE counter of accurate ECN: AE, CWR, ECE from the top.
            (Some(ace), _) => (ace as u16) << 6,
            (None, Some((bit, _))) => *bit,
            (None, None) => return Err(before.expected("TCP flags (FSRP.UEWA, or - for none)")),
        };
    }
    match text.is_empty() {
        true => Err(before.expected("TCP flags (FSRP.UEWA, or - for none)")),
        false => Ok(flags),
    }
}

/// `start:end(length)`, or `...(length)`.
fn seq(cursor: &mut Cursor<'_>) -> Result<(Option<u32>, usize), SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    if cursor.take("...") {
        cursor.expect("(")?;
        let len = cursor.number("a payload length", u64::from(u16::MAX))? as usize;
        cursor.expect(")")?;
        return Ok((None, len));
    }
    let start = cursor.number("a sequence number", u64::from(u32::MAX))? as u32;
    cursor.expect(":")?;
    let end = cursor.number("a sequence number", u64::from(u32::MAX))? as u32;
    cursor.expect("(")?;
    let len = cursor.number("a payload length", u64::from(u16::MAX))? as usize;
    cursor.expect(")")?;
    match end == start.wrapping_add(len as u32) {
        true => Ok((Some(start), len)),
        false => Err(before.error("sequence numbers and payload length do not match")),
    }
}

/// Parses an option list, from behind its `<`.
fn options(cursor: &mut Cursor<'_>) -> Result<Option<Vec<TcpOption>>, SyntaxError> {
    let before = *cursor;
    if cursor.take("...") {
        cursor.expect(">")?;
        return Ok(None);
    }
    let mut list = Vec::new();
    loop {
        list.push(option(cursor)?);
        if cursor.take(">") {
            break;
        }
        cursor.expect(",")?;
    }
    let len = encode_options(&list).len();
    if len > 40 {
        return Err(before.error(&format!("{len} bytes of TCP options, above 40")));
    }
    if !len.is_multiple_of(4) {
        return Err(
            before.error("TCP options are not padded to a multiple of four with nop or eol")
        );
    }
    Ok(Some(list))
}

fn option(cursor: &mut Cursor<'_>) -> Result<TcpOption, SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    let u32_max = u64::from(u32::MAX);
    Ok(match cursor.word() {
        Some("nop") => TcpOption::Nop,
        Some("eol") => TcpOption::Eol,
        Some("mss") => TcpOption::Mss(cursor.number("an MSS", 0xffff)? as u16),
        Some("wscale") => TcpOption::WindowScale(cursor.number("a shift", 0xff)? as u8),
        Some("sackOK") => TcpOption::SackOk,
        Some("sack") => {
            let mut blocks = Vec::new();
            loop {
                let left = cursor.number("a left edge", u32_max)? as u32;
                cursor.expect(":")?;
                blocks.push((left, cursor.number("a right edge", u32_max)? as u32));
                cursor.skip_blanks();
                if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
                    break;
                }
            }
            TcpOption::Sack(blocks)
        }
        Some("TS") => {
            if !cursor.take_word("val") {
                return Err(cursor.expected("`val`"));
            }
            let value = cursor.number("a timestamp", u32_max)? as u32;
            if !cursor.take_word("ecr") {
                return Err(cursor.expected("`ecr`"));
            }
            let echo = cursor.number("a timestamp", u32_max)? as u32;
            TcpOption::Timestamps { value, echo }
        }
        Some("FO") => TcpOption::Other(34, hex(cursor)?),
        Some("FOEXP") => {
            let cookie = hex(cursor)?;
            TcpOption::Other(254, [vec![0xf9, 0x89], cookie].concat())
        }
        Some("md5") => TcpOption::Other(19, hex(cursor)?),
        _ => {
            return Err(before.expected(
                "a TCP option (nop, eol, mss, wscale, sackOK, sack, TS, FO, FOEXP, md5)",
            ));
        }
    })
}

fn hex(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    let digits = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    if digits.contains(|c: char| !c.is_ascii_hexdigit()) {
        // Macros of packetdrill's command line (`-D NAME=…`), of Fast Open and MD5 mostly.
        return Err(before.error(&format!("`{digits}` is no hexadecimal number")));
    }
    if !digits.len().is_multiple_of(2) {
        return Err(before.error("an odd number of hexadecimal digits"));
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2).unwrap_or_default(), 16))
        .collect::<Result<_, _>>()
        .map_err(|_| before.expected("hexadecimal digits"))
}

/// `[start:end(length)]`
fn quoted(cursor: &mut Cursor<'_>) -> Result<(u32, usize), SyntaxError> {
    let before = *cursor;
    cursor.expect("[")?;
    let (seq, len) = seq(cursor)?;
    let seq = seq.ok_or_else(|| before.expected("a sequence number"))?;
    cursor.expect("]")?;
    Ok((seq, len))
}

/// Reads the error that follows `icmp`.
fn icmp(
    cursor: &mut Cursor<'_>,
    quoted_before: Option<(u32, usize)>,
) -> Result<Action, SyntaxError> {
    cursor.skip_blanks();
    let before = *cursor;
    let name = cursor
        .word()
        .ok_or_else(|| before.expected("an ICMP type"))?;
    let kind = numbered(name, "type_")
        .or_else(|| named(&TYPES, name))
        .ok_or_else(|| {
            before.expected("unreachable, packet_too_big, time_exceeded or parameter_problem")
        })?;
    let here = *cursor;
    let mut code = 0;
    let is_code = |word: &str| word != "mtu" && word != "id";
    if cursor.word().is_some_and(is_code) {
        let mut again = here;
        let word = again.word().unwrap_or_default();
        code = numbered(word, "code_")
            .or_else(|| named(&CODES, &format!("{kind} {word}")))
            .ok_or_else(|| here.expected("a code of this ICMPv6 type"))?;
    } else {
        *cursor = here;
    }
    let mut mtu = 0;
    let here = *cursor;
    if cursor.take_word("mtu") {
        if kind != 2 {
            return Err(here.error("an MTU is for packet_too_big only"));
        }
        mtu = cursor.number("an MTU", u64::from(u32::MAX))? as u32;
    }
    let quoted = match quoted_before {
        None if cursor.sees("[") => Some(quoted(cursor)?),
        before => before,
    };
    Ok(Action::InjectIcmp(IcmpSpec {
        kind: [kind, code],
        mtu,
        seq: quoted.map(|(seq, _)| seq),
        len: quoted.map_or(0, |(_, len)| len),
    }))
}

fn numbered(word: &str, prefix: &str) -> Option<u8> {
    word.strip_prefix(prefix)?.parse().ok()
}

fn named(table: &[(u8, &str)], name: &str) -> Option<u8> {
    table
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(value, _)| *value)
}

/// ICMPv6 error types (RFC 4443 §3).
const TYPES: [(u8, &str); 4] = [
    (1, "unreachable"),
    (2, "packet_too_big"),
    (3, "time_exceeded"),
    (4, "parameter_problem"),
];

/// Their codes, each behind its type.
const CODES: [(u8, &str); 13] = [
    (0, "1 net_unreachable"),
    (0, "1 no_route"),
    (1, "1 admin_prohibited"),
    (2, "1 not_neighbour"),
    (2, "1 beyond_scope"),
    (3, "1 address_unreachable"),
    (4, "1 port_unreachable"),
    (0, "3 exceeded_hop_limit"),
    (1, "3 exceeded_frag_time"),
    (0, "4 header_field"),
    (1, "4 unknown_next_header"),
    (2, "4 unknown_option"),
    (0, "2 packet_too_big"),
];
