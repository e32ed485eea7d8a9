//! Every constant of the MAC: default, unit, source.

use super::Channels;
use crate::time::Duration;

/// Settings of one 802.15.4 interface.
#[derive(Clone, Debug)]
pub struct Config {
    /// PAN identifier of this node's network (IEEE 802.15.4-2006 §7.2.1.3).
    pub pan: u16,
    /// This node's EUI-64, canonical (big-endian) order.
    pub extended: [u8; 8],
    /// This node's short address, if it has one; frames to it are accepted.
    pub short: Option<u16>,
    /// Whether data frames carry the short address as their source when there is one.
    /// Off by default: TCPlp's platform sends extended addresses (23 B of MAC overhead).
    pub short_source: bool,
    /// Channel, 11 to 26, where [`Self::channels`] has none.
    pub channel: u8,
    /// The channels that the mesh spreads over; by default one for all. More need the feature
    /// `channels`.
    pub channels: Channels,
    /// `macMinBE`: the first backoff of an attempt is uniform in 0..2^BE unit backoffs. Where
    /// [`Self::retry_doubles`] it is the most: on the way up frames that a pace keeps apart, and
    /// those of a node that nobody else disturbs, have as small a BE as the last ones needed.
    pub be_min: u8,
    /// `macMaxBE`: BE grows by one with each busy channel, up to this.
    pub be_max: u8,
    /// `macMaxCSMABackoffs`: the attempt fails when the channel was busy more often.
    pub csma_backoffs_max: u8,
    /// Attempts in all before a frame is given up; a channel that stayed busy consumes one. Twice
    /// as many, where [`Self::retry_doubles`], for a neighbour that needs more than two on average.
    pub attempts_max: u8,
    /// How long a frame may be at this node, queue and retries included, before an attempt.
    ///
    /// TCP header compression relies on this bound: a number sent in part must arrive before it
    /// repeats (`docs/reference/tcphc.md`). By then TCP has retransmitted anyway.
    pub frame_age_max: Duration,
    /// d: before each retry a uniformly random wait in [0, d] precedes the CSMA backoff.
    pub retry_delay_max: Duration,
    /// Whether d is only as long as the neighbour's last frame took, from the assessment to its
    /// ACK, and twice as long with each attempt, up to [`Self::retry_delay_max`]: what disturbed
    /// the frame takes as long as it. Up to twice that at a source whose frames need more than two
    /// attempts: it contends with others. Before a neighbour has taken one, and always in a build
    /// without the feature `pace`, 5 ms stand for it: a longest frame at 250 kb/s. A mesh link that
    /// measures its pace sets it.
    pub retry_doubles: bool,
    /// `macAckWaitDuration`: from the end of our frame to the end of its ACK.
    pub ack_wait: Duration,
    /// The time by which an ACK may end before or after the instant that the standard gives it, a
    /// turnaround and its air time after our frame: what the clocks of neighbour and driver may be
    /// off. [`super::RadioCapabilities::stamp_delay_max`] adds what this node's own driver needs;
    /// where only a neighbour's driver is slow, this is what has to grow.
    pub ack_slack: Duration,
    /// `macSifsPeriod`: from the end of a frame of up to [`SIFS_PSDU_LEN_MAX`] bytes, or of its
    /// ACK, to this node's next frame. Zero, like [`Self::lifs`], for what must not wait.
    pub sifs: Duration,
    /// `macLifsPeriod`: the same after a longer frame.
    pub lifs: Duration,
    /// Whether data frames ask for ACKs; off only for protocols that recover end to end.
    pub acknowledged: bool,
    /// Whether the channel is assessed before each attempt.
    pub assessed: bool,
    /// How long the radio may take to answer an action; after that the attempt has failed. A radio
    /// that makes whole attempts by itself needs at most 45 ms for one, and as much more as the
    /// line to it delays both ways.
    pub answer_timeout: Duration,
    /// The time for which a repeated sequence number of a neighbour marks a repeated frame.
    pub duplicate_lifetime: Duration,
    /// Queue slots that only control messages may take.
    pub reserve_control: u8,
    /// Queue slots, besides those, that this node's own data leaves to forwarded frames:
    /// own data can wait for room, a forwarded frame cannot.
    pub reserve_forward: u8,
    /// Whether a frame in its retry delay holds back frames to other neighbours too. One to a
    /// neighbour that has not taken the last frames, or never took one, does not.
    pub retry_blocks_queue: bool,
    /// Whether a neighbour that took none of its last frames is left alone for a while, and
    /// attempts at neighbours that never acknowledged are limited; off, every frame has all its
    /// attempts, and holds the others back as [`Self::retry_blocks_queue`] says.
    pub backs_off_from_silent: bool,
    /// Whether the radio sleeps during the CSMA backoff, as the AT86RF23x hardware CSMA
    /// does ("deaf listening", TCPlp §4). Off: the radio listens between attempts.
    pub deaf_backoff: bool,
}

impl Config {
    /// The defaults, for the node with this EUI-64 in this PAN.
    pub const fn new(pan: u16, extended: [u8; 8]) -> Self {
        Self {
            pan,
            extended,
            short: None,
            short_source: false,
            channel: CHANNEL,
            channels: Channels::SINGLE,
            be_min: BE_MIN,
            be_max: BE_MAX,
            csma_backoffs_max: CSMA_BACKOFFS_MAX,
            attempts_max: ATTEMPTS_MAX,
            frame_age_max: FRAME_AGE_MAX,
            retry_delay_max: RETRY_DELAY_MAX,
            retry_doubles: false,
            ack_wait: ACK_WAIT,
            ack_slack: ACK_SLACK,
            sifs: SIFS,
            lifs: LIFS,
            acknowledged: true,
            assessed: true,
            answer_timeout: ANSWER_TIMEOUT,
            duplicate_lifetime: DUPLICATE_LIFETIME,
            reserve_control: RESERVE_CONTROL,
            reserve_forward: RESERVE_FORWARD,
            retry_blocks_queue: true,
            backs_off_from_silent: true,
            deaf_backoff: false,
        }
    }
}

/// One symbol of the 2.4 GHz PHY, µs: 4 bits at 250 kb/s (IEEE 802.15.4-2006 §6.5).
pub(crate) const SYMBOL_US: u32 = 16;

/// `aUnitBackoffPeriod`, 20 symbols, µs (IEEE 802.15.4-2006 table 85).
pub(crate) const UNIT_BACKOFF_US: u32 = 20 * SYMBOL_US;

/// `aTurnaroundTime`, 12 symbols: between a frame and its ACK, and between a clear channel
/// and the frame (IEEE 802.15.4-2006 table 22).
pub const TURNAROUND: Duration = Duration::from_micros(192);

/// Air time of an ACK: 6 bytes of preamble, delimiter and length, 5 of PSDU, 32 µs each.
pub(crate) const ACK_AIR_TIME: Duration = Duration::from_micros(352);

/// Channel used by TCPlp's testbed, the one least hit by WiFi.
pub const CHANNEL: u8 = 26;

/// `macMinBE` (IEEE 802.15.4-2006 table 86).
pub const BE_MIN: u8 = 3;

/// `macMaxBE` (IEEE 802.15.4-2006 table 86).
pub(crate) const BE_MAX: u8 = 5;

/// `macMaxCSMABackoffs` (IEEE 802.15.4-2006 table 86).
pub(crate) const CSMA_BACKOFFS_MAX: u8 = 4;

/// More than `macMaxFrameRetries` + 1 = 4: with four attempts hidden terminals lose a
/// quarter of all segments over three hops whatever d is; eight meet TCPlp's measured loss.
pub const ATTEMPTS_MAX: u8 = 8;

/// d = 40 ms (TCPlp §7.1): long enough to outlast a hidden neighbour's burst of frames.
pub const RETRY_DELAY_MAX: Duration = Duration::from_millis(40);

/// Two frames that need eight attempts (0.9 s at most) one after another, or one that needs
/// sixteen, and a fifth of the 10 s for which `docs/reference/tcphc.md` bounds a frame's life on
/// its whole path.
pub const FRAME_AGE_MAX: Duration = Duration::from_secs(2);

/// `macAckWaitDuration`, 54 symbols (IEEE 802.15.4-2006 table 86): a unit backoff, a
/// turnaround and the ACK's air time.
pub(crate) const ACK_WAIT: Duration = Duration::from_micros(864);

/// Four symbols: either end may be one off (IEEE 802.15.4-2006 §7.5.6.4.2 has no tolerance),
/// the rest is for a driver that stamps frames in an interrupt. Frames that collide end further
/// apart than that unless they are equally long and were begun together.
pub(crate) const ACK_SLACK: Duration = Duration::from_micros(64);

/// `macSifsPeriod`, 12 symbols (IEEE 802.15.4-2015 §6.2.4 and table 8-94): the turnaround of any
/// radio, so that it costs nothing.
pub const SIFS: Duration = Duration::from_micros(12 * SYMBOL_US as u64);

/// `macLifsPeriod`, 40 symbols (the same): what a receiver has to take a long frame away.
pub const LIFS: Duration = Duration::from_micros(40 * SYMBOL_US as u64);

/// `aMaxSifsFrameSize`, FCS included (IEEE 802.15.4-2015 table 8-93).
pub const SIFS_PSDU_LEN_MAX: usize = 18;

/// One channel assessment, 8 symbols (IEEE 802.15.4-2006 §6.9.9).
pub const CCA: Duration = Duration::from_micros(8 * SYMBOL_US as u64);

/// Well above what a radio ever needs (2.2 ms of copy and 4.3 ms of frame on the slowest
/// profile), so that it expires only when an answer was lost.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// Longer than one frame's attempts may last (16 × (backoffs of at most 37 ms + a frame) and 15
/// delays of 80 ms: 1.9 s), shorter than 256 frames take (2.1 s), after which a sequence number
/// comes back.
pub(crate) const DUPLICATE_LIFETIME: Duration = Duration::from_millis(2_000);

/// One slot: the router advertisement or error that must pass when data fills the queue.
pub(crate) const RESERVE_CONTROL: u8 = 1;

/// One five-frame segment of another node.
pub(crate) const RESERVE_FORWARD: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// The timing that `deadlines.md` asks of a driver.
    #[test]
    fn timing_is_as_documented() {
        let us = Duration::from_micros;
        assert_eq!((TURNAROUND, CCA), (us(192), us(128)));
        assert_eq!(TURNAROUND + ACK_SLACK, us(256));
        assert_eq!((ACK_WAIT, ACK_WAIT - ACK_AIR_TIME), (us(864), us(512)));
        assert_eq!(ACK_WAIT - ACK_AIR_TIME - TURNAROUND, us(320));
        assert_eq!(ANSWER_TIMEOUT, Duration::from_millis(100));
    }
}
