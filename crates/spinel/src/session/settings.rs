//! Settings: those that are wanted, and those that the radio has acknowledged.

use crate::frame::Property;
use crate::packed::Writer;

/// Settings of a radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Channel, 11 to 26 at 2.4 GHz.
    pub channel: u8,
    /// PAN identifier.
    pub pan: u16,
    /// Short address; `None`: this node has none.
    pub short: Option<u16>,
    /// Extended address, big endian; `None`: the chip's own.
    pub eui64: Option<[u8; 8]>,
    /// Frames of others.
    pub promiscuous: Promiscuous,
}

/// Which frames are received beyond those for this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Promiscuous {
    /// None.
    #[default]
    Off,
    /// All of its PAN.
    Network,
    /// All; the radio then acknowledges nothing.
    All,
}

/// Properties in the order in which they are set. The radio must be on before anything else, and
/// only the last one lets it receive, acknowledge and send.
pub(super) const ORDER: [Property; 8] = [
    Property::PhyEnabled,
    // Before any frame comes: while it is off, every ACK has the frame pending bit.
    Property::SrcMatchEnabled,
    Property::PhyChan,
    Property::MacPanid,
    Property::MacLaddr,
    Property::MacSaddr,
    Property::MacPromiscuous,
    Property::RawStreamEnabled,
];

/// Source match tables are written after this many settings.
pub(super) const BEFORE_TABLES: usize = 2;

/// Values of [`ORDER`]; `None`: unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct Applied([Option<Value>; ORDER.len()]);

/// At most eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value([u8; 8], usize);

impl Value {
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or_default()
    }
}

impl From<Writer> for Value {
    fn from(writer: Writer) -> Self {
        let mut value = Self([0; 8], 0);
        for (place, byte) in value.0.iter_mut().zip(writer.finish()) {
            *place = byte;
            value.1 += 1;
        }
        value
    }
}

impl Applied {
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn set(&mut self, n: usize, value: Value) {
        if let Some(place) = self.0.get_mut(n) {
            *place = Some(value);
        }
    }

    /// The first setting that differs from `wanted`: its place in [`ORDER`], and its value.
    pub(super) fn next(&self, wanted: &Wanted<'_>) -> Option<(usize, Value)> {
        let mut all = (0..ORDER.len()).map(|n| (n, wanted.value(n)));
        all.find(|(n, value)| self.0.get(*n).copied().flatten() != Some(*value))
    }
}

/// The wanted settings, with those that the session itself decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) settings: &'a Settings,
    /// The chip's own address.
    pub(super) chip: [u8; 8],
    /// Whether source matching is on.
    pub(super) has_tables: bool,
    pub(super) is_listening: bool,
}

impl Wanted<'_> {
    fn value(&self, n: usize) -> Value {
        let writer = Writer::new();
        let settings = self.settings;
        Value::from(match ORDER.get(n) {
            Some(Property::SrcMatchEnabled) => writer.bool(self.has_tables),
            Some(Property::PhyChan) => writer.u8(settings.channel),
            Some(Property::MacPanid) => writer.u16(settings.pan),
            Some(Property::MacLaddr) => writer.eui64(settings.eui64.unwrap_or(self.chip)),
            Some(Property::MacSaddr) => writer.u16(settings.short.unwrap_or(NO_SHORT)),
            Some(Property::MacPromiscuous) => writer.u8(settings.promiscuous as u8),
            Some(Property::RawStreamEnabled) => writer.bool(self.is_listening),
            _ => writer.bool(true),
        })
    }
}

/// Of a node that has no short address (IEEE 802.15.4-2015 §8.4.3.1).
const NO_SHORT: u16 = 0xffff;
