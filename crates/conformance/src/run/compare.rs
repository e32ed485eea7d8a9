//! Comparing a segment sent with the line that expects it.

use crate::packet::{ACK, FIN, PSH, Packet, Segment, TcpOption, encode_options, flags_text};
use crate::script::{EcnSpec, SegmentSpec};

/// The rest of a line that no segment has matched yet.
pub struct Expected {
    spec: SegmentSpec,
    strict: bool,
    whole: bool,
}

impl Expected {
    /// The expectation of the line `spec`; `strict`: options byte for byte; `whole`: the line
    /// stands for one segment.
    pub fn new(spec: &SegmentSpec, strict: bool, whole: bool) -> Self {
        Self {
            spec: spec.clone(),
            strict,
            whole,
        }
    }

    /// Takes off the part that was seen; returns whether nothing is left.
    pub fn advance(&mut self, seen: &Packet) -> bool {
        let done = seen.segment.len >= self.spec.len;
        self.spec.len -= seen.segment.len.min(self.spec.len);
        if let Some(seq) = &mut self.spec.seq {
            *seq = seq.wrapping_add(seen.segment.len as u32);
        }
        done
    }

    /// How `seen` differs: field, what was expected, what was seen.
    pub fn differences(&self, seen: &Packet) -> Vec<String> {
        let (spec, segment) = (&self.spec, &seen.segment);
        let mut list = Vec::new();
        // A piece of a longer line: the last one bears PSH and FIN.
        let piece = !self.whole && segment.len > 0 && segment.len < spec.len;
        let ignored = if piece { PSH | FIN } else { 0 };
        if spec.flags & !ignored != segment.flags & !ignored || piece && segment.flags & FIN != 0 {
            list.push(pair(
                "flags",
                &flags_text(spec.flags),
                &flags_text(segment.flags),
            ));
        }
        if let Some(seq) = spec.seq
            && seq != segment.seq
        {
            list.push(pair("seq", &seq, &segment.seq));
        }
        if spec.len != segment.len && !piece {
            list.push(pair("length", &spec.len, &segment.len));
        }
        let ack = spec.ack.unwrap_or(0);
        if spec.flags & ACK != 0 && segment.flags & ACK != 0 && ack != segment.ack {
            list.push(pair("ack", &ack, &segment.ack));
        }
        if let Some(window) = spec.window
            && window != segment.window
        {
            list.push(pair("win", &window, &segment.window));
        }
        if spec.urgent != segment.urgent {
            list.push(pair("urg", &spec.urgent, &segment.urgent));
        }
        if let Some(options) = &spec.options {
            list.extend(self.options_differ(options, segment));
        }
        list.extend(ip_differs(spec, seen));
        if let Some((src, dst)) = spec.ports
            && (src, dst) != (segment.src_port, segment.dst_port)
        {
            let seen = format!("{} > {}", segment.src_port, segment.dst_port);
            list.push(pair("ports", &format!("{src} > {dst}"), &seen));
        }
        list
    }

    fn options_differ(&self, options: &[TcpOption], segment: &Segment) -> Option<String> {
        let (wanted, seen) = (encode_options(options), encode_options(&segment.options));
        let same = match self.strict {
            true => wanted == seen,
            false => set(options) == set(&segment.options),
        };
        (!same).then(|| {
            format!(
                "options: expected <{}> [{}], seen <{}> [{}]",
                text(options),
                hex(&wanted),
                text(&segment.options),
                hex(&seen)
            )
        })
    }
}

fn ip_differs(spec: &SegmentSpec, seen: &Packet) -> Vec<String> {
    let mut list = Vec::new();
    let ecn = seen.traffic_class & 3;
    match spec.ip.ecn {
        Some(EcnSpec::Is(wanted)) if wanted != ecn => {
            list.push(pair("ecn", &ecn_text(wanted), &ecn_text(ecn)));
        }
        Some(EcnSpec::Ect01) if ecn != 1 && ecn != 2 => {
            list.push(pair("ecn", &"ect01", &ecn_text(ecn)));
        }
        _ => {}
    }
    if let Some(class) = spec.ip.traffic_class
        && class != seen.traffic_class
    {
        let (wanted, seen) = (
            format!("{class:#04x}"),
            format!("{:#04x}", seen.traffic_class),
        );
        list.push(pair("class", &wanted, &seen));
    }
    if let Some(limit) = spec.ip.hop_limit
        && limit != seen.hop_limit
    {
        list.push(pair("hlim", &limit, &seen.hop_limit));
    }
    list
}

/// The options that mean something, in a fixed order. A window scale's value is its sender's
/// own choice.
fn set(options: &[TcpOption]) -> Vec<String> {
    let mut list: Vec<String> = options
        .iter()
        .filter(|option| !matches!(option, TcpOption::Nop | TcpOption::Eol))
        .map(|option| match option {
            TcpOption::WindowScale(_) => "wscale".to_owned(),
            option => option.to_string(),
        })
        .collect();
    list.sort();
    list
}

fn pair(field: &str, wanted: &dyn std::fmt::Display, seen: &dyn std::fmt::Display) -> String {
    format!("{field}: expected {wanted}, seen {seen}")
}

fn text(options: &[TcpOption]) -> String {
    let list: Vec<String> = options.iter().map(ToString::to_string).collect();
    list.join(",")
}

fn hex(bytes: &[u8]) -> String {
    let list: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    list.join(" ")
}

fn ecn_text(ecn: u8) -> &'static str {
    match ecn & 3 {
        0 => "noecn",
        1 => "ect1",
        2 => "ect0",
        _ => "ce",
    }
}

/// A line's fields, one by one.
pub(super) fn decode_spec(spec: &SegmentSpec) -> String {
    let any = || "any".to_owned();
    format!(
        "expected flags={} seq={} len={} ack={} win={} options={}",
        flags_text(spec.flags),
        spec.seq.map_or_else(any, |seq| seq.to_string()),
        spec.len,
        spec.ack.map_or_else(any, |ack| ack.to_string()),
        spec.window.map_or_else(any, |window| window.to_string()),
        spec.options
            .as_ref()
            .map_or_else(any, |options| format!("<{}>", text(options))),
    )
}

/// A segment's fields, one by one.
pub(super) fn decode_seen(seen: &Packet) -> String {
    let segment = &seen.segment;
    format!(
        "seen     flags={} seq={} len={} ack={} win={} options=<{}> ports={}>{} ecn={} hlim={}",
        flags_text(segment.flags),
        segment.seq,
        segment.len,
        segment.ack,
        segment.window,
        text(&segment.options),
        segment.src_port,
        segment.dst_port,
        ecn_text(seen.traffic_class),
        seen.hop_limit,
    )
}
