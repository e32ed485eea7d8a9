//! Who gets the image when, and how one mote gets it: what `motet push` does.

use std::cell::RefCell;
use std::net::Ipv6Addr;
use std::rc::Rc;

use embassy_futures::join::join;
use embedded_io_async::ErrorKind;
use motet::time::Duration;
use motet_update::{Header, Response};
use sha2::{Digest as _, Sha256};

use super::http::Client;

/// One push: its image, its motes, and how far each is.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) client: Client,
    pub(super) image: Vec<u8>,
    pub(super) motes: Vec<Target>,
    pub(super) fates: RefCell<Vec<Fate>>,
}

/// A mote that is to get the image.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The mote's address.
    pub addr: Ipv6Addr,
    /// The place, among the targets, of the mote that it fetches from; none: from the host.
    pub source: Option<usize>,
    /// The address of that mote as this one reaches it best: link-local where they are neighbours.
    pub source_addr: Option<Ipv6Addr>,
}

/// How a mote does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Fate {
    /// Bytes at the image's begin that it has, by their digest.
    checked: usize,
    /// It has the whole image, verified.
    pub(super) has_it: bool,
    /// Nobody tries any more.
    pub(super) is_over: bool,
    /// Bytes that were sent to it again.
    pub(super) resent: u64,
}

/// What was tried with one mote.
#[derive(Clone, Copy, Debug, Default)]
struct Effort {
    /// The most bytes that it was known to have, or that had gone.
    best: usize,
    /// Bytes that have gone.
    gone: usize,
    /// Tries in a row that brought it no byte.
    idle: u64,
    /// Tries that found another writer.
    busy: u32,
    /// Whether the mote has ever answered.
    has_answered: bool,
}

impl Push {
    /// Brings the image to these motes from the host, one after another; the next one is prepared
    /// meanwhile. A mote that does not answer soon has its turn after the others.
    pub(super) async fn in_turn(self: Rc<Self>, motes: Vec<usize>) {
        let mut late = Vec::new();
        for (place, mote) in motes.iter().enumerate() {
            let others = motes.len() - late.len() > 1;
            if others && !self.is_there(*mote).await {
                late.push(*mote);
                continue;
            }
            match motes.get(place + 1) {
                Some(next) => {
                    join(self.bring(*mote), self.prepare(*next)).await;
                }
                None => self.bring(*mote).await,
            }
        }
        for mote in late {
            self.bring(mote).await;
        }
    }

    /// Whether the mote has answered, or does so soon.
    async fn is_there(&self, mote: usize) -> bool {
        let addr = self.motes[mote].addr;
        self.fate(mote).checked > 0 || self.client.hasty().head(addr).await.is_ok()
    }

    /// Gives a mote that has nothing of the image its header: it has erased its slot when its turn
    /// comes. What goes wrong its turn shows again.
    async fn prepare(&self, mote: usize) {
        if let Ok(0) = self.ask(mote).await {
            let end = self.image.len().min(FIRST_LEN);
            let addr = self.motes[mote].addr;
            let put = self.client.put(addr, &self.image, 0..end, |_| {}).await;
            if let Ok(answer) = put {
                self.note(mote, &answer, end);
            }
        }
    }

    /// Lets a mote fetch from another one what that one is known to have, part by part; if that
    /// cannot be, the mote gets the image from the host.
    pub(super) async fn follow(self: Rc<Self>, mote: usize, from: usize) {
        let mut failures = 0;
        while failures < FETCHES {
            let (own, source) = (self.fate(mote), self.fate(from));
            if own.has_it {
                return;
            }
            if source.is_over && !source.has_it {
                break;
            }
            if source.checked <= own.checked {
                self.client.clock.wait(LOOK_EVERY).await;
                continue;
            }
            match self.let_fetch(mote, source.checked).await {
                true => failures = 0,
                false => {
                    failures += 1;
                    self.client.clock.wait(PAUSE.saturating_mul(failures)).await;
                }
            }
        }
        self.bring(mote).await;
    }

    /// Sends what these motes lack, a part to each in turn, until all have all: so the air around
    /// the border router is never idle, and a mote has passed a part on before its next one comes.
    pub(super) async fn in_rounds(self: Rc<Self>, motes: Vec<usize>) {
        let mut open: Vec<(usize, Effort)> = motes
            .iter()
            .map(|mote| (*mote, Effort::default()))
            .collect();
        while !open.is_empty() {
            let mut still = Vec::new();
            for (mote, mut effort) in open {
                if !self.send_part(mote, &mut effort).await {
                    still.push((mote, effort));
                }
            }
            open = still;
        }
    }

    /// Sends what the mote lacks, until it has all.
    async fn bring(&self, mote: usize) {
        let mut effort = Effort::default();
        while !self.send_part(mote, &mut effort).await {}
    }

    /// Sends the mote the next part of what it lacks; returns whether nothing more will be sent.
    async fn send_part(&self, mote: usize, effort: &mut Effort) -> bool {
        let is_over = match self.try_once(mote, effort).await {
            Ok(200 | 201) => true,
            // A part is there.
            Ok(202) if self.fate(mote).checked > effort.best => {
                effort.best = self.fate(mote).checked;
                effort.idle = 0;
                return false;
            }
            Ok(503) if effort.busy < BUSY_MAX => {
                effort.busy += 1;
                self.client.clock.wait(BUSY_PAUSE).await;
                return false;
            }
            // Each of these tries has waited for longer than a mote sleeps.
            Err(ErrorKind::TimedOut) if !effort.has_answered && effort.idle > 0 => true,
            Ok(202 | 409) | Err(_) => {
                // What it has is to be asked.
                self.fates.borrow_mut()[mote].checked = 0;
                effort.idle += 1;
                false
            }
            Ok(_) => true,
        };
        if effort.gone > effort.best {
            effort.best = effort.gone;
            effort.idle = 0;
        }
        if is_over || effort.idle > TRIES {
            self.fates.borrow_mut()[mote].is_over = true;
            return true;
        }
        let pause = PAUSE.saturating_mul(effort.idle.max(1));
        self.client.clock.wait(pause).await;
        false
    }

    /// Asks what the mote has where that is not known, and sends the rest, or a part of it: 200
    /// where it has all.
    async fn try_once(&self, mote: usize, effort: &mut Effort) -> Result<u16, ErrorKind> {
        let first = match self.fate(mote).checked {
            0 => self.ask(mote).await?,
            known => known,
        };
        effort.has_answered = true;
        let gone = &mut effort.gone;
        if first == self.image.len() {
            return Ok(200);
        }
        self.fates.borrow_mut()[mote].resent += gone.saturating_sub(first) as u64;
        *gone = first;
        let addr = self.motes[mote].addr;
        let part = first..self.end_of_part(mote, first);
        let end = part.end;
        let answer = self
            .client
            .put(addr, &self.image, part, |sent| *gone = sent)
            .await?;
        self.note(mote, &answer, end);
        Ok(answer.status)
    }

    /// Lets the mote fetch up to the byte before `end`; returns whether it then has these.
    async fn let_fetch(&self, mote: usize, end: usize) -> bool {
        let target = self.motes[mote];
        let Some(source) = target.source_addr else {
            return false;
        };
        let part = Some(end).filter(|end| *end < self.image.len());
        match self.client.post(target.addr, source, part).await {
            Ok(answer) if self.note(mote, &answer, end) => true,
            // It may have all the same, or more, or have lost some.
            _ => {
                let before = self.fate(mote).checked;
                let held = self.ask(mote).await.unwrap_or(0);
                let lost = before.saturating_sub(held) as u64;
                self.fates.borrow_mut()[mote].resent += lost;
                held >= end
            }
        }
    }

    /// Notes what a mote has by its answer; returns whether it has the bytes before `end`.
    fn note(&self, mote: usize, answer: &Response, end: usize) -> bool {
        let expected: [u8; 32] = Sha256::digest(&self.image[..end]).into();
        let is_right = answer.sha256 == Some(expected) && matches!(answer.status, 201 | 202);
        if is_right {
            self.check(mote, end, answer.status == 201);
        }
        is_right
    }

    /// Asks the mote how much of this image it has.
    async fn ask(&self, mote: usize) -> Result<usize, ErrorKind> {
        let answer = self.client.head(self.motes[mote].addr).await?;
        let len = answer
            .content_length
            .and_then(|len| usize::try_from(len).ok());
        let begin = len.and_then(|len| self.image.get(..len));
        let is_ours = |begin: &&[u8]| answer.sha256 == Some(Sha256::digest(begin).into());
        let held = begin.filter(is_ours).map_or(0, <[u8]>::len);
        self.check(mote, held, held == self.image.len());
        Ok(held)
    }

    fn check(&self, mote: usize, bytes: usize, has_it: bool) {
        let fate = &mut self.fates.borrow_mut()[mote];
        fate.checked = bytes;
        fate.has_it = has_it;
        fate.is_over |= has_it;
    }

    fn fate(&self, mote: usize) -> Fate {
        self.fates.borrow()[mote]
    }

    /// Where a part ends that begins at `first`: a mote that others fetch from gets a third of the
    /// image at a time, whole pages of flash.
    fn end_of_part(&self, mote: usize, first: usize) -> usize {
        let has_followers = self.motes.iter().any(|other| other.source == Some(mote));
        let part = self.image.len().div_ceil(PARTS).next_multiple_of(PAGE_LEN);
        match has_followers {
            true => self.image.len().min(first - first % part + part),
            false => self.image.len(),
        }
    }
}

/// How often a task looks whether another one is done: both are this host's.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// As with `motet push`: how often, and how long apart, a mote is asked that has another writer;
/// tries in a row that bring a mote no byte; the wait before the second of them.
const BUSY_MAX: u32 = 18;
const BUSY_PAUSE: Duration = Duration::from_secs(10);
const TRIES: u64 = 6;
const PAUSE: Duration = Duration::from_secs(1);

/// How often a mote is told to fetch before it gets the image from here.
const FETCHES: u64 = 4;

/// In how many parts a mote gets the image that others fetch from: more of them take more
/// connections, fewer let those others wait longer.
const PARTS: usize = 3;

/// A page of flash.
const PAGE_LEN: usize = 4_096;

/// Bytes that announce an image: its header.
const FIRST_LEN: usize = Header::LEN;
