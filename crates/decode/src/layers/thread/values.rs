//! The form that TLVs of MLE, of network data and of datasets have in common.
//!
//! Place: under `tlvs`, `network_data` and `dataset`.

use crate::model::{Field, Value, group};

/// Fields of a TLV of this type.
pub(super) fn typed(fields: Value, kind: u8) -> Value {
    match fields {
        Value::Group(mut fields) => {
            fields.push(Field::for_programs("type", kind));
            Value::Group(fields)
        }
        value => value,
    }
}

/// A TLV that holds others: its length, then they.
pub(super) fn content_of(name: &'static str, bytes: &[u8], content: Vec<Value>) -> Value {
    group([(name, bytes.len().into()), ("content", content.into())])
}
