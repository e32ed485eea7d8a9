//! One mote: what it has, what it lacks, and how it gets that.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};

use super::{
    client::{Answer, Client},
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
    /// Nothing, or another image.
    Other,
}

/// Sends what the mote lacks, until it has all; a connection that breaks is opened again while the
/// mote takes bytes.
///
/// # Errors
/// A sentence.
pub(super) fn bring(client: &Client<'_>, image: &[u8], show: &Show) -> Result<Outcome, String> {
    let began = Instant::now();
    let (mut best, mut gone, mut resent) = (0_usize, 0_usize, 0_u64);
    let (mut idle, mut busy) = (0, 0);
    loop {
        let tried = held(client, image).and_then(|held| {
            let first = match held {
                Held::All => return Ok(None),
                Held::Part(len) => len,
                Held::Other => 0,
            };
            resent += gone.saturating_sub(first) as u64;
            gone = first;
            show.update(client.mote, first as u64, "from here");
            let answer = client.put(image, first, |sent| {
                gone = sent;
                show.update(client.mote, sent as u64, "from here");
            });
            Ok(Some(answer?))
        });
        match tried {
            Ok(None) if gone == 0 => return Ok(Outcome::HadIt),
            Ok(None) => return Ok(sent(began, resent)),
            Ok(Some(answer)) => match answer.head.status {
                201 => return Ok(sent(began, resent)),
                // Another writer, or an earlier connection that the mote has not given up yet.
                503 if busy < BUSY_MAX => {
                    busy += 1;
                    thread::sleep(BUSY_PAUSE);
                    continue;
                }
                409 => idle += 1,
                _ => return Err(refusal(&answer)),
            },
            Err(Trouble::Refused(why)) => return Err(why),
            Err(Trouble::Line(error)) if idle >= TRIES => {
                return Err(format!("no connection ({})", describe(&error)));
            }
            Err(Trouble::Line(_)) => idle += 1,
        }
        if gone > best {
            best = gone;
            idle = 0;
        }
        if idle > TRIES {
            return Err("what it has changes while it is sent to".to_owned());
        }
        thread::sleep(PAUSE * idle.max(1));
    }
}

/// Lets the mote fetch from one above it that has the image.
///
/// # Errors
/// A sentence: then the mote may get it from here.
pub(super) fn let_fetch(
    client: &Client<'_>,
    image: &[u8],
    parent: std::net::SocketAddrV6,
    show: &Show,
) -> Result<Outcome, String> {
    let began = Instant::now();
    let stored = || client.head().ok()?.head.content_length;
    match held(client, image) {
        Ok(Held::All) => return Ok(Outcome::HadIt),
        Ok(_) => {}
        Err(Trouble::Refused(why)) => return Err(why),
        Err(Trouble::Line(error)) => return Err(describe(&error)),
    }
    show.update(client.mote, 0, "from its parent");
    let answer = client.post(parent, || {
        if let Some(stored) = stored() {
            show.update(client.mote, stored, "from its parent");
        }
    });
    let answer = answer.map_err(|error| describe(&error))?;
    if answer.head.status != 201 {
        return Err(refusal(&answer));
    }
    // The parent's image is not necessarily this one.
    match held(client, image) {
        Ok(Held::All) => Ok(Outcome::Fetched {
            seconds: began.elapsed().as_secs_f64(),
        }),
        _ => Err("its parent has another image".to_owned()),
    }
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
        _ => Held::Other,
    })
}

fn sent(began: Instant, resent: u64) -> Outcome {
    Outcome::Sent {
        seconds: began.elapsed().as_secs_f64(),
        resent,
    }
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

/// Tries in a row that bring a mote no byte.
const TRIES: u32 = 6;

/// The wait before the second of them; each further one waits longer.
const PAUSE: Duration = Duration::from_secs(1);
