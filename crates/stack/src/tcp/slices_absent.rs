//! Send buffers are rings alone, built without the feature `slices`: see `slices`.

use core::convert::Infallible;
use core::marker::PhantomData;

use crate::storage::ring::Ring;

/// A list of slices, of which there is none in a build without the feature `slices`.
#[derive(Debug)]
pub struct SliceQueue<'m>(Infallible, PhantomData<&'m mut [u8]>);

impl<'m> SliceQueue<'m> {
    pub(super) const fn push_slice(&mut self, _: &'m [u8]) -> bool {
        match self.0 {}
    }

    pub(super) const fn clear(&mut self) {
        match self.0 {}
    }

    pub(super) const fn len(&self) -> u16 {
        match self.0 {}
    }

    pub(super) const fn copy_room(&self) -> u16 {
        match self.0 {}
    }

    pub(super) const fn has_room(&self) -> bool {
        match self.0 {}
    }

    pub(super) const fn copies(&mut self) -> &mut Ring<'m> {
        match self.0 {}
    }

    pub(super) const fn push(&mut self, _: &[u8]) -> usize {
        match self.0 {}
    }

    pub(super) const fn note_copied(&mut self, _: u16) {
        match self.0 {}
    }

    pub(super) const fn peek(&self, _: u16, _: &mut [u8]) -> usize {
        match self.0 {}
    }

    pub(super) const fn consume(&mut self, _: u16) {
        match self.0 {}
    }
}
