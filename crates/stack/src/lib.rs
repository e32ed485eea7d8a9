//! Motet: TCP for motes, a library for firmware. The command is `cargo install motet-cli`.
//!
//! A client and a server, joined by a cable. In a device the driver of a radio takes the place of
//! `carry`.
//!
//! ```
//! use motet::ip::{self, Address, InterfaceId, Ip, Neighbour, NextHop};
//! use motet::link::{Cable, Link};
//! use motet::node::{Action, Event, Node};
//! use motet::tcp::{Buffers, Config, Storage, Tcp};
//! use motet::{random::Rng, time::Instant};
//!
//! static SETTINGS: Config = Config { nagle: false, ..Config::DEFAULT };
//! const CABLE: InterfaceId = InterfaceId(0);
//! type Memory<'m> = (Storage<'m, 1, 1024>, [Link<'m>; 1]); // a static, in firmware
//!
//! fn node<'m>((tcp, links): &'m mut Memory<'m>, id: u64) -> (Node<'m>, Buffers<'m>) {
//!     let mut ip = Ip::new(ip::Config::default(), &mut []);
//!     let addr = format!("fd00::{id}").parse().unwrap();
//!     ip.add_address(Address { addr, interface: CABLE });
//!     ip.set_default_route(Some(NextHop { interface: CABLE, neighbour: Neighbour::Only }));
//!     let mut rng = Rng::from_seed([1, id]); // in firmware, from a noise source
//!     let (memory, [buffers]) = tcp.lend();
//!     let tcp = Tcp::new(memory, &mut rng);
//!     (Node::new(links, ip, tcp, rng, Instant::ORIGIN), buffers)
//! }
//! fn carry(from: &mut Node<'_>, to: &mut Node<'_>, now: Instant) {
//!     let mut packet = [0; 1280];
//!     while let Some((_, Action::Cable { len })) = from.poll_action(now, &mut packet) {
//!         to.on_event(CABLE, Event::Cable(&packet[..len]), now);
//!     }
//! }
//!
//! let mut memory = [(); 2].map(|()| (Storage::EMPTY, [Link::Cable(Cable::new(&mut [], 1280))]));
//! let [a, b] = memory.each_mut();
//! let ((mut client, ours), (mut server, theirs)) = (node(a, 1), node(b, 2));
//! let (now, remote) = (Instant::ORIGIN, ("fd00::2".parse().unwrap(), 7));
//! let listener = server.tcp_mut().listen(None, 7, &SETTINGS).unwrap();
//! let served = server.tcp_mut().accept(listener, theirs, now).unwrap();
//! let socket = client.connect(remote, ours, &SETTINGS, now).unwrap();
//! client.tcp_mut().send(socket, b"hello, mote", now).unwrap(); // leaves after the handshake
//! carry(&mut client, &mut server, now); // SYN
//! carry(&mut server, &mut client, now); // SYN-ACK
//! carry(&mut client, &mut server, now); // ACK and data
//! let mut bytes = [0; 11];
//! assert_eq!((server.tcp_mut().recv(served, &mut bytes), &bytes), (Ok(11), b"hello, mote"));
//! ```
//!
//! One `no_std`, allocation-free, sans-IO stack: TCP, IPv6, 6LoWPAN and the IEEE 802.15.4
//! MAC discipline, for devices with 32 KiB of RAM. A driver (firmware, border router or
//! the lab) feeds events into a [`node::Node`], takes actions out of it, and calls it again
//! at its next deadline. Time and randomness are arguments; nothing here reads a clock.
//! [`node::Node`] states the contract of its calls,
//! [the MAC's page](mac#deadlines-of-a-radio-driver) the deadlines of a radio's driver, and
//! [`wire`] the contract of the parsers.
//!
//! Deliberately absent: `unsafe`, heap, callbacks, threads, globals.
//!
//! # Who the public items are for
//!
//! Items that none of these readers needs are private. `public-api.txt` lists the public ones.
//!
//! | reader | modules |
//! |---|---|
//! | a driver: events, actions, deadlines, memory | [`node`], [`link`], [`mac`], with the feature `ble` `ble`, [`mote`], [`time`], [`random`], [`limits`] |
//! | an application: connections, datagrams, addresses, settings and counters | [`tcp`], [`udp`], [`ip`], [`tcphc`], [`rpl`], [`Remote`], with the feature `join` `join` |
//! | a decoder: bytes to headers and back | [`wire`], [`lowpan`], [`tcphc`], with the feature `thread` the codecs of `thread` |
//! | a lab or a fuzzer, which runs parts alone; expect these to change | [`lowpan::datagram`], [`lowpan::fragment`], [`ip::icmp`], [`mac::Mac`], [`tcphc::Tcphc`] and [`rpl::Rpl`] without a node, [`tcp::Tcp::on_segment`] |
#![no_std]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![forbid(unsafe_code)]
// What only links over radios call is in many modules; the linker leaves it out, and builds with
// the feature find what nobody calls.
#![cfg_attr(
    not(feature = "mesh"),
    expect(dead_code, reason = "only links over radios call it")
)]
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
#[cfg(feature = "mesh")]
pub mod mote;
pub mod node;
#[cfg(feature = "tcp-small")]
mod offer;
pub mod random;
mod remote;
#[cfg(feature = "rpl")]
pub mod rpl;
mod storage;
#[cfg(test)]
mod tally;
#[cfg(feature = "tcp-small")]
pub mod tcp;
pub mod tcphc;
#[cfg(feature = "tcple")]
pub mod tcple;
#[cfg(feature = "thread")]
pub mod thread;
pub mod time;
pub mod udp;
pub mod wire;

#[cfg(feature = "sleepy")]
pub use hint::Expectation;
pub use remote::Remote;
