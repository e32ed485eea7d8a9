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
        3325,
        [142, 125],
        [0, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "all",
        "much loss",
        13601,
        [177, 153],
        [21, 0, 0, 0, 25, 0, 0, 0, 0],
    ),
    (
        "all",
        "loss, wide window",
        3200,
        [145, 131],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "all",
        "reordering",
        1730,
        [148, 160],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "all",
        "duplicates",
        9821,
        [147, 167],
        [0, 0, 0, 0, 13, 1, 0, 0, 0],
    ),
    (
        "all",
        "marks",
        7901,
        [137, 122],
        [0, 0, 0, 0, 6, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "loss",
        3150,
        [139, 123],
        [0, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "much loss",
        17861,
        [168, 151],
        [10, 0, 0, 0, 30, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "loss, wide window",
        2800,
        [141, 128],
        [0, 0, 0, 0, 13, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "reordering",
        2378,
        [141, 152],
        [0, 0, 0, 0, 13, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "duplicates",
        9511,
        [143, 161],
        [1, 0, 0, 0, 13, 0, 0, 0, 0],
    ),
    (
        "no timestamps",
        "marks",
        8137,
        [134, 122],
        [1, 0, 0, 0, 5, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "loss",
        4959,
        [148, 132],
        [4, 0, 0, 13, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "much loss",
        15683,
        [169, 152],
        [28, 0, 0, 10, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "loss, wide window",
        2850,
        [141, 130],
        [0, 0, 0, 10, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "reordering",
        2585,
        [150, 163],
        [1, 0, 0, 15, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "duplicates",
        8239,
        [158, 173],
        [0, 0, 0, 26, 0, 0, 0, 0, 0],
    ),
    (
        "no RACK",
        "marks",
        8266,
        [138, 115],
        [2, 0, 0, 5, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "loss",
        4456,
        [143, 133],
        [2, 6, 4, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "much loss",
        20415,
        [190, 165],
        [52, 5, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "loss, wide window",
        4466,
        [148, 133],
        [9, 5, 3, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "reordering",
        2976,
        [141, 152],
        [1, 4, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "duplicates",
        10986,
        [151, 170],
        [8, 10, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK",
        "marks",
        8313,
        [139, 127],
        [1, 6, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "loss",
        3650,
        [138, 128],
        [0, 7, 3, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "much loss",
        877683,
        [176, 159],
        [43, 4, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "loss, wide window",
        5037,
        [141, 129],
        [5, 6, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "reordering",
        3072,
        [154, 170],
        [3, 6, 17, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "duplicates",
        9702,
        [162, 176],
        [1, 11, 21, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no SACK, no timestamps",
        "marks",
        15199,
        [136, 115],
        [6, 2, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "loss",
        4054,
        [144, 125],
        [3, 0, 0, 0, 10, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "much loss",
        10226,
        [165, 154],
        [3, 0, 0, 0, 31, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "loss, wide window",
        3100,
        [143, 132],
        [0, 0, 0, 0, 12, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "reordering",
        2077,
        [148, 161],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "duplicates",
        9205,
        [147, 162],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no PRR",
        "marks",
        8962,
        [138, 129],
        [1, 0, 0, 0, 6, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "loss",
        3325,
        [142, 125],
        [0, 0, 0, 0, 11, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "much loss",
        15307,
        [173, 152],
        [20, 0, 0, 0, 22, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "loss, wide window",
        3200,
        [145, 131],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "reordering",
        2132,
        [143, 157],
        [0, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "duplicates",
        8270,
        [146, 162],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no undo",
        "marks",
        7901,
        [137, 122],
        [0, 0, 0, 0, 6, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "loss",
        6574,
        [152, 135],
        [13, 7, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "much loss",
        28133,
        [181, 157],
        [49, 1, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "loss, wide window",
        2950,
        [139, 125],
        [0, 5, 3, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "reordering",
        2752,
        [138, 148],
        [1, 3, 0, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "duplicates",
        10623,
        [155, 175],
        [10, 11, 2, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no limited transmit",
        "marks",
        7998,
        [137, 114],
        [1, 4, 1, 0, 0, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "loss",
        4100,
        [145, 128],
        [0, 0, 0, 0, 14, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "much loss",
        8566,
        [172, 157],
        [6, 0, 0, 0, 35, 0, 0, 0, 0],
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
        3868,
        [143, 147],
        [0, 0, 0, 0, 7, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "duplicates",
        7602,
        [139, 155],
        [0, 0, 0, 0, 7, 0, 0, 0, 0],
    ),
    (
        "no congestion control",
        "marks",
        7430,
        [142, 116],
        [0, 0, 0, 0, 11, 0, 0, 0, 0],
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
