//! A node whose ports are all closed, built without the feature `inbox`: see `inbox`.

use core::convert::Infallible;
use core::marker::PhantomData;
use core::net::Ipv6Addr;

/// An inbox, which no node has in a build without the feature `inbox`.
#[derive(Debug)]
pub struct Inbox<'m>(Infallible, PhantomData<&'m mut [u8]>);

impl Inbox<'_> {
    pub(crate) const fn put(&self, _: &Ipv6Addr, _: &Ipv6Addr, _: u8, _: &[u8]) -> bool {
        match self.0 {}
    }
}
