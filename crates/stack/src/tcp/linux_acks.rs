//! Delayed ACKs as Linux sends them: when a receiver that is a Linux host acknowledges.
//!
//! Purpose: a simulated host should answer motes as the servers do that they will meet. RFC 9293
//! §3.8.6.3 leaves the receiver much freedom: at most 500 ms, at least every second full segment.
//! Linux's use of it depends on the sender's PSH flags and on the time between segments, so that no
//! fixed count and delay describe it.
//! Place: `input` tells what arrives and asks what to do, `output` tells of each ACK, `clock` of an
//! ACK that had to wait to the end. Left out: receive buffers that fill up, and an application that
//! reads late; here it reads at once.
//! Source: tcp(7), `ss` (`ato` is the delay, `rcvmss` the estimate of a full segment), and the
//! packets of Linux 6.18 (`cargo xtask interop kernel`).

/// What to do about text that has arrived in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Acknowledge at once.
    Now,
    /// Wait so many milliseconds for company, or less where an earlier wait is under way.
    Wait(u32),
}

/// What a receiver notes about the segments of its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct LinuxAcks {
    /// The delay of an ACK, ms; 0: no text has come yet.
    ato_ms: u16,
    /// The estimate of a full segment's text, octets; 0: no text has come yet.
    full_len: u16,
    /// Octets of the last segment's text.
    last_len: u16,
    /// When text came last, ms.
    last_at: u32,
    /// ACKs still to be sent at once.
    quick: u8,
    /// Whether the last segment with text has PSH.
    has_psh: bool,
    /// Whether such text came, or less than a full segment, since the last ACK.
    is_pushed: bool,
    /// Whether the application answers what it reads: then an ACK waits for the answer.
    answers: bool,
}

/// A receiver's circumstances when text arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// The present, ms.
    pub(super) now_ms: u32,
    /// The retransmission timeout, and the smoothed round trip if one was measured, ms.
    pub(super) rto_ms: u32,
    pub(super) srtt_ms: Option<u32>,
    /// Octets of text that are not acknowledged, with the new ones.
    pub(super) unacked: u16,
    /// The window, octets.
    pub(super) window: u16,
    /// Octets of a full segment towards the peer, options not counted.
    pub(super) segment: u16,
}

impl LinuxAcks {
    /// A segment with text came; `has_psh`: whether it has PSH.
    pub(super) fn note_end(&mut self, has_psh: bool) {
        self.has_psh = has_psh;
    }

    /// Text of `len` octets came in order, in the segment noted last.
    pub(super) fn on_text(&mut self, len: u16, at: Circumstances) -> Verdict {
        self.measure(len, self.has_psh, at);
        self.pace(at);
        self.last_at = at.now_ms;
        let is_second = at.unacked > self.full_len;
        let is_read = self.is_pushed && !self.answers;
        if is_second || is_read || self.quick > 0 && !self.answers {
            return Verdict::Now;
        }
        Verdict::Wait(self.delay_ms(at.srtt_ms))
    }

    /// A segment came that is known already: its sender has missed ACKs.
    pub(super) fn on_duplicate(&mut self, window: u16) {
        self.answers = false;
        self.hurry(window);
        self.ato_ms = ATO_MIN_MS;
    }

    /// An ACK went out, alone or with data; `answers`: whether it bears text of ours; `was_due`:
    /// whether there was text to acknowledge.
    pub(super) fn on_ack_sent(&mut self, bears_text: bool, was_due: bool, now_ms: u32) {
        self.is_pushed = false;
        if bears_text && now_ms.wrapping_sub(self.last_at) < u32::from(self.ato_ms) {
            self.answers = true;
        }
        if self.quick > 0 && was_due {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato_ms = ATO_MIN_MS;
            }
        }
    }

    /// The wait of an ACK is over, and nothing has come along.
    pub(super) fn on_delay_over(&mut self, rto_ms: u32) {
        if self.answers {
            self.answers = false;
            self.ato_ms = ATO_MIN_MS;
        } else {
            let most = rto_ms.min(u32::from(u16::MAX)) as u16;
            self.ato_ms = self.ato_ms.saturating_mul(2).min(most);
        }
    }

    /// Estimates a full segment, and notes that the sender has no more to send for now: text with
    /// PSH, or less than a full segment. Two segments of the same length in the middle of a stream
    /// are full ones.
    fn measure(&mut self, len: u16, is_pushed: bool, at: Circumstances) {
        if self.full_len == 0 {
            self.full_len = at.segment.clamp(FULL_LEN_MIN, FULL_LEN_FIRST_MAX);
        }
        let is_repeated = core::mem::replace(&mut self.last_len, len) == len;
        if len > self.full_len || is_repeated && !is_pushed && len >= FULL_LEN_MIN {
            self.full_len = len;
        }
        self.is_pushed |= is_pushed || len < self.full_len;
    }

    /// Follows the time between segments.
    fn pace(&mut self, at: Circumstances) {
        if self.ato_ms == 0 {
            self.hurry(at.window);
            self.ato_ms = ATO_MIN_MS;
            return;
        }
        let since = at.now_ms.wrapping_sub(self.last_at);
        if since <= u32::from(ATO_MIN_MS / 2) {
            self.ato_ms = self.ato_ms / 2 + ATO_MIN_MS / 2;
        } else if since < u32::from(self.ato_ms) {
            let most = at.rto_ms.min(u32::from(u16::MAX)) as u16;
            // Lossless: it is less than the delay.
            self.ato_ms = (self.ato_ms / 2).saturating_add(since as u16).min(most);
        } else if since > at.rto_ms {
            self.hurry(at.window);
        }
    }

    /// Acknowledges each segment that fills half the window: 16 at most, one at least.
    fn hurry(&mut self, window: u16) {
        let half = window / self.full_len.saturating_mul(2).max(1);
        self.quick = self.quick.max(half.clamp(1, QUICK_MAX) as u8);
    }

    fn delay_ms(&self, srtt_ms: Option<u32>) -> u32 {
        let ato = u32::from(self.ato_ms);
        if self.ato_ms <= ATO_MIN_MS {
            return ato;
        }
        let is_short = self.answers || self.is_pushed;
        let most = if is_short { DELAY_MAX_MS } else { ATO_MAX_MS };
        let rtt = srtt_ms.map_or(most, |srtt| srtt.max(u32::from(ATO_MIN_MS)));
        ato.min(most).min(rtt).min(DELAY_MAX_MS)
    }
}

/// The shortest delay of an ACK, ms.
const ATO_MIN_MS: u16 = 40;
/// The longest delay of an ACK, ms.
const DELAY_MAX_MS: u32 = 200;
/// As far as the estimate of the delay may grow, ms.
const ATO_MAX_MS: u32 = 500;
/// ACKs that are sent at once, at most.
const QUICK_MAX: u16 = 16;
/// The first estimate of a full segment is no longer than this, octets: IPv4's MSS.
const FULL_LEN_FIRST_MAX: u16 = 536;
/// A shorter segment is never called full, octets.
const FULL_LEN_MIN: u16 = 88;
