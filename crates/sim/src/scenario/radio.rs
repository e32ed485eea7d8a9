//! The keys of `[radio]`.

use super::keys::Kind::{Choice, Flag, Integer, Number};
use super::keys::{Section, key};
use super::tables::PROFILES;

/// The table of the scenario.
pub(super) const SECTION: Section = Section {
    name: "radio",
    repeated: false,
    doc: "The radio and its driver, the same at every mesh node that has no `node.profile`.",
    keys: &[
        key(
            "kind",
            Choice(&["802.15.4", "ble"]),
            Some("\"802.15.4\""),
            "`ble`: Bluetooth LE. The border router is a central and every mote a peripheral, with the controller of an nRF52840. Of the other keys here only `phy`, `interval_ms`, `adaptive`, `latency`, `mic`, `tcple`, `drift_ppm`, `rssi_dbm`, `rssi_sigma_db` and `frame_loss` hold then, and of `[stack]` those of TCP and `packet_queue_bytes`.",
        ),
        key(
            "phy",
            Choice(&["1M", "2M"]),
            Some("\"1M\""),
            "`ble`: how fast symbols are, 1 or 2 Mb/s.",
        ).only_ble()
        .flag(
            "phy",
            "1M|2M",
            "Over Bluetooth LE: how fast symbols are, 1 or 2 Mb/s [default: 1M]",
        ),
        key(
            "interval_ms",
            Number(7.5, 4_000.0),
            Some("50.0"),
            "`ble`: from one connection event to the next, milliseconds, in steps of 1.25.",
        ).only_ble()
        .flag(
            "interval",
            "MS",
            "Over Bluetooth LE: time from one connection event to the next, 7.5 to 4000, in \
             steps of 1.25 [default: 50, and less where frames are lost]",
        )
        .in_steps(1.25)
        .refusing("a connection interval is 7.5 to 4000 ms, in steps of 1.25 ms"),
        key(
            "adaptive",
            Flag,
            Some("true"),
            "`ble`: whether the border router shortens the interval of all its connections where packets are lost, and lengthens it again up to `interval_ms`.",
        ).only_ble(),
        key(
            "latency",
            Integer(0, 499),
            Some("0"),
            "`ble`: connection events that a mote may leave out while it has nothing to say.",
        ).only_ble(),
        key(
            "mic",
            Flag,
            Some("false"),
            "`ble`: whether data packets have the four bytes of a MIC, as encrypted ones do.",
        ).only_ble(),
        key(
            "tcple",
            Flag,
            Some("false"),
            "`ble`: whether border router and motes have TCPlE. TCP then goes by a second channel, part of it ahead of its window as far as the border router; and the interval is what the data of a round and their way to the host take, but no longer than `interval_ms` and `adaptive` have it, and as long as that where a link is full.",
        ).only_ble()
        .flag(
            "tcple",
            "",
            "Over Bluetooth LE: TCPlE, on a second channel; it sets the interval itself",
        ),
        key(
            "drift_ppm",
            Integer(0, 1_000),
            Some("0"),
            "`ble`: how far a device's clock may be off, parts in a million; by how much each one is, the seed says. Controllers count with 50: beyond that connections are lost.",
        ).only_ble(),
        key(
            "rssi_dbm",
            Number(-127.0, 20.0),
            Some("-50.0"),
            "`ble`: how strong signals are at every receiver, dBm; -95 is the sensitivity with `phy` 1M, -92 with 2M.",
        ).only_ble(),
        key(
            "rssi_sigma_db",
            Number(0.0, 30.0),
            Some("0.0"),
            "`ble`: by how much that varies, dB: the standard deviation of a normal distribution, from which a link has another value after about a second.",
        ).only_ble(),
        key(
            "profile",
            Choice(PROFILES),
            Some("\"hamilton\""),
            "`hamilton`: SAM R21 (Cortex-M0+, AT86RF233) as in TCPlp's testbed; `telosb`: MSP430 and CC2420; `nrf52840`: DMA from RAM; `rcp`: the same radio as a co-processor, which backs off, assesses and takes ACKs by itself with the standard's defaults, whatever `[stack]` says of CSMA and ACKs; `ideal`: what the standard alone allows.",
        ).only_802_15_4(),
        key(
            "deaf",
            Flag,
            Some("true"),
            "Whether a radio of that profile hears nothing while frames are copied; false: a driver that listens meanwhile.",
        ).only_802_15_4()
        .flag(
            "no-deaf",
            "",
            "Let radios listen while a frame is copied into them",
        ),
        key(
            "channel",
            Integer(11, 26),
            Some("26"),
            "Channel, 11 to 26, where all share one.",
        ).only_802_15_4(),
        key(
            "channels",
            Choice(&["single", "multi"]),
            Some("\"single\""),
            "One channel for all, or a home channel for each node, by its number.",
        ).only_802_15_4()
        .flag(
            "channels",
            "single|multi",
            "One channel for all, or a home channel for each node",
        )
        .showing("single"),
        key(
            "transmit_dbm",
            Number(-40.0, 30.0),
            Some("0.0"),
            "Transmit power, dBm.",
        ).only_802_15_4(),
        key(
            "frame_loss",
            Number(0.0, 1.0),
            Some("0.0"),
            "Chance that a frame received without error is lost nevertheless, ACKs included. `ble`: that a packet has an error; one that is not heard at all, or a second one in a row, ends the connection event.",
        )
        .flag(
            "frame-loss",
            "P",
            "Lose each frame with this probability, 0 to 1, on top of what the air does",
        )
        .showing("0"),
    ],
};
