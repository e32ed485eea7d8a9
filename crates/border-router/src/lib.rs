//! Linux I/O for the border router: a private network, and a packet port to
//! this machine's own kernel.
//!
//! Place in the data flow: the border router itself is a `Node` of `motet` with a radio and a wired
//! interface. A packet that leaves the wired interface goes to [`port::PacketPort::send`]; a packet
//! from [`port::PacketPort::recv`] enters by the wired interface. On the other side sits the
//! kernel's TCP, reached with plain `std::net` from inside the [`namespace::Namespace`].
//!
//! ```no_run
//! use std::net::{Ipv6Addr, TcpListener};
//! use motet_router::{namespace, port::{PacketPort, PortConfig, precise_timers}};
//!
//! let namespace = namespace::enter()?; // before any thread
//! let mesh = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0);
//! let config = PortConfig { routes: &[(mesh, 64)], ..PortConfig::default() };
//! let mut port = PacketPort::open(&namespace, &config)?;
//! let listener = TcpListener::bind((config.host, 4242))?; // the kernel's TCP
//! precise_timers()?;
//! let mut packet = [0; 1280];
//! loop {
//!     port.wait(None)?; // until the node's next deadline
//!     while let Some(len) = port.recv(&mut packet)? {
//!         // give `&packet[..len]` to the node; `port.send` what it answers
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Left out on purpose: every protocol above IPv6. Only the IPv6 header of a packet is read here.
//!
//! Sources: unshare(2), user_namespaces(7), packet(7), rtnetlink(7), the kernel's
//! `Documentation/networking/tuntap.rst`.
//!
//! On anything but Linux this crate is empty.

#![cfg(target_os = "linux")]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod copies;
pub mod fair;
pub mod guard;
pub mod inside;
pub mod interrupt;
mod link;
pub mod namespace;
mod netlink;
pub mod nfqueue;
pub mod outside;
pub mod port;
pub mod rules;
pub mod stream;
pub mod wake;
