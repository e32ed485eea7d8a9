//! What a mote has of an image, as the lab sees it in the mote's flash.

use motet::time::Instant;

use super::flash::Flash;

/// What a mote's flash holds of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stored {
    /// The most bytes that the slot has held.
    pub bytes: u64,
    /// The slot begins with the whole image.
    pub is_intact: bool,
    /// When an image first became pending.
    pub pending_since: Option<Instant>,
}

impl Stored {
    pub(super) fn new(flash: &Flash, image: &[u8], pending_since: Option<Instant>) -> Self {
        Self {
            bytes: flash.stored().min(image.len()) as u64,
            is_intact: flash.begins_with(image),
            pending_since,
        }
    }
}
