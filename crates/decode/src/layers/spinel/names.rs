//! Numbers of Spinel by name, as OpenThread's `spinel.h` calls them.

/// Kinds of request and answer.
const COMMANDS: [&str; 9] = [
    "NOOP", "RESET", "GET", "SET", "INSERT", "REMOVE", "IS", "INSERTED", "REMOVED",
];

/// How a request ended.
const STATUSES: [&str; 21] = [
    "OK",
    "FAILURE",
    "UNIMPLEMENTED",
    "INVALID_ARGUMENT",
    "INVALID_STATE",
    "INVALID_COMMAND",
    "INVALID_INTERFACE",
    "INTERNAL_ERROR",
    "SECURITY_ERROR",
    "PARSE_ERROR",
    "IN_PROGRESS",
    "NOMEM",
    "BUSY",
    "PROP_NOT_FOUND",
    "DROPPED",
    "EMPTY",
    "CMD_TOO_BIG",
    "NO_ACK",
    "CCA_FAILURE",
    "ALREADY",
    "ITEM_NOT_FOUND",
];

/// Why the radio restarted, from [`RESET_FIRST`] on.
const RESETS: [&str; 9] = [
    "RESET_POWER_ON",
    "RESET_EXTERNAL",
    "RESET_SOFTWARE",
    "RESET_FAULT",
    "RESET_CRASH",
    "RESET_ASSERT",
    "RESET_OTHER",
    "RESET_UNKNOWN",
    "RESET_WATCHDOG",
];

/// The status of [`RESETS`]' first name.
const RESET_FIRST: u32 = 112;

/// What a firmware can do, as far as RCPs and the NCPs that are taken for them say so.
const CAPS: [(u32, &str); 24] = [
    (1, "LOCK"),
    (2, "NET_SAVE"),
    (3, "HBO"),
    (4, "POWER_SAVE"),
    (5, "COUNTERS"),
    (6, "JAM_DETECT"),
    (7, "PEEK_POKE"),
    (8, "WRITABLE_RAW_STREAM"),
    (9, "GPIO"),
    (10, "TRNG"),
    (11, "CMD_MULTI"),
    (12, "UNSOL_UPDATE_FILTER"),
    (13, "MCU_POWER_STATE"),
    (14, "PCAP"),
    (24, "802_15_4_2450MHZ_OQPSK"),
    (32, "CONFIG_FTD"),
    (33, "CONFIG_MTD"),
    (34, "CONFIG_RADIO"),
    (64, "RCP_API_VERSION"),
    (65, "RCP_MIN_HOST_API_VERSION"),
    (66, "RCP_RESET_TO_BOOTLOADER"),
    (67, "RCP_LOG_CRASH_DUMP"),
    (513, "MAC_RAW"),
    (518, "OPENTHREAD_LOG_METADATA"),
];

/// What a radio does without its host, by bit.
const RADIO_CAPS: [&str; 9] = [
    "ACK timeout",
    "energy scan",
    "retries",
    "CSMA",
    "sleep to transmission",
    "security",
    "transmission at a time",
    "reception at a time",
    "receiver on when idle",
];

/// A command's name.
pub(super) fn command(number: u32) -> Option<&'static str> {
    COMMANDS.get(usize::try_from(number).ok()?).copied()
}

/// A status's name.
pub(super) fn status(number: u32) -> Option<&'static str> {
    let at = |names: &[&'static str], number: u32| {
        let index = usize::try_from(number).ok()?;
        names.get(index).copied()
    };
    match number.checked_sub(RESET_FIRST) {
        Some(reset) => at(&RESETS, reset),
        None => at(&STATUSES, number),
    }
}

/// A capability's name.
pub(super) fn cap(number: u32) -> Option<&'static str> {
    let found = CAPS.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}

/// The names of the bits that are set.
pub(super) fn radio_caps(bits: u32) -> String {
    let set = (0..u32::BITS).filter(|bit| bits >> bit & 1 == 1);
    let name = |bit: u32| {
        let index = usize::try_from(bit).ok();
        match index.and_then(|index| RADIO_CAPS.get(index)) {
            Some(name) => (*name).to_owned(),
            None => format!("bit {bit}"),
        }
    };
    let names: Vec<String> = set.map(name).collect();
    match names.as_slice() {
        [] => "none".into(),
        names => names.join(", "),
    }
}
