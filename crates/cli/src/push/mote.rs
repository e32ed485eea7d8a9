//! One mote: what it has, what it lacks, and how it gets that.

use std::{
    io,
    net::SocketAddrV6,
    thread,
    time::{Duration, Instant},
};

use motet_update::Header;
use sha2::{Digest as _, Sha256};

use super::{
    client::{Answer, Client, is_timeout},
    known::Known,
    show::Show,
};
use crate::output::describe;

/// How a mote came to have the image.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Outcome {
    /// It had it.
    HadIt,
    /// It got it from here, in so many seconds; so many bytes went twice.
    Sent { seconds: f64, resent: u64 },
    /// It fetched it from the mote above it.
    Fetched { seconds: f64 },
}

impl Outcome {
    /// The line about it.
    pub(super) fn line(self, mote: &str) -> String {
        match self {
            Self::HadIt => format!("{mote}  had it"),
            Self::Sent { seconds, resent } => {
                format!("{mote}  {seconds:.1} s  {resent} B sent again")
            }
            Self::Fetched { seconds } => format!("{mote}  {seconds:.1} s  from its parent"),
        }
    }
}

/// What a mote has of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    All,
    /// So many bytes from its begin.
    Part(usize),
    /// So many bytes of another image.
    Other(u64),
}

/// One mote that gets the image from here; a connection that breaks is opened again while the mote
/// takes bytes.
pub(super) struct Bringing<'p> {
    client: Client<'p>,
    image: &'p [u8],
    show: &'p Show,
    known: &'p Known,
    /// Others fetch from the mote: it gets a part at a time, and they hear of each by `known`.
    in_parts: bool,
    began: Option<Instant>,
    /// Bytes that it has by the digest in its last answer.
    checked: Option<usize>,
    best: usize,
    gone: usize,
    resent: u64,
    idle: u32,
    busy: u32,
    /// Whether it has ever answered.
    has_answered: bool,
}

impl<'p> Bringing<'p> {
    pub(super) fn new(
        client: Client<'p>,
        image: &'p [u8],
        (show, known): (&'p Show, &'p Known),
        in_parts: bool,
    ) -> Self {
        Self {
            client,
            image,
            show,
            known,
            in_parts,
            began: None,
            checked: None,
            best: 0,
            gone: 0,
            resent: 0,
            idle: 0,
            busy: 0,
            has_answered: false,
        }
    }

    /// Sends the next part of what the mote lacks; `None` where more is to be sent.
    ///
    /// # Errors
    /// A sentence: no more can be sent.
    pub(super) fn step(&mut self) -> Result<Option<Outcome>, String> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let sent = |resent| {
            let seconds = began.elapsed().as_secs_f64();
            Ok(Some(Outcome::Sent { seconds, resent }))
        };
        match self.try_once() {
            Ok(None) if self.gone == 0 => return Ok(Some(Outcome::HadIt)),
            Ok(None) => return sent(self.resent),
            Ok(Some(answer)) => match answer.head.status {
                201 => return sent(self.resent),
                // The part is there.
                202 if self.checked.is_some_and(|checked| checked > self.best) => {
                    self.best = self.gone;
                    self.idle = 0;
                    return Ok(None);
                }
                // Another writer, or an earlier connection that the mote has not given up yet.
                503 if self.busy < BUSY_MAX => {
                    self.busy += 1;
                    thread::sleep(BUSY_PAUSE);
                    return Ok(None);
                }
                202 | 409 => self.idle += 1,
                _ => return Err(refusal(&answer)),
            },
            Err(Trouble::Refused(why)) => return Err(why),
            // Each of these tries has waited for longer than a mote sleeps.
            Err(Trouble::Line(error))
                if !self.has_answered && is_timeout(&error) && self.idle >= TRIES_UNHEARD =>
            {
                return Err("it does not answer: is it on?".to_owned());
            }
            Err(Trouble::Line(error)) if self.idle >= TRIES => {
                return Err(format!("no connection ({})", describe(&error)));
            }
            Err(Trouble::Line(_)) => self.idle += 1,
        }
        self.checked = None;
        if self.gone > self.best {
            self.best = self.gone;
            self.idle = 0;
        }
        if self.idle > TRIES {
            return Err("what it has changes while it is sent to".to_owned());
        }
        thread::sleep(PAUSE * self.idle.max(1));
        Ok(None)
    }

    /// Asks what the mote has where that is not known, and sends a part; `None` where it has all.
    fn try_once(&mut self) -> Result<Option<Answer>, Trouble> {
        let first = match self.checked {
            Some(checked) => checked,
            None => {
                let held = held(&self.client, self.image)?;
                self.has_answered = true;
                match held {
                    Held::All => return Ok(None),
                    Held::Part(len) => len,
                    Held::Other(_) => 0,
                }
            }
        };
        let (client, image, show) = (self.client, self.image, self.show);
        self.resent += self.gone.saturating_sub(first) as u64;
        self.gone = first;
        self.known.check(client.mote, first);
        show.update(client.mote, first as u64, "from here");
        let end = match self.in_parts {
            true => end_of_part(image.len(), first),
            false => image.len(),
        };
        let gone = &mut self.gone;
        let answer = client.put(image, first..end, |sent| {
            *gone = sent;
            show.update(client.mote, sent as u64, "from here");
        })?;
        let is_there = answer.head.status == 202 && has(&answer, image, end);
        self.checked = is_there.then_some(end);
        if is_there {
            self.known.check(client.mote, end);
        }
        Ok(Some(answer))
    }
}

/// Gives a mote that has nothing of the image its header: it has erased its slot when its turn
/// comes. One that has another image pending keeps that until its turn. Errors are ignored: the
/// mote's own turn meets them again.
pub(super) fn prepare(client: &Client<'_>, image: &[u8]) {
    let client = client.hasty();
    let is_free = match held(&client, image) {
        Ok(Held::Part(len)) => len == 0,
        Ok(Held::Other(len)) => matches!(client.has_whole(len), Ok(false)),
        Ok(Held::All) | Err(_) => false,
    };
    if is_free {
        let _ = client.put(image, 0..image.len().min(Header::LEN), |_| {});
    }
}

/// Lets the mote fetch from one above it, each time what that one is known to have.
///
/// # Errors
/// A sentence: then the mote may get it from here.
pub(super) fn follow(
    client: &Client<'_>,
    image: &[u8],
    source: Source,
    (show, known): (&Show, &Known),
) -> Result<Outcome, String> {
    let began = Instant::now();
    let mut own = match held(client, image) {
        Ok(Held::All) => return Ok(Outcome::HadIt),
        Ok(Held::Part(len)) => len,
        Ok(Held::Other(_)) => 0,
        Err(Trouble::Refused(why)) => return Err(why),
        Err(Trouble::Line(error)) => return Err(describe(&error)),
    };
    let mut failures = 0;
    loop {
        known.check(client.mote, own);
        show.update(client.mote, own as u64, "from its parent");
        let above = known.wait_for_more(source.mote, own);
        if above.checked <= own {
            return Err("its parent has not got it".to_owned());
        }
        let end = above.checked;
        let part = (end < image.len()).then_some(end);
        // Whose link-local address is another one is found by the global one.
        let addr = if failures % 2 == 0 {
            source.addr
        } else {
            source.mote
        };
        let answer = client.post(addr, part, || {
            let stored = client
                .head()
                .ok()
                .and_then(|answer| answer.head.content_length);
            if let Some(stored) = stored {
                show.update(client.mote, stored, "from its parent");
            }
        });
        let why = match &answer {
            Ok(answer) if matches!(answer.head.status, 201 | 202) && has(answer, image, end) => {
                (own, failures) = (end, 0);
                if end == image.len() {
                    return Ok(Outcome::Fetched {
                        seconds: began.elapsed().as_secs_f64(),
                    });
                }
                continue;
            }
            // The parent's image is not necessarily this one.
            Ok(answer) if answer.head.status < 300 => "its parent has another image".to_owned(),
            Ok(answer) => refusal(answer),
            Err(error) => describe(error),
        };
        failures += 1;
        if failures > FETCHES {
            return Err(why);
        }
        thread::sleep(PAUSE * failures);
        own = match held(client, image) {
            Ok(Held::All) => image.len(),
            Ok(Held::Part(len)) => len,
            Ok(Held::Other(_)) | Err(_) => 0,
        };
        if own == image.len() {
            return Ok(Outcome::Fetched {
                seconds: began.elapsed().as_secs_f64(),
            });
        }
    }
}

/// The mote that another one fetches from, and its address as that one reaches it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) mote: SocketAddrV6,
    pub(super) addr: SocketAddrV6,
}

/// Whether an answer says, by its digest, that the mote has the bytes before `end`.
fn has(answer: &Answer, image: &[u8], end: usize) -> bool {
    let begin = image.get(..end).unwrap_or_default();
    answer.head.sha256 == Some(Sha256::digest(begin).into())
}

/// Where a part ends that begins at `first`: a third of the image, whole pages of flash. More parts
/// take more connections; with fewer those who fetch wait longer.
fn end_of_part(len: usize, first: usize) -> usize {
    let part = len.div_ceil(PARTS).next_multiple_of(PAGE_LEN);
    len.min(first - first % part + part)
}

/// Why there is no answer to go on with.
enum Trouble {
    Refused(String),
    Line(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Line(error)
    }
}

fn held(client: &Client<'_>, image: &[u8]) -> Result<Held, Trouble> {
    let answer = client.head()?;
    let Answer { head, .. } = &answer;
    if head.status != 200 {
        return Err(Trouble::Refused(refusal(&answer)));
    }
    let Some(len) = head.content_length else {
        return Err(Trouble::Refused(
            "it does not say how much it has".to_owned(),
        ));
    };
    let begin = usize::try_from(len).ok().and_then(|len| image.get(..len));
    Ok(match begin {
        Some(begin) if head.sha256 == Some(Sha256::digest(begin).into()) => {
            if begin.len() == image.len() {
                Held::All
            } else {
                Held::Part(begin.len())
            }
        }
        _ => Held::Other(len),
    })
}

/// What the mote said, in a sentence.
fn refusal(answer: &Answer) -> String {
    let status = answer.head.status;
    match (status, answer.text.as_str()) {
        (401, _) => "it asks for a token, see --token".to_owned(),
        (404, "") => "it has no /firmware".to_owned(),
        (_, "") => format!("it answered {status}"),
        (_, text) => format!("{text} ({status})"),
    }
}

/// How often, and how long apart, a mote is asked that has another writer: longer than one that is
/// gone keeps its place.
const BUSY_MAX: u32 = 18;
const BUSY_PAUSE: Duration = Duration::from_secs(10);

/// In how many parts a mote gets the image that others fetch from.
const PARTS: usize = 3;

/// A page of flash.
const PAGE_LEN: usize = 4_096;

/// Failures in a row after which a mote no longer fetches.
const FETCHES: u32 = 3;

/// Tries in a row that bring a mote no byte.
const TRIES: u32 = 6;

/// Tries beyond the first with a mote that has never answered.
const TRIES_UNHEARD: u32 = 1;

/// The wait before the second of them; each further one waits longer.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
