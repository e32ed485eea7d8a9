//! Linux I/O for the border router: a private network, and a packet port to
//! this machine's own kernel.
//!
//! Place in the data flow: the border router itself is a `Node` of `motet`
//! with a radio and a wired interface. What leaves its wired interface is given
//! to [`port::PacketPort::send`]; what [`port::PacketPort::recv`] returns enters
//! it. On the other side sits the kernel's TCP, reached with plain `std::net`
//! from inside the [`namespace::Namespace`].
//!
//! Left out on purpose: every protocol. Nothing here looks deeper into a packet
//! than its IPv6 header.
//!
//! Sources: unshare(2), user_namespaces(7), packet(7), rtnetlink(7), the kernel's
//! `Documentation/networking/tuntap.rst`.
//!
//! On anything but Linux this crate is empty: use `--virtual` there.

#![cfg(target_os = "linux")]

mod link;
pub mod namespace;
mod netlink;
pub mod port;
