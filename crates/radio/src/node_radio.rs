//! Any radio of this machine as the radio of a node.

use std::{os::fd::BorrowedFd, time};

use motet::{
    mac::{self, Action, Event, RadioCapabilities},
    time::Instant,
};

use motet_spinel::Cause;

use crate::{Change, Error, MacRadio, Notice, WpanRadio};

/// A radio of this machine as the radio of a node, whichever kind it is.
///
/// Whoever runs the node makes its MAC of [`Self::settle`] and [`Self::capabilities`], carries out
/// its actions by [`Self::perform`], takes all reports by [`Self::poll`], polls the node again, and
/// then waits by [`Self::wait`].
#[derive(Debug)]
pub enum NodeRadio {
    /// A co-processor.
    Rcp(Box<MacRadio>),
    /// An interface of the kernel.
    Wpan(Box<WpanRadio>),
}

/// What the owner of a node may want to know of its radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RadioChange {
    /// It was unplugged, or switched off.
    Gone,
    /// It has restarted.
    Restarted,
    /// It has not answered for two seconds, and is reset until it answers.
    Silent,
    /// It is ready again, or for the first time.
    Ready,
}

impl NodeRadio {
    /// What the radio does by itself.
    pub fn capabilities(&self) -> RadioCapabilities {
        match self {
            Self::Rcp(radio) => radio.capabilities(),
            Self::Wpan(radio) => radio.capabilities(),
        }
    }

    /// Changes the settings of a MAC to those of one over this radio.
    pub const fn settle(&self, config: &mut mac::Config) {
        match self {
            Self::Rcp(_) => config.answer_timeout = MacRadio::ANSWER_TIMEOUT,
            Self::Wpan(_) => WpanRadio::settle(config),
        }
    }

    /// Whether a node with link security, or one that sleeps, can use it.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self, is_secured: bool, sleeps: bool) -> Result<(), Error> {
        match self {
            Self::Rcp(_) => Ok(()),
            Self::Wpan(radio) => radio.check(is_secured, sleeps),
        }
    }

    /// Carries out an action of the MAC. `bytes`: those that it speaks of.
    pub fn perform(&mut self, action: Action, bytes: &[u8], now: Instant) {
        match self {
            Self::Rcp(radio) => radio.perform(action, bytes, now),
            Self::Wpan(radio) => radio.perform(action, bytes, now),
        }
    }

    /// Reports all that has happened to `report`. A change ends the turn: call it until it returns
    /// nothing. It does not wait.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub fn poll(
        &mut self,
        now: Instant,
        report: impl FnMut(Event<'_>),
    ) -> Result<Option<RadioChange>, Error> {
        Ok(match self {
            Self::Rcp(radio) => match radio.poll(now, report)? {
                None => None,
                Some(Notice::Ready(_)) => Some(RadioChange::Ready),
                Some(Notice::Restarted(_)) if !radio.radio().has_line() => Some(RadioChange::Gone),
                Some(Notice::Restarted(Cause::Silence)) => Some(RadioChange::Silent),
                Some(Notice::Restarted(_)) => Some(RadioChange::Restarted),
            },
            Self::Wpan(radio) => match radio.poll(now, report)? {
                None => None,
                Some(Change::Lost) => Some(RadioChange::Gone),
                Some(Change::Back) => Some(RadioChange::Ready),
            },
        })
    }

    /// Waits until something has come from the radio or from one of `others`, until the radio has
    /// to be polled, or for `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait(
        &mut self,
        timeout: Option<time::Duration>,
        others: &[BorrowedFd<'_>],
        now: Instant,
    ) -> Result<(), Error> {
        match self {
            Self::Rcp(radio) => radio.wait(timeout, others, now),
            Self::Wpan(radio) => radio.wait(timeout, others, now),
        }
    }
}
