//! Sessions: what applications do with their connections, and whether TCP did its part.
//!
//! Place: `pipe` and `lab` open them and step them; a session knows no network. Each sends content
//! of its own, which begins with its number, and reads what the other end sends, so every byte read
//! is compared with the expected one. A session that could not read, or write to a ring, tries
//! again only after TCP has reported that it can: if TCP loses such a report (an edge), the session
//! makes no more progress, and the run fails.
//! Left out: the times at which sessions are opened, and the faults of the network.

mod judge;
mod patience;

use motet::tcp::{self, Buffers, Changed, Handle, RecvError, SendError, State, Tcp};
use motet::time::{Duration, Instant, earliest};

use self::patience::Progress;
use super::content::{Content, NAME_LEN};
use super::coverage::Coverage;
use super::lender::CHUNK_MAX;
use super::settings::{Behaviour, Ending, Reading};
use crate::Arena;

/// All sessions of a run, by number.
#[derive(Debug)]
pub(crate) struct Sessions<'m> {
    arena: &'m Arena,
    seed: u64,
    all: Vec<Session>,
    /// The states that connections went through.
    pub(crate) coverage: Coverage,
    /// The counts of the sessions.
    pub(crate) tally: Tally,
    /// A connection has changed its state since this was last asked.
    has_news: bool,
    /// Where nothing happens to packets that would let a patient connection time out: how long
    /// each node's closed connections wait for progress, if not for ever.
    pub(crate) gentle: Option<[Option<Duration>; 2]>,
    /// The time by the clock of the node that was looked at last.
    pub(crate) now: Instant,
    /// Buffers that connections gave back, and the node they belong to.
    returned: Vec<(usize, Buffers<'m>)>,
}

/// Counts of sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Sessions opened.
    pub sessions: u64,
    /// How many of these read all that the peer sent.
    pub finished: u64,
    /// How many of these were lost with their node.
    pub died: u64,
    /// Bytes read and found right.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.finished += other.finished;
        self.died += other.died;
        self.bytes += other.bytes;
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) host: usize,
    pub(crate) handle: Handle,
    /// Local and remote port; the latter is 0 until the peer is known.
    pub(crate) ports: (u16, u16),
    behaviour: Behaviour,
    /// Whether the send buffer takes slices of the application's memory.
    by_reference: bool,
    /// TCP has reported room since the last write that found none; with slices, always.
    may_write: bool,
    /// TCP has reported something to read since nothing was left.
    may_read: bool,
    content: Content,
    opened: Instant,
    state: State,
    /// Bytes that TCP took from the application.
    taken: u64,
    /// Bytes that the application read.
    read: u64,
    /// The first bytes that were read.
    name: [u8; NAME_LEN],
    peer: Option<usize>,
    has_shut: bool,
    has_closed: bool,
    /// The end of what the peer sent was read.
    has_finished: bool,
    is_over: bool,
    progress: Progress,
    next_write: Instant,
    next_read: Instant,
}

/// An application's clock: of the run, and of its own node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The time of the run.
    pub(crate) now: Instant,
    /// The time as the node's own clock has it.
    pub(crate) local: Instant,
}

impl<'m> Sessions<'m> {
    pub(crate) fn new(seed: u64, arena: &'m Arena) -> Self {
        Self {
            arena,
            seed,
            all: Vec::new(),
            coverage: Coverage::default(),
            tally: Tally::default(),
            has_news: false,
            gentle: None,
            now: Instant::ORIGIN,
            returned: Vec::new(),
        }
    }

    /// Buffers that connections of a node have given back since this was last asked.
    pub(crate) fn take_returned(&mut self, host: usize) -> impl Iterator<Item = Buffers<'m>> {
        let mine = self
            .returned
            .extract_if(.., move |(owner, _)| *owner == host);
        mine.map(|(_, buffers)| buffers)
    }

    /// Whether a connection has changed its state since this was last asked: its application
    /// may want to act on that.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Takes over a connection that was just opened. `passive`: by a listener; `by_reference`:
    /// its send buffer takes slices.
    pub(crate) fn open(
        &mut self,
        (host, handle): (usize, Handle),
        behaviour: Behaviour,
        (passive, by_reference): (bool, bool),
        tcp: &Tcp<'_>,
        now: Instant,
    ) -> Result<usize, String> {
        let number = self.all.len();
        // Lossless: a run opens few sessions.
        let content = Content::new(self.seed, number as u32);
        let state = if passive {
            self.coverage.note(State::Closed, State::Listen, None)?;
            State::Listen
        } else {
            State::Closed
        };
        self.all.push(Session {
            host,
            handle,
            ports: (0, 0),
            behaviour,
            by_reference,
            may_write: true,
            may_read: true,
            content,
            opened: now,
            state,
            taken: 0,
            read: 0,
            name: [0; NAME_LEN],
            peer: None,
            has_shut: false,
            has_closed: false,
            has_finished: false,
            is_over: false,
            progress: Progress::new(self.now),
            next_write: now,
            next_read: now,
        });
        self.tally.sessions += 1;
        self.note(number, tcp)?;
        Ok(number)
    }

    /// Sessions that are not over.
    pub(crate) fn live(&self) -> impl Iterator<Item = (usize, &Session)> {
        let all = self.all.iter().enumerate();
        all.filter(|(_, session)| !session.is_over)
    }

    /// Notes where the connections of a node stand; after every call into its TCP.
    pub(crate) fn note_all(&mut self, host: usize, tcp: &Tcp<'_>) -> Result<(), String> {
        for number in 0..self.all.len() {
            if self.all[number].host == host && !self.all[number].is_over {
                self.note(number, tcp)?;
            }
        }
        Ok(())
    }

    /// Lets every application of a node make all progress it can; returns whether there was any.
    pub(crate) fn step(
        &mut self,
        host: usize,
        tcp: &mut Tcp<'m>,
        clock: Clock,
    ) -> Result<bool, String> {
        self.take_edges(host, tcp);
        let mut acted = false;
        for number in 0..self.all.len() {
            if self.all[number].host == host && !self.all[number].is_over {
                let named = |what| format!("session {number} of node {host}: {what}");
                acted |= self.step_one(number, tcp, clock).map_err(named)?;
            }
        }
        Ok(acted)
    }

    /// Notes which sessions of a node may go on.
    fn take_edges(&mut self, host: usize, tcp: &mut Tcp<'_>) {
        while let Some(changed) = tcp.poll_changed() {
            let Changed::Connection(handle, edges) = changed else {
                continue;
            };
            let mut all = self.all.iter_mut().rev();
            let found = all.find(|session| session.host == host && session.handle == handle);
            if let Some(session) = found {
                session.may_read |= edges.is_readable();
                session.may_write |= edges.is_writable();
            }
        }
    }

    /// When an application of a node wants to act though nothing happened.
    pub(crate) fn next_wake(&self, host: usize, now: Instant) -> Option<Instant> {
        let here = self.live().filter(|(_, session)| session.host == host);
        here.filter_map(|(_, session)| session.next_wake())
            .filter(|at| *at > now)
            .min()
    }

    /// A node has rebooted: its connections are forgotten.
    pub(crate) fn forget(&mut self, host: usize) {
        for session in &mut self.all {
            if session.host == host && !session.is_over {
                session.is_over = true;
                self.tally.died += 1;
            }
        }
    }

    /// Makes every session quick from now on, and bring itself to an end.
    pub(crate) fn hurry(&mut self) {
        for session in &mut self.all {
            session.behaviour.hurry(session.taken);
            session.next_write = Instant::ORIGIN;
            session.next_read = Instant::ORIGIN;
        }
    }

    /// Takes back what was lent to a listener in advance.
    pub(crate) fn stop_listening(
        &mut self,
        host: usize,
        tcp: &mut Tcp<'m>,
        clock: Clock,
    ) -> Result<(), String> {
        for number in 0..self.all.len() {
            let session = &self.all[number];
            if session.host == host && !session.is_over && session.is_listening() {
                self.close(number, tcp, clock);
                self.note(number, tcp)?;
            }
        }
        Ok(())
    }

    /// A session that ended well, whose ports may serve again: its node, and they.
    pub(crate) fn reusable(&self) -> Option<(usize, u16, u16)> {
        let ended = self.all.iter().rev();
        let mut ended = ended.filter(|session| session.is_over && session.has_finished);
        let session = ended.find(|session| session.ports.1 < session.ports.0)?;
        Some((session.host, session.ports.0, session.ports.1))
    }

    /// Closes what only waits for a peer that is no more.
    ///
    /// # Errors
    /// Which session is stuck though its peer lives, or something of it is still to arrive.
    pub(crate) fn close_orphans(
        &mut self,
        host: usize,
        tcp: &mut Tcp<'m>,
        clock: Clock,
    ) -> Result<(), String> {
        for number in 0..self.all.len() {
            let session = &self.all[number];
            if session.host != host || session.is_over {
                continue;
            }
            let peer = session.peer.and_then(|peer| self.all.get(peer));
            let peer = peer.filter(|peer| !peer.is_over);
            let connection = tcp.connection(session.handle);
            let rest = connection.map_or(0, tcp::Connection::unacknowledged);
            let waits = matches!(session.state, State::FinWait2 | State::Listen);
            if peer.is_some() || rest > 0 || !waits {
                let peer = peer.map_or("gone".to_owned(), |peer| {
                    let (host, state) = (peer.host, peer.state);
                    let (taken, read) = (peer.taken, peer.read);
                    format!(
                        "in {state:?} at node {host}, which has taken {taken} bytes and read {read}"
                    )
                });
                return Err(format!(
                    "session {number} of node {host} is stuck in {:?} with {rest} bytes to be acknowledged; its peer is {peer}",
                    session.state,
                ));
            }
            tcp.close(session.handle, clock.local);
            self.all[number].has_closed = true;
            self.note(number, tcp)?;
        }
        Ok(())
    }

    /// Whether a connection of a node has sent something that is not acknowledged.
    pub(crate) fn outstanding(&self, host: usize, tcp: &Tcp<'_>) -> Option<(usize, State)> {
        let here = self.live().filter(|(_, session)| session.host == host);
        here.filter_map(|(number, session)| {
            let connection = tcp.connection(session.handle)?;
            let state = connection.state();
            let waits = match state {
                State::Established | State::CloseWait => connection.unacknowledged() > 0,
                State::SynSent | State::SynReceived => true,
                State::FinWait1 | State::Closing | State::LastAck | State::TimeWait => true,
                State::Closed | State::Listen | State::FinWait2 => false,
            };
            waits.then_some((number, state))
        })
        .next()
    }

    fn note(&mut self, number: usize, tcp: &Tcp<'_>) -> Result<(), String> {
        let session = &mut self.all[number];
        let Some(connection) = tcp.connection(session.handle) else {
            return Err(format!("session {number}: its connection has vanished"));
        };
        let state = connection.state();
        if state != session.state {
            let named = |what| format!("session {number}: {what}");
            let error = connection.error();
            self.coverage
                .note(session.state, state, error)
                .map_err(named)?;
            let before = std::mem::replace(&mut session.state, state);
            self.has_news = true;
            if let Some((error, limits)) = error.zip(self.gentle) {
                self.excuse(number, error, before, limits)?;
            }
            self.all[number].progress.restart(self.now);
        }
        let session = &mut self.all[number];
        if self.gentle.is_some() && state != State::Closed {
            session.progress.look(connection, self.now);
        }
        let ends = connection.endpoints();
        if state != State::Listen {
            session.ports = (ends.local_port, ends.remote_port);
        }
        Ok(())
    }

    fn step_one(&mut self, number: usize, tcp: &mut Tcp<'m>, clock: Clock) -> Result<bool, String> {
        self.note(number, tcp)?;
        let mut acted = self.write(number, tcp, clock)?;
        acted |= self.read(number, tcp, clock)?;
        acted |= self.end(number, tcp, clock)?;
        Ok(acted)
    }

    /// Hands over what is to be sent now.
    fn write(&mut self, number: usize, tcp: &mut Tcp<'m>, clock: Clock) -> Result<bool, String> {
        let session = &mut self.all[number];
        let before = session.taken;
        let mut chunk = [0; CHUNK_MAX];
        while !session.has_shut
            && session.may_write
            && session.taken < session.behaviour.total
            && session.next_write <= clock.now
        {
            let rest = session.behaviour.total - session.taken;
            let len = rest
                .min(u64::from(session.behaviour.chunk))
                .min(CHUNK_MAX as u64);
            let chunk = &mut chunk[..len as usize];
            session.content.fill(session.taken, chunk);
            let refers = session.by_reference && session.taken >> 3 & 1 == 0;
            let given = if refers {
                let data = self.arena.alloc_slice_copy(chunk);
                tcp.send_slice(session.handle, data, clock.local)
                    .map(|()| data.len())
            } else {
                tcp.send(session.handle, chunk, clock.local)
            };
            match given {
                Ok(taken) => session.taken += taken as u64,
                Err(SendError::BufferFull) => {
                    session.may_write = session.by_reference;
                    break;
                }
                Err(SendError::Failed(_)) => break,
                // A reset that is not told, since both sides had closed.
                Err(SendError::Closing) if session.state == State::Closed => break,
                Err(error) => return Err(format!("send failed: {error:?}")),
            }
            session.next_write = clock.now + session.behaviour.pause;
        }
        Ok(session.taken != before)
    }

    /// Reads what there is and is wanted, and compares it.
    fn read(&mut self, number: usize, tcp: &mut Tcp<'m>, clock: Clock) -> Result<bool, String> {
        let mut acted = false;
        let mut bytes = [0; CHUNK_MAX];
        loop {
            let session = &self.all[number];
            let most = session.wants(clock.now).min(CHUNK_MAX);
            if most == 0 || !session.may_read || session.has_closed || session.has_finished {
                return Ok(acted);
            }
            let result = tcp.recv(session.handle, &mut bytes[..most]);
            self.note(number, tcp)?;
            match result {
                Ok(0) => return Err("recv gave nothing".into()),
                Ok(count) => {
                    self.compare(number, &bytes[..count])?;
                    let session = &mut self.all[number];
                    session.read += count as u64;
                    session.next_read = clock.now + session.behaviour.reading.interval();
                    self.tally.bytes += count as u64;
                    acted = true;
                }
                Err(RecvError::Finished) => {
                    // TIME-WAIT or a late reset end reading as a FIN does; only a FIN that was
                    // seen promises that everything is here.
                    self.finish(number)?;
                    return Ok(true);
                }
                Err(RecvError::Empty) => {
                    self.all[number].may_read = false;
                    return Ok(acted);
                }
                Err(RecvError::Failed(_)) => return Ok(acted),
                Err(RecvError::NoConnection) => return Err("recv: no connection".into()),
            }
        }
    }

    /// Closes when its time has come, and gives up what is over.
    fn end(&mut self, number: usize, tcp: &mut Tcp<'m>, clock: Clock) -> Result<bool, String> {
        let session = &self.all[number];
        let mut acted = false;
        if session.state != State::Closed && !session.has_closed {
            let sent = session.taken == session.behaviour.total;
            let age = clock.now.since(session.opened);
            match session.behaviour.ending {
                Ending::Shutdown if sent && !session.has_shut => {
                    acted = self.shut(number, tcp, clock);
                }
                Ending::CloseWhenDone if sent && session.has_finished => {
                    acted = self.close(number, tcp, clock);
                }
                Ending::CloseWhenSent if sent => acted = self.close(number, tcp, clock),
                Ending::CloseAt(at) if age >= at => acted = self.close(number, tcp, clock),
                Ending::AbortAt(at) if age >= at => {
                    let session = &mut self.all[number];
                    session.has_closed = true;
                    tcp.abort(session.handle);
                    acted = true;
                }
                _ => {}
            }
            self.note(number, tcp)?;
        }
        self.give_up(number, tcp)?;
        Ok(acted)
    }

    fn shut(&mut self, number: usize, tcp: &mut Tcp<'m>, clock: Clock) -> bool {
        let session = &mut self.all[number];
        session.has_shut = true;
        tcp.shutdown(session.handle, clock.local);
        true
    }

    fn close(&mut self, number: usize, tcp: &mut Tcp<'m>, clock: Clock) -> bool {
        let session = &mut self.all[number];
        session.has_shut = true;
        session.has_closed = true;
        tcp.close(session.handle, clock.local);
        true
    }

    /// Takes the buffers back from a connection that is over; what is unread has been read.
    fn give_up(&mut self, number: usize, tcp: &mut Tcp<'m>) -> Result<(), String> {
        let session = &mut self.all[number];
        let unread = tcp
            .connection(session.handle)
            .is_some_and(|connection| connection.can_recv() > 0);
        let waits_out = session.state == State::TimeWait && !session.behaviour.stays;
        let wants = session.has_closed || session.has_finished || !unread;
        if session.state != State::Closed && !waits_out || !wants {
            return Ok(());
        }
        if session.state == State::TimeWait && !session.has_finished && !session.has_closed {
            return Ok(());
        }
        match tcp.remove(session.handle) {
            Some(buffers) => {
                session.is_over = true;
                self.returned.push((session.host, buffers));
                Ok(())
            }
            None => Err("the buffers of a connection that is over did not come back".into()),
        }
    }
}

impl Session {
    /// Whether its buffers wait for a handshake.
    pub(crate) fn is_listening(&self) -> bool {
        self.state == State::Listen
    }

    /// How many bytes the application reads now.
    fn wants(&self, now: Instant) -> usize {
        if self.next_read > now && self.state != State::Closed {
            return 0;
        }
        match self.behaviour.reading {
            Reading::Eager => CHUNK_MAX,
            Reading::Sips { bytes, .. } => bytes as usize,
            Reading::Stalls { from, len } => {
                let age = now.since(self.opened);
                let stalls = age >= from && age - from < len;
                if stalls { 0 } else { CHUNK_MAX }
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let behaviour = &self.behaviour;
        let ending = match behaviour.ending {
            Ending::CloseAt(at) | Ending::AbortAt(at) => Some(self.opened + at),
            _ => None,
        };
        let reading = match behaviour.reading {
            Reading::Stalls { from, len } => Some(self.opened + from + len),
            Reading::Sips { .. } => Some(self.next_read),
            Reading::Eager => None,
        };
        let writing = (self.taken < behaviour.total).then_some(self.next_write);
        earliest(ending, earliest(reading, writing))
    }
}
