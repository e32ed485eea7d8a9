//! What the engine does on bad links, to the segment: each row is one transfer of 60 kB with
//! some settings over some link. A change that is meant to alter this replaces the table by
//! what the failure prints; any other has broken something.

use super::transfer::transfer_in;
use super::*;
use std::format;
use std::string::String;

/// Settings, link, ms until all is read, segments by client and by server, and the client's
/// retransmissions in the order of `RetransmissionCause::ALL`.
type Row = (&'static str, &'static str, u32, [u64; 2], [u16; 9]);

const SNAPSHOT: &[Row] = &[
    (
        "all",
        "loss",
        3790,
        [146, 138],
        [3, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "all",
        "much loss",
        10210,
        [163, 160],
        [6, 0, 0, 0, 26, 0, 0, 0, 0],
    ),
    (
        "all",
        "loss, wide window",
        3225,
        [145, 134],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "all",
        "reordering",
        2217,
        [148, 164],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "all",
        "duplicates",
        8394,
        [144, 180],
        [1, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "all",
        "marks",
        9082,
        [135, 116],
        [0, 0, 0, 0, 4, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "loss",
        3653,
        [143, 135],
        [3, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "much loss",
        12326,
        [164, 155],
        [11, 0, 0, 0, 25, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "loss, wide window",
        3200,
        [142, 131],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "reordering",
        1958,
        [140, 159],
        [0, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "duplicates",
        7867,
        [143, 177],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "marks",
        8855,
        [132, 114],
        [0, 0, 0, 0, 4, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "loss",
        3050,
        [140, 141],
        [0, 0, 0, 9, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "much loss",
        18564,
        [175, 170],
        [31, 0, 0, 13, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "loss, wide window",
        2750,
        [141, 131],
        [0, 0, 0, 10, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "reordering",
        2650,
        [149, 168],
        [0, 0, 0, 15, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "duplicates",
        7926,
        [154, 190],
        [0, 0, 0, 22, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "marks",
        9921,
        [140, 126],
        [5, 0, 0, 4, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "loss",
        5562,
        [147, 140],
        [4, 7, 5, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "much loss",
        16869,
        [179, 177],
        [37, 7, 4, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "loss, wide window",
        2050,
        [137, 115],
        [0, 4, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "reordering",
        2300,
        [140, 155],
        [1, 5, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "duplicates",
        10965,
        [149, 187],
        [5, 10, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "marks",
        10727,
        [141, 142],
        [7, 3, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "loss",
        5003,
        [142, 133],
        [4, 6, 4, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "much loss",
        17662,
        [171, 167],
        [31, 7, 5, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "loss, wide window",
        1950,
        [134, 113],
        [1, 4, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "reordering",
        2556,
        [154, 174],
        [0, 7, 19, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "duplicates",
        8757,
        [177, 207],
        [0, 12, 36, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "marks",
        9040,
        [136, 125],
        [6, 2, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "loss",
        4506,
        [148, 140],
        [3, 0, 0, 0, 13, 1, 0, 0, 0],
    ),
    (
        "no PRR",
        "much loss",
        12559,
        [172, 167],
        [12, 0, 0, 0, 29, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "loss, wide window",
        2650,
        [147, 137],
        [0, 0, 0, 0, 16, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "reordering",
        2340,
        [143, 156],
        [0, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "duplicates",
        8351,
        [144, 181],
        [1, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "marks",
        9070,
        [137, 116],
        [0, 0, 0, 0, 6, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "loss",
        3790,
        [146, 138],
        [3, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "much loss",
        10210,
        [163, 160],
        [6, 0, 0, 0, 26, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "loss, wide window",
        3225,
        [145, 134],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "reordering",
        3327,
        [152, 164],
        [0, 0, 0, 0, 15, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "duplicates",
        7868,
        [141, 177],
        [0, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "marks",
        9082,
        [135, 116],
        [0, 0, 0, 0, 4, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "loss",
        4859,
        [148, 145],
        [8, 8, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "much loss",
        26741,
        [183, 165],
        [51, 1, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "loss, wide window",
        4462,
        [145, 134],
        [5, 5, 4, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "reordering",
        3694,
        [145, 163],
        [3, 6, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "duplicates",
        10311,
        [150, 174],
        [3, 13, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "marks",
        8786,
        [135, 114],
        [2, 2, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "loss",
        4100,
        [144, 137],
        [0, 0, 0, 0, 13, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "much loss",
        7518,
        [171, 176],
        [5, 0, 0, 0, 34, 1, 0, 0, 0],
    ),
    (
        "no congestion control",
        "loss, wide window",
        3900,
        [142, 126],
        [0, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "reordering",
        3876,
        [143, 147],
        [0, 0, 0, 0, 6, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "duplicates",
        7656,
        [142, 167],
        [0, 0, 0, 0, 10, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "marks",
        7284,
        [140, 121],
        [0, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
];

const MOTE: Config = Config {
    rmss: 474,
    smss: 474,
    accept_window: 3792,
    ..Config::DEFAULT
};

const SETTINGS: &[(&str, Config)] = &[
    ("all", MOTE),
    (
        "no timestamps",
        Config {
            timestamps: false,
            ..MOTE
        },
    ),
    (
        "no RACK",
        Config {
            rack: false,
            tail_loss_probe: false,
            ..MOTE
        },
    ),
    (
        "no SACK",
        Config {
            sack: false,
            ..MOTE
        },
    ),
    (
        "no SACK, no timestamps",
        Config {
            sack: false,
            timestamps: false,
            ..MOTE
        },
    ),
    ("no PRR", Config { prr: false, ..MOTE }),
    (
        "no undo",
        Config {
            undo: false,
            ..MOTE
        },
    ),
    (
        "no limited transmit",
        Config {
            limited_transmit: false,
            sack: false,
            ..MOTE
        },
    ),
    (
        "no congestion control",
        Config {
            congestion_control: false,
            ..MOTE
        },
    ),
];

/// Name, link, and the length of either side's buffer.
const LINKS: &[(&str, Link, u16)] = &[
    ("loss", Link { loss: 80, ..CLEAN }, 4096),
    (
        "much loss",
        Link {
            loss: 250,
            rate: 20_000,
            ..CLEAN
        },
        4096,
    ),
    ("loss, wide window", Link { loss: 60, ..CLEAN }, 16_384),
    (
        "reordering",
        Link {
            reorder: 300,
            loss: 20,
            ..CLEAN
        },
        8192,
    ),
    (
        "duplicates",
        Link {
            duplicate: 200,
            loss: 60,
            rate: 10_000,
            ..CLEAN
        },
        4096,
    ),
    (
        "marks",
        Link {
            mark_ce: 60,
            loss: 30,
            rate: 10_000,
            ..CLEAN
        },
        4096,
    ),
];

#[test]
fn transfers_over_bad_links_go_as_ever() {
    let mut rows = Vec::new();
    for (settings, config) in SETTINGS {
        for (name, link, buffer) in LINKS {
            let memory = (usize::from(*buffer), *buffer);
            let config = Config {
                accept_window: *buffer,
                ..*config
            };
            let out = transfer_in(Net::new(*link, 5), config, 60_000, memory);
            let ms = (out.seconds * 1e3).round() as u32;
            let counters = out.net.hosts[0].counters();
            rows.push((
                *settings,
                *name,
                ms,
                out.net.segments,
                counters.retransmissions,
            ));
        }
    }
    let text: String = rows.iter().map(|row| format!("    {row:?},\n")).collect();
    assert!(rows == SNAPSHOT, "now:\n{text}");
}
