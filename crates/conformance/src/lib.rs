//! Packetdrill's script language as a test language for Motet's TCP.
//!
//! Purpose: runs a script against one [`motet::tcp::Tcp`] in process and in virtual time. A failure
//! names the expected line and the segment seen, both decoded.
//!
//! Place: [`script`] reads the language; [`host`] puts a socket interface around the engine, which
//! the library that packetdrill itself can load also uses, so that both runners give the same
//! verdict; [`run`] plays a script against a host; [`overlap`] writes scripts from a model. A
//! script with an unsupported line is refused, never passed silently. Shell commands in scripts are
//! never executed.
//!
//! Left out: IPv4, UDP, encapsulation, MPTCP and Fast Open.
//! Sources: Cardwell et al., packetdrill (USENIX ATC 2013), for the language.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod host;
pub mod overlap;
pub mod packet;
pub mod run;
pub mod script;
