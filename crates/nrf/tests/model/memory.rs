//! The memory between processor and radio: neither sees what the other has written before a fence.

use motet_nrf::Packet;

/// What has not passed a fence.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The PSDU that the radio reads, as it was at the last fence; `None`: there has been none
    /// since the packet was set.
    psdu: Option<Vec<u8>>,
    /// What the radio has written since the last fence: packet, index and value.
    written: Vec<(&'static Packet, usize, u8)>,
}

impl Memory {
    /// Another packet is set.
    pub(super) fn forget(&mut self) {
        self.psdu = None;
    }

    /// The radio writes a byte.
    pub(super) fn write(&mut self, packet: &'static Packet, index: usize, value: u8) {
        self.written.push((packet, index, value));
    }

    /// The PSDU that the radio reads.
    pub(super) fn psdu(&self) -> Option<Vec<u8>> {
        self.psdu.clone()
    }

    /// Each side sees what the other has written. `packet`: the one that is set.
    pub(super) fn fence(&mut self, packet: Option<&'static Packet>) {
        for (packet, index, value) in self.written.drain(..) {
            packet.set(index, value);
        }
        self.psdu = packet.map(psdu_of);
    }
}

/// The PSDU in a packet, as the processor sees it.
pub(super) fn psdu_of(packet: &'static Packet) -> Vec<u8> {
    (1..=packet.len()).map(|index| packet.get(index)).collect()
}
