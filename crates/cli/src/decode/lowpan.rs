//! 6LoWPAN, to be completed with the stack's codecs.
use super::model::Frame;
use super::{Context, Decoder};
use motet::wire::ieee802154::Header;
use std::net::Ipv6Addr;
pub(super) struct Contexts;
impl Contexts {
    pub(super) fn new(_: &[Context]) -> Self {
        Self
    }
    pub(super) fn learn(&mut self, _: u8, _: Ipv6Addr, _: u8) {}
}
pub(super) fn explain(_: &mut Decoder, frame: &mut Frame, _: &Header, payload: &[u8]) {
    super::link::payload(frame, payload);
}
