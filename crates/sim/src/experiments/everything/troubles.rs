//! What breaks in a run where most flows pass: a relay that dies, and a link that gets worse.
//!
//! Purpose: which relay and which link carry flows is known only once their time has come.
//! Left out: what the scenario itself says, a turn of the key and a restart of the border router.

use super::network::{DIES_AT_S, Roles, WORSE_AT_S, WORSE_DB, WORSE_FOR_S, unfit};
use crate::experiments::run::Failure;
use crate::net::moves;
use crate::scenario::{Change, Scenario, Session};

/// What breaks where most flows pass: known only once its time has come.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// When all motes had joined, of virtual time.
    pub(super) joined_us: u64,
    /// The relay that died, and the bulk flows that it had carried.
    pub(super) died: Option<(usize, usize)>,
    /// The link that got worse, by its lower end, and those that it had carried.
    pub(super) worse: Option<(usize, usize)>,
    /// The link is as before.
    is_mended: bool,
}

impl Troubles {
    /// Makes the changes whose time has come.
    pub(super) fn pass(
        &mut self,
        session: &mut Session,
        scenario: &Scenario,
        roles: &Roles,
    ) -> Result<(), Failure> {
        let view = session.view();
        let Some(joined_s) = view.joined_s else {
            return Ok(());
        };
        self.joined_us = (joined_s * 1e6) as u64;
        let is_due = |at_s: u64| view.now_s - joined_s >= at_s as f64;
        let gains = &scenario.network.gains;
        let change = if self.died.is_none() && is_due(DIES_AT_S) {
            let ways = ways(session, roles);
            let carried = |relay: &usize| ways.iter().filter(|way| way.contains(relay)).count();
            let relay = roles.dies.iter().copied().max_by_key(carried);
            let relay = relay.ok_or_else(unfit)?;
            self.died = Some((relay, carried(&relay)));
            Change::Off(relay)
        } else if self.worse.is_none() && is_due(WORSE_AT_S) {
            // The hop that most flows take; a way begins at its mote.
            let ways = ways(session, roles);
            let links = || ways.iter().flat_map(|way| way.windows(2));
            let carried = |link: &[usize]| links().filter(|it| *it == link).count();
            let link = links().max_by_key(|link| (carried(link), link[0]));
            let Some(link) = link else {
                // No flow has a way: that nothing was carried says so.
                self.worse = Some((0, 0));
                self.is_mended = true;
                return Ok(());
            };
            self.worse = Some((link[0], carried(link)));
            Change::Gains(gains.with_link([link[0], link[1]], WORSE_DB))
        } else if !self.is_mended && is_due(WORSE_AT_S + WORSE_FOR_S) {
            self.is_mended = true;
            Change::Gains(gains.clone())
        } else {
            return Ok(());
        };
        session.change(&change).map_err(Failure::Topology)
    }
}

/// The ways of bulk flows in the mesh at this moment, from their motes to the border router.
fn ways(session: &Session, roles: &Roles) -> Vec<Vec<usize>> {
    session.inspect(|network| {
        let way = |mote: usize| {
            let above = moves::way_up(network, mote)?;
            Some(std::iter::once(mote).chain(above).collect())
        };
        roles.far().into_iter().filter_map(way).collect()
    })
}
