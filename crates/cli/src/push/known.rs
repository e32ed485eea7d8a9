//! How much of the image each mote is known to have: threads wait for one another by it.

use std::{
    collections::BTreeMap,
    net::SocketAddrV6,
    sync::{Condvar, Mutex, PoisonError},
};

/// How much of the image each mote is known to have.
#[derive(Debug, Default)]
pub(super) struct Known {
    motes: Mutex<BTreeMap<SocketAddrV6, State>>,
    changed: Condvar,
}

/// One mote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct State {
    /// Bytes at the image's begin, by their digest.
    pub(super) checked: usize,
    /// Nothing more will come to it.
    pub(super) is_over: bool,
}

impl Known {
    /// The mote has so many bytes.
    pub(super) fn check(&self, mote: SocketAddrV6, bytes: usize) {
        self.change(mote, |state| state.checked = bytes);
    }

    /// Nothing more will come to the mote.
    pub(super) fn end(&self, mote: SocketAddrV6) {
        self.change(mote, |state| state.is_over = true);
    }

    /// Waits until the mote has more than so many bytes, or gets no more.
    pub(super) fn wait_for_more(&self, mote: SocketAddrV6, than: usize) -> State {
        let of = |motes: &BTreeMap<_, State>| motes.get(&mote).copied().unwrap_or_default();
        let motes = self.motes.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |motes: &mut BTreeMap<_, State>| {
            let state = of(motes);
            state.checked <= than && !state.is_over
        };
        let motes = self.changed.wait_while(motes, waits);
        of(&motes.unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, mote: SocketAddrV6, change: impl FnOnce(&mut State)) {
        let mut motes = self.motes.lock().unwrap_or_else(PoisonError::into_inner);
        change(motes.entry(mote).or_default());
        self.changed.notify_all();
    }
}
