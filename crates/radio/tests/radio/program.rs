//! Radios that are programs behind a pseudo-terminal. The program is this one.

use std::{env, fs::File, os::fd::AsFd as _, time};

use motet_radio::{Error, Event, SpinelRadio};
use motet_spinel::Cause;

use super::{SETTINGS, assert_acked, clock, data, is_ready, is_sent, started, url, wait_for};
use crate::{dongle, fake};

/// A word of the command line that no test is called: it asks [`a_radio`] to play one.
const PLAY: &str = "as-a-program";

/// A frame with this sequence number ends the program.
const LAST: u8 = 99;

/// The URL of a radio that this program plays. What a test harness prints first is noise to it.
fn this_program() -> String {
    let program = env::current_exe().unwrap();
    let arguments = ["--exact", "--nocapture", "program::a_radio", PLAY];
    let arguments = arguments.map(|argument| format!("forkpty-arg={argument}"));
    let (program, arguments) = (program.display(), arguments.join("&"));
    format!("spinel+hdlc+forkpty://{program}?{arguments}")
}

/// Plays a radio on standard input and output where that is asked for, and tests nothing.
#[test]
fn a_radio() {
    if !env::args().any(|argument| argument == PLAY) {
        return;
    }
    let line = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    rustix::fs::fcntl_setfl(&line, rustix::fs::OFlags::NONBLOCK).unwrap();
    let line = File::from(line);
    let began = time::Instant::now();
    let mut radio = fake::Fake::new(fake::Quirks::default());
    while !radio.air.iter().any(|psdu| psdu[2] == LAST) {
        dongle::turn(&line, &mut radio, began);
        std::thread::sleep(time::Duration::from_micros(300));
        assert!(began.elapsed() < time::Duration::from_secs(60));
    }
    std::process::exit(3);
}

#[test]
fn a_program_that_ends_is_started_again() {
    let clock = clock();
    let mut radio = started(&this_program(), clock);
    for sequence in 1..3 {
        radio.transmit(&data(sequence), None, clock.now()).unwrap();
        assert_acked(&wait_for(&mut radio, clock, is_sent));
        radio.transmit(&data(LAST), None, clock.now()).unwrap();
        wait_for(&mut radio, clock, |event| {
            *event == Event::Restarted(Cause::Line)
        });
        wait_for(&mut radio, clock, is_ready);
    }
}

#[test]
fn a_program_that_ends_at_once_is_given_up() {
    let clock = clock();
    let text = "spinel+hdlc+forkpty:///bin/sh?forkpty-arg=-c&forkpty-arg=exit 7";
    let mut radio = SpinelRadio::open(&url(text), SETTINGS).unwrap();
    let error = radio.start(|| clock.now(), || false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/bin/sh ends again and again (exit status: 7): see whether its arguments are right"
    );
    let error = SpinelRadio::open(&url("spinel+hdlc+forkpty:///no/ot-rcp"), SETTINGS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/no/ot-rcp cannot be started: no such file or directory"
    );
    assert!(error.is_input());
}

#[test]
fn a_program_lives_no_longer_than_its_radio() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let text = format!(
        "spinel+hdlc+forkpty:///bin/sh?forkpty-arg=-c&forkpty-arg=echo $$ > {}; exec sleep 60",
        file.display()
    );
    let clock = clock();
    let mut radio = SpinelRadio::open(&url(&text), SETTINGS).unwrap();
    let written = || std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'));
    let given_up = radio.start(|| clock.now(), written).unwrap_err();
    assert!(matches!(given_up, Error::GivenUp), "{given_up}");
    let pid = std::fs::read_to_string(&file).unwrap();
    let process = format!("/proc/{}", pid.trim());
    let process = std::path::Path::new(&process);
    assert!(process.exists() || !cfg!(target_os = "linux"));
    drop(radio);
    assert!(!process.exists());
}
