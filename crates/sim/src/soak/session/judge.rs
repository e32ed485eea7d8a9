//! Whether what a session read is what its peer sent, byte by byte, and all of it.
//!
//! Place: sessions call the check after each read. Left out: the time that TCP may take
//! ([`super::patience`]).

use super::Sessions;
use crate::soak::content::NAME_LEN;

impl Sessions<'_> {
    /// Compares bytes that were just read with those that the peer handed over.
    pub(super) fn compare(&mut self, number: usize, bytes: &[u8]) -> Result<(), String> {
        let session = &mut self.all[number];
        for (byte, at) in bytes.iter().zip(session.read..) {
            if let Some(place) = session.name.get_mut(at as usize) {
                *place = *byte;
            }
        }
        let end = session.read + bytes.len() as u64;
        if end < NAME_LEN as u64 {
            return Ok(());
        }
        let (read, host, (local, remote)) = (session.read, session.host, session.ports);
        let name = u32::from_be_bytes(session.name);
        let peer = self.all.get(name as usize);
        let Some(peer) = peer.filter(|p| p.host != host && p.ports == (remote, local)) else {
            return Err(format!(
                "the first bytes name session {name}, which is not its peer"
            ));
        };
        if end > peer.taken {
            return Err(format!("read {end} bytes of {} that were sent", peer.taken));
        }
        let expected = peer.content;
        let from = read.max(NAME_LEN as u64);
        let fresh = bytes.get((from - read) as usize..).unwrap_or_default();
        self.all[number].peer = Some(name as usize);
        match expected.differs(from, fresh) {
            Some(at) => Err(format!("byte {at} of what session {name} sent is wrong")),
            None => Ok(()),
        }
    }

    /// The peer has sent everything, and all of it was read: is that so?
    pub(super) fn finish(&mut self, number: usize) -> Result<(), String> {
        let session = &self.all[number];
        let (read, host, (local, remote)) = (session.read, session.host, session.ports);
        let mut peers = self.all.iter().filter(|peer| {
            peer.host != host
                && peer.ports == (remote, local)
                && peer.has_shut
                && peer.taken == read
        });
        let whole = match session.peer {
            Some(peer) => self
                .all
                .get(peer)
                .is_some_and(|peer| peer.has_shut && peer.taken == read),
            None => peers.next().is_some(),
        };
        if !whole {
            return Err(format!(
                "the end came after {read} bytes, but no peer has closed after so many"
            ));
        }
        self.all[number].has_finished = true;
        self.tally.finished += 1;
        Ok(())
    }
}
