//! A controller that is played by the test, at the other end of a TCP connection.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use motet::ble::{Phy, Timing};

use super::*;

/// What a played controller is like.
#[derive(Clone, Copy)]
struct Played {
    version: u8,
    address: [u8; 6],
    commands: u8,
    buffers: [u8; 3],
}

const PLAYED: Played = Played {
    version: 9,
    address: [6, 5, 4, 3, 2, 1],
    commands: 0,
    buffers: [251, 0, 8],
};

/// Answers the commands of a start; then hands the stream to `then`.
fn play(
    played: Played,
    then: impl FnOnce(TcpStream) + Send + 'static,
) -> (ControllerAddress, thread::JoinHandle<Vec<u16>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = ControllerAddress::Tcp(listener.local_addr().unwrap().to_string());
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let last = match played.address {
            [0, ..] => 0x2005,
            _ => 0x1009,
        };
        while asked.last() != Some(&last) {
            let mut head = [0; 4];
            if stream.read_exact(&mut head).is_err() {
                return asked;
            }
            let mut params = vec![0; usize::from(head[3])];
            stream.read_exact(&mut params).unwrap();
            let opcode = u16::from_le_bytes([head[1], head[2]]);
            asked.push(opcode);
            let returned = match opcode {
                0x1001 => vec![played.version, 0, 0, played.version, 0, 0, 0, 0],
                0x1002 => vec![played.commands; 64],
                0x2002 => played.buffers.to_vec(),
                0x1009 => played.address.to_vec(),
                _ => vec![],
            };
            let mut event = vec![4, 0x0e, 4 + returned.len() as u8, 1, head[1], head[2], 0];
            event.extend(returned);
            stream.write_all(&event).unwrap();
        }
        then(stream);
        asked
    });
    (place, thread)
}

const RANDOM: [u8; 6] = [0xc0, 1, 2, 3, 4, 5];

fn start(place: &ControllerAddress) -> Result<Controller, Error> {
    Controller::start(place, RANDOM, || false)
}

/// All that a controller tells until it tells this much, or fails.
fn told(controller: &mut Controller, count: usize) -> (Vec<String>, Option<Error>) {
    let mut all = Vec::new();
    while all.len() < count {
        if let Err(error) = controller.poll(|event| all.push(format!("{event:?}"))) {
            return (all, Some(error));
        }
        controller.line.wait(Duration::from_millis(10)).unwrap();
    }
    (all, None)
}

#[test]
fn a_controller_is_asked_what_it_is_like() {
    let (place, thread) = play(PLAYED, drop);
    let controller = start(&place).unwrap();
    assert_eq!(
        thread.join().unwrap(),
        [0x0c03, 0x1001, 0x1002, 0x0c01, 0x2001, 0x2002, 0x1009]
    );
    let address = controller.address();
    assert_eq!(
        (address.bytes, address.is_random),
        ([1, 2, 3, 4, 5, 6], false)
    );
    assert!(matches!(
        controller.started(),
        Event::Started {
            packet_len: 251,
            packets: 8
        }
    ));
}

#[test]
fn one_without_an_address_is_given_one() {
    let nameless = Played {
        address: [0; 6],
        ..PLAYED
    };
    let (place, thread) = play(nameless, drop);
    let address = start(&place).unwrap().address();
    assert_eq!((address.bytes, address.is_random), (RANDOM, true));
    assert_eq!(thread.join().unwrap().last(), Some(&0x2005));
}

#[test]
fn what_cannot_carry_ipv6_is_refused() {
    let old = Played {
        version: 6,
        ..PLAYED
    };
    let (place, _thread) = play(old, drop);
    let error = start(&place).unwrap_err();
    assert!(matches!(error, Error::Version(6)));
    assert!(error.to_string().contains("Bluetooth 4.0"), "{error}");
    let classic = Played {
        buffers: [0, 0, 0],
        ..PLAYED
    };
    let (place, _thread) = play(classic, drop);
    assert!(matches!(start(&place), Err(Error::Refused(..))));
}

#[test]
fn a_place_where_nobody_listens_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = ControllerAddress::Tcp(listener.local_addr().unwrap().to_string());
    drop(listener);
    assert!(matches!(start(&place), Err(Error::Unreachable(_))));
}

#[test]
fn one_that_says_nothing_is_waited_for_until_the_caller_gives_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = ControllerAddress::Tcp(listener.local_addr().unwrap().to_string());
    let error = Controller::start(&place, RANDOM, || true).unwrap_err();
    assert!(matches!(error, Error::GivenUp));
}

#[test]
fn commands_and_their_answers_pass() {
    let (place, thread) = play(PLAYED, |mut stream| {
        let mut asked = [0; 5];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(asked, [1, 0x0a, 0x20, 1, 1]);
        // An answer to something else, the answer, and data cut in two.
        stream.write_all(&[4, 0x0e, 4, 1, 8, 0x20, 0]).unwrap();
        stream
            .write_all(&[4, 0x0e, 4, 1, 0x0a, 0x20, 0x0c])
            .unwrap();
        stream.write_all(&[2, 1, 0x20, 2]).unwrap();
        thread::sleep(Duration::from_millis(20));
        stream.write_all(&[0, 7, 8]).unwrap();
    });
    let mut controller = start(&place).unwrap();
    assert_eq!(controller.take_packets(), [], "nobody wants them");
    controller.keep_packets();
    let on = Action::SetAdvertising { is_on: true };
    controller.command(on, &[]).unwrap();
    let (all, error) = told(&mut controller, 9);
    let packets = [
        (Direction::ToController, vec![1, 0x0a, 0x20, 1, 1]),
        (Direction::ToHost, vec![4, 0x0e, 4, 1, 8, 0x20, 0]),
        (Direction::ToHost, vec![4, 0x0e, 4, 1, 0x0a, 0x20, 0x0c]),
        (Direction::ToHost, vec![2, 1, 0x20, 2, 0, 7, 8]),
    ];
    assert_eq!(controller.take_packets(), packets);
    assert_eq!(controller.take_packets(), []);
    assert_eq!(
        all,
        [
            "Answered { status: 12 }",
            "Data { handle: Handle(1), is_first: true, bytes: [7, 8] }"
        ]
    );
    assert!(matches!(error, Some(Error::Gone(_))), "{error:?}");
    thread.join().unwrap();
}

#[test]
fn a_signal_strength_that_is_not_available_is_none() {
    let known = Played {
        commands: 0xff,
        ..PLAYED
    };
    let (place, thread) = play(known, |mut stream| {
        for rssi in [0xc4, 127] {
            let mut asked = [0; 6];
            stream.read_exact(&mut asked).unwrap();
            assert_eq!(asked, [1, 5, 0x14, 2, 1, 0]);
            let answer = [4, 0x0e, 7, 1, 5, 0x14, 0, 1, 0, rssi];
            stream.write_all(&answer).unwrap();
        }
    });
    let mut controller = start(&place).unwrap();
    for rssi in ["Some(-60)", "None"] {
        let handle = Handle(1);
        controller
            .command(Action::ReadRssi { handle }, &[])
            .unwrap();
        let (all, _) = told(&mut controller, 2);
        let event = format!("Rssi {{ handle: Handle(1), rssi: {rssi} }}");
        assert_eq!(all, ["Answered { status: 0 }", &event]);
    }
    thread.join().unwrap();
}

#[test]
fn a_command_that_it_does_not_know_is_refused_here() {
    let (place, thread) = play(PLAYED, |mut stream| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [], "nothing was asked");
    });
    let mut controller = start(&place).unwrap();
    let phy = Action::SetPhy {
        handle: Handle(1),
        phy: Phy::Le2M,
    };
    controller.command(phy, &[]).unwrap();
    let (all, _) = told(&mut controller, 1);
    assert_eq!(all, ["Answered { status: 1 }"]);
    drop(controller);
    thread.join().unwrap();
}

#[test]
fn a_stream_out_of_step_ends_it() {
    let (place, thread) = play(PLAYED, |mut stream| {
        stream.write_all(&[4, 0x13, 1, 0, 0x99]).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let mut controller = start(&place).unwrap();
    let (_, error) = told(&mut controller, 1);
    let error = error.unwrap();
    assert!(matches!(error, Error::OutOfStep(0x99)), "{error:?}");
    drop(controller);
    thread.join().unwrap();
}

#[test]
fn a_command_without_an_answer_ends_it() {
    let (place, thread) = play(PLAYED, |mut stream| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    });
    let mut controller = start(&place).unwrap();
    let update = Action::Update {
        handle: Handle(1),
        timing: Timing {
            interval: 6,
            latency: 0,
            timeout: 100,
        },
        event_len: 12,
    };
    controller.command(update, &[]).unwrap();
    assert!(matches!(controller.poll(|_| {}), Ok(false)));
    controller.asked.as_mut().unwrap().until = Instant::now();
    assert!(matches!(controller.poll(|_| {}), Err(Error::Silent)));
    drop(controller);
    thread.join().unwrap();
}

#[test]
fn silence_about_an_option_is_a_refusal() {
    let all = Played {
        commands: 0xff,
        ..PLAYED
    };
    let (place, thread) = play(all, |mut stream| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest[..4], [1, 0x32, 0x20, 7]);
    });
    let mut controller = start(&place).unwrap();
    let phy = Action::SetPhy {
        handle: Handle(1),
        phy: Phy::Le2M,
    };
    controller.command(phy, &[]).unwrap();
    assert!(matches!(controller.poll(|_| {}), Ok(false)));
    let (all, error) = told(&mut controller, 1);
    assert_eq!(all, ["Answered { status: 1 }"]);
    assert!(error.is_none());
    drop(controller);
    thread.join().unwrap();
}
