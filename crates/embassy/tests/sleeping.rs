//! A mote that sleeps below the root of a mesh, both with a key.

mod common;

use std::cell::Cell;
use std::convert::Infallible;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::rc::Rc;

use embassy_time::Timer;
use embedded_io_async::{Read, Write};
use motet::ip::InterfaceId;
use motet::link::{Advertised, IndirectConfig, MeshConfig};
use motet::mac::security::{NetworkKey, Reservation, SecurityConfig};
use motet::mac::{Policy, Sleep};
use motet::rpl::{Root, RplRole};
use motet::time::{Duration, Instant};
use motet::wire::ieee802154::{FrameType, Header, check_fcs};
use motet_embassy::{
    Config, Radio, Resources, Runner, Secured, ServeError, SleepError, Sleepers, Stack, Storage,
    mac,
};

use common::{Air, AirRadio, Executor, block_on};

const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0);

/// Room of a mote that others register with: the last two are the queue and the registrations.
type Room = Resources<2, 2048, 1024, 2, 2, 16, 8, 4, 2, 4096, 2>;

/// A storage that loses nothing, and no power goes.
struct Kept(Rc<Cell<Option<Reservation>>>);

impl Storage for Kept {
    type Error = Infallible;

    async fn load(&mut self) -> Result<Option<Reservation>, Infallible> {
        Ok(self.0.get())
    }

    async fn store(&mut self, reservation: Reservation) -> Result<(), Infallible> {
        self.0.set(Some(reservation));
        Ok(())
    }
}

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

fn root() -> Config {
    let mut config = Config::mesh(0x4d54);
    config.stack.ip.forwards = true;
    config.mesh = MeshConfig {
        solicits: false,
        advertised: Some(Advertised {
            prefix: PREFIX,
            lifetime: Advertised::LIFETIME,
        }),
        ..config.mesh
    };
    config
}

fn start<R: Radio>(radio: R, me: u8, config: Config) -> (Stack, Runner<R>) {
    let eui64 = [0x02, 0, 0, 0, 0, 0, 0, me + 1];
    let room: &'static Room = leak(Room::new());
    motet_embassy::new(room, radio, eui64, [7, me.into()], config).unwrap()
}

async fn run(runner: Runner<AirRadio>) {
    let memory: &'static Secured = leak(Secured::new());
    let key = SecurityConfig::new(NetworkKey::new(*b"sixteen bytes of"), 0);
    let runner = runner.secure(memory, key, Kept(Rc::default())).await;
    let Ok(mut runner) = runner;
    runner.run().await;
}

#[test]
fn a_mote_with_a_key_sleeps_and_is_reached() {
    let air = Air::new();
    let mut executor = Executor::default();
    let (server, mut runner) = start(AirRadio::new(air.clone(), 0), 0, root());
    server.with_node(|node| {
        let role = RplRole::Root(Root::new(PREFIX));
        let steps = leak([None; 4]);
        node.start_rpl(InterfaceId(0), role, &mut [], steps, Instant::ORIGIN);
    });
    let sleepers: &'static Sleepers<2, 2_600> = leak(Sleepers::new());
    let served = runner.serve_sleepers(sleepers, IndirectConfig::DEFAULT);
    assert_eq!(served, Ok(()));
    let hinted = Sleep::new(Policy::Hinted(Duration::from_secs(2)));
    assert_eq!(server.set_sleep(Some(hinted)), Err(SleepError::PassesOn));
    executor.spawn(run(runner));

    let (client, runner) = start(AirRadio::new(air.clone(), 1), 1, Config::mesh(0x4d54));
    assert_eq!(client.set_sleep(Some(hinted)), Ok(()));
    executor.spawn(run(runner));
    let address = block_on(&mut executor, 120, client.joined());
    // What follows from the first answer.
    block_on(&mut executor, 20, Timer::after_secs(10));
    let (off, from) = (air.borrow().off_us(1), common::now_us());
    block_on(&mut executor, 70, Timer::after_secs(60));
    let share = (air.borrow().off_us(1) - off) * 100 / (common::now_us() - from);
    assert!(share >= 95, "off for {share} % of the time");
    assert_eq!(air.borrow().off_us(0), 0);

    executor.spawn(async move {
        let listener = client.listen(9).unwrap();
        let mut socket = listener.accept().await.unwrap();
        let mut bytes = [0; 300];
        while let Ok(len @ 1..) = socket.read(&mut bytes).await {
            socket.write_all(&bytes[..len]).await.unwrap();
        }
    });
    let echoed = block_on(&mut executor, 60, async move {
        let at = SocketAddrV6::new(address, 9, 0, 0).into();
        let mut socket = server.connect(at).await.unwrap();
        socket.write_all(&[5; 1_000]).await.unwrap();
        let mut bytes = [0; 1_000];
        socket.read_exact(&mut bytes).await.unwrap();
        bytes
    });
    assert_eq!(echoed, [5; 1_000]);
    // Awake again: nothing is off any more.
    assert_eq!(client.set_sleep(None), Ok(()));
    block_on(&mut executor, 5, Timer::after_secs(1));
    let off = air.borrow().off_us(1);
    block_on(&mut executor, 20, Timer::after_secs(10));
    assert_eq!(air.borrow().off_us(1), off);
    for psdu in &air.borrow().frames {
        let (header, auxiliary, _) = Header::parse_secured(check_fcs(psdu).unwrap()).unwrap();
        let is_sealed = auxiliary.is_some() || header.frame_type == FrameType::Ack;
        assert!(is_sealed, "{header:?}");
    }
}

/// A radio that answers by itself and cannot say that something waits.
struct Mute(AirRadio);

impl Radio for Mute {
    fn capabilities(&self) -> mac::RadioCapabilities {
        mac::RadioCapabilities::CC2420
    }

    fn perform(&mut self, action: mac::Action, bytes: &[u8]) {
        self.0.perform(action, bytes);
    }

    async fn event<'a>(&mut self, psdu: &'a mut [u8; 127]) -> mac::Event<'a> {
        self.0.event(psdu).await
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let air = Air::new();
    let sleepers: &'static Sleepers<2, 2_600> = leak(Sleepers::new());
    let serve = IndirectConfig::DEFAULT;
    let (_, mut runner) = start(Mute(AirRadio::new(air.clone(), 0)), 0, root());
    let refused = runner.serve_sleepers(sleepers, serve);
    assert_eq!(refused, Err(ServeError::NoPending));

    let (stack, mut runner) = start(AirRadio::new(air, 1), 1, Config::mesh(0x4d54));
    let zero = Policy::Fixed(Duration::ZERO);
    let refused = stack.set_sleep(Some(Sleep::new(zero)));
    assert_eq!(refused, Err(SleepError::NoInterval));
    let deaf = Sleep {
        answer_timeout: Duration::ZERO,
        ..Sleep::new(Policy::Paper)
    };
    let refused = stack.set_sleep(Some(deaf));
    assert_eq!(refused, Err(SleepError::NoAnswerTimeout));
    assert_eq!(stack.set_sleep(Some(Sleep::new(Policy::Adaptive))), Ok(()));
    let refused = runner.serve_sleepers(sleepers, serve);
    assert_eq!(refused, Err(ServeError::Sleeps));
    assert_eq!(stack.set_sleep(None), Ok(()));
    // The memory was not used before.
    assert_eq!(runner.serve_sleepers(sleepers, serve), Ok(()));
    let refused = stack.set_sleep(Some(Sleep::new(Policy::Paper)));
    assert_eq!(refused, Err(SleepError::PassesOn));
}
