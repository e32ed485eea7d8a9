//! Radios that make whole attempts by themselves, played.

mod common;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use common::{Executor, block_on, now_us, pattern};
use embassy_time::{Duration, Timer};
use embedded_io_async::{Read, Write};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet_embassy::mac::{Action, AttemptOutcome, Event, Pending, RadioCapabilities, RxMeta};
use motet_embassy::offload::{Chip, Driver, Port, Settings, Shared};
use motet_embassy::{Config, Radio, Resources, Stack, mac};

/// What becomes of each attempt; one after the other, and again from the first.
type Fates = &'static [AttemptOutcome];

const ACKED: AttemptOutcome = AttemptOutcome::Acked { pending: false };

#[derive(Default)]
struct Side {
    queue: VecDeque<(Vec<u8>, RxMeta)>,
    is_listening: bool,
    waker: Option<Waker>,
    /// Frames that the chip was given, with their outcome.
    sent: Vec<(Vec<u8>, AttemptOutcome)>,
    log: Vec<String>,
}

impl Side {
    fn hear(&mut self, psdu: &[u8]) {
        let meta = RxMeta {
            rssi_dbm: -50,
            lqi: 255,
            channel: 26,
            at: now(),
        };
        self.queue.push_back((psdu.to_vec(), meta));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

type Sides = Rc<RefCell<[Side; 2]>>;

struct Played {
    sides: Sides,
    me: usize,
    fates: Fates,
}

impl Chip for Played {
    fn capabilities(&self) -> RadioCapabilities {
        RadioCapabilities {
            auto_ack: true,
            fcs_by_radio: true,
            pending: Pending::PerNeighbour,
            assesses: true,
            takes_acks: true,
            ..RadioCapabilities::CC2420
        }
    }

    fn set_up(&mut self, settings: &Settings) {
        let Settings { pan, be_max, .. } = settings;
        self.log(format!("pan {pan:04x}, exponent {be_max}"));
    }

    fn set_channel(&mut self, channel: u8) {
        self.log(format!("channel {channel}"));
    }

    fn set_listening(&mut self, is_listening: bool) {
        self.log(format!("listening {is_listening}"));
        self.sides.borrow_mut()[self.me].is_listening = is_listening;
    }

    fn set_pending(&mut self, of: LinkAddr, is_pending: bool) {
        self.log(format!("{of:?} {is_pending}"));
    }

    async fn receive(&mut self, psdu: &mut [u8; 127]) -> (usize, RxMeta) {
        poll_fn(|cx| {
            let side = &mut self.sides.borrow_mut()[self.me];
            let Some((frame, meta)) = side.queue.pop_front() else {
                side.waker = Some(cx.waker().clone());
                return Poll::Pending;
            };
            psdu[..frame.len()].copy_from_slice(&frame);
            Poll::Ready((frame.len(), meta))
        })
        .await
    }

    async fn transmit(&mut self, psdu: &[u8]) -> (AttemptOutcome, Instant) {
        let count = self.sides.borrow()[self.me].sent.len();
        let outcome = self.fates[count % self.fates.len()];
        self.sides.borrow_mut()[self.me]
            .sent
            .push((psdu.to_vec(), outcome));
        // Backoff and frame.
        Timer::after(Duration::from_micros(1_000 + 32 * (8 + psdu.len() as u64))).await;
        let at = now();
        let other = &mut self.sides.borrow_mut()[1 - self.me];
        let is_heard = matches!(outcome, AttemptOutcome::Acked { .. } | AttemptOutcome::Done);
        if is_heard && other.is_listening {
            other.hear(psdu);
        }
        (outcome, at)
    }
}

impl Played {
    fn log(&self, line: String) {
        self.sides.borrow_mut()[self.me].log.push(line);
    }
}

fn now() -> Instant {
    Instant::from_micros(now_us())
}

fn attach(sides: &Sides, me: usize, fates: Fates) -> (Port, Driver<Played>) {
    let shared: &'static Shared = Box::leak(Box::new(Shared::new()));
    shared.attach(Played {
        sides: sides.clone(),
        me,
        fates,
    })
}

/// A chip under its driver, and the port to it, with the MAC's settings.
fn bench(fates: Fates) -> (Executor, Sides, Port) {
    let sides = Sides::default();
    let (mut port, mut driver) = attach(&sides, 0, fates);
    port.set_addresses(&mac::Config::new(0x4d54, [2; 8]));
    let mut executor = Executor::default();
    executor.spawn(async move {
        driver.run().await;
    });
    (executor, sides, port)
}

/// The next report, or none within 50 ms.
async fn report(port: &mut Port) -> Option<String> {
    let mut psdu = [0; 127];
    let event = port.event(&mut psdu);
    let event = embassy_time::with_timeout(Duration::from_millis(50), event).await;
    Some(match event.ok()? {
        Event::Sent { outcome, .. } => format!("{outcome:?}"),
        Event::FrameReceived { psdu, .. } => format!("frame {}", psdu[0]),
        other => format!("{other:?}"),
    })
}

fn load(port: &mut Port, frame: &[u8]) {
    port.perform(Action::Preload { len: frame.len() }, frame);
    port.perform(Action::Fire, &[]);
}

#[test]
fn two_motes_speak_over_radios_that_make_whole_attempts() {
    const FATES: Fates = &[
        ACKED,
        ACKED,
        AttemptOutcome::Busy,
        ACKED,
        AttemptOutcome::NoAck,
        ACKED,
        AttemptOutcome::Failed,
    ];
    let sides = Sides::default();
    let mut executor = Executor::default();
    let mut mote = |me: u8| -> Stack {
        let (port, mut driver) = attach(&sides, me.into(), FATES);
        let resources: &'static Resources<2, 2048> = Box::leak(Box::new(Resources::new()));
        let eui64 = [0x02, 0, 0, 0, 0, 0, 0, me + 1];
        let mote = motet_embassy::new(resources, port, eui64, [1, me.into()], Config::mesh(7));
        let (stack, mut runner) = mote.expect("the radio fits the settings");
        executor.spawn(async move {
            driver.run().await;
        });
        executor.spawn(async move {
            runner.run().await;
        });
        stack
    };
    let (client, server) = (mote(0), mote(1));
    executor.spawn(async move {
        let listener = server.listen(7).unwrap();
        let mut socket = listener.accept().await.unwrap();
        let mut bytes = [0; 300];
        while let Ok(count @ 1..) = socket.read(&mut bytes).await {
            socket.write_all(&bytes[..count]).await.unwrap();
        }
    });
    let address = server.link_local_address().expect("formed at the start");
    let echoed = block_on(&mut executor, 60, async move {
        let remote = std::net::SocketAddrV6::new(address, 7, 0, 0);
        let mut socket = client.connect(remote.into()).await.unwrap();
        let (mut reader, mut writer) = socket.split();
        let all: Vec<u8> = (0..3_000).map(pattern).collect();
        let mut back = vec![0; all.len()];
        let read = reader.read_exact(&mut back);
        let (written, read) = embassy_futures::join::join(writer.write_all(&all), read).await;
        written.unwrap();
        read.unwrap();
        back == all
    });
    assert!(echoed);
    // A frame that found the channel busy is sent again, as the one that was not acknowledged is.
    let sides = sides.borrow();
    let again = |pair: &&[(Vec<u8>, AttemptOutcome)]| {
        use AttemptOutcome::{Busy, NoAck};
        let [(one, outcome), (two, _)] = pair else {
            return false;
        };
        matches!(outcome, Busy | NoAck) && one == two
    };
    assert!(sides[0].sent.windows(2).filter(again).count() > 5);
}

#[test]
fn settings_reach_the_chip_before_anything_else() {
    let (mut executor, sides, mut port) = bench(&[ACKED]);
    block_on(&mut executor, 1, async move {
        port.perform(Action::ChangeChannel { channel: 15 }, &[]);
        for pending in [true, false] {
            let of = Some(LinkAddr::Short(7));
            port.perform(Action::SetPending { of, pending }, &[]);
        }
        load(&mut port, &[1; 20]);
        assert_eq!(report(&mut port).await.as_deref(), Some("Preloaded"));
    });
    let expected = [
        "pan 4d54, exponent 5",
        "channel 26",
        "listening true",
        "channel 15",
        // The last order for a neighbour counts.
        "Short(7) false",
    ];
    assert_eq!(sides.borrow()[0].log, expected);
}

#[test]
fn the_end_of_an_attempt_that_was_given_up_is_not_reported() {
    let (mut executor, sides, mut port) = bench(&[ACKED, AttemptOutcome::NoAck]);
    block_on(&mut executor, 1, async move {
        load(&mut port, &[1; 20]);
        assert_eq!(report(&mut port).await.as_deref(), Some("Preloaded"));
        // It is on its way.
        Timer::after(Duration::from_micros(500)).await;
        load(&mut port, &[2; 20]);
        assert_eq!(report(&mut port).await.as_deref(), Some("Preloaded"));
        assert_eq!(report(&mut port).await.as_deref(), Some("NoAck"));
        assert_eq!(report(&mut port).await, None);
    });
    let sent = &sides.borrow()[0].sent;
    assert_eq!(sent.len(), 2);
    assert_eq!((sent[0].0[0], sent[1].0[0]), (1, 2));
}

#[test]
fn a_frame_that_was_not_begun_and_replaced_is_not_sent() {
    let (mut executor, sides, mut port) = bench(&[ACKED]);
    block_on(&mut executor, 1, async move {
        load(&mut port, &[1; 20]);
        load(&mut port, &[2; 20]);
        assert_eq!(report(&mut port).await.as_deref(), Some("Preloaded"));
        let ended = report(&mut port).await;
        assert_eq!(ended.as_deref(), Some("Acked { pending: false }"));
    });
    let sent = &sides.borrow()[0].sent;
    assert_eq!(sent, &[(vec![2; 20], ACKED)]);
}

#[test]
fn frames_that_the_node_does_not_fetch_wait_in_the_chip() {
    let (mut executor, sides, mut port) = bench(&[ACKED]);
    let air = sides.clone();
    block_on(&mut executor, 1, async move {
        for first in 0..10 {
            air.borrow_mut()[0].hear(&[first; 30]);
        }
        Timer::after(Duration::from_millis(5)).await;
        assert_eq!(air.borrow()[0].queue.len(), 6);
        // A future that is dropped takes none with it.
        let mut psdu = [0; 127];
        drop(port.event(&mut psdu));
        for first in 0..10 {
            assert_eq!(report(&mut port).await, Some(format!("frame {first}")));
        }
        assert_eq!(report(&mut port).await, None);
    });
}

#[test]
fn a_receiver_that_is_off_gives_no_frame_until_it_is_on() {
    let (mut executor, sides, mut port) = bench(&[ACKED]);
    let air = sides.clone();
    block_on(&mut executor, 1, async move {
        port.perform(Action::Sleep, &[]);
        Timer::after(Duration::from_millis(1)).await;
        air.borrow_mut()[0].hear(&[9; 30]);
        assert_eq!(report(&mut port).await, None);
        port.perform(Action::Listen, &[]);
        assert_eq!(report(&mut port).await.as_deref(), Some("frame 9"));
    });
    let log = &sides.borrow()[0].log;
    assert_eq!(log[log.len() - 2..], ["listening false", "listening true"]);
}
