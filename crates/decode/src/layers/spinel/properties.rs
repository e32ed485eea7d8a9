//! Properties by number: their names in OpenThread's `spinel.h`, and the forms of their values.
//!
//! Left out: properties of NCPs, which have Thread's stack of their own.

use super::value::Form;

/// What a frame is about.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) content: Content,
}

/// The form of a property's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// Fields one behind the other.
    Fields(&'static [(&'static str, Form)]),
    /// A list of fields of one form.
    List(&'static str, Form),
    /// Fields of which some are not to be shown.
    Secrets(&'static [(&'static str, Form)]),
    /// How a request ended, and for a transmission more.
    Status,
    /// Frames of IEEE 802.15.4.
    Raw,
}

/// The property of this number.
pub(super) fn property(number: u32) -> Option<&'static Property> {
    PROPERTIES.iter().find(|known| known.number == number)
}

const fn fields(
    number: u32,
    name: &'static str,
    fields: &'static [(&'static str, Form)],
) -> Property {
    let content = Content::Fields(fields);
    Property {
        number,
        name,
        content,
    }
}

const fn list(number: u32, name: &'static str, key: &'static str, form: Form) -> Property {
    let content = Content::List(key, form);
    Property {
        number,
        name,
        content,
    }
}

/// A signal's strength that is always known.
const DBM: Form = Form::I8(None);

const PROPERTIES: [Property; 41] = [
    Property {
        number: 0,
        name: "LAST_STATUS",
        content: Content::Status,
    },
    fields(
        1,
        "PROTOCOL_VERSION",
        &[("major", Form::Packed), ("minor", Form::Packed)],
    ),
    fields(2, "NCP_VERSION", &[("version", Form::Text)]),
    fields(
        3,
        "INTERFACE_TYPE",
        &[(
            "type",
            Form::Named(&["bootloader", "unknown", "ZigBee IP", "Thread"]),
        )],
    ),
    fields(4, "VENDOR_ID", &[("vendor", Form::Packed)]),
    list(5, "CAPS", "caps", Form::Cap),
    fields(6, "INTERFACE_COUNT", &[("interfaces", Form::U8)]),
    fields(8, "HWADDR", &[("address", Form::Eui64)]),
    fields(0x20, "PHY_ENABLED", &[("enabled", Form::Bool)]),
    fields(0x21, "PHY_CHAN", &[("channel", Form::U8)]),
    list(0x22, "PHY_CHAN_SUPPORTED", "channels", Form::U8),
    fields(0x23, "PHY_FREQ", &[("frequency_khz", Form::U32)]),
    fields(0x24, "PHY_CCA_THRESHOLD", &[("threshold_dbm", DBM)]),
    fields(0x25, "PHY_TX_POWER", &[("power_dbm", DBM)]),
    fields(0x26, "PHY_RSSI", &[("rssi_dbm", DBM)]),
    fields(0x27, "PHY_RX_SENSITIVITY", &[("sensitivity_dbm", DBM)]),
    fields(
        0x30,
        "MAC_SCAN_STATE",
        &[(
            "scan",
            Form::Named(&["idle", "beacons", "energy", "discovery"]),
        )],
    ),
    list(0x31, "MAC_SCAN_MASK", "channels", Form::U8),
    fields(0x32, "MAC_SCAN_PERIOD", &[("period_ms", Form::U16)]),
    fields(0x34, "MAC_15_4_LADDR", &[("address", Form::Eui64)]),
    fields(0x35, "MAC_15_4_SADDR", &[("address", Form::Hex16)]),
    fields(0x36, "MAC_15_4_PANID", &[("pan", Form::Hex16)]),
    fields(0x37, "MAC_RAW_STREAM_ENABLED", &[("enabled", Form::Bool)]),
    fields(
        0x38,
        "MAC_PROMISCUOUS_MODE",
        &[("mode", Form::Named(&["off", "network", "full"]))],
    ),
    fields(
        0x39,
        "MAC_ENERGY_SCAN_RESULT",
        &[("channel", Form::U8), ("rssi_max_dbm", DBM)],
    ),
    fields(0x3b, "MAC_RX_ON_WHEN_IDLE_MODE", &[("enabled", Form::Bool)]),
    fields(
        0x3d,
        "MAC_RX_AT",
        &[
            ("start_us", Form::U64),
            ("duration_us", Form::U32),
            ("channel", Form::U8),
        ],
    ),
    fields(0x70, "STREAM_DEBUG", &[("text", Form::Text)]),
    Property {
        number: 0x71,
        name: "STREAM_RAW",
        content: Content::Raw,
    },
    fields(0x74, "STREAM_LOG", &[("text", Form::Text)]),
    fields(0xb0, "RCP_API_VERSION", &[("version", Form::Packed)]),
    fields(
        0xb1,
        "RCP_MIN_HOST_API_VERSION",
        &[("version", Form::Packed)],
    ),
    Property {
        number: 0x800,
        name: "RCP_MAC_KEY",
        content: Content::Secrets(&[
            ("key_id_mode", Form::U8),
            ("key_index", Form::U8),
            ("previous", Form::Secret),
            ("current", Form::Secret),
            ("next", Form::Secret),
        ]),
    },
    fields(
        0x801,
        "RCP_MAC_FRAME_COUNTER",
        &[("counter", Form::U32), ("only_if_larger", Form::Bool)],
    ),
    fields(0x802, "RCP_TIMESTAMP", &[("clock_us", Form::U64)]),
    fields(0x804, "RCP_CSL_ACCURACY", &[("accuracy_ppm", Form::U8)]),
    fields(
        0x805,
        "RCP_CSL_UNCERTAINTY",
        &[("uncertainty_10us", Form::U8)],
    ),
    fields(0x120b, "RADIO_CAPS", &[("radio_caps", Form::RadioCaps)]),
    fields(0x1303, "MAC_SRC_MATCH_ENABLED", &[("enabled", Form::Bool)]),
    list(
        0x1304,
        "MAC_SRC_MATCH_SHORT_ADDRESSES",
        "addresses",
        Form::Hex16,
    ),
    list(
        0x1305,
        "MAC_SRC_MATCH_EXTENDED_ADDRESSES",
        "addresses",
        Form::Eui64,
    ),
];
