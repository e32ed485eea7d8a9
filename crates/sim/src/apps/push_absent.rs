//! In the place of a host that brings new firmware: types without values, in a build without the
//! feature `firmware`. A scenario with such a flow is refused before.

use std::marker::PhantomData;

use motet::node::Node;
use motet::time::Instant;

/// No host brings an image over TCP.
#[derive(Debug)]
pub struct Pusher<'m>(Never, PhantomData<&'m ()>);

/// Nor over CoAP.
#[derive(Debug)]
pub struct BlockPusher<'m>(Never, PhantomData<&'m ()>);

#[derive(Clone, Copy, Debug)]
enum Never {}

/// The shortest image.
pub const IMAGE_LEN_MIN: usize = 0;

macro_rules! without_values {
    ($name:ident) => {
        impl<'m> $name<'m> {
            /// Never called.
            pub fn outcome(&self, _: usize) -> Option<bool> {
                match self.0 {}
            }

            /// Never called.
            pub fn resent(&self, _: usize) -> u64 {
                match self.0 {}
            }

            /// Never called.
            pub fn image(&self) -> &[u8] {
                match self.0 {}
            }

            pub(super) fn next_deadline(&self) -> Option<Instant> {
                match self.0 {}
            }

            pub(super) fn step(&mut self, _: &mut Node<'m>, _: Instant) -> bool {
                match self.0 {}
            }

            pub(super) fn switch_off(&mut self, _: &mut Node<'m>) {
                match self.0 {}
            }
        }
    };
}

without_values!(Pusher);
without_values!(BlockPusher);
