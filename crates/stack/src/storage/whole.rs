//! A whole packet, handed over together with the memory that it lies in.
//!
//! Place: between a link that gathers packets in memory of its own and the node that deals with
//! them. The link hands that memory out with the packet, so that the packet need not be copied and
//! no borrow of the link stays open; the node hands it back. Left out: the meaning of the bytes.

/// A packet and the memory around it.
#[must_use = "the memory must be given back"]
#[derive(Debug)]
pub struct Whole<'m> {
    memory: &'m mut [u8],
    start: usize,
    len: u16,
    place: u8,
}

impl<'m> Whole<'m> {
    /// Lends `memory`, in which the packet lies `start` bytes behind the beginning and has `len`
    /// bytes. `place`: whatever the lender wants to know when the memory comes back.
    pub const fn new(memory: &'m mut [u8], start: usize, len: u16, place: u8) -> Self {
        Self {
            memory,
            start,
            len,
            place,
        }
    }

    /// The packet; writable, for a forwarder's hop limit and congestion mark.
    pub fn packet(&mut self) -> &mut [u8] {
        let rest = self.memory.get_mut(self.start..).unwrap_or_default();
        rest.get_mut(..usize::from(self.len)).unwrap_or_default()
    }

    /// Ends the loan: the memory, and the `place` that the lender gave.
    pub const fn into_memory(self) -> (&'m mut [u8], u8) {
        (self.memory, self.place)
    }
}
