//! The driver's reports to the node, in the order in which they happened.

/// A report of the driver to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    Preloaded,
    Assessed {
        clear: bool,
    },
    /// Sent; the timer's count at its end.
    Sent {
        end: u32,
    },
    /// Received into the packet with this number.
    Frame {
        index: usize,
    },
}

/// A queue of reports: first in, first out.
#[derive(Debug)]
pub(crate) struct Outputs {
    places: [Option<Output>; COUNT],
}

impl Outputs {
    pub(crate) const EMPTY: Self = Self {
        places: [None; COUNT],
    };

    /// Adds a report; false where there is no room, which a MAC that waits for answers never sees.
    pub(crate) fn push(&mut self, output: Output) -> bool {
        let free = self.places.iter_mut().find(|place| place.is_none());
        free.map(|place| *place = Some(output)).is_some()
    }

    pub(crate) fn first(&self) -> Option<Output> {
        self.places.first().copied().flatten()
    }

    pub(crate) fn remove_first(&mut self) {
        self.keep(|index, _| index > 0);
    }

    /// Forgets answers that are owed to actions of before; frames stay.
    pub(crate) fn forget_assessment(&mut self) {
        self.keep(|_, output| !matches!(output, Output::Assessed { .. }));
    }

    fn keep(&mut self, is_kept: impl Fn(usize, Output) -> bool) {
        let mut kept = Self::EMPTY;
        for (index, output) in self.places.iter().flatten().enumerate() {
            if is_kept(index, *output) {
                kept.push(*output);
            }
        }
        *self = kept;
    }
}

/// One answer of each kind, all received frames, and one more.
const COUNT: usize = 4 + crate::packet::RECEIVE_COUNT;
