//! The energy scan: the strongest signal on each channel.

use std::time;

use motet_radio::Event;
use serde::Serialize;

use super::air::Radio;
use crate::{
    error::Error,
    output::{self, BOLD, DIM},
};

/// The result of a scan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Scan {
    firmware: String,
    period_ms: u16,
    channels: Vec<Channel>,
}

/// A channel of 2.4 GHz.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
struct Channel {
    channel: u8,
    mhz: u16,
    /// The strongest power during the period; `None`: the radio did not measure.
    dbm: Option<i8>,
}

/// Measures all channels, and prints them; nothing where a signal came first.
///
/// # Errors
/// The radio cannot be used any more.
pub(super) fn run(mut radio: Radio<'_>, json: bool) -> Result<(), Error> {
    let mut channels = Vec::new();
    for channel in CHANNELS {
        if !radio.info().channels.contains(&channel) {
            continue;
        }
        let Some(dbm) = measure(&mut radio, channel)? else {
            return Ok(());
        };
        channels.push(Channel {
            channel,
            mhz: 2_405 + 5 * u16::from(channel - 11),
            dbm,
        });
    }
    let scan = Scan {
        firmware: radio.info().firmware.clone(),
        period_ms: PERIOD_MS,
        channels,
    };
    if json {
        return output::json(&scan);
    }
    output::line(format_args!("{DIM}channel   MHz   dBm{DIM:#}"))?;
    for channel in &scan.channels {
        output::line(row(channel))?;
    }
    Ok(())
}

/// Measures one channel. None: a signal came.
fn measure(radio: &mut Radio<'_>, channel: u8) -> Result<Option<Option<i8>>, Error> {
    let mut is_running = radio.scan(channel, PERIOD_MS)?;
    loop {
        while let Some(event) = radio.poll()? {
            match event {
                Event::Scanned {
                    channel: found,
                    rssi_dbm,
                } if found == channel => return Ok(Some(rssi_dbm)),
                _ => {}
            }
        }
        if radio.has_been_interrupted() {
            return Ok(None);
        }
        // A radio that has restarted cannot measure yet.
        if !is_running {
            is_running = radio.scan(channel, PERIOD_MS)?;
        }
        radio.wait(NAP)?;
    }
}

fn row(channel: &Channel) -> String {
    let Channel { channel, mhz, dbm } = channel;
    match dbm {
        None => format!("{channel:>7}  {mhz}     -"),
        Some(dbm) => {
            let steps = i16::from(*dbm).saturating_sub(FLOOR_DBM) / DBM_PER_STEP;
            let bar = "#".repeat(usize::try_from(steps.clamp(0, STEPS_MAX)).unwrap_or(0));
            let row = format!("{channel:>7}  {mhz}  {BOLD}{dbm:>4}{BOLD:#}  {bar}");
            row.trim_end().to_owned()
        }
    }
}

const CHANNELS: std::ops::RangeInclusive<u8> = 11..=26;

/// How long a channel is measured: longer than the beacons of Wi-Fi are apart.
const PERIOD_MS: u16 = 120;

/// The scale of the bars.
const FLOOR_DBM: i16 = -100;
const DBM_PER_STEP: i16 = 2;
const STEPS_MAX: i16 = 40;

const NAP: time::Duration = time::Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_power_and_stay_within_the_line() {
        let of = |dbm| {
            row(&Channel {
                channel: 11,
                mhz: 2_405,
                dbm,
            })
        };
        assert_eq!(of(None), "     11  2405     -");
        for (dbm, len) in [
            (-128, 0),
            (-100, 0),
            (-98, 1),
            (-60, 20),
            (0, 40),
            (127, 40),
        ] {
            let row = of(Some(dbm));
            assert_eq!(row.matches('#').count(), len, "{dbm}");
            assert!(row.contains(&dbm.to_string()));
        }
    }
}
