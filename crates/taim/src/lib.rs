//! Fairness at a border router: decides when TCP packets pass, and alters none.
//!
//! Purpose: the motes behind one border router share its air, and TCP alone shares it badly. A
//! [`Router`] sees each packet that passes between mesh and wire, and may hold a TCP segment for a
//! while. No byte changes, no segment of a known flow is dropped, and no packet overtakes another
//! of its flow and direction. Everything else passes at once, unless [`Config::strangers_max`] is
//! above zero: then packets into the mesh that belong to no connection, and answer no packet of a
//! mote, get a limited share of the air, and excess packets are dropped and counted.
//! Place: the lab's wire, and the border router's TUN device or its NFQUEUE. The caller keeps the
//! packets: a router knows only their numbers. A [`Gate`] is a router that keeps them.
//!
//! ```text
//! on_packet(number, direction, headers, length, now) -> Pass | Hold
//! poll(now)                                          -> numbers of packets that go now
//! poll_dropped()                                     -> numbers of packets to be dropped
//! next_deadline()                                    -> when to call poll again
//! ```
//!
//! After each `on_packet`, and at each deadline, the caller calls [`Router::poll`] until it gives
//! nothing, and [`Router::poll_dropped`] likewise. A packet that was held leaves only that way.
//!
//! Memory is bounded: flows, motes, handshakes and held packets each have a limit in [`Config`].
//! Beyond a limit packets pass at once and are counted. `now` may step backwards or leap: a step
//! back counts as no time at all, and a leap makes due whatever waits.
//! Left out: marking.
//! Sources: Park and Paek, *TAiM: TCP Assistant-in-the-Middle*, 2019, for TAiM; flow admission is
//! Motet's own.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod clock;
mod config;
mod flow;
mod flows;
mod gate;
mod meter;
mod policy;
mod recent;
mod router;
mod rtt;
mod segment;
mod status;
mod strangers;
mod tally;

pub use self::config::{Admission, Config, Fq, Policy, Taim, UnknownPolicy, Window};
pub use self::gate::{Gate, KeptPacket};
pub use self::router::{Decision, Packet, PacketId, Router};
pub use self::segment::{Direction, FlowKey};
pub use self::status::{Counters, Fairness, FlowStatus, Held, MoteStatus, RoundTripSide, Status};
