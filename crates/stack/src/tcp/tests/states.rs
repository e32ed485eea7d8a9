//! RFC 9293 §3.3.2: which state may follow which.

use super::super::{Buffers, Config, Connection, Endpoints, State};
use State::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ALL: [State; 11] = [
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
];

/// The arrows of Figure 5, from its top to its bottom.
const FIGURE_5: [(State, State); 20] = [
    // Passive and active OPEN, CLOSE.
    (Closed, Listen),
    (Closed, SynSent),
    (Listen, Closed),
    (SynSent, Closed),
    // SEND; a SYN.
    (Listen, SynSent),
    (Listen, SynReceived),
    (SynSent, SynReceived),
    // The SYN is acknowledged.
    (SynSent, Established),
    (SynReceived, Established),
    // CLOSE.
    (SynReceived, FinWait1),
    (Established, FinWait1),
    (CloseWait, LastAck),
    // A FIN.
    (Established, CloseWait),
    (FinWait1, Closing),
    (FinWait2, TimeWait),
    // The FIN is acknowledged.
    (FinWait1, FinWait2),
    (Closing, TimeWait),
    (LastAck, Closed),
    // Two maximum segment lifetimes are over.
    (TimeWait, Closed),
    // Note 1: a reset, behind a passive OPEN.
    (SynReceived, Listen),
];

/// Note 2: a FIN that acknowledges ours.
const NOTE_2: (State, State) = (FinWait1, TimeWait);

/// Ours: in between, an entry of the half-open table was in SYN-RECEIVED.
const HALF_OPEN: (State, State) = (Listen, Established);

#[test]
fn the_arrows_of_figure_5_and_no_others() {
    for from in ALL {
        for to in ALL {
            // Note 3: a reset leads to CLOSED from everywhere.
            let is_reset = from != Closed && to == Closed;
            let arrow = (from, to);
            let is_legal =
                is_reset || FIGURE_5.contains(&arrow) || arrow == NOTE_2 || arrow == HALF_OPEN;
            assert_eq!(from.may_become(to), is_legal, "{from:?} to {to:?}");
        }
    }
}

/// The setter refuses in a debug build what is no arrow, and lets a state stay.
#[test]
fn a_connection_follows_the_arrows() {
    let ends = Endpoints {
        local: "fe80::1".parse().unwrap(),
        remote: "fe80::2".parse().unwrap(),
        local_port: 1,
        remote_port: 2,
        zone: 0,
    };
    for (path, refused) in [
        (&[SynSent, Established][..], FinWait2),
        (&[SynSent, SynReceived, Established, CloseWait], FinWait1),
        (
            &[Listen, Established, FinWait1, FinWait2, TimeWait, TimeWait],
            LastAck,
        ),
        (
            &[
                SynSent,
                Established,
                FinWait1,
                Closing,
                TimeWait,
                Closed,
                Closed,
            ],
            TimeWait,
        ),
    ] {
        let buffers = Buffers::new(&mut [], &mut []);
        let mut connection = Connection::new(&ends, buffers, &Config::DEFAULT, (0, 0));
        for state in path {
            connection.set_state(*state);
            assert_eq!(connection.state(), *state);
        }
        let goes_on = catch_unwind(AssertUnwindSafe(|| connection.set_state(refused)));
        assert_eq!(
            goes_on.is_err(),
            cfg!(debug_assertions),
            "{path:?} {refused:?}"
        );
    }
}
