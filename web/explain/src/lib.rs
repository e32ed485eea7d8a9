//! What reads captures on the live page: a module of its own, loaded when a visitor first asks what
//! a frame holds, or brings a capture.
//!
//! Purpose: `motet-decode` behind functions that JavaScript calls. Place: the worker that owns the
//! lab hands it captures of the lab's. Left out: whatever runs.

use motet_decode::{Capture, Decoder, Frame, Look};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

/// Explains the record of a capture that begins at `start_us` and ends with `bytes`, as
/// `motet decode` does, but without its time since the capture's first frame; none where there is
/// no such record.
#[wasm_bindgen]
pub fn explain(capture: Vec<u8>, start_us: f64, bytes: &[u8]) -> Option<String> {
    let mut reader = Capture::of_bytes(capture).ok()?;
    let mut decoder = Decoder::new(&[]);
    let at_ns = start_us as u64 * 1_000;
    while let Some(Ok(record)) = reader.next_record() {
        let frame = decoder.decode(&record);
        // Others may have begun at the same time, as long: the bytes say which it is.
        if record.epoch_ns == at_ns && record.data.ends_with(bytes) {
            return explained(&frame);
        }
    }
    None
}

/// The frames of IEEE 802.15.4 in a capture, each behind an octet with its length.
///
/// # Errors
/// Why it cannot be read.
#[wasm_bindgen]
pub fn frames(capture: Vec<u8>) -> Result<Vec<u8>, JsError> {
    let frames = motet_decode::mac_frames(capture);
    let frames = frames.map_err(|error| JsError::new(&error.to_string()))?;
    let mut packed = Vec::new();
    for frame in frames {
        // Lossless: at most 127 bytes.
        packed.push(frame.len() as u8);
        packed.extend_from_slice(&frame);
    }
    Ok(packed)
}

/// A frame in words: its number and summary, then its layers. The first line of [`Look::frame`]
/// also has the time since the capture's first frame, and the length with what the capture puts
/// before it.
fn explained(frame: &Frame) -> Option<String> {
    let mut text = Vec::new();
    Look::PLAIN.frame(&mut text, frame).ok()?;
    let text = String::from_utf8(text).ok()?;
    // The first line is made anew, so what was folded from it goes with it.
    let layers = text.lines().skip(1);
    let layers = layers.skip_while(|line| line.starts_with(CONTINUED));
    let layers: String = layers.map(|line| format!("{line}\n")).collect();
    Some(format!("#{}  {}\n{layers}", frame.number, frame.summary))
}

/// Begins each line that goes on with the one before it, as [`Look::frame`] writes them.
const CONTINUED: &str = "           ";
