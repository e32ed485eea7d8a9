//! Frames made by hand, for tests of single rules: fields as the decoder names them, at times that
//! the lab does not make.

use serde_json::Value;

use super::Examiner;
use crate::model::{Frame, Layer, Status, Value as Field};

/// Frames one after another, examined as they come.
#[derive(Default)]
pub(super) struct Made {
    examiner: Examiner,
    number: u64,
    /// The channel of the frames that follow.
    pub(super) channel: Option<u64>,
    /// What the sniffer hears the frames that follow at, dBm.
    pub(super) rssi_dbm: Option<f64>,
}

impl Made {
    /// A frame of `bytes` bytes with these layers behind the sniffer's own; returns its number.
    pub(super) fn frame(&mut self, at_s: f64, bytes: u32, layers: Vec<Layer>) -> u64 {
        self.number += 1;
        let tap = Layer::new("tap", "")
            .with("channel", self.channel)
            .with("rssi_dbm", self.rssi_dbm.map_or(Field::Null, Field::Real));
        let mut all = vec![tap];
        all.extend(layers);
        self.examiner.observe(&Frame {
            number: self.number,
            epoch_ns: 0,
            since_start_ns: (at_s * 1e9) as i64,
            captured_len: bytes as usize,
            original_len: bytes,
            radio_len: bytes,
            path: String::new(),
            summary: String::new(),
            layers: all,
            status: Status::Decoded,
        });
        self.number
    }

    /// A frame of 100 bytes that wants an acknowledgment; `of`: the first attempt that it repeats.
    pub(super) fn data(
        &mut self,
        at_s: f64,
        [src, dst]: [&str; 2],
        seq: u8,
        of: Option<u64>,
    ) -> u64 {
        self.frame(at_s, 100, vec![mac("data", [src, dst], seq, of)])
    }

    /// Its acknowledgment.
    pub(super) fn ack(&mut self, at_s: f64, of: u64) {
        let layer = Layer::new("mac", "ack").with("type", "ack");
        self.frame(at_s, 5, vec![layer.with("acknowledges", of)]);
    }

    /// A frame and, a turnaround after it, its acknowledgment.
    pub(super) fn exchange(&mut self, at_s: f64, ends: [&str; 2], seq: u8) {
        let of = self.data(at_s, ends, seq, None);
        self.ack(at_s + DATA_S + TURNAROUND_S, of);
    }

    /// The findings: code and sentence of each, worst first.
    pub(super) fn findings(self) -> Vec<(String, String)> {
        let value = serde_json::to_value(self.examiner.conclude()).unwrap();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let list = value["findings"].as_array().unwrap().iter();
        list.map(|one| (text(one, "code"), text(one, "sentence")))
            .collect()
    }
}

/// A MAC header.
pub(super) fn mac(kind: &str, [src, dst]: [&str; 2], seq: u8, of: Option<u64>) -> Layer {
    Layer::new("mac", kind)
        .with("type", kind)
        .with("src", src)
        .with("dst", dst)
        .with("seq", u64::from(seq))
        .with("ack_request", true)
        .with("repeat_of", of)
}

/// The sentence of the first finding of this code.
pub(super) fn sentence<'a>(found: &'a [(String, String)], code: &str) -> Option<&'a str> {
    let mut found = found.iter().filter(|(of, _)| of == code);
    found.next().map(|(_, text)| text.as_str())
}

/// 100 bytes with preamble and length, at 250 kb/s.
pub(super) const DATA_S: f64 = 106.0 * 32e-6;
/// From a frame's end to its acknowledgment (IEEE 802.15.4-2020, aTurnaroundTime).
pub(super) const TURNAROUND_S: f64 = 192e-6;
