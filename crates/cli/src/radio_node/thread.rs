//! A mote as a child in a Thread network: its dataset, its identity, and what it says of its
//! place.
//!
//! Purpose: reads the dataset, keeps who the mote is in that network, gives the radio its
//! addresses, and says when it is attached, or why no router takes it. Place: the stack's
//! [`Child`] does the rest. Left out: datasets that change while the mote runs.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use motet::{
    link::Link,
    mac::Action,
    random::Rng,
    thread::{
        CHILD_TIMEOUT, Child, ChildConfig, ChildState, Dataset, Identity, MleDrop, Parent, Place,
        Refusal,
    },
    time::{Duration, Instant},
    wire::{
        LinkAddr,
        ieee802154::{Command, Header},
    },
};
use motet_lab::{keys::hex, net::network::RADIO};
use motet_radio::{Event, NodeRadio, SpinelRadio};
use motet_spinel::Promiscuous;
use motet_state::{Identity as Kept, IdentityFile, KeyName, Parent as KeptParent};

use super::RadioNode;
use crate::{
    error::Error,
    interrupt::Interrupt,
    output::{describe, say},
    real_radio::{Clock, failed},
    state,
};

/// Reads the dataset that the command line gives: digits, a file with them, or `-` for standard
/// input.
///
/// # Errors
/// [`Error::Input`]: it is no dataset of use.
pub(crate) fn read_dataset(given: &str) -> Result<Dataset, Error> {
    let cannot = |error: &io::Error| {
        let error = describe(error);
        Error::input(format!("cannot read the dataset from {given}: {error}"))
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (text, from) = if given == "-" {
        let mut text = String::new();
        let read = io::stdin().take(DATASET_TEXT_MAX).read_to_string(&mut text);
        read.map_err(|error| cannot(&error))?;
        (text, "standard input")
    } else if is_digits(given.split_whitespace().next().unwrap_or_default())
        || !Path::new(given).exists()
    {
        (given.to_owned(), "--thread")
    } else {
        let bytes = fs::read(given).map_err(|error| cannot(&error))?;
        (String::from_utf8_lossy(&bytes).into_owned(), given)
    };
    Dataset::parse_hex(&text).map_err(|error| {
        Error::input(format!(
            "{from}: {}: give what `ot-ctl dataset active -x` prints, a file with it, or -",
            error.reason()
        ))
    })
}

/// The place that a node is to have in a Thread network, and what was said of it.
#[derive(Debug)]
pub(super) struct ThreadPlace {
    dataset: Dataset,
    file: Option<IdentityFile>,
    kept: Kept,
    /// The identity was read from its file, and need not be written before anything is sent.
    is_kept: bool,
    /// When it is to be kept again, and whether the last try failed, and the user knows.
    keep_at: Option<Instant>,
    has_failed: bool,
    /// When the search began that is under way, or the last one.
    searches_since: Instant,
    /// How often it has attached, as far as that was said.
    attached: u32,
    is_attached: bool,
    /// The short address that the radio has.
    short: Option<u16>,
    duty: Duty,
}

/// How long the receiver was on.
#[derive(Clone, Copy, Debug, Default)]
struct Duty {
    on: Duration,
    /// Since when it is on; none: it is off.
    since: Option<Instant>,
    began: Option<Instant>,
}

impl ThreadPlace {
    /// The mote's place, with the identity that it had before under this radio, or a new one.
    ///
    /// # Errors
    /// [`Error::Input`]: the file of its identity cannot be read.
    pub(super) fn of(
        dataset: &Dataset,
        folder: Option<&PathBuf>,
        radio: [u8; 8],
    ) -> Result<Self, Error> {
        let folder = state::folder(folder.map(PathBuf::as_path));
        let name = KeyName::of(dataset.network.as_bytes());
        let file = folder.map(|folder| IdentityFile::new(&folder, name, &hex(&radio)));
        let refuse = |error: motet_state::Error| Error::input(error.to_string());
        let before = match &file {
            Some(file) => file.read().map_err(refuse)?,
            None => None,
        };
        let is_kept = before.is_some();
        let kept = match before {
            Some(kept) => kept,
            None => new_identity()?,
        };
        Ok(Self {
            dataset: *dataset,
            file,
            kept,
            is_kept,
            keep_at: None,
            has_failed: false,
            searches_since: Instant::ORIGIN,
            attached: 0,
            is_attached: false,
            short: None,
            duty: Duty::default(),
        })
    }

    pub(super) const fn extended(&self) -> [u8; 8] {
        self.kept.extended
    }

    /// What the stack's child is made of.
    pub(super) fn config(&self) -> ChildConfig {
        let Kept {
            extended,
            interface,
            parent,
        } = self.kept;
        let identity = Identity {
            extended,
            iid: interface,
        };
        let former = parent.map(|parent| Place {
            parent: Parent {
                extended: parent.extended,
                rloc16: parent.short,
            },
            rloc16: parent.given,
        });
        ChildConfig {
            dataset: self.dataset,
            identity,
            timeout: CHILD_TIMEOUT,
            former,
        }
    }

    /// Gives the radio the mote's addresses, and keeps a new identity before anything is sent.
    ///
    /// # Errors
    /// [`Error::Input`]: the radio is none whose addresses can be set, or the identity cannot be
    /// kept.
    pub(super) fn name(&mut self, radio: &mut NodeRadio, now: Instant) -> Result<(), Error> {
        let NodeRadio::Rcp(rcp) = radio else {
            return Err(Error::input(
                "--thread needs a radio co-processor: the addresses of Linux's interface are its own",
            ));
        };
        self.give(rcp.radio_mut(), None, now);
        self.searches_since = now;
        self.duty = Duty {
            on: Duration::ZERO,
            since: Some(now),
            began: Some(now),
        };
        match self.is_kept {
            true => Ok(()),
            false => self.keep(),
        }
    }

    fn give(&mut self, radio: &mut SpinelRadio, short: Option<u16>, now: Instant) {
        radio.set_addresses(self.dataset.pan, short, Some(self.kept.extended), now);
        self.short = short;
    }

    fn keep(&self) -> Result<(), Error> {
        let kept = self
            .file
            .as_ref()
            .map_or(Ok(()), |file| file.keep(&self.kept));
        kept.map_err(|error| Error::input(error.to_string()))
    }

    /// Keeps what has changed. A disk that is full costs a mote that is started again some
    /// seconds, and this one nothing; gives what to say of it.
    fn keep_if_due(&mut self, now: Instant) -> Option<String> {
        if self.keep_at.is_none_or(|at| now < at) {
            return None;
        }
        let outcome = self.keep();
        self.keep_at = outcome.is_err().then(|| now + KEEP_AGAIN);
        let had_failed = std::mem::replace(&mut self.has_failed, outcome.is_err());
        match (outcome, had_failed) {
            (Err(error), false) => Some(format!(
                "{error}; the mote goes on and tries again every 10 s: started again before, it would first ask \
                 the router that it had before this one"
            )),
            (Ok(()), true) => Some("the mote's place in its network is kept again".to_owned()),
            _ => None,
        }
    }

    /// Takes note of an order to the receiver.
    pub(super) fn note(&mut self, action: Action, now: Instant) {
        match (action, self.duty.since) {
            (Action::Listen, None) => self.duty.since = Some(now),
            (Action::Sleep, Some(since)) => {
                self.duty.on = self.duty.on + now.since(since);
                self.duty.since = None;
            }
            _ => {}
        }
    }
}

fn new_identity() -> Result<Kept, Error> {
    let draw = || {
        getrandom::u64()
            .map_err(|error| Error::failed(format!("no random bytes from this system: {error}")))
    };
    let identity = Identity::random(&mut Rng::from_seed([draw()?, draw()?]));
    Ok(Kept {
        extended: identity.extended,
        interface: identity.iid,
        parent: None,
    })
}

impl RadioNode<'_> {
    /// The stack's child, if the node is one.
    fn child(&self) -> Option<&Child> {
        match self.world.node(0).link(RADIO)? {
            Link::Mesh(mesh) => mesh.thread(),
            _ => None,
        }
    }

    /// Says what has become of the mote's place in its Thread network, gives the radio its short
    /// address, and keeps who its parent is.
    ///
    /// # Errors
    /// [`Error::Failed`]: no router has taken the mote since it began.
    pub(crate) fn watch_thread(&mut self, interrupt: &Interrupt) -> Result<(), Error> {
        let Some(mut place) = self.thread.take() else {
            return Ok(());
        };
        let watched = self.watch(&mut place);
        self.thread = Some(place);
        match watched {
            None => Ok(()),
            Some(refusal) => self.refused(refusal, interrupt),
        }
    }

    /// As [`Self::watch_thread`]; gives why no router has taken the mote, once that is certain.
    fn watch(&mut self, place: &mut ThreadPlace) -> Option<Refusal> {
        let now = self.clock.now();
        let child = self.child()?;
        let is_attached = child.state() == ChildState::Attached;
        let found = child.place();
        let short = found.map(|found| found.rloc16);
        let (attached, refusal) = (child.counters().attached, child.refusal());
        if short != place.short
            && let NodeRadio::Rcp(rcp) = &mut self.radio
        {
            place.give(rcp.radio_mut(), short, now);
        }
        let parent = found.map(|found| KeptParent {
            extended: found.parent.extended,
            short: found.parent.rloc16,
            given: found.rloc16,
        });
        if parent.is_some() && parent != place.kept.parent {
            place.kept.parent = parent;
            place.keep_at = Some(now);
        }
        if let Some(sentence) = place.keep_if_due(now) {
            say(&sentence);
        }
        if place.is_attached && (!is_attached || attached != place.attached) {
            place.searches_since = now;
            say("detached: it looks for a router");
        }
        if is_attached
            && (!place.is_attached || attached != place.attached)
            && let Some(parent) = parent
        {
            let took = now.since(place.searches_since).as_micros() as f64 / 1e6;
            say(&format!(
                "attached as {:#06x}, to router {}, {:#06x}, after {took:.2} s",
                parent.given,
                hex(&parent.extended),
                parent.short
            ));
        }
        // A mote that looks for a router for the first time listens all the time.
        if is_attached && place.attached == 0 {
            place.duty = Duty {
                on: Duration::ZERO,
                since: place.duty.since.map(|_| now),
                began: Some(now),
            };
        }
        let never = attached == 0 && !is_attached;
        (place.attached, place.is_attached) = (attached, is_attached);
        let has_waited = now.since(place.searches_since) > PATIENCE;
        (never && has_waited).then_some(refusal.unwrap_or(Refusal::Silence))
    }

    /// What to say where no router takes the mote.
    fn refused(&mut self, refusal: Refusal, interrupt: &Interrupt) -> Result<(), Error> {
        let place = format!("channel {}, PAN {:#06x}", self.channel, self.pan);
        let sentence = match refusal {
            Refusal::Version(version) => format!(
                "the only routers that answer on {place} speak version {version} of Thread, and a mote speaks 2 to 5"
            ),
            Refusal::Status(status) => format!(
                "a router on {place} answers, but takes no child (status {status}): it may have no address left; \
                 free a place there, or add a router"
            ),
            Refusal::Silence => {
                let forged = self
                    .child()
                    .map_or(0, |child| child.counters().dropped(MleDrop::Forged));
                let heard = self.pans(interrupt)?;
                if interrupt.has_come() {
                    return Ok(());
                }
                match heard.contains(&self.pan) || forged > 0 {
                    true => format!(
                        "no router on {place} answers, though frames of this PAN were heard: another network key \
                         makes a parent silent; take the dataset anew from the network"
                    ),
                    false => format!("no router answers on {place}; {}", named(&heard)),
                }
            }
        };
        Err(Error::failed(sentence))
    }

    /// The PANs that are heard on the channel once all radios there were asked for beacons.
    fn pans(&mut self, interrupt: &Interrupt) -> Result<BTreeSet<u16>, Error> {
        let clock = self.clock;
        let NodeRadio::Rcp(rcp) = &mut self.radio else {
            return Ok(BTreeSet::new());
        };
        listen(rcp.radio_mut(), clock, interrupt)
    }

    /// Leaves a Thread network, so that the parent has room for another child; says what there
    /// was to count.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub(crate) fn leave_thread(&mut self) -> Result<(), Error> {
        self.tell_parent()?;
        self.say_counts();
        Ok(())
    }

    /// Tells the parent that this child leaves. Started again, it has no parent to ask first.
    fn tell_parent(&mut self) -> Result<(), Error> {
        let Some(place) = &mut self.thread else {
            return Ok(());
        };
        if place.is_attached {
            place.kept.parent = None;
            place.keep_at = Some(self.clock.now());
            if let Some(sentence) = place.keep_if_due(self.clock.now()) {
                say(&sentence);
            }
        }
        self.world.with_node(0, |node, _| {
            if let Some(mesh) = node.link_mut(RADIO).and_then(Link::mesh_mut) {
                mesh.leave_thread();
            }
        });
        let until = self.clock.now() + LEAVES_WITHIN;
        while self.is_leaving() && self.clock.now() < until {
            self.turn(&[], NAP)?;
        }
        Ok(())
    }

    /// Whether the parent is still to be told.
    fn is_leaving(&self) -> bool {
        let Some(Link::Mesh(mesh)) = self.world.node(0).link(RADIO) else {
            return false;
        };
        let is_due = mesh.thread().and_then(Child::next_deadline).is_some();
        is_due || mesh.mac().queue_len() > 0
    }

    /// Says what there was to count.
    fn say_counts(&self) {
        let Some(place) = &self.thread else {
            return;
        };
        let now = self.clock.now();
        let Duty { on, since, began } = place.duty;
        let on = on + since.map_or(Duration::ZERO, |since| now.since(since));
        let seconds = |time: Duration| time.as_micros() as f64 / 1e6;
        let lasted = began.map_or(Duration::ZERO, |began| now.since(began));
        if let Some(child) = self.child() {
            let counters = child.counters();
            let counts = DROPS.map(|drop| (counters.dropped(drop), drop.reason()));
            let all: u32 = counts.iter().map(|(count, _)| count).sum();
            let counted = counts.iter().filter(|(count, _)| *count > 0);
            let named: Vec<_> = counted
                .map(|(count, why)| format!("{count} × {why}"))
                .collect();
            let (attached, believed) = (counters.attached, counters.believed);
            say(&format!(
                "attached {attached} times, {believed} MLE messages believed, {all} MLE messages dropped ({})",
                named.join(", ")
            ));
        }
        if let Some(polls) = self.polls() {
            let each = seconds(on) * 1e3 / f64::from(polls.max(1));
            say(&format!(
                "its receiver was on {:.3} s of {:.1} seconds since it attached, for {polls} polls, {each:.2} ms each",
                seconds(on),
                seconds(lasted)
            ));
        }
    }

    /// The mote's data requests, if it sleeps.
    fn polls(&self) -> Option<u32> {
        let Link::Mesh(mesh) = self.world.node(0).link(RADIO)? else {
            return None;
        };
        mesh.mac().sleep()?;
        Some(mesh.mac().poll_counters().polls)
    }
}

/// Asks for beacons, and listens to all frames for a while.
fn listen(
    radio: &mut SpinelRadio,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<BTreeSet<u16>, Error> {
    let mut heard = BTreeSet::new();
    radio.set_promiscuous(Promiscuous::All, clock.now());
    // A radio that is busy hears what others send all the same.
    let _ = radio.transmit(&beacon_request(), None, clock.now());
    let until = clock.now() + LISTENS_FOR;
    while clock.now() < until && !interrupt.has_come() {
        while let Some(event) = radio.poll(clock.now()).map_err(|error| failed(&error))? {
            if let Event::Received(frame) = event
                && let Ok((header, ..)) = Header::parse_secured(&frame.psdu)
            {
                let ends = [header.src, header.dst];
                heard.extend(ends.into_iter().flatten().map(|end| end.pan_id));
            }
        }
        let waited = radio.wait(Some(NAP), &[], clock.now());
        waited.map_err(|error| failed(&error))?;
    }
    heard.remove(&u16::MAX);
    Ok(heard)
}

/// A beacon request to all PANs, without its FCS.
fn beacon_request() -> Vec<u8> {
    let mut frame = vec![0; FRAME_LEN_MAX];
    let header = Header {
        src: None,
        pan_id_compression: false,
        ack_request: false,
        ..Header::command(u16::MAX, LinkAddr::BROADCAST, LinkAddr::BROADCAST, 1)
    };
    let len = header.emit(&mut frame).unwrap_or(0);
    let rest = frame.get_mut(len..).unwrap_or_default();
    let len = len + Command::BeaconRequest.emit(rest).unwrap_or(0);
    frame.truncate(len);
    frame
}

/// PANs in words.
fn named(heard: &BTreeSet<u16>) -> String {
    let names: Vec<_> = heard.iter().map(|pan| format!("{pan:#06x}")).collect();
    match names.is_empty() {
        true => "no other PAN was heard there either".to_owned(),
        false => format!("PANs that were heard there: {}", names.join(", ")),
    }
}

/// Why messages are dropped, in the order in which that is said.
const DROPS: [MleDrop; MleDrop::COUNT] = [
    MleDrop::Malformed,
    MleDrop::Unsecured,
    MleDrop::Forged,
    MleDrop::NotParent,
    MleDrop::Replayed,
    MleDrop::Unasked,
    MleDrop::Incomplete,
    MleDrop::OldVersion,
    MleDrop::NotForChildren,
    MleDrop::NotLocal,
    MleDrop::Rationed,
];

/// Until the mote's place is kept again that could not be kept.
const KEEP_AGAIN: Duration = Duration::from_secs(10);

/// How long routers may take until the mote is taken for the first time.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the last message to the parent may take.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// How long other PANs are listened for.
const LISTENS_FOR: Duration = Duration::from_secs(2);

const NAP: std::time::Duration = std::time::Duration::from_millis(20);

/// More than a beacon request takes.
const FRAME_LEN_MAX: usize = 16;

/// A dataset has at most 254 bytes, two digits each.
const DATASET_TEXT_MAX: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_cannot_be_kept_is_said_once_and_tried_again() {
        let digits = "0e080000000000010000000300000f0510\
            00112233445566778899aabbccddeeff0102abcd0708fd000db800000000";
        let folder = std::env::temp_dir().join(format!("motet-place-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // Where its folder would be there is a file.
        let in_the_way = folder.join("identities");
        fs::write(&in_the_way, "").unwrap();
        let dataset = Dataset::parse_hex(digits).unwrap();
        let name = KeyName::of(dataset.network.as_bytes());
        let mut place = ThreadPlace {
            dataset,
            file: Some(IdentityFile::new(&folder, name, "1")),
            kept: new_identity().unwrap(),
            keep_at: None,
            has_failed: false,
            is_kept: true,
            searches_since: Instant::ORIGIN,
            attached: 0,
            is_attached: false,
            short: None,
            duty: Duty::default(),
        };
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        assert_eq!(place.keep_if_due(at(1)), None, "nothing has changed");
        place.keep_at = Some(at(1));
        let said = place.keep_if_due(at(1)).unwrap();
        assert!(
            said.contains("identities") && said.contains("goes on"),
            "{said}"
        );
        assert_eq!(place.keep_if_due(at(11)), None, "once");
        fs::remove_file(&in_the_way).unwrap();
        assert_eq!(place.keep_if_due(at(12)), None, "every ten seconds");
        let said = place.keep_if_due(at(21)).unwrap();
        assert!(said.contains("kept again"), "{said}");
        assert_eq!(place.file.unwrap().read().unwrap(), Some(place.kept));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_beacon_request_goes_to_all() {
        let frame = beacon_request();
        assert_eq!(frame, [0x03, 0x08, 1, 0xff, 0xff, 0xff, 0xff, 0x07]);
    }

    #[test]
    fn what_is_no_dataset_is_refused_with_advice() {
        for given in ["0e08zz", "0e0", "", "no-such-file"] {
            let error = read_dataset(given).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("dataset"), "{given}: {said}");
            assert!(said.contains("ot-ctl dataset active -x"), "{given}: {said}");
        }
    }
}
