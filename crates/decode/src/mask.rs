//! Keys in frames, which are never shown.
//!
//! Place: the last step before a frame is shown. Bytes keep their length; those of a key are zeros.
//! Left out: parts of a key below [`PART_LEN_MIN`] bytes at the ends of a fragment.

use crate::model::{Frame, Layer, Value};

/// Replaces `secrets` by zeros in all bytes that `frame` shows, and says so.
pub(super) fn hide(frame: &mut Frame, secrets: &[Vec<u8>]) {
    // Zeros are no secret, and would be found in any frame.
    let worthy = |secret: &&Vec<u8>| secret.iter().any(|byte| *byte != 0);
    let mut hidden = false;
    for secret in secrets.iter().filter(worthy) {
        for layer in &mut frame.layers {
            for field in &mut layer.fields {
                hidden |= hide_in(&mut field.value, secret);
            }
        }
    }
    if hidden {
        frame.push(Layer::new(
            "hidden",
            "the bytes of a key are shown as zeros",
        ));
    }
}

fn hide_in(value: &mut Value, secret: &[u8]) -> bool {
    let any = |found: bool, value: &mut Value| hide_in(value, secret) | found;
    match value {
        Value::Bytes(bytes) => hide_bytes(bytes, secret),
        Value::List(values) => values.iter_mut().fold(false, any),
        Value::Group(fields) => {
            let values = fields.iter_mut().map(|field| &mut field.value);
            values.fold(false, any)
        }
        _ => false,
    }
}

/// Clears each occurrence of `secret`, and its begin or end where a fragment ends within it.
fn hide_bytes(bytes: &mut [u8], secret: &[u8]) -> bool {
    let mut hidden = false;
    let mut from = 0;
    while let Some(at) = position(bytes.get(from..).unwrap_or_default(), secret) {
        if let Some(found) = bytes.get_mut(from + at..from + at + secret.len()) {
            found.fill(0);
        }
        from += at + secret.len();
        hidden = true;
    }
    let parts = || (PART_LEN_MIN..secret.len()).rev();
    let begin = |len: &usize| secret.get(..*len).unwrap_or_default();
    if let Some(len) = parts().find(|len| bytes.ends_with(begin(len))) {
        let start = bytes.len() - len;
        bytes.iter_mut().skip(start).for_each(|byte| *byte = 0);
        hidden = true;
    }
    let end = |len: &usize| secret.get(secret.len() - len..).unwrap_or_default();
    if let Some(len) = parts().find(|len| bytes.starts_with(end(len))) {
        bytes.iter_mut().take(len).for_each(|byte| *byte = 0);
        hidden = true;
    }
    hidden
}

fn position(bytes: &[u8], secret: &[u8]) -> Option<usize> {
    bytes
        .windows(secret.len().max(1))
        .position(|window| window == secret)
}

/// Shorter parts of a key are found by chance.
const PART_LEN_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_cleared_wherever_it_stands() {
        let secret: Vec<u8> = (1..=16).collect();
        let cases: [(Vec<u8>, Vec<u8>); 5] = [
            (
                [&[9], &secret[..], &[8]].concat(),
                [&[9], &[0; 16][..], &[8]].concat(),
            ),
            ([&secret[..], &secret].concat(), vec![0; 32]),
            (
                [&[9], &secret[..12]].concat(),
                [&[9][..], &[0; 12]].concat(),
            ),
            ([&secret[12..], &[9]].concat(), [&[0; 4][..], &[9]].concat()),
            (
                [&secret[13..], &[9]].concat(),
                [&secret[13..], &[9]].concat(),
            ),
        ];
        for (bytes, shown) in cases {
            let mut value = Value::List(vec![Value::Bytes(bytes.clone())]);
            assert_eq!(hide_in(&mut value, &secret), bytes != shown);
            assert_eq!(value, Value::List(vec![Value::Bytes(shown)]));
        }
    }
}
