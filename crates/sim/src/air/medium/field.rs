//! The air at one node on one channel, in one word: a frame touches that of hundreds of nodes which
//! can do nothing with it.

use crate::air::power::Power;

/// The air at each node, on each channel that any node is or was tuned to.
#[derive(Debug)]
pub(super) struct Fields {
    /// By node.
    channels: Vec<u8>,
    bands: Vec<Band>,
}

/// One channel.
#[derive(Debug)]
struct Band {
    channel: u8,
    /// By node, tuned to it or not.
    fields: Vec<Field>,
}

/// Everything on a channel that reaches a node, and whether each change there has to be accounted
/// for.
///
/// Bit 63: attentive; below: attowatts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Field(u64);

impl Fields {
    /// Silence; `channels` by node.
    pub(super) fn new(channels: impl IntoIterator<Item = u8>) -> Self {
        let mut all = Self {
            channels: Vec::new(),
            bands: Vec::new(),
        };
        channels.into_iter().for_each(|channel| all.add(channel));
        all
    }

    /// Adds a node that nobody reaches yet.
    pub(super) fn add(&mut self, channel: u8) {
        for band in &mut self.bands {
            band.fields.push(Field::default());
        }
        self.channels.push(channel);
        self.open(channel);
    }

    /// The channel that a node is tuned to.
    pub(super) fn channel(&self, node: usize) -> u8 {
        self.channels[node]
    }

    /// The air at a node on its channel.
    pub(super) fn at(&mut self, node: usize) -> &mut Field {
        let (fields, _) = self.on(self.channels[node]);
        &mut fields[node]
    }

    /// By node, the air on a channel, and which one it is tuned to.
    pub(super) fn on(&mut self, channel: u8) -> (&mut [Field], &[u8]) {
        let band = self.open(channel);
        (&mut self.bands[band].fields, &self.channels)
    }

    /// Tunes a node, which does not attend to what it left.
    pub(super) fn tune(&mut self, node: usize, channel: u8) {
        self.at(node).set_attentive(false);
        self.channels[node] = channel;
        self.open(channel);
    }

    /// The place of a channel's band. Nobody was on a new one, so that it is silent.
    fn open(&mut self, channel: u8) -> usize {
        let mut bands = self.bands.iter();
        if let Some(known) = bands.position(|band| band.channel == channel) {
            return known;
        }
        let fields = vec![Field::default(); self.channels.len()];
        self.bands.push(Band { channel, fields });
        self.bands.len() - 1
    }
}

impl Field {
    pub(super) fn is_attentive(self) -> bool {
        self.0 & ATTENTIVE != 0
    }

    pub(super) fn set_attentive(&mut self, is_attentive: bool) {
        self.0 = self.0 & !ATTENTIVE | if is_attentive { ATTENTIVE } else { 0 };
    }

    pub(super) fn incident(self) -> Power {
        Power::from_attowatts(self.0 & !ATTENTIVE)
    }

    /// A signal begins; it is at most [`SIGNAL_MAX`], of which a thousand leave the upper bit alone.
    pub(super) fn add(&mut self, signal: Power) {
        self.0 = self.0.wrapping_add(signal.attowatts());
    }

    /// A signal that had begun ends.
    pub(super) fn take(&mut self, signal: Power) {
        debug_assert!(self.incident() >= signal, "more left the air than had come");
        self.0 = self.0.wrapping_sub(signal.attowatts());
    }
}

/// What a receiver takes of any one signal, -11.5 dBm: a thousand such would be sensed by all.
pub(super) const SIGNAL_MAX: Power = Power::from_attowatts((1 << 46) - 1);

const ATTENTIVE: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_attention_do_not_touch_each_other() {
        let mut field = Field::default();
        for _ in 0..1024 {
            field.add(SIGNAL_MAX);
        }
        field.set_attentive(true);
        assert!(field.is_attentive());
        assert_eq!(field.incident().attowatts(), 1024 * SIGNAL_MAX.attowatts());
        for _ in 0..1024 {
            field.take(SIGNAL_MAX);
        }
        field.set_attentive(false);
        assert_eq!(field, Field::default());
    }

    #[test]
    fn each_channel_has_its_own_air() {
        let mut fields = Fields::new([11, 26]);
        fields.on(26).0[0].add(SIGNAL_MAX);
        fields.at(0).set_attentive(true);
        assert_eq!(fields.at(0).incident(), Power::ZERO);
        fields.tune(0, 26);
        fields.add(15);
        assert_eq!((fields.channel(0), fields.channel(2)), (26, 15));
        assert_eq!(fields.at(0).incident(), SIGNAL_MAX);
        assert!(!fields.at(0).is_attentive());
        assert_eq!(
            [0, 1].map(|node| fields.on(11).0[node]),
            [Field::default(); 2]
        );
        assert_eq!(fields.on(15).0.len(), 3);
    }
}
