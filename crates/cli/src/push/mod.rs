//! `motet push`: new firmware for motes.

mod client;
mod known;
mod mote;
mod order;
mod show;

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddrV6, ToSocketAddrs as _},
    path::PathBuf,
    sync::Mutex,
    thread,
};

use clap::{Args as ClapArgs, ValueEnum};
use motet_update::Header;

use self::{
    client::Client,
    known::Known,
    mote::{Bringing, Outcome, Source, follow, prepare},
    order::Tree,
    show::Show,
};
use crate::{error::Error, files, output, router, token};

/// Bring new firmware to motes that have /firmware, and go on where an upload broke off
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The image is MCUboot's, as imgtool makes it. Each mote is asked first how much it has, by length and digest; \
only the rest is sent. A mote verifies the image before it is pending, and runs on with the old one until its \
next reset. A connection that breaks is opened again for as long as the mote takes bytes. One that does not \
answer within ten seconds has its turn after the others.

With --schedule tree an image crosses each link once: the border router's status names each mote's parent, \
and a mote fetches from the nearest one above it, part by part as that one is known to have them by their digest. \
Where the parent fails, this command sends the image. The token is the same for all.

Each mote has a line on standard output when it is done: its address, seconds, and the bytes sent again. Ctrl-C \
ends the command; run it again to go on.

Examples:
  motet push fw.bin --to fd6d:6f74:6574:1:4d:6f74:6574:1
  motet push fw.bin --to mote1 mote2 --schedule parallel --token token.txt
  motet push fw.bin --to mote1 mote2 --schedule tree --router router.sock")]
pub(crate) struct Args {
    /// The image, signed or not, as the motes demand
    #[arg(value_name = "FILE")]
    image: PathBuf,

    /// The motes: addresses, or names that this machine knows
    #[arg(long, value_name = "ADDRESS", required = true, num_args = 1..)]
    to: Vec<String>,

    /// Which mote gets it when: one after another, all at once, or each from the one above it
    #[arg(
        long,
        value_enum,
        value_name = "sequential|parallel|tree",
        hide_possible_values = true,
        default_value = "sequential"
    )]
    schedule: Schedule,

    /// The socket of the border router that knows the parents [default: as motet router status
    /// finds it]
    #[arg(long, value_name = "SOCKET")]
    router: Option<PathBuf>,

    /// The token that the motes ask for, in a file
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,

    /// The port of /firmware
    #[arg(long, value_name = "N", default_value_t = 80)]
    port: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Schedule {
    Sequential,
    Parallel,
    Tree,
}

/// What all motes have in common.
struct Push {
    image: Vec<u8>,
    token: Option<Vec<u8>>,
    show: Show,
    failures: Mutex<Vec<String>>,
    known: Known,
}

/// Brings the image to all motes.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let image = files::read(&args.image)?;
    let header = image.first_chunk().map(Header::parse);
    if !matches!(header, Some(Ok(header)) if header.hashed_len().is_some_and(|len| len as usize <= image.len()))
    {
        return Err(Error::input(format!(
            "{} is no whole image of MCUboot: make one with imgtool sign",
            args.image.display()
        )));
    }
    if args.router.is_some() && args.schedule != Schedule::Tree {
        return Err(Error::input(
            "--router is for --schedule tree alone, which needs each mote's parent: add --schedule tree, or leave --router out",
        ));
    }
    let token = args.token.as_deref().map(token::read).transpose()?;
    let motes = addresses(&args.to, args.port)?;
    let tree = match args.schedule {
        Schedule::Sequential | Schedule::Parallel => Tree::flat(&motes),
        Schedule::Tree => Tree::of(&motes, &router::parents(args.router.as_deref())?),
    };
    let push = Push {
        show: Show::new(&motes, image.len() as u64),
        image,
        token,
        failures: Mutex::default(),
        known: Known::default(),
    };
    match args.schedule {
        Schedule::Parallel => thread::scope(|scope| {
            for mote in &tree.roots {
                let push = &push;
                scope.spawn(move || push.send(*mote, false));
            }
        }),
        Schedule::Sequential | Schedule::Tree => thread::scope(|scope| {
            for (mote, source) in tree.followers() {
                let push = &push;
                scope.spawn(move || push.let_follow(mote, source));
            }
            match args.schedule {
                Schedule::Tree => push.send_in_rounds(&tree),
                Schedule::Sequential | Schedule::Parallel => push.send_in_turn(&tree.roots),
            }
        }),
    }
    let failures = push.failures.into_inner().unwrap_or_default();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Error::failed(format!(
        "{} of {} motes have not got the image: {}",
        failures.len(),
        motes.len(),
        failures.join("; ")
    )))
}

impl Push {
    fn client(&self, mote: SocketAddrV6) -> Client<'_> {
        Client::new(mote, self.token.as_deref())
    }

    /// Lets a mote fetch from one above it; if it cannot, it gets the image from here.
    fn let_follow(&self, mote: SocketAddrV6, source: Source) {
        let client = self.client(mote);
        match follow(&client, &self.image, source, (&self.show, &self.known)) {
            Ok(outcome) => self.done(mote, outcome),
            Err(why) => {
                let name = show::name(mote);
                let sentence = format!(
                    "{name} cannot fetch from its parent ({why}): it gets the image from here"
                );
                self.show.say(&sentence);
                self.send(mote, true);
            }
        }
    }

    /// Sends the image to a mote; in parts, if others fetch from it.
    fn send(&self, mote: SocketAddrV6, in_parts: bool) {
        let mut bringing = self.bringing(mote, in_parts);
        while !self.has_ended(mote, bringing.step()) {}
    }

    /// Sends the image to one mote after another; the next one is prepared meanwhile. A mote that
    /// does not answer soon has its turn after the others: it may be off, and they would wait for
    /// it, too.
    fn send_in_turn(&self, motes: &[SocketAddrV6]) {
        let mut late = Vec::new();
        for (place, mote) in motes.iter().enumerate() {
            let has_others = motes.len() - late.len() > 1;
            if has_others && !self.is_there(*mote) {
                late.push(*mote);
                continue;
            }
            thread::scope(|scope| {
                if let Some(next) = motes.get(place + 1) {
                    scope.spawn(move || prepare(&self.client(*next), &self.image));
                }
                self.send(*mote, false);
            });
        }
        for mote in late {
            self.send(mote, false);
        }
    }

    /// Whether the mote answers soon; says if it does not.
    fn is_there(&self, mote: SocketAddrV6) -> bool {
        let is_there = self.client(mote).hasty().is_there();
        if !is_there {
            let name = show::name(mote);
            let sentence = format!("{name} does not answer yet: the others go first");
            self.show.say(&sentence);
        }
        is_there
    }

    /// Sends the image to those below this host, a part to each in turn: a mote has passed a part
    /// on before its next one comes, and the air around the border router is never idle. Those that
    /// do not answer soon come after the others.
    fn send_in_rounds(&self, tree: &Tree) {
        let of = |mote: &SocketAddrV6| {
            let in_parts = !tree.below(*mote).is_empty();
            (*mote, self.bringing(*mote, in_parts))
        };
        let is_alone = tree.roots.len() < 2;
        let is_there = |mote: &SocketAddrV6| is_alone || self.is_there(*mote);
        let (there, late): (Vec<_>, Vec<_>) = tree.roots.iter().copied().partition(is_there);
        for motes in [there, late] {
            let mut open: Vec<_> = motes.iter().map(of).collect();
            while !open.is_empty() {
                open.retain_mut(|(mote, bringing)| !self.has_ended(*mote, bringing.step()));
            }
        }
    }

    fn bringing(&self, mote: SocketAddrV6, in_parts: bool) -> Bringing<'_> {
        let both = (&self.show, &self.known);
        Bringing::new(self.client(mote), &self.image, both, in_parts)
    }

    /// Whether nothing more goes to the mote; tells how that ended.
    fn has_ended(&self, mote: SocketAddrV6, step: Result<Option<Outcome>, String>) -> bool {
        match step {
            Ok(None) => return false,
            Ok(Some(outcome)) => self.done(mote, outcome),
            Err(why) => {
                self.known.end(mote);
                self.show.failed(mote);
                let failure = format!("{}: {why}", show::name(mote));
                if let Ok(mut failures) = self.failures.lock() {
                    failures.push(failure);
                }
            }
        }
        true
    }

    fn done(&self, mote: SocketAddrV6, outcome: Outcome) {
        self.known.check(mote, self.image.len());
        self.known.end(mote);
        let line = outcome.line(&show::name(mote));
        self.show.done(mote);
        // Motes get the image even when nobody reads the output any more.
        let _ = output::line(line);
    }
}

/// The addresses of the motes, each once.
fn addresses(names: &[String], port: u16) -> Result<Vec<SocketAddrV6>, Error> {
    let mut motes = Vec::new();
    for name in names {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let addr = match bare.parse::<Ipv6Addr>() {
            Ok(addr) => Some(addr),
            Err(_) => resolve(bare),
        };
        let Some(addr) = addr else {
            return Err(Error::input(format!(
                "{name} is no IPv6 address, and no name that this machine knows one of"
            )));
        };
        if addr.is_multicast() || addr.is_unspecified() {
            return Err(Error::input(format!(
                "{name} is no single mote: name each mote's address"
            )));
        }
        let mote = SocketAddrV6::new(addr, port, 0, 0);
        if !motes.contains(&mote) {
            motes.push(mote);
        }
    }
    Ok(motes)
}

fn resolve(name: &str) -> Option<Ipv6Addr> {
    let mut found = (name, 0).to_socket_addrs().ok()?;
    found.find_map(|addr| match addr.ip() {
        IpAddr::V6(addr) => Some(addr),
        IpAddr::V4(_) => None,
    })
}
