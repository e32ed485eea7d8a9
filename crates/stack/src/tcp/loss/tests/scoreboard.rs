//! The scoreboard under random events.

use super::super::scoreboard::Scoreboard;
use proptest::prelude::*;

proptest! {
    /// Whatever is sent, acknowledged, held and lost: the runs always cover exactly what is
    /// outstanding, and nothing is counted twice.
    #[test]
    fn the_scoreboard_covers_what_is_outstanding(
        steps in prop::collection::vec((0u8..6, 0u32..3000, 1u32..800), 1..80),
    ) {
        let mut board = Scoreboard::NEW;
        let (mut outstanding, mut now) = (0u32, 0u32);
        for (kind, offset, len) in steps {
            now += len / 10;
            let mut delivery = board.delivery(now, 5);
            match kind {
                0 | 1 if outstanding < 10_000 => {
                    board.push(len as u16, now);
                    outstanding += len;
                }
                2 => {
                    let acked = len.min(outstanding);
                    board.acknowledge(acked, &mut delivery);
                    prop_assert!(delivery.bytes <= acked);
                    outstanding -= acked;
                }
                3 if offset + len <= outstanding => {
                    let before = board.sacked();
                    board.sack(offset, offset + len, &mut delivery);
                    prop_assert!(delivery.bytes <= len);
                    // Merging may forget what was held, never invent.
                    prop_assert!(board.sacked() <= before + len);
                }
                4 => {
                    board.lose_by_count(500);
                    let (offset, len) = board.first_due();
                    if len > 0 {
                        prop_assert!(offset + u32::from(len) <= outstanding);
                        board.resend(offset, len.min(500), now);
                    }
                }
                5 => {
                    board.lose_all(now, 0);
                    prop_assert_eq!(board.gone(), outstanding);
                }
                _ => {}
            }
            prop_assert!(board.sacked() <= board.gone() && board.gone() <= outstanding);
            prop_assert_eq!(board.tail_len() == 0, outstanding == 0);
            let mut all = board;
            all.lose_all(now, 0);
            prop_assert_eq!(all.gone(), outstanding);
        }
        // Sending again what is due comes to an end, however full the table is.
        for _ in 0..1_000 {
            let (offset, len) = board.first_due();
            if len > 0 {
                board.resend(offset, len.min(100), now);
            }
        }
        prop_assert_eq!(board.first_due().1, 0);
    }
}
