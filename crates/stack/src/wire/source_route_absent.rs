//! Stands in for RPL's source routes in a build without it: no packet follows one.

use core::net::Ipv6Addr;

pub(crate) const fn advance(_: &mut [u8]) -> Option<Ipv6Addr> {
    None
}

pub(crate) const fn retreat(_: &mut [u8]) -> Option<Ipv6Addr> {
    None
}
