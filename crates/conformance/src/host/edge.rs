//! The edge of a host: what a profile changes of segments on their way.
//!
//! The engine has one option layout and no window scaling, and public scripts compare bytes.
//! So a profile may lend two things, both at the outermost edge:
//!
//! - its option layout: the engine's options in FreeBSD's or Linux's order and padding;
//! - window scaling: the option in SYNs, and when both sides sent it, windows shifted on the
//!   way, clamped to the 65,535 bytes the engine counts.
//!
//! Nothing else of a segment changes; the profile `motet` changes nothing at all.
//! Source: RFC 7323 §2 for the option; layouts as both systems send them.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use super::settings::{Profile, Settings};
use crate::packet::{ACK, SYN, Segment, TcpOption, encode_options};

/// The peer of a connection: its address and port, and our port.
pub(super) type Flow = (Ipv6Addr, u16, u16);

/// Window scaling of one connection.
#[derive(Clone, Copy, Debug, Default)]
struct Scaling {
    ours: Option<u8>,
    theirs: Option<u8>,
}

/// The edge of one host.
#[derive(Debug, Default)]
pub(super) struct Edge {
    scaling: HashMap<Flow, Scaling>,
    /// The scaled window of the segment under way, where the host knows it exactly.
    exact_window: Option<u16>,
    /// How far data went out on each flow.
    sent_up_to: HashMap<Flow, u32>,
    /// How far the peer has acknowledged on each flow.
    acked_up_to: HashMap<Flow, u32>,
}

impl Edge {
    /// Whether windows on this flow are scaled.
    pub(super) fn is_scaled(&self, flow: Flow) -> bool {
        self.scaling
            .get(&flow)
            .is_some_and(|scaling| scaling.ours.is_some() && scaling.theirs.is_some())
    }

    /// The shifts of our windows and of the peer's, where both sides sent one.
    pub(super) fn scales(&self, flow: Flow) -> (u8, u8) {
        let scaling = self.scaling.get(&flow).copied().unwrap_or_default();
        scaling.ours.zip(scaling.theirs).unwrap_or_default()
    }

    /// Whether data that end at `next` are sent for the first time; notes that they were sent.
    pub(super) fn is_news(&mut self, flow: Flow, next: u32) -> bool {
        let known = self.sent_up_to.insert(flow, next);
        let is_news = known.is_none_or(|known| (next.wrapping_sub(known) as i32) > 0);
        if let (false, Some(known)) = (is_news, known) {
            self.sent_up_to.insert(flow, known);
        }
        is_news
    }

    /// The bytes by which `ack` goes beyond all that was acknowledged before; notes it.
    pub(super) fn acknowledge(&mut self, flow: Flow, ack: u32) -> u32 {
        let known = self.acked_up_to.entry(flow).or_insert(ack);
        let news = (ack.wrapping_sub(*known) as i32).max(0) as u32;
        *known = known.wrapping_add(news);
        news
    }

    /// States the window of the next outbound segment, shifted already.
    pub(super) fn set_exact_window(&mut self, window: u32) {
        self.exact_window = Some(window.min(65_535) as u16);
    }

    /// A segment for the engine.
    pub(super) fn inbound(&mut self, flow: Flow, segment: &mut Segment, settings: &Settings) {
        if settings.lender() == Profile::Motet {
            return;
        }
        if segment.has(SYN) {
            let entry = self.scaling.entry(flow).or_default();
            if !segment.has(ACK) && entry.theirs.is_some() {
                // Another connection between the same ends.
                entry.ours = entry.ours.filter(|_| segment.window_scale().is_some());
            }
            entry.theirs = segment.window_scale().map(|shift| shift.min(14));
            return;
        }
        let scaling = self.scaling.get(&flow).copied().unwrap_or_default();
        if let (Some(_), Some(shift)) = (scaling.ours, scaling.theirs) {
            segment.window = (u32::from(segment.window) << shift).min(65_535) as u16;
        }
    }

    /// A segment from the engine.
    pub(super) fn outbound(&mut self, flow: Flow, segment: &mut Segment, settings: &Settings) {
        if settings.lender() == Profile::Motet {
            return;
        }
        if segment.has(SYN) {
            self.sent_up_to.remove(&flow);
            self.acked_up_to.remove(&flow);
            let entry = self.scaling.entry(flow).or_default();
            let offers = !segment.has(ACK) || entry.theirs.is_some();
            if !segment.has(ACK) {
                entry.theirs = None;
            }
            entry.ours = settings.window_scale.filter(|_| offers);
            if let Some(shift) = entry.ours {
                segment.options.push(TcpOption::WindowScale(shift));
            }
        } else {
            let scaling = self.scaling.get(&flow).copied().unwrap_or_default();
            if let (Some(shift), Some(_)) = (scaling.ours, scaling.theirs) {
                segment.window = self.exact_window.take().unwrap_or(segment.window >> shift);
            }
        }
        let mut options = std::mem::take(&mut segment.options);
        options.retain(|option| !matches!(option, TcpOption::Nop | TcpOption::Eol));
        segment.options = match settings.lender() {
            Profile::FreeBsd => freebsd_layout(options),
            _ => linux_layout(&options),
        };
    }
}

/// FreeBSD: MSS, window scale, SACK permitted, timestamps, SACK; each aligned by NOPs in front
/// of it where it has 32-bit fields; the end filled with EOLs.
fn freebsd_layout(mut options: Vec<TcpOption>) -> Vec<TcpOption> {
    options.sort_by_key(|option| match option {
        TcpOption::Mss(_) => 0,
        TcpOption::WindowScale(_) => 1,
        TcpOption::SackOk => 2,
        TcpOption::Timestamps { .. } => 3,
        _ => 4,
    });
    let mut list: Vec<TcpOption> = Vec::new();
    for option in options {
        let (modulus, rest) = match option {
            TcpOption::Mss(_) => (4, 0),
            TcpOption::WindowScale(_) => (4, 1),
            TcpOption::SackOk => (2, 0),
            _ => (4, 2),
        };
        while encode_options(&list).len() % modulus != rest {
            list.push(TcpOption::Nop);
        }
        list.push(option);
    }
    while !encode_options(&list).len().is_multiple_of(4) {
        list.push(TcpOption::Eol);
    }
    list
}

/// Linux: MSS, SACK permitted sharing a word with the timestamps, window scale, SACK; padding
/// always in front.
fn linux_layout(options: &[TcpOption]) -> Vec<TcpOption> {
    let pick = |wanted: fn(&TcpOption) -> bool| options.iter().find(|o| wanted(o)).cloned();
    let mss = pick(|o| matches!(o, TcpOption::Mss(_)));
    let sack_ok = pick(|o| matches!(o, TcpOption::SackOk));
    let stamps = pick(|o| matches!(o, TcpOption::Timestamps { .. }));
    let scale = pick(|o| matches!(o, TcpOption::WindowScale(_)));
    let sack = pick(|o| matches!(o, TcpOption::Sack(_)));
    let mut list: Vec<TcpOption> = mss.into_iter().collect();
    match (sack_ok, stamps) {
        (Some(sack_ok), Some(stamps)) => list.extend([sack_ok, stamps]),
        (one, other) => {
            for option in [one, other].into_iter().flatten() {
                list.extend([TcpOption::Nop, TcpOption::Nop, option]);
            }
        }
    }
    if let Some(scale) = scale {
        list.extend([TcpOption::Nop, scale]);
    }
    if let Some(sack) = sack {
        list.extend([TcpOption::Nop, TcpOption::Nop, sack]);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(options: &[TcpOption]) -> String {
        let list: Vec<String> = options.iter().map(ToString::to_string).collect();
        list.join(",")
    }

    #[test]
    fn layouts_are_those_of_both_systems() {
        use TcpOption::{Mss, Sack, SackOk, Timestamps, WindowScale};
        let stamps = Timestamps { value: 1, echo: 2 };
        let cases = [
            (
                vec![Mss(1440), SackOk, stamps.clone(), WindowScale(6)],
                "mss 1440,nop,wscale 6,sackOK,TS val 1 ecr 2",
                "mss 1440,sackOK,TS val 1 ecr 2,nop,wscale 6",
            ),
            (
                vec![Mss(1440), SackOk],
                "mss 1440,sackOK,eol,eol",
                "mss 1440,nop,nop,sackOK",
            ),
            (
                vec![Mss(1440), SackOk, WindowScale(8)],
                "mss 1440,nop,wscale 8,sackOK,eol,eol",
                "mss 1440,nop,nop,sackOK,nop,wscale 8",
            ),
            (
                vec![Mss(1440), WindowScale(6), stamps.clone()],
                "mss 1440,nop,wscale 6,nop,nop,TS val 1 ecr 2",
                "mss 1440,nop,nop,TS val 1 ecr 2,nop,wscale 6",
            ),
            (
                vec![stamps, Sack(vec![(1, 2)])],
                "nop,nop,TS val 1 ecr 2,nop,nop,sack 1:2",
                "nop,nop,TS val 1 ecr 2,nop,nop,sack 1:2",
            ),
        ];
        for (options, freebsd, linux) in cases {
            assert_eq!(text(&linux_layout(&options)), linux);
            assert_eq!(text(&freebsd_layout(options)), freebsd);
        }
    }
}
