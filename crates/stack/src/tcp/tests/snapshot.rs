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
    ("all", "loss", 6148, [151, 99], [2, 0, 0, 0, 18, 0, 0, 0, 0]),
    (
        "all",
        "much loss",
        250778,
        [183, 115],
        [27, 0, 0, 0, 25, 0, 0, 0, 0],
    ),
    (
        "all",
        "loss, wide window",
        2654,
        [143, 92],
        [1, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "all",
        "reordering",
        1339,
        [141, 123],
        [0, 0, 0, 0, 8, 0, 0, 0, 0],
    ),
    (
        "all",
        "duplicates",
        8845,
        [143, 109],
        [2, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
    ("all", "marks", 8311, [136, 79], [0, 0, 0, 0, 5, 0, 0, 0, 0]),
    (
        "no timestamps",
        "loss",
        5391,
        [149, 98],
        [4, 0, 0, 0, 17, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "much loss",
        111701,
        [168, 109],
        [18, 0, 0, 0, 22, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "loss, wide window",
        2150,
        [139, 90],
        [0, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "reordering",
        1946,
        [133, 106],
        [0, 0, 0, 0, 5, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "duplicates",
        7580,
        [139, 116],
        [0, 0, 0, 0, 10, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "marks",
        7967,
        [134, 84],
        [0, 0, 0, 0, 6, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "loss",
        11094,
        [148, 97],
        [6, 0, 0, 11, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "much loss",
        1239155,
        [184, 122],
        [38, 0, 0, 15, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "loss, wide window",
        1850,
        [137, 87],
        [0, 0, 0, 6, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "reordering",
        1910,
        [145, 111],
        [0, 0, 0, 12, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "duplicates",
        8857,
        [150, 125],
        [1, 0, 0, 17, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "marks",
        8465,
        [136, 86],
        [0, 0, 0, 5, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "loss",
        11414,
        [147, 93],
        [8, 6, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "much loss",
        734008,
        [190, 117],
        [55, 4, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "loss, wide window",
        4996,
        [147, 99],
        [7, 6, 3, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "reordering",
        2751,
        [138, 112],
        [2, 3, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "duplicates",
        14953,
        [148, 120],
        [5, 7, 4, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "marks",
        11114,
        [137, 87],
        [3, 3, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "loss",
        8611,
        [144, 90],
        [8, 6, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "much loss",
        1527090,
        [187, 119],
        [54, 5, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "loss, wide window",
        6266,
        [143, 97],
        [6, 6, 3, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "reordering",
        2498,
        [139, 106],
        [0, 5, 6, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "duplicates",
        11015,
        [142, 116],
        [3, 6, 4, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "marks",
        10775,
        [137, 85],
        [8, 1, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "loss",
        5722,
        [148, 93],
        [3, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "much loss",
        109839,
        [178, 115],
        [21, 0, 0, 0, 25, 1, 0, 0, 0],
    ),
    (
        "no PRR",
        "loss, wide window",
        2900,
        [146, 93],
        [0, 0, 0, 0, 15, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "reordering",
        1339,
        [141, 123],
        [0, 0, 0, 0, 8, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "duplicates",
        9713,
        [146, 119],
        [1, 0, 0, 0, 12, 1, 0, 0, 0],
    ),
    (
        "no PRR",
        "marks",
        8966,
        [139, 90],
        [1, 0, 0, 0, 7, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "loss",
        6148,
        [151, 99],
        [3, 0, 0, 0, 17, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "much loss",
        274683,
        [179, 115],
        [24, 0, 0, 0, 23, 1, 0, 0, 0],
    ),
    (
        "no undo",
        "loss, wide window",
        2654,
        [143, 92],
        [1, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "reordering",
        2290,
        [138, 97],
        [0, 0, 0, 0, 4, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "duplicates",
        8650,
        [144, 122],
        [0, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "marks",
        8311,
        [136, 79],
        [0, 0, 0, 0, 5, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "loss",
        8771,
        [145, 89],
        [7, 5, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "much loss",
        1266493,
        [187, 108],
        [55, 1, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "loss, wide window",
        12633,
        [145, 94],
        [7, 5, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "reordering",
        2644,
        [138, 108],
        [2, 3, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "duplicates",
        11160,
        [146, 113],
        [4, 7, 3, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "marks",
        12963,
        [139, 83],
        [5, 2, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "loss",
        4351,
        [146, 90],
        [0, 0, 0, 0, 15, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "much loss",
        18931,
        [174, 109],
        [15, 0, 0, 0, 28, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "loss, wide window",
        4050,
        [143, 86],
        [0, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "reordering",
        4001,
        [135, 78],
        [0, 0, 0, 0, 1, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "duplicates",
        7972,
        [140, 103],
        [0, 0, 0, 0, 8, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "marks",
        7314,
        [138, 76],
        [0, 0, 0, 0, 7, 0, 0, 0, 0],
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
