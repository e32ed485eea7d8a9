//! Whatever is on the air, whatever is asked and whenever an interrupt is lost: the receiver runs on.

mod model;

use model::Bench;
use model::turns::{Turn, runs_on};
use proptest::collection::vec;
use proptest::prelude::*;

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        (any::<u8>(), vec(any::<u8>(), 0..140), any::<bool>()).prop_map(
            |(phr, bytes, is_crc_good)| Turn::Frame {
                phr,
                bytes,
                is_crc_good
            }
        ),
        any::<u8>().prop_map(Turn::Mine),
        (0..7u8, any::<u8>()).prop_map(|(kind, value)| Turn::Act(kind, value)),
        (0..6_000u16).prop_map(Turn::Wait),
        Just(Turn::Lose),
        any::<u8>().prop_map(Turn::Latency),
        any::<u8>().prop_map(Turn::Access),
        Just(Turn::Poll),
        Just(Turn::Check),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_receiver_runs_on(turns in vec(turn(), 0..60), offset in any::<u32>()) {
        runs_on(Bench::new(offset), turns);
    }
}
