//! The air at one node on one channel, in two words: a frame touches that of hundreds of nodes
//! which can do nothing with it, and their receivers are to stay out of the cache.

use crate::air::power::Power;

/// The air at each node, on each channel that any node is or was tuned to.
#[derive(Debug)]
pub(super) struct Fields {
    /// The channel of each node.
    channels: Vec<u8>,
    bands: Vec<Band>,
}

/// The power on one channel.
#[derive(Debug)]
struct Band {
    channel: u8,
    /// The field at each node, tuned to the channel or not.
    fields: Vec<Field>,
}

/// Everything on a channel that reaches a node, and how much of that its receiver need not hear of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    incident: Power,
    concern: Concern,
}

/// How much has to reach a receiver before a change concerns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Concern(Power);

impl Fields {
    /// Nothing is on the air yet. `channels`: one for each node.
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

    /// The field at each node on `channel`, and the channel that each node is tuned to.
    pub(super) fn on(&mut self, channel: u8) -> (&mut [Field], &[u8]) {
        let band = self.open(channel);
        (&mut self.bands[band].fields, &self.channels)
    }

    /// Tunes a node, which does not attend to what it left.
    pub(super) fn tune(&mut self, node: usize, channel: u8) {
        self.at(node).set_concern(Concern::NONE);
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
    /// Whether the receiver does anything.
    pub(super) fn is_attended(self) -> bool {
        self.concern != Concern::NONE
    }

    pub(super) fn set_concern(&mut self, concern: Concern) {
        self.concern = concern;
    }

    pub(super) fn incident(self) -> Power {
        self.incident
    }

    /// A signal begins. Gives what reached the node before it, if the change concerns the receiver.
    pub(super) fn add(&mut self, signal: Power) -> Option<Power> {
        let before = self.incident;
        self.incident = Power::from_attowatts(before.attowatts().wrapping_add(signal.attowatts()));
        self.concern.is_of(self.incident).then_some(before)
    }

    /// A signal that had begun ends; gives the same.
    pub(super) fn take(&mut self, signal: Power) -> Option<Power> {
        let before = self.incident;
        debug_assert!(before >= signal, "more left the air than had come");
        self.incident = Power::from_attowatts(before.attowatts().wrapping_sub(signal.attowatts()));
        self.concern.is_of(before).then_some(before)
    }
}

impl Default for Field {
    fn default() -> Self {
        Self {
            incident: Power::ZERO,
            concern: Concern::NONE,
        }
    }
}

impl Concern {
    /// The receiver does nothing.
    pub(super) const NONE: Self = Self(Power::from_attowatts(u64::MAX));

    /// Every change of power matters.
    pub(super) const ALL: Self = Self(Power::ZERO);

    /// Changes by which more than this reaches the receiver, before or after.
    pub(super) fn above(power: Power) -> Self {
        // One less than that of a receiver that does nothing.
        Self(power.min(Power::from_attowatts(u64::MAX - 1)))
    }

    fn is_of(self, most: Power) -> bool {
        most > self.0
    }
}

/// The most that a receiver counts of any one signal, -11.5 dBm: a thousand of them do not overflow
/// their sum.
pub(super) const SIGNAL_MAX: Power = Power::from_attowatts((1 << 46) - 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_above_the_limit_concern_a_receiver() {
        let [faint, loud] = [10, 80].map(Power::from_attowatts);
        let mut field = Field::default();
        assert_eq!((field.add(loud), field.is_attended()), (None, false));
        field.set_concern(Concern::above(Power::from_attowatts(95)));
        assert_eq!((field.add(faint), field.is_attended()), (None, true));
        assert_eq!(field.add(faint), Some(Power::from_attowatts(90)));
        assert_eq!(field.take(loud), Some(Power::from_attowatts(100)));
        assert_eq!(field.take(faint), None);
        field.set_concern(Concern::ALL);
        assert_eq!(field.take(faint), Some(faint));
        assert_eq!(field.incident(), Power::ZERO);
    }

    #[test]
    fn whatever_concerns_nobody_is_no_receivers_limit() {
        assert_ne!(
            Concern::above(Power::from_attowatts(u64::MAX)),
            Concern::NONE
        );
    }

    #[test]
    fn a_thousand_of_the_loudest_signals_have_a_sum() {
        let mut field = Field::default();
        for _ in 0..1024 {
            field.add(SIGNAL_MAX);
        }
        assert_eq!(field.incident().attowatts(), 1024 * SIGNAL_MAX.attowatts());
        for _ in 0..1024 {
            field.take(SIGNAL_MAX);
        }
        assert_eq!(field, Field::default());
    }

    #[test]
    fn each_channel_has_its_own_air() {
        let mut fields = Fields::new([11, 26]);
        fields.on(26).0[0].add(SIGNAL_MAX);
        fields.at(0).set_concern(Concern::ALL);
        assert_eq!(fields.at(0).incident(), Power::ZERO);
        fields.tune(0, 26);
        fields.add(15);
        assert_eq!((fields.channel(0), fields.channel(2)), (26, 15));
        assert_eq!(fields.at(0).incident(), SIGNAL_MAX);
        assert!(!fields.at(0).is_attended());
        assert_eq!(
            [0, 1].map(|node| fields.on(11).0[node]),
            [Field::default(); 2]
        );
        assert_eq!(fields.on(15).0.len(), 3);
    }
}
