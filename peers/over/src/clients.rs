//! The clients that firmware has above OpenThread (`apps/shared/telemetry.rs`, the same file), on
//! Motet's sockets above the shim; behind it, on this machine, mosquitto and Python's HTTP server.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use motet_router::port::PacketPort;

use crate::clock::{self, Executor};
use crate::device::start_motet;
use crate::report::{Report, Row};
use crate::shim::Shim;
use crate::tun::exchange;

#[path = "../../../apps/shared/telemetry.rs"]
mod telemetry;

/// Messages and pages, each over a connection of its own. Without mosquitto or Python there is no
/// row, and a line says so.
pub(crate) fn run(report: &mut Report, port: &RefCell<PacketPort>, host: Ipv6Addr) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("motet-over-{}", std::process::id()));
    std::fs::create_dir(&folder).context("no temporary folder")?;
    let rows = rows(port, host, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    for row in rows? {
        report.add(row);
    }
    Ok(())
}

fn rows(port: &RefCell<PacketPort>, host: Ipv6Addr, folder: &Path) -> Result<Vec<Row>> {
    let log = folder.join("mosquitto.log");
    let configuration = folder.join("mosquitto.conf");
    // In a user namespace there is no other user that it could become.
    let lines = format!("listener {MQTT} {host}\nallow_anonymous true\nuser root\nlog_type all\n");
    std::fs::write(&configuration, lines)?;
    std::fs::write(folder.join("interval"), format!("{SECONDS}\n"))?;
    let mut broker = Command::new("mosquitto");
    broker
        .arg("-c")
        .arg(&configuration)
        .stderr(File::create(&log)?);
    let mut server = Command::new("python3");
    server.args(["-m", "http.server", "--bind", &host.to_string()]);
    server
        .arg(HTTP.to_string())
        .current_dir(folder)
        .stderr(Stdio::null());
    let mut rows = Vec::new();
    if let Some(_broker) = Program::start(&mut broker, (host, MQTT).into())? {
        let told = converse(port, Talk::Publish((host, MQTT).into()))?;
        let heard = std::fs::read_to_string(&log)?;
        let heard = heard.lines().filter(|line| line.contains(RECEIVED)).count();
        let whole = told == COUNT && heard == told as usize;
        let note = format!("{heard} in the broker's log");
        let row = Row::new(
            "MQTT messages by rust-mqtt to mosquitto",
            f64::from(told),
            "msgs",
            whole,
        );
        rows.push(row.by("mosquitto").note(note));
    }
    if let Some(_server) = Program::start(&mut server, (host, HTTP).into())? {
        let url = format!("http://[{host}]:{HTTP}/interval");
        let read = converse(port, Talk::Ask(url))?;
        let row = Row::new("pages by reqwless", f64::from(read), "pages", read == COUNT);
        rows.push(row.by("http.server"));
    }
    Ok(rows)
}

/// What the device does, [`COUNT`] times.
enum Talk {
    Publish(SocketAddr),
    Ask(String),
}

/// How often it was done well.
fn converse(port: &RefCell<PacketPort>, talk: Talk) -> Result<u32> {
    clock::restart(true);
    let mut executor = Executor::default();
    let shim = Shim::default();
    let stack = start_motet(&mut executor, &shim, 4096, 3);
    let (good, is_over) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (counted, ended) = (good.clone(), is_over.clone());
    executor.spawn(async move {
        for number in 0..COUNT {
            let is_good = match &talk {
                Talk::Publish(broker) => {
                    let text = number.to_string();
                    let names = (DEVICE, TOPIC);
                    telemetry::publish(&stack, *broker, names, text.as_bytes()).await
                }
                Talk::Ask(url) => match telemetry::number(&stack, url).await {
                    Ok(SECONDS) => Ok(()),
                    Ok(_) => Err(telemetry::Failed::Malformed),
                    Err(error) => Err(error),
                },
            };
            match is_good {
                Ok(()) => counted.set(counted.get() + 1),
                Err(error) => eprintln!("number {number}: {error:?}"),
            }
        }
        ended.set(true);
    });
    let failed = Rc::new(RefCell::new(None));
    let idle = |most: Option<Duration>| {
        if let Err(error) = exchange(&mut port.borrow_mut(), &shim, most) {
            *failed.borrow_mut() = Some(error);
        }
    };
    let stops = || is_over.get() || failed.borrow().is_some();
    let ended = executor.run(PATIENCE, stops, idle);
    match failed.take() {
        Some(error) => Err(error),
        None if !ended => bail!("the device hangs"),
        None => Ok(good.get()),
    }
}

/// A server that ends with this value.
struct Program(Child);

impl Program {
    /// Starts it, and waits until it listens at `address`; none where it is not installed.
    fn start(command: &mut Command, address: SocketAddr) -> Result<Option<Self>> {
        let name = command.get_program().to_string_lossy().into_owned();
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let Ok(child) = started else {
            eprintln!("not everything is run: there is no {name}");
            return Ok(None);
        };
        let mut program = Self(child);
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if program.0.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                bail!("{name} does not listen at {address}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(Some(program))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const DEVICE: &str = "motet";
const TOPIC: &str = "motet/uptime";
/// What mosquitto's log says of a message of that device.
const RECEIVED: &str = "Received PUBLISH from motet ";
/// Messages, and pages.
const COUNT: u32 = 20;
/// The number that the page has.
const SECONDS: u64 = 15;
const MQTT: u16 = 1883;
const HTTP: u16 = 8000;
/// On a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
