//! The fields of an explained frame, by name.
//!
//! Place: the diagnosis reads frames as programs do, so that it needs nothing of the protocols'
//! codecs.

use crate::model::{Field, Frame, Layer, Value};

/// An explained frame.
#[derive(Clone, Copy)]
pub(super) struct View<'a>(pub(super) &'a Frame);

impl<'a> View<'a> {
    /// The innermost layer of this name.
    pub(super) fn layer(self, name: &str) -> Option<&'a Layer> {
        self.0.layers.iter().rev().find(|layer| layer.name == name)
    }

    fn value(self, layer: &str, key: &str) -> Option<&'a Value> {
        let layer = self.layer(layer)?;
        of(&layer.fields, key)
    }

    pub(super) fn number(self, layer: &str, key: &str) -> Option<u64> {
        number(self.value(layer, key)?)
    }

    pub(super) fn text(self, layer: &str, key: &str) -> Option<&'a str> {
        match self.value(layer, key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn flag(self, layer: &str, key: &str) -> Option<bool> {
        match self.value(layer, key)? {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A signed or a real measure.
    pub(super) fn measure(self, layer: &str, key: &str) -> Option<f64> {
        match self.value(layer, key)? {
            Value::Real(value) => Some(*value),
            Value::Signed(value) => Some(*value as f64),
            Value::Number(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The groups of a list, as options are.
    pub(super) fn groups(self, layer: &str, key: &str) -> impl Iterator<Item = &'a [Field]> {
        let list = match self.value(layer, key) {
            Some(Value::List(list)) => &list[..],
            _ => &[],
        };
        list.iter().filter_map(|value| match value {
            Value::Group(fields) => Some(&fields[..]),
            _ => None,
        })
    }

    /// Whether a list holds this word.
    pub(super) fn lists(self, layer: &str, key: &str, word: &str) -> bool {
        match self.value(layer, key) {
            Some(Value::List(list)) => list.iter().any(|value| match value {
                Value::Text(text) => text == word,
                _ => false,
            }),
            _ => false,
        }
    }

    /// How long the frame is on the air, with preamble and length, at 250 kb/s; none for other
    /// links than IEEE 802.15.4.
    pub(super) fn air_s(self) -> Option<f64> {
        let bytes = self.0.radio_len;
        (bytes > 0).then(|| f64::from(bytes.saturating_add(PHY_LEN)) * S_PER_BYTE)
    }

    /// Seconds since the capture's begin.
    pub(super) fn at_s(self) -> f64 {
        self.0.since_start_ns as f64 / 1e9
    }
}

/// The value of a field among those of a group.
pub(super) fn of<'a>(fields: &'a [Field], key: &str) -> Option<&'a Value> {
    let field = fields.iter().find(|field| field.key == key)?;
    Some(&field.value)
}

pub(super) const fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(value) | Value::Hex(value, _) => Some(*value),
        _ => None,
    }
}

/// Preamble, start-of-frame delimiter and length.
const PHY_LEN: u32 = 6;
const S_PER_BYTE: f64 = 32e-6;
