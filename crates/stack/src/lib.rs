//! Motet: TCP for motes.
//!
//! One `no_std`, allocation-free, sans-IO stack: TCP, IPv6, 6LoWPAN and the IEEE 802.15.4
//! MAC discipline, for devices with 32 KiB of RAM. A driver (firmware, border router or
//! the lab) feeds events into a [`node::Node`], takes actions out of it, and calls it again
//! at its next deadline. Time and randomness are arguments; nothing here reads a clock.
//!
//! Deliberately absent: `unsafe`, heap, callbacks, threads, globals.
//!
//! # Who the public items are for
//!
//! What nobody below needs is the crate's own, and a change of `public-api.txt` shows what became
//! public or ceased to be.
//!
//! | reader | modules |
//! |---|---|
//! | a driver: events, actions, deadlines, memory | [`node`], [`link`], [`mac`], with the feature `ble` `ble`, [`mote`], [`time`], [`random`], [`limits`] |
//! | an application: connections, datagrams, addresses, settings and counters | [`tcp`], [`udp`], [`ip`], [`tcphc`], [`rpl`], [`Remote`], with the feature `join` `join` |
//! | a decoder: bytes to headers and back | [`wire`], [`lowpan`], [`tcphc`] |
//! | a lab or a fuzzer, which runs parts alone; expect these to change | [`lowpan::datagram`], [`lowpan::fragment`], [`ip::icmp`], [`mac::Mac`], [`tcphc::Tcphc`] and [`rpl::Rpl`] without a node, [`tcp::Tcp::on_segment`] |
//!
//! # Writing a radio driver
//!
//! A driver loops over three calls: [`node::Node::on_event`] with what the radio reports,
//! [`node::Node::poll_action`] until it returns `None`, then sleep until the next event or
//! [`node::Node::next_deadline`]. [`mac::Event`] and [`mac::Action`] say what each report and
//! each wish means; [`mac::RadioCapabilities`] is what the driver says of its radio. These are
//! the deadlines, with the defaults of [`mac::Config`] and stamps taken by hardware.
//!
//! | what | by when | when later |
//! |---|---|---|
//! | ACKs that software sends ([`mac::RadioCapabilities::auto_ack`] off): first symbol | 192 µs after the end of the frame (one turnaround): [`mac::Action::Transmit`] names the instant | a neighbour with the default [`mac::Config::ack_slack`] takes it up to 256 µs, a neighbour that does what the standard asks up to 512 µs. From 256 µs on it is counted in [`mac::MacCounters::acks_late`]; from 512 µs on it is not sent ([`mac::FrameDrop::AckTooLate`]) and the neighbour sends its frame again |
//! | [`mac::Event::FrameReceived`] of a frame to be acknowledged so | the copy out of the radio, `on_event`, the first `poll_action` and the copy of five bytes into the radio fit in these 192 µs; `poll_action` returns the ACK before any work on the packet is done | as above. Poll right after `on_event`, before the application is asked |
//! | stamps ([`mac::RxMeta::at`], [`mac::Event::TransmitDone`]) | of the last symbol, whenever they are reported; the stamps of our frame's end and of its ACK's end together may be 64 µs off | ACKs are not recognised: [`mac::FrameDrop::MistimedAck`], with [`mac::MacCounters::mistimed_by_us`]. Half of them are lost with stamps up to 64 µs late, all with 100. Say so in [`mac::RadioCapabilities::stamp_delay_max`]: then none is |
//! | an ACK received, reported as [`mac::Event::FrameReceived`] | 864 µs after [`mac::Event::TransmitDone`] was reported ([`mac::Config::ack_wait`], a 320 µs margin for copy and call) | the attempt counts as failed: one retry too many ([`mac::MacCounters::ack_timeouts`]) |
//! | the answer to [`mac::Action::AssessChannel`] | 128 µs of measuring | nothing is lost, but the air may have changed: fire within microseconds of the answer |
//! | [`mac::Action::Fire`]: first symbol | one turnaround after the call, or after the end of an ACK that the radio sends by itself | collisions: others found the channel clear, too |
//! | any answer that the radio owes | 100 ms ([`mac::Config::answer_timeout`]) | the radio counts as stuck: it is tuned and switched on again ([`mac::MacCounters::radio_resets`]) and the attempt has failed |
//! | [`node::Node::next_deadline`] | when it says | only time is lost, whatever waits: backoffs, retries and timeouts come later by as much. A frame older than 2 s is given up ([`mac::FrameDrop::TooOld`]) |
//! | [`mac::Event::FrameHead`], where the feature `cit` forwards without copies | before the rest of the frame is copied | the whole frame fires what waits, later by its copy. Without heads nothing breaks |
//!
//! The interframe spacing ([`mac::Config::lifs`], [`mac::Config::sifs`]) is the MAC's own matter.
//!
//! Where software takes the stamps, `stamp_delay_max` is the longest time from the end of a
//! frame to the line that reads the clock. It covers three things: the stamp of our frame, that
//! of its ACK, and an ACK that starts late because a neighbour with the same driver timed it by
//! such a stamp. A node with hardware stamps that has such neighbours adds their delay to its
//! `ack_slack`. What both cost is said at the field.
#![no_std]
#![forbid(unsafe_code)]
// Bytes from the network must never reach a panic: the linked minimal node is checked to
// hold no panic machinery (`cargo xtask sizes`), and these lints keep it so at the source.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable
    )
)]

#[cfg(test)]
extern crate std;

/// Lets an error say its `reason()` wherever errors are printed or boxed. `$from`: which values
/// were caused by another error, and that one; `$field`: where every value has its cause.
macro_rules! speaks {
    ($error:ty $(, $from:pat => $source:ident)? $(; $field:ident)?) => {
        impl core::fmt::Display for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.reason())
            }
        }

        impl core::error::Error for $error {
            $(fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                match self {
                    $from => Some($source),
                    _ => None,
                }
            })?
            $(fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                Some(&self.$field)
            })?
        }
    };
}

/// The example of the README, compiled and run with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "ble")]
pub mod ble;
#[cfg(feature = "sleepy")]
mod hint;
pub mod ip;
#[cfg(feature = "join")]
pub mod join;
pub mod limits;
pub mod link;
pub mod lowpan;
pub mod mac;
pub mod mote;
pub mod node;
#[cfg(feature = "tcp")]
mod offer;
pub mod random;
mod remote;
#[cfg(feature = "rpl")]
pub mod rpl;
mod storage;
#[cfg(test)]
mod tally;
#[cfg(feature = "tcp")]
pub mod tcp;
pub mod tcphc;
#[cfg(feature = "tcple")]
pub mod tcple;
pub mod time;
pub mod udp;
pub mod wire;

#[cfg(feature = "sleepy")]
pub use hint::Expectation;
pub use remote::Remote;
