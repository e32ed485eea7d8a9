//! A received frame that waits until its acknowledgement has left.

use crate::limits::FRAME_PAYLOAD_LEN_MAX;
use crate::mac::{Received, RxMeta};
use crate::wire::{LinkAddr, cursor};

/// A received frame, kept: its ACK is due a turnaround after its end, and the work that its
/// packet makes would come in between.
#[derive(Debug)]
pub(super) struct DeferredFrame {
    src: LinkAddr,
    dst: LinkAddr,
    pending: bool,
    meta: RxMeta,
    len: u8,
    payload: [u8; FRAME_PAYLOAD_LEN_MAX],
}

impl DeferredFrame {
    /// Makes a copy of `frame` in `slot`; none where it is longer than any that the MAC lets
    /// through.
    pub(super) fn keep(slot: &mut Option<Self>, frame: &Received<'_>) {
        *slot = None;
        if frame.payload.len() <= FRAME_PAYLOAD_LEN_MAX {
            let kept = slot.insert(Self {
                src: frame.src,
                dst: frame.dst,
                pending: frame.pending,
                meta: frame.meta,
                len: frame.payload.len() as u8,
                payload: [0; FRAME_PAYLOAD_LEN_MAX],
            });
            cursor::copy(&mut kept.payload, frame.payload);
        }
    }

    /// The frame as it came.
    pub(super) fn frame(&self) -> Received<'_> {
        Received {
            src: self.src,
            dst: self.dst,
            payload: self
                .payload
                .get(..usize::from(self.len))
                .unwrap_or_default(),
            pending: self.pending,
            meta: self.meta,
        }
    }
}
