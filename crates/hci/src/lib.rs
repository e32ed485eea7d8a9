//! A driver between [`motet::ble`]'s host and a controller that speaks H4.
//!
//! Purpose: carries a host's actions to a controller as HCI's commands and data, and reports the
//! controller's events as those of the host. Place: the owner of a node passes the actions of
//! [`motet::node::Node::poll_action`] to the controller, and the events of [`Controller::poll`] to
//! the node; in between it waits by [`Controller::wait`]. Left out: state of connections, which is
//! the host's; isochronous and synchronous packets; vendors' commands, so a controller's connection
//! events stay unreported.
//!
//! Source: Bluetooth Core 5.4 Vol 4 Part A (H4) and Part E (HCI).

#![cfg(unix)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod controller;
mod error;
mod events;
mod h4;
mod place;
mod requests;

pub use controller::{Controller, Direction};
pub use error::Error;
pub use place::{BadPlace, ControllerAddress};
