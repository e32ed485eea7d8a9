//! What a receiver of Bluetooth LE writes in front of each packet.
//!
//! ```text
//! +---------------------------+----------------+--------+-----+---------+-----+
//! | channel, strength, flags  | access address | header | len | payload | CRC |
//! +---------------------------+----------------+--------+-----+---------+-----+
//!             10 B                  4 B            1 B    1 B    0-251 B   3 B
//! ```
//!
//! Place: for records of link types 256 and 251, which has no such header; what follows is the
//! packet from its access address on. Left out: packets that are still whitened. Source:
//! <https://www.tcpdump.org/linktypes/LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR.html>.

use motet::wire::cursor::{Reader, Truncated};

use crate::model::{Frame, Layer, Value};
use crate::next::{Next, Packet, Way};

/// Explains a record of link type 256.
pub(super) fn explain<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let header = (|| {
        let (channel, signal) = (r.u8()?, r.u8()?);
        let _noise_offences_reference = r.array::<6>()?;
        Ok::<_, Truncated>((channel, signal, r.u16_le()?))
    })();
    let Ok((channel, signal, flags)) = header else {
        return frame.malformed("ble_rf", "Bluetooth LE header truncated");
    };
    let (phy, kind) = (flags >> 14, flags >> 7 & 7);
    frame.push(
        Layer::new("ble_rf", "")
            .with("frequency_mhz", 2_402 + 2 * u64::from(channel))
            .with(
                "phy",
                ["1M", "2M", "coded", "?"][usize::from(phy)].to_owned(),
            )
            .with(
                "signal_dbm",
                (flags & HAS_SIGNAL != 0).then(|| Value::Signed(i64::from(signal as i8))),
            ),
    );
    if flags & DEWHITENED == 0 || phy > PHY_CODED {
        return frame.undecoded("ble_rf", "whitened, or of an unknown PHY");
    }
    let way = match kind {
        TO_PERIPHERAL => Some(Way::Central),
        TO_CENTRAL => Some(Way::Peripheral),
        AUXILIARY if !r.rest().starts_with(&ADVERTISING) => {
            return frame.undecoded("ble_ll", "periodic advertising");
        }
        0 | AUXILIARY => None,
        _ => return frame.undecoded("ble_ll", format!("packet type {kind}")),
    };
    Next::Bluetooth(Packet {
        bytes: r.rest(),
        is_coded: phy == PHY_CODED,
        is_right: (flags & CRC_CHECKED != 0).then_some(flags & CRC_RIGHT != 0),
        way,
        is_encrypted: false,
        channel,
    })
}

/// A record of link type 251.
pub(super) const fn bare(bytes: &[u8]) -> Next<'_> {
    Next::Bluetooth(Packet {
        bytes,
        is_coded: false,
        is_right: None,
        way: None,
        is_encrypted: false,
        channel: 0,
    })
}

/// Types of packets; 0 stands for either, which the access address decides.
const AUXILIARY: u16 = 1;
const TO_PERIPHERAL: u16 = 2;
const TO_CENTRAL: u16 = 3;

/// The access address of advertising channels, as it is on the air.
const ADVERTISING: [u8; 4] = [0xd6, 0xbe, 0x89, 0x8e];

const DEWHITENED: u16 = 1;
const HAS_SIGNAL: u16 = 2;
const CRC_CHECKED: u16 = 0x0400;
const CRC_RIGHT: u16 = 0x0800;
const PHY_CODED: u16 = 2;
