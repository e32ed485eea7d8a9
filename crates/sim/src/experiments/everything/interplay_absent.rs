//! In the place of the checks of requirements where captures cannot be read.

use motet::time::Duration;

use super::network::Roles;
use crate::experiments::run::Failure;
use crate::scenario::{RunResult, Scenario, Session, Watch};

pub(super) const REQUIREMENTS: [(usize, &str); 0] = [];

#[derive(Debug)]
pub(super) struct Interplay;

#[derive(Clone, Debug, Default)]
pub(super) struct Checks;

impl Interplay {
    pub(super) fn begin(_: &mut Session) -> Option<Self> {
        None
    }

    pub(super) fn advance(&mut self, session: &mut Session, watch: &Watch<'_>) -> bool {
        session.advance(session.now() + Duration::from_secs(1), watch)
    }

    pub(super) fn conclude(&self, _: &Scenario, _: &Roles, _: &RunResult) -> Checks {
        Checks
    }
}

impl Checks {
    pub(super) fn note(&mut self, _: usize, _: impl Into<String>, _: bool) {}

    pub(super) fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        std::iter::empty()
    }

    pub(super) fn broken(&self) -> impl Iterator<Item = String> {
        std::iter::empty()
    }
}

pub(super) fn forged(_: u64, _: &mut Checks) -> Result<(), Failure> {
    Ok(())
}

pub(super) fn predicted(_: u64, _: &mut Checks) -> Result<(), Failure> {
    Ok(())
}
