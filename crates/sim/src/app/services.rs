//! The small services of old: echo, discard, character generator.
//!
//! Sources: RFC 862 (echo), RFC 863 (discard), RFC 864 (character generator).

use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle, ListenerHandle, RecvError, State};
use motet::time::Instant;

use super::Ends;

/// Echo, discard and chargen, for as many connections as there are buffers.
#[derive(Debug)]
pub struct Services<'m> {
    ends: Ends<'m>,
    listeners: [Option<ListenerHandle>; 3],
    /// Buffers of connections that are over.
    free: Vec<Buffers<'m>>,
    /// How many more connections may get buffers.
    spare: usize,
    served: Vec<Served>,
}

#[derive(Debug)]
struct Served {
    handle: Handle,
    service: usize,
    /// Place in chargen's endless text.
    place: usize,
    shut: bool,
}

impl<'m> Services<'m> {
    /// The three services, for up to `connections` at a time.
    pub fn new(connections: usize, ends: Ends<'m>) -> Self {
        let (free, served) = (Vec::new(), Vec::new());
        Self {
            ends,
            listeners: [None; 3],
            free,
            spare: connections,
            served,
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.served.len()
    }

    pub(super) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        let Some(config) = self.ends.config(node) else {
            return false;
        };
        let tcp = node.tcp_mut();
        let mut acted = false;
        for (service, port) in PORTS.into_iter().enumerate() {
            if self.listeners[service].is_none() {
                self.listeners[service] = tcp.listen(None, port, config).ok();
            }
            acted |= self.accept(service, tcp, config, now);
        }
        let free = &mut self.free;
        self.served.retain_mut(|served| {
            acted |= served.step(tcp, now);
            match served.release(tcp) {
                None => true,
                Some(buffers) => {
                    free.extend(buffers);
                    acted = true;
                    false
                }
            }
        });
        acted
    }

    fn accept(
        &mut self,
        service: usize,
        tcp: &mut tcp::Tcp<'m>,
        config: &'m Config,
        now: Instant,
    ) -> bool {
        let Some(listener) = self.listeners[service] else {
            return false;
        };
        if !tcp.can_accept(listener) {
            return false;
        }
        let buffers = match self.free.pop() {
            Some(buffers) => buffers,
            None if self.spare == 0 => return false,
            None => {
                self.spare -= 1;
                self.ends.buffers(config)
            }
        };
        match tcp.accept(listener, buffers, now) {
            Ok(handle) => {
                self.served.push(Served {
                    handle,
                    service,
                    place: 0,
                    shut: false,
                });
                true
            }
            Err(rejected) => {
                self.free.push(rejected.buffers);
                false
            }
        }
    }
}

impl Served {
    fn step(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        if PORTS[self.service] == CHARGEN {
            acted |= self.generate(tcp, now);
        }
        loop {
            let bytes = match tcp.peek(self.handle) {
                Ok(bytes) => bytes,
                Err(RecvError::Finished) if !self.shut => {
                    self.shut = true;
                    tcp.shutdown(self.handle, now);
                    return true;
                }
                Err(_) => return acted,
            };
            let count = if PORTS[self.service] == ECHO {
                let mut copy = [0; 256];
                let len = bytes.len().min(copy.len());
                copy[..len].copy_from_slice(&bytes[..len]);
                match tcp.send(self.handle, &copy[..len], now) {
                    Ok(taken) => taken,
                    Err(_) => return acted,
                }
            } else {
                bytes.len()
            };
            tcp.consume(self.handle, count);
            acted = true;
        }
    }

    /// Lines of 72 characters, each beginning one further (RFC 864).
    fn generate(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        loop {
            let mut text = [0; 148];
            for (offset, byte) in text.iter_mut().enumerate() {
                *byte = generated(self.place + offset);
            }
            match tcp.send(self.handle, &text, now) {
                Ok(taken) => self.place = (self.place + taken) % GENERATED_PERIOD,
                Err(_) => return acted,
            }
            acted = true;
        }
    }

    /// The buffers, once the connection is over. `Some(None)`: it is gone, and they too.
    fn release<'m>(&self, tcp: &mut tcp::Tcp<'m>) -> Option<Option<Buffers<'m>>> {
        match tcp.connection(self.handle).map(tcp::Connection::state) {
            None => Some(None),
            Some(State::Closed | State::TimeWait) => tcp.remove(self.handle).map(Some),
            Some(_) => None,
        }
    }
}

/// The character at a place of chargen's text.
fn generated(place: usize) -> u8 {
    let (line, column) = (place / LINE_LEN, place % LINE_LEN);
    match column {
        72 => b'\r',
        73 => b'\n',
        _ => b' ' + ((line + column) % PRINTABLE) as u8,
    }
}

const ECHO: u16 = 7;
const DISCARD: u16 = 9;
const CHARGEN: u16 = 19;
const PORTS: [u16; 3] = [ECHO, DISCARD, CHARGEN];

/// Characters of a line, its end included.
const LINE_LEN: usize = 74;

/// ASCII characters from space to tilde.
const PRINTABLE: usize = 95;

/// After so many characters the text repeats.
const GENERATED_PERIOD: usize = LINE_LEN * PRINTABLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_text_is_that_of_the_rfc() {
        let text: String = (0..2 * LINE_LEN)
            .map(|place| char::from(generated(place)))
            .collect();
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap();
        assert!(first.starts_with(" !\"#$%&'()*+,-./0123456789") && first.len() == 72);
        assert_eq!(lines.next().unwrap()[..71], first[1..]);
        assert_eq!(generated(GENERATED_PERIOD), generated(0));
    }
}
