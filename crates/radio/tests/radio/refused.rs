//! Radios that cannot be used: each with a sentence that says what to do.

use std::{fs, path::Path};

use motet_radio::{Error, SpinelRadio};
use motet_spinel::Settings;

use super::{SETTINGS, clock, url};
use crate::dongle::Dongle;
use crate::fake::Quirks;

fn opened(path: &Path) -> Error {
    let text = format!("spinel+hdlc+uart://{}", path.display());
    SpinelRadio::open(&url(&text), SETTINGS).unwrap_err()
}

/// Why a dongle is refused that `change` makes what it is.
fn refused(change: impl FnOnce(&Dongle), settings: Settings) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let clock = clock();
    let mut radio = SpinelRadio::open(&url(&dongle.url()), settings).unwrap();
    // Opening drops what has come before.
    change(&dongle);
    radio.start(|| clock.now(), || false).unwrap_err()
}

#[test]
fn what_is_no_line_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let cases = [
        (
            Path::new("/dev/no-such-dongle"),
            "there is no /dev/no-such-dongle: plug the radio in, or see under /dev/serial/by-id which name it has",
        ),
        (
            Path::new("/dev/null"),
            "/dev/null is no serial line: name the radio's device",
        ),
        (
            Path::new("/dev"),
            "/dev is no serial line: name the radio's device",
        ),
    ];
    for (path, sentence) in cases {
        let error = opened(path);
        assert_eq!(
            (error.to_string().as_str(), error.is_input()),
            (sentence, true)
        );
    }
    let error = opened(&file).to_string();
    assert!(
        error.ends_with("is no serial line: name the radio's device"),
        "{error}"
    );
}

#[test]
fn an_interface_of_the_kernel_is_no_co_processor() {
    let error = SpinelRadio::open(&url("wpan:wpan0"), SETTINGS).unwrap_err();
    assert!(error.is_input());
    assert!(
        error
            .to_string()
            .starts_with("wpan:… is an interface of Linux, and no radio co-processor")
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_no_interface_of_802_15_4_is_refused() {
    use motet_radio::{WpanMonitor, WpanRadio};
    for (name, sentence) in [
        (
            "no-wpan9",
            "there is no interface no-wpan9: plug the radio in, or see by `iwpan dev` which name it has",
        ),
        (
            "lo",
            "lo is no interface of IEEE 802.15.4: `iwpan dev` shows those",
        ),
    ] {
        let of_node = WpanRadio::open(name, 15, 0xabcd).map(drop).unwrap_err();
        let of_monitor = WpanMonitor::open(name, 15).map(drop).unwrap_err();
        for error in [of_node, of_monitor] {
            let said = error.to_string();
            assert_eq!((said.as_str(), error.is_input()), (sentence, true));
        }
    }
}

#[test]
fn a_radio_of_no_use_is_refused_with_what_to_do() {
    let is_ncp = |dongle: &Dongle| {
        dongle.radio().properties.insert(5, vec![5, 12]);
    };
    let is_old = |dongle: &Dongle| {
        dongle.radio().properties.insert(0xb0, vec![3]);
    };
    for (error, part) in [
        (
            refused(is_ncp, SETTINGS),
            "an NCP and no RCP (OPENTHREAD/; SIMULATION): flash ot-rcp",
        ),
        (
            refused(is_old, SETTINGS),
            "too old (OPENTHREAD/; SIMULATION, RCP API version 3): flash",
        ),
        (
            refused(
                |_| {},
                Settings {
                    channel: 27,
                    ..SETTINGS
                },
            ),
            "no channel 27: choose one of 11 to 26",
        ),
    ] {
        assert!(error.to_string().contains(part), "{error}");
        assert!(matches!(error, Error::Radio(..)));
    }
}

#[test]
fn silence_and_babble_are_told_apart() {
    let is_deaf = |dongle: &Dongle| dongle.radio().is_deaf = true;
    let says = |text: &'static [u8]| {
        move |dongle: &Dongle| {
            dongle.radio().is_deaf = true;
            dongle.radio().sent.push_back((0, text.to_vec()));
        }
    };
    for (error, part) in [
        (
            refused(is_deaf, SETTINGS),
            "the radio has not answered for 2 s: see whether",
        ),
        (
            refused(says(b"\r\nuart:~$ "), SETTINGS),
            "is no Spinel: see whether its firmware is ot-rcp",
        ),
        (
            refused(
                says(b"\r\nGecko Bootloader v1.12.00\r\n1. upload gbl\r\nBL > "),
                SETTINGS,
            ),
            "a bootloader answers at ",
        ),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
