//! How strong signals are, and what that decides.

use super::*;

/// IEEE 802.15.4-2006 §6.9.9: at most 10 dB above the sensitivity that it asks for, -85 dBm.
#[test]
fn a_channel_is_busy_from_75_dbm_below_a_milliwatt_on() {
    for (dbm, is_clear) in [(-60, false), (-74, false), (-76, true), (-90, true)] {
        let mut bench = bench();
        let mut noise = OnAir::good(bench.model.now(), &[0; 100]);
        (noise.dbm, noise.is_noise) = (dbm, true);
        bench.model.put(noise);
        bench.driver.perform(Action::AssessChannel, &[]);
        bench.run(1_000);
        assert_eq!(all(&mut bench), [Seen::Assessed(is_clear)], "{dbm} dBm");
    }
}
