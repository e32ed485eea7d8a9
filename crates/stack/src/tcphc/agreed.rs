//! Whether both ends of a connection compress, where that is agreed ([`Config::learned`]).
//!
//! Purpose: a mote compresses only where its router has said that the border router restores such
//! headers and that every relay between passes them; a border router only where the mote itself
//! has sent such a header in the connection. After that the form used last decides, both ways.
//! Place: the compressor asks for each segment, and notes for each one received in which form it
//! came. Left out: how a mote hears of it, which is neighbour discovery's.
//! Source: `docs/reference/tcphc.md`, section 7.
//!
//! [`Config::learned`]: super::Config::learned

use crate::time::Instant;

/// How the two ends of one connection stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Agreement {
    /// Flags, how often compression was offered again, and how often one segment was repeated.
    bits: u8,
    /// When the connection went plain, or was offered compression, in units of [`SPELL_SHIFT`].
    since: u8,
    /// Low half of the number of the segment that was repeated last with nothing heard between.
    repeated: u16,
}

impl Agreement {
    /// Both ends compress.
    pub(super) const BOTH: Self = Self {
        bits: 0,
        since: 0,
        repeated: 0,
    };

    /// The other end sends plain segments, so this one does.
    pub(super) const fn is_plain(self) -> bool {
        self.bits & PLAIN != 0
    }

    /// A plain segment came. Right after an offer what comes may have been sent before, so it
    /// counts for nothing.
    pub(super) const fn go_plain(&mut self, now: Instant) {
        if self.bits & OFFERING == 0 || self.age(now) >= GRACE {
            self.end(now);
        }
    }

    /// The offer was withdrawn.
    pub(super) const fn end(&mut self, now: Instant) {
        if !self.is_plain() {
            self.bits = self.bits & !OFFERING | PLAIN;
            self.since = spells(now);
        }
    }

    /// A compressed or full header came.
    pub(super) const fn go_compressed(&mut self) {
        self.bits = 0;
    }

    /// Something was validated: what was repeated has arrived, or is not missed.
    pub(super) const fn hear(&mut self) {
        self.bits &= !REPEATS;
    }

    /// The answer to a SYN was plain; returns whether plain was all that arrived of that SYN.
    pub(super) const fn answer_plain(&mut self, now: Instant) -> bool {
        let is_vain = self.bits & REPEATS >= 2;
        self.end(now);
        if is_vain {
            self.count_offer();
        }
        is_vain
    }

    /// Offers it again: full headers until the other end answers.
    pub(super) const fn offer_again(&mut self, now: Instant) {
        self.count_offer();
        self.bits = self.bits & !PLAIN | OFFERING;
        self.since = spells(now);
    }

    /// Whether an offer was made in vain since the other end last compressed.
    pub(super) const fn was_refused(self) -> bool {
        self.bits & OFFERS != 0
    }

    const fn count_offer(&mut self) {
        if self.bits & OFFERS != OFFERS_MAX {
            self.bits += OFFER;
        }
    }

    /// Whether a connection that went plain should be offered compression again: at once, for a
    /// loss may have made it plain; then after a time that doubles with each offer in vain.
    pub(super) const fn is_due(self, now: Instant) -> bool {
        let offers = (self.bits & OFFERS) / OFFER;
        self.is_plain() && (offers == 0 || self.age(now) >= GRACE << offers)
    }

    /// The segment from number `seq` is repeated, and nothing was heard since it was last sent;
    /// returns whether it goes plain this time, as every second repetition of one segment does.
    /// What a relay in between does not pass then arrives. Of several segments that are repeated,
    /// in turn, the first one counts: the others wait for it anyhow.
    pub(super) const fn repeat(&mut self, seq: u32) -> bool {
        let counted = self.bits & REPEATS;
        let beyond = (seq as u16).wrapping_sub(self.repeated) as i16;
        if counted > 0 && beyond > 0 {
            return false;
        }
        let times = if beyond == 0 { counted } else { 0 };
        self.repeated = seq as u16;
        // Three times, and it goes on as after the first.
        let times = if times == REPEATS { 2 } else { times + 1 };
        self.bits = self.bits & !REPEATS | times;
        if times == 2 {
            self.bits &= !OFFERING;
        }
        times == 2
    }

    /// Ends of spells since [`Self::since`].
    const fn age(self, now: Instant) -> u8 {
        spells(now).wrapping_sub(self.since)
    }
}

const fn spells(now: Instant) -> u8 {
    (now.as_micros() >> SPELL_SHIFT) as u8
}

/// The connection goes plain.
const PLAIN: u8 = 0x80;
/// The other end was offered compression, and has not answered.
const OFFERING: u8 = 0x40;
/// How often it was offered again since the other end last compressed.
const OFFERS: u8 = 0x1c;
const OFFER: u8 = 0x04;
/// Five: 64 spells, 18 minutes, between two offers, and 256 are what `since` can tell apart.
const OFFERS_MAX: u8 = 5 * OFFER;
/// How often a segment was repeated with nothing heard, as far as it matters.
const REPEATS: u8 = 0x03;

/// 2^24 µs, 16.8 s.
pub(super) const SPELL_SHIFT: u32 = 24;
/// Spells, 17 to 34 s, for which an offer may go without an answer.
const GRACE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(spell: u64) -> Instant {
        Instant::from_micros(spell << SPELL_SHIFT)
    }

    #[test]
    fn every_second_repetition_of_one_segment_goes_plain() {
        let mut agreement = Agreement::BOTH;
        let plain = [7, 7, 7, 7, 8, 7, 7].map(|seq| agreement.repeat(seq));
        assert_eq!(plain, [false, true, false, true, false, false, true]);
        agreement.hear();
        assert!(!agreement.repeat(7), "something was heard");
        // Several in turn: the first of them counts.
        let mut agreement = Agreement::BOTH;
        let plain = [8, 7, 8, 7, 8, 7, 8, 7].map(|seq| agreement.repeat(seq));
        let expected = [false, false, false, true, false, false, false, true];
        assert_eq!(plain, expected);
    }

    #[test]
    fn offers_come_ever_more_seldom_until_one_is_taken_up() {
        let mut agreement = Agreement::BOTH;
        let mut spell = 0;
        for wait in [0, 4, 8, 16, 32, 64, 64, 64] {
            agreement.go_plain(at(spell));
            agreement.go_plain(at(spell + 1));
            let is_early = wait > 0 && agreement.is_due(at(spell + wait - 1));
            assert!(!is_early, "{wait}");
            assert!(agreement.is_due(at(spell + wait)), "{wait}");
            agreement.offer_again(at(spell + wait));
            assert!(!agreement.is_plain());
            spell += wait + u64::from(GRACE);
        }
        agreement.go_compressed();
        agreement.go_plain(at(spell));
        assert!(agreement.is_due(at(spell)));
    }

    #[test]
    fn what_was_sent_before_the_offer_does_not_refuse_it() {
        let mut agreement = Agreement::BOTH;
        agreement.offer_again(at(5));
        agreement.go_plain(at(6));
        assert!(!agreement.is_plain());
        agreement.go_plain(at(7));
        assert!(agreement.is_plain());
        // A segment that had to be repeated plain was: its answer counts.
        agreement.offer_again(at(9));
        assert_eq!([1, 1].map(|seq| agreement.repeat(seq)), [false, true]);
        agreement.go_plain(at(9));
        assert!(agreement.is_plain());
    }
}
