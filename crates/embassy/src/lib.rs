//! Motet for async firmware: a mote's sockets as futures.
//!
//! ```
//! use motet_embassy::{Config, Radio, Resources, Runner, Stack, mac::Unfit};
//! use embedded_io_async::{Read, Write};
//!
//! static RESOURCES: Resources<2, 2048> = Resources::new(); // connections, bytes each way
//!
//! fn start<R: Radio>(
//!     radio: R,
//!     eui64: [u8; 8],
//!     seed: [u64; 2],
//! ) -> Result<(Stack, Runner<R>), Unfit> {
//!     motet_embassy::new(&RESOURCES, radio, eui64, seed, Config::mesh(0x4d54))
//! }
//!
//! /// One task moves frames: `runner.run().await`. Any other may serve:
//! async fn echo(stack: Stack) -> Result<(), motet_embassy::Error> {
//!     let listener = stack.listen(7)?;
//!     loop {
//!         let mut socket = listener.accept().await?;
//!         let mut bytes = [0; 64];
//!         while let Ok(count @ 1..) = socket.read(&mut bytes).await {
//!             if socket.write_all(&bytes[..count]).await.is_err() {
//!                 break;
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! # What holds
//!
//! A future of this crate may be dropped at any await: bytes that it has not reported are still
//! there for the next call, and a connection that it had begun is closed. A socket that is dropped
//! closes in the background: what was written still arrives, and its place becomes free then.
//! What was not read is lost, and the peer learns that by a reset (RFC 9293 §3.10.4).
//!
//! All tasks run on one executor: [`Stack`] is copied between them, not sent to other threads. Up
//! to four of them that wait for the same thing are woken when it is there: peers of one listener,
//! a free connection, datagrams, room for datagrams, an address. Further ones look every 20 ms.
//!
//! # Place
//!
//! Between [`motet::node::Node`] and the application: [`Runner`] takes the events of a [`Radio`] to
//! the node and its actions back, and wakes the tasks for which something has changed
//! ([`motet::tcp::Tcp::poll_changed`]). Left out: protocols, registers, and executors: any will do.
#![no_std]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "mesh", feature = "over")))]
compile_error!("a node needs a link: the feature `mesh`, `over`, or both");

mod clock;
mod config;
mod connection;
mod error;
mod listener;
mod names;
#[cfg(feature = "offload")]
pub mod offload;
#[cfg(feature = "over")]
mod over_error;
#[cfg(feature = "over")]
mod packet_resources;
#[cfg(feature = "over")]
mod packet_runner;
mod parts;
mod resolver;
#[cfg(feature = "mesh")]
mod resources;
#[cfg(feature = "mesh")]
mod runner;
#[cfg(feature = "security")]
mod secured;
#[cfg(feature = "sleepy")]
mod sleeping;
mod stack;
mod stack_state;
mod udp;
mod waiters;

#[cfg(feature = "mesh")]
pub use config::Config;
pub use config::StackConfig;
pub use connection::{ReadHalf, TcpSocket, WriteHalf};
pub use error::Error;
pub use listener::TcpListener;
#[cfg(feature = "over")]
pub use over_error::OverError;
#[cfg(feature = "over")]
pub use packet_resources::{PacketResources, over};
#[cfg(feature = "over")]
pub use packet_runner::PacketRunner;
#[cfg(feature = "mesh")]
pub use resources::{Resources, new};
#[cfg(feature = "mesh")]
pub use runner::{Radio, Runner};
#[cfg(feature = "security")]
pub use secured::{Secured, SecuredRunner, Storage};
#[cfg(feature = "sleepy")]
pub use sleeping::{ServeError, SleepError, Sleepers};
pub use stack::Stack;
pub use udp::UdpSocket;

/// Re-exported for drivers: the events and actions of a radio.
#[cfg(feature = "mesh")]
pub use motet::mac;
/// Re-exported for what an application asks of the node itself: [`Stack::with_node`].
pub use motet::node::Node;

// Its example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/sockets.md")]
struct Guide;

// So does this one's.
#[cfg(all(doctest, feature = "over"))]
#[doc = include_str!("../../../docs/guide/above-another-stack.md")]
struct AboveAnotherStack;
