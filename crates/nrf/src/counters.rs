//! Counts of what a driver does, and of what goes wrong.

/// Counts of frames and interrupts; each begins at 0 and wraps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// ACKs that the driver has sent.
    pub acks: u32,
    /// ACKs not sent, because the interrupt came too late for a turnaround.
    pub late_acks: u32,
    /// Frames with a bad CRC.
    pub bad_crc: u32,
    /// Frames with a length that no frame has.
    pub bad_length: u32,
    /// Frames for others, and frames that are none.
    pub filtered: u32,
    /// Frames dropped, and not acknowledged, because the node has not taken the last ones.
    pub overruns: u32,
    /// Events that no interrupt had reported.
    pub lost_interrupts: u32,
    /// Times that the radio was found stuck, and started anew.
    pub restarts: u32,
    /// Reports for which there was no room.
    pub lost_reports: u32,
    /// Fires while no frame was loaded: they send nothing, and are not answered.
    pub empty_fires: u32,
    /// Checks that found the high-frequency clock without its crystal.
    pub crystal_off: u32,
}

/// One more.
pub(crate) fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}
