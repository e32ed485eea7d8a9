//! New Reno: a loss halves the window, and each window acknowledged adds a segment.
//!
//! Source: RFC 5681; the name is RFC 6582's, whose recovery `reduction` does for every algorithm.

use super::{Algorithm, Growth};
use crate::tcp::loss::congestion::Congestion;
use crate::tcp::loss::prr::Prr;
use crate::tcp::loss::saturated;

/// New Reno's state of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::loss) struct NewReno {
    /// Bytes acknowledged in congestion avoidance since cwnd last changed.
    acked: u16,
    /// Proportional rate reduction's counters, during fast recovery.
    prr: Option<Prr>,
}

impl NewReno {
    pub(super) const NEW: Self = Self {
        acked: 0,
        prr: None,
    };
}

impl Algorithm for NewReno {
    fn reduced(&self, flight: u32) -> u32 {
        flight / 2
    }

    fn on_reduction(&mut self, _cwnd_prior: u16, _is_counted: bool) -> bool {
        self.acked = 0;
        true
    }

    fn begin_recovery(&mut self, prr: Prr) {
        self.prr = Some(prr);
    }

    fn prr(&self) -> Option<&Prr> {
        self.prr.as_ref()
    }

    fn prr_mut(&mut self) -> Option<&mut Prr> {
        self.prr.as_mut()
    }

    fn end_recovery(&mut self) {
        self.prr = None;
    }

    /// One segment per cwnd acknowledged.
    fn avoid(&mut self, congestion: &mut Congestion, growth: &Growth) {
        let acked = u32::from(self.acked) + growth.acked;
        let left = match acked.checked_sub(congestion.cwnd.into()) {
            Some(left) => {
                congestion.cwnd = saturated(u32::from(congestion.cwnd) + growth.smss);
                left
            }
            None => acked,
        };
        self.acked = saturated(left);
    }
}
