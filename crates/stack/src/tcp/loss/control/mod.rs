//! Congestion control: the reduction of cwnd at a loss, and its growth in congestion avoidance.
//!
//! Each algorithm is a file of this folder: a type that implements [`Algorithm`] and holds the
//! algorithm's state of a connection. [`Control`] is one of them, and the list below is the only
//! place where they are named.
//!
//! Place: [`Loss`](super::Loss) reports events, and reads the results. Left out: slow start
//! ([`super::congestion`]) and recovery (`reduction`), which are the same with each algorithm, by
//! RFC 5681, 6675 and 9937.

#[cfg(feature = "cubic")]
pub(super) mod cubic;
mod new_reno;

use super::congestion::Congestion;
use super::prr::Prr;

/// The interface of an algorithm: events that it handles, and values that it computes.
///
/// In fast recovery cwnd follows [`Prr`], whose numbers are part of the algorithm's state: they can
/// take the place of those by which cwnd grows otherwise.
pub(super) trait Algorithm {
    /// The bytes that a loss leaves of `flight` bytes (ssthresh).
    fn reduced(&self, flight: u32) -> u32;

    /// cwnd behind a congestion mark that found `flight` bytes outstanding, in segments of `smss`
    /// bytes, where a loss would leave `ssthresh`.
    fn marked(&self, _flight: u32, _smss: u32, ssthresh: u16) -> u16 {
        ssthresh
    }

    /// Called before cwnd is reduced. `cwnd_prior`: cwnd before the previous reduction, bytes.
    /// `is_counted`: cwnd has already been reduced for a congestion mark in the same window.
    /// Returns whether this reduction can be undone; an undo then restores the present cwnd.
    fn on_reduction(&mut self, cwnd_prior: u16, is_counted: bool) -> bool;

    /// Fast recovery begins, behind [`Self::on_reduction`].
    fn begin_recovery(&mut self, prr: Prr);

    /// PRR's numbers; none outside fast recovery.
    fn prr(&self) -> Option<&Prr>;

    /// The counters of [`Self::prr`], to change them.
    fn prr_mut(&mut self) -> Option<&mut Prr>;

    /// Fast recovery is over, if one was under way.
    fn end_recovery(&mut self);

    /// The retransmission timer expired; behind [`Self::on_reduction`], if that reduced cwnd.
    fn on_timeout(&mut self) {}

    /// The last reduction proved spurious. Returns whether cwnd may be restored.
    fn on_undone(&mut self) -> bool {
        true
    }

    /// Nothing was in flight for longer than an RTO: slow start follows.
    fn on_idle(&mut self) {}

    /// Grows cwnd in congestion avoidance.
    fn avoid(&mut self, congestion: &mut Congestion, growth: &Growth);
}

/// An acknowledgment of new data, for congestion avoidance.
#[cfg_attr(
    not(feature = "cubic"),
    expect(dead_code, reason = "New Reno needs no times")
)]
pub(super) struct Growth {
    /// Octets that the ACK acknowledges anew.
    pub(super) acked: u32,
    /// Payload of a full segment, bytes.
    pub(super) smss: u32,
    /// Since data were last acknowledged, or sent into an empty network; ms.
    pub(super) elapsed_ms: u32,
    /// Smoothed round-trip time, SRTT, ms; 0: not known.
    pub(super) srtt_ms: u32,
    /// Octets in flight just before.
    pub(super) flight: u32,
    /// cwnd before the last reduction, bytes.
    pub(super) cwnd_prior: u16,
    /// No report can show any more that the last reduction was spurious.
    pub(super) is_final: bool,
}

/// Generates from the list of algorithms the enum of settings, the enum of states, the conversions
/// between them, and `ask!`.
///
/// `$dollar`: the sign itself, which a macro cannot write into another one.
macro_rules! algorithms {
    ($dollar:tt $(
        $(#[doc = $doc:literal])+
        $(#[cfg($built_in:meta)])?
        $algorithm:ident($state:ty) = $name:literal;
    )+) => {
        /// How cwnd answers a loss, and how it grows in congestion avoidance. Slow start and
        /// recovery are those of RFC 5681, 6675 and 9937 with each.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum CongestionAlgorithm {
            $(
                $(#[doc = $doc])+
                $(#[cfg($built_in)])?
                $algorithm,
            )+
        }

        impl CongestionAlgorithm {
            /// Every algorithm that is built in.
            pub const ALL: &[Self] = &[$($(#[cfg($built_in)])? Self::$algorithm),+];

            /// The algorithm's name, as settings and summaries spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($built_in)])? Self::$algorithm => $name),+
                }
            }

            /// The one of this name, if it is built in.
            pub fn named(name: &str) -> Option<Self> {
                let mut all = Self::ALL.iter().copied();
                all.find(|algorithm| algorithm.name() == name)
            }
        }

        /// The algorithm of a connection, with its state.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Control {
            $(
                $(#[cfg($built_in)])?
                $algorithm($state),
            )+
        }

        impl Control {
            /// The state of a connection that begins.
            pub(super) const fn new(algorithm: CongestionAlgorithm) -> Self {
                match algorithm {
                    $(
                        $(#[cfg($built_in)])?
                        CongestionAlgorithm::$algorithm => Self::$algorithm(<$state>::NEW),
                    )+
                }
            }

            /// The algorithm whose state this is.
            const fn algorithm(&self) -> CongestionAlgorithm {
                match self {
                    $(
                        $(#[cfg($built_in)])?
                        Self::$algorithm(_) => CongestionAlgorithm::$algorithm,
                    )+
                }
            }
        }

        /// `ask!(control, it => expression)` evaluates the expression with the algorithm in use as
        /// `it`.
        macro_rules! ask {
            ($dollar control:expr, $dollar it:ident => $dollar question:expr) => {
                match $dollar control {
                    $($(#[cfg($built_in)])? Control::$algorithm($dollar it) => $dollar question),+
                }
            };
        }
    };
}

algorithms! {
    $
    /// A loss leaves half of the flight; then cwnd grows by a segment for each cwnd acknowledged
    /// (RFC 5681).
    NewReno(new_reno::NewReno) = "reno";
    /// Seven tenths; then a cubic function of time (RFC 9438).
    #[cfg(feature = "cubic")]
    Cubic(cubic::Cubic) = "cubic";
}

// Memory that each connection pays, whichever algorithm it uses.
const _: () = {
    assert!(size_of::<new_reno::NewReno>() <= 8);
    assert!(size_of::<Control>() <= 12);
};

impl Control {
    /// This algorithm is in use from now on. Another one begins as if nothing had been lost, and
    /// goes on with a recovery under way.
    pub(super) fn choose(&mut self, algorithm: CongestionAlgorithm) {
        if self.algorithm() == algorithm {
            return;
        }
        let prr = self.prr().copied();
        *self = Self::new(algorithm);
        if let Some(prr) = prr {
            self.begin_recovery(prr);
        }
    }
}

impl Algorithm for Control {
    fn reduced(&self, flight: u32) -> u32 {
        ask!(self, it => it.reduced(flight))
    }

    fn marked(&self, flight: u32, smss: u32, ssthresh: u16) -> u16 {
        ask!(self, it => it.marked(flight, smss, ssthresh))
    }

    fn on_reduction(&mut self, cwnd_prior: u16, is_counted: bool) -> bool {
        ask!(self, it => it.on_reduction(cwnd_prior, is_counted))
    }

    fn begin_recovery(&mut self, prr: Prr) {
        ask!(self, it => it.begin_recovery(prr));
    }

    fn prr(&self) -> Option<&Prr> {
        ask!(self, it => it.prr())
    }

    fn prr_mut(&mut self) -> Option<&mut Prr> {
        ask!(self, it => it.prr_mut())
    }

    fn end_recovery(&mut self) {
        ask!(self, it => it.end_recovery());
    }

    fn on_timeout(&mut self) {
        ask!(self, it => it.on_timeout());
    }

    fn on_undone(&mut self) -> bool {
        ask!(self, it => it.on_undone())
    }

    fn on_idle(&mut self) {
        ask!(self, it => it.on_idle());
    }

    fn avoid(&mut self, congestion: &mut Congestion, growth: &Growth) {
        ask!(self, it => it.avoid(congestion, growth));
    }
}
