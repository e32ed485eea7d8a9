//! The router beside another border router: packets come by a packet queue.

use std::{
    io,
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use motet_router::{
    fair::{Fair, interface_index},
    inside::Inside,
    outside::Filter,
    port,
    rules::{self, Installed, RulesError},
    wake::{self, Bell, Wake},
};
use motet_taim::{Config, Policy};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{
    Rules, Shared,
    serve::{self, Socket},
    snapshot::Snapshot,
    snapshot_channel::{self, SnapshotServer},
};
use crate::{
    error::Error,
    interrupt::Interrupt,
    output::{self, describe, say},
};

/// Runs the router until a signal ends it.
pub(super) fn run(
    number: u16,
    interface: &str,
    what: Option<Rules>,
    shared: &Shared,
) -> Result<(), Error> {
    let rules = rules::Rules::new(interface, number);
    let rules = rules.ok_or_else(|| {
        Error::input(format!(
            "{interface:?} is no name for the packet filter: --interface takes letters, digits and _ . : @ -"
        ))
    })?;
    if what == Some(Rules::Print) {
        return print(&rules, interface);
    }
    let Some(index) = interface_index(interface) else {
        return Err(Error::input(format!(
            "there is no interface {interface}: `ip link` shows those that there are"
        )));
    };
    // From here on a signal is waited for: what is put in is taken out again.
    let interrupt = Interrupt::install()?;
    let wake = Wake::new()
        .and_then(|wake| wake.on_signals(&[SIGINT, SIGTERM, SIGHUP]).map(|()| wake))
        .map_err(|error| {
            Error::failed(format!("cannot listen for signals: {}", describe(&error)))
        })?;
    let mut config = Config::new(shared.policy().unwrap_or_default());
    config.held_max = HELD_MAX;
    // Without a policy the daemon only watches.
    config.strangers_max = match config.policy {
        Policy::None => 0,
        _ => Config::STRANGERS_MAX,
    };
    let fair =
        Fair::open(number, index, config).map_err(|error| Error::failed(error.to_string()))?;
    let (snapshot_server, snapshot_client) = snapshot_channel::open(wake.bell());
    let socket = serve::open_doors(shared.socket.as_deref(), shared.metrics, &snapshot_client)?;
    let watch = match what {
        Some(Rules::Install) => {
            let installed = rules.install().map_err(|error| failed(&error))?;
            let inside = Inside::read(interface).unwrap_or_default();
            let filter = Filter::install(&rules, inside).map_err(|error| failed(&error))?;
            let rules = InstalledRules {
                installed,
                filter,
                interface: interface.to_owned(),
            };
            Some(RulesWatch::start(rules, wake.bell()).map_err(|error| serve::no_thread(&error))?)
        }
        _ => None,
    };
    // Without it verdicts are up to 50 µs late.
    let _ = port::precise_timers();
    introduce(interface, number, config.policy.name(), socket.as_ref());
    let mut daemon = Daemon {
        fair,
        watch,
        snapshot_server,
        wake,
        interrupt,
        interface,
        index,
        number,
        began: Instant::now(),
        inside_at: Duration::ZERO,
    };
    let ran = daemon.run();
    Error::all([ran, daemon.end()])
}

fn print(rules: &rules::Rules, interface: &str) -> Result<(), Error> {
    let tool = rules.probe().map_err(|error| failed(&error))?;
    let (install, remove) = rules.commands(tool);
    let inside = Inside::read(interface).unwrap_or_default();
    let (drop_forged, drop_no_more) =
        Filter::commands(rules, &inside).map_err(|error| failed(&error))?;
    output::line("# to put the rules in")?;
    output::line(install.join("\n"))?;
    output::line("# and against forged sources, as the routes are now")?;
    output::line(drop_forged.join("\n"))?;
    output::line("# to take them out")?;
    output::line(remove.join("\n"))?;
    output::line(drop_no_more.join("\n"))
}

fn failed(error: &RulesError) -> Error {
    Error::failed(error.to_string())
}

fn introduce(interface: &str, number: u16, policy: &str, socket: Option<&Socket>) {
    let socket = socket.map(|socket| format!(", status at {}", socket.path().display()));
    say(&format!(
        "{policy} for the TCP of {interface} by packet queue {number}{}",
        socket.unwrap_or_default()
    ));
}

/// The router as it runs beside another border router.
struct Daemon<'a> {
    fair: Fair,
    watch: Option<RulesWatch>,
    snapshot_server: SnapshotServer,
    wake: Wake,
    interrupt: Interrupt,
    interface: &'a str,
    index: u32,
    number: u16,
    began: Instant,
    /// When the routes are read again, counted from the begin.
    inside_at: Duration,
}

impl Daemon<'_> {
    /// Lets packets go until a signal comes.
    fn run(&mut self) -> Result<(), Error> {
        self.look()?;
        let mut look_at = Instant::now() + LOOK_EVERY;
        while !self.interrupt.has_come() {
            let has_more = self.fair.turn().map_err(|error| broken(&error))?;
            self.answer();
            let now = Instant::now();
            if now >= look_at {
                look_at = now + LOOK_EVERY;
                self.look()?;
            }
            if has_more {
                continue;
            }
            let until_look = look_at.saturating_duration_since(now);
            let due = self.fair.due_in();
            let nap = due.map_or(until_look, |due| due.min(until_look));
            self.sleep(nap)?;
        }
        Ok(())
    }

    fn sleep(&mut self, nap: Duration) -> Result<(), Error> {
        wake::wait(&[self.fair.as_fd(), self.wake.as_fd()], Some(nap))
            .and_then(|_| self.wake.clear())
            .map_err(|error| broken(&error))
    }

    fn answer(&mut self) {
        let (fair, watch) = (&mut self.fair, &self.watch);
        let (interface, uptime) = (self.interface, self.began.elapsed());
        let number = self.number;
        self.snapshot_server.answer(|| {
            let mut snapshot = Snapshot::of(&fair.status(), interface, uptime);
            let counters = fair.counters();
            snapshot.nfqueue = Some(number);
            snapshot.counters.overruns = counters.queue.overruns;
            snapshot.counters.gone = counters.queue.gone;
            snapshot.counters.elsewhere = counters.elsewhere;
            // Packets that the filter drops never reach the queue, so they are added here.
            snapshot.counters.forged =
                counters.forged + watch.as_ref().map_or(0, |watch| watch.counts.forged());
            snapshot.counters.rules_restored =
                watch.as_ref().map_or(0, |watch| watch.counts.restored());
            snapshot
        });
    }

    /// Looks whether there is still something to do, and what is inside by now.
    fn look(&mut self) -> Result<(), Error> {
        let interface = self.interface;
        if self.began.elapsed() >= self.inside_at {
            self.inside_at = self.began.elapsed() + INSIDE_EVERY;
            // If the routes cannot be read, the last known ones stay in force.
            if let Ok(inside) = Inside::read(interface) {
                self.fair.set_inside(inside);
            }
        }
        if interface_index(interface) != Some(self.index) {
            return Err(Error::failed(format!(
                "the interface {interface} is gone: start the router again when it is back"
            )));
        }
        match &self.watch {
            Some(watch) if watch.has_failed() => Err(Error::failed(
                "the packet filter's rules are gone and cannot be put in again: see which program changes them",
            )),
            _ => Ok(()),
        }
    }

    /// Lets all held packets go, takes the rules out, and gives the queue up.
    fn end(mut self) -> Result<(), Error> {
        let mut released = self.fair.release_all();
        let mut removed = Ok(());
        if let Some(watch) = self.watch.take() {
            let quieter = watch.end();
            // Packets pass on, at once, while the tools do their work.
            while !quieter.is_finished() {
                released = released.and(self.fair.turn().map(drop));
                let _ = wake::wait(&[self.fair.as_fd()], Some(REMOVER_LOOK));
            }
            // Empty before the rules' chains go: with a chain the kernel drops what queues hold.
            released = released.and(self.settle());
            removed = match quieter.join() {
                Ok((rules, quiet)) => Error::all([quiet, rules.remove()]),
                Err(_) => Err(Error::failed(
                    "the thread that takes the rules out panicked",
                )),
            };
        }
        released = released.and(self.fair.turn().map(drop));
        released = released.and(self.fair.close());
        Error::all([released.map_err(|error| broken(&error)), removed])
    }

    /// Lets packets go until none comes any more: one that met a rule just before the rule went may
    /// still be on its way into the queue, and the kernel drops what a queue holds when it closes.
    fn settle(&mut self) -> io::Result<()> {
        let give_up = Instant::now() + SETTLE_MAX;
        while Instant::now() < give_up {
            if !wake::wait(&[self.fair.as_fd()], Some(SETTLED_AFTER))? {
                break;
            }
            self.fair.turn()?;
        }
        Ok(())
    }
}

fn broken(error: &io::Error) -> Error {
    Error::failed(format!("the packet queue broke: {}", describe(error)))
}

/// The rules of the packet filter that this router has installed for `interface`.
struct InstalledRules {
    installed: Installed,
    filter: Filter,
    interface: String,
}

impl InstalledRules {
    /// Puts in again what is gone; returns whether anything was.
    fn restore(&mut self) -> Result<bool, RulesError> {
        let installed = self.installed.restore()?;
        // If the routes cannot be read, the last known ones stay in force.
        let filter = match Inside::read(&self.interface) {
            Ok(inside) => self.filter.keep(inside)?,
            Err(_) => false,
        };
        Ok(installed || filter)
    }

    /// Sends no further packet into the queue.
    fn quieten(&self) -> Result<(), Error> {
        self.installed.quieten().map_err(|error| failed(&error))
    }

    fn remove(self) -> Result<(), Error> {
        let removed = [self.installed.remove(), self.filter.remove()];
        Error::all(removed.map(|removed| removed.map_err(|error| failed(&error))))
    }
}

/// The counters of the thread that watches the rules.
#[derive(Default)]
struct RulesCounts {
    restored: AtomicU64,
    forged: AtomicU64,
}

impl RulesCounts {
    /// How many times the rules were put in again.
    fn restored(&self) -> u64 {
        self.restored.load(Ordering::Relaxed)
    }

    /// Packets that the filter has dropped.
    fn forged(&self) -> u64 {
        self.forged.load(Ordering::Relaxed)
    }
}

/// Puts rules in again that another program has removed, in a thread of its own: the tools take
/// milliseconds.
struct RulesWatch {
    thread: JoinHandle<(InstalledRules, Result<(), Error>)>,
    /// Dropped when the rules are to go.
    stop: Sender<()>,
    counts: Arc<RulesCounts>,
    has_failed: Arc<AtomicBool>,
}

impl RulesWatch {
    fn start(rules: InstalledRules, bell: Bell) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (counts, has_failed) = (Arc::<RulesCounts>::default(), Arc::<AtomicBool>::default());
        let (count, failed) = (Arc::clone(&counts), Arc::clone(&has_failed));
        let thread = thread::Builder::new()
            .name("rules".to_owned())
            .spawn(move || watch_rules(rules, &stopped, &count, &failed, &bell))?;
        Ok(Self {
            thread,
            stop,
            counts,
            has_failed,
        })
    }

    /// Whether the rules are not in, and cannot be put in.
    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Ends the thread, which sends no further packet into the queue and gives the rules back.
    fn end(self) -> JoinHandle<(InstalledRules, Result<(), Error>)> {
        drop(self.stop);
        self.thread
    }
}

fn watch_rules(
    mut rules: InstalledRules,
    stopped: &Receiver<()>,
    counts: &RulesCounts,
    has_failed: &AtomicBool,
    bell: &Bell,
) -> (InstalledRules, Result<(), Error>) {
    let mut failures = 0;
    while matches!(
        stopped.recv_timeout(RULES_LOOK_EVERY),
        Err(RecvTimeoutError::Timeout)
    ) {
        match rules.restore() {
            Ok(restored) => {
                failures = 0;
                counts
                    .forged
                    .store(rules.filter.dropped(), Ordering::Relaxed);
                if restored {
                    counts.restored.fetch_add(1, Ordering::Relaxed);
                    say("another program has changed the packet filter: the rules are in again");
                }
            }
            // Another program may hold the lock for long.
            Err(_) if failures < RULES_FAILURES_MAX => failures += 1,
            Err(error) => {
                say(&error.to_string());
                has_failed.store(true, Ordering::Relaxed);
                bell.ring();
                break;
            }
        }
    }
    let quiet = rules.quieten();
    (rules, quiet)
}

/// Packets that are held at a time. The kernel looks for a packet from the oldest on: with more
/// than these each verdict would take it too long.
const HELD_MAX: usize = 4_096;

/// How often the interface is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often the routes are read: prefixes of a mesh change rarely.
const INSIDE_EVERY: Duration = Duration::from_secs(5);

/// The interval between two checks of the rules.
const RULES_LOOK_EVERY: Duration = Duration::from_secs(5);

/// The number of checks that may fail in a row.
const RULES_FAILURES_MAX: u32 = 2;

/// How long the queue must have been empty after the rules went: far longer than a packet takes
/// from a rule to the queue, unless the machine is busy with something else.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

/// How long packets may keep the queue open then, as those of a rule that somebody else put in do.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// How long a packet may wait while the rules are taken out, at most.
const REMOVER_LOOK: Duration = Duration::from_millis(5);
