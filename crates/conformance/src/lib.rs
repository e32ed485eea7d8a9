//! Packetdrill's script language as a test language for Motet's TCP.
//!
//! Purpose: run a script against one [`motet::tcp::Tcp`] in process and in virtual time, and
//! say precisely what differed: the expected line, the segment seen, both decoded.
//!
//! Place: [`script`] reads the language; [`host`] puts a socket interface around the engine,
//! shared with the library that packetdrill itself can load, so that the two verdicts agree;
//! [`run`] plays a script against a host; [`overlap`] writes scripts from a model. A script with a
//! line that cannot be expressed is refused, never passed in silence; its shell commands are never
//! executed.
//!
//! Left out: IPv4, UDP, encapsulation, MPTCP and Fast Open.
//! Sources: Cardwell et al., packetdrill (USENIX ATC 2013), for the language.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod host;
pub mod overlap;
pub mod packet;
pub mod run;
pub mod script;
