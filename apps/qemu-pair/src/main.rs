//! Two motes in one image, their tasks run by embassy's executor: one echoes, the other sends 10
//! KiB and checks what comes back.
//!
//! Runs under QEMU, which has no radio of this kind: the air is made up. Time is virtual: it jumps
//! to the next alarm when no task is left to run. The exit status says whether all bytes came back.
#![no_std]
#![no_main]

mod air;
mod clock;
#[path = "../../shared/echo.rs"]
mod echo;

use core::cell::RefCell;
use core::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

use cortex_m as _;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use embassy_executor::raw::Executor;
use embassy_futures::join::join;
use embassy_time::Instant;
use embedded_io_async::{Read, Write};
use motet_embassy::{Config, Resources, Runner, Stack};
use static_cell::StaticCell;

use crate::air::{Air, PairRadio};

/// Bytes to carry, each way.
const TRANSFER_LEN: usize = 10 * 1024;

/// More than ten times what the transfer takes on this air, µs.
const TIME_MAX: u64 = 60_000_000;

#[entry]
fn main() -> ! {
    static AIR: StaticCell<RefCell<Air>> = StaticCell::new();
    static CLIENT: Resources<2, 2048> = Resources::new();
    static SERVER: Resources<2, 2048> = Resources::new();
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();

    let air = &*AIR.init(RefCell::new(Air::new()));
    let begin = |resources, me: u8| {
        let radio = PairRadio::new(air, me.into());
        let eui64 = [2, 0, 0, 0, 0, 0, 0, me + 1];
        let seed = [1, me.into()];
        let mote = motet_embassy::new(resources, radio, eui64, seed, Config::mesh(0x4d54));
        mote.expect("the radio fits the settings")
    };
    let (client, client_runner) = begin(&CLIENT, 0);
    let (server, server_runner) = begin(&SERVER, 1);
    let address = server.link_local_address().unwrap_or(Ipv6Addr::UNSPECIFIED);

    let executor = &*EXECUTOR.init(Executor::new(core::ptr::null_mut()));
    let spawner = executor.spawner();
    for runner in [client_runner, server_runner] {
        spawner.spawn(net(runner).expect("there is a place for each"));
    }
    spawner.spawn(serve(server).expect("there is a place"));
    spawner.spawn(transfer(client, address).expect("there is a place"));
    loop {
        while IS_PENDING.swap(false, Ordering::Relaxed) {
            // SAFETY: this is the only place that polls, and no task gets here.
            unsafe { executor.poll() };
        }
        match clock::ring() {
            _ if IS_PENDING.load(Ordering::Relaxed) => {}
            Some(at) if at <= TIME_MAX => clock::advance_to(at),
            Some(_) => end(Err("out of time")),
            None => end(Err("every task waits for good")),
        }
    }
}

#[embassy_executor::task(pool_size = 2)]
async fn net(mut runner: Runner<PairRadio>) {
    runner.run().await;
}

#[embassy_executor::task]
async fn serve(stack: Stack) {
    let _ended = echo::echo(stack).await;
}

#[embassy_executor::task]
async fn transfer(stack: Stack, address: Ipv6Addr) {
    end(exchange(stack, address).await);
}

/// Sends the bytes and reads them back.
async fn exchange(stack: Stack, address: Ipv6Addr) -> Result<(), &'static str> {
    let remote = SocketAddr::V6(SocketAddrV6::new(address, 7, 0, 0));
    let socket = stack.connect(remote).await;
    let mut socket = socket.map_err(|_| "no connection")?;
    let (mut reader, mut writer) = socket.split();
    let send = async {
        for place in 0..TRANSFER_LEN / 64 {
            let bytes = core::array::from_fn::<_, 64, _>(|index| pattern(64 * place + index));
            writer.write_all(&bytes).await?;
        }
        writer.shutdown();
        Ok::<_, motet_embassy::Error>(())
    };
    let check = async {
        let mut place = 0;
        let mut bytes = [0; 100];
        loop {
            match reader.read(&mut bytes).await {
                Ok(0) if place == TRANSFER_LEN => return Ok(()),
                Ok(0) => return Err("bytes are missing"),
                Ok(count) => {
                    for byte in bytes.iter().take(count) {
                        if *byte != pattern(place) {
                            return Err("a byte is wrong");
                        }
                        place += 1;
                    }
                }
                Err(_) => return Err("the connection failed"),
            }
        }
    };
    let (sent, checked) = join(send, check).await;
    sent.map_err(|_| "cannot send")?;
    checked
}

/// The byte at each place of the transfer; its period of 251 divides no buffer or segment.
fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// Prints the outcome and ends the run.
fn end(outcome: Result<(), &'static str>) {
    hprintln!("virtual_ms={}", Instant::now().as_millis());
    match outcome {
        Ok(()) => hprintln!("echoed_bytes={}", TRANSFER_LEN),
        Err(reason) => hprintln!("failed: {}", reason),
    }
    debug::exit(match outcome {
        Ok(()) => debug::EXIT_SUCCESS,
        Err(_) => debug::EXIT_FAILURE,
    });
}

/// A task is ready to run.
static IS_PENDING: AtomicBool = AtomicBool::new(false);

/// What the executor calls when that is so.
#[unsafe(export_name = "__pender")]
fn note_pending(_: *mut ()) {
    IS_PENDING.store(true, Ordering::Relaxed);
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    hprintln!("{}", info);
    debug::exit(debug::EXIT_FAILURE);
    loop {
        core::hint::spin_loop();
    }
}
