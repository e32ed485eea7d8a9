//! Packets in unsecured frames: of joining, and of MLE, which is secured itself.

use super::Mesh;
use crate::ip::Iid;
use crate::limits::PSDU_LEN_MAX;
use crate::link::Refusal;
use crate::lowpan::{LinkPair, compress};
use crate::mac::FrameDrop;
use crate::time::Instant;
use crate::wire::{LinkAddr, cursor};

impl Mesh<'_> {
    /// Sends a packet in an unsecured frame to one neighbour, or to all in reach: from
    /// [`Self::local`] to that neighbour's link-local address, or to [`ALL_NODES`].
    ///
    /// # Errors
    /// [`Refusal::TooBig`]: the packet does not fit one frame; [`Refusal::Full`]: another such
    /// packet waits.
    pub(crate) fn send_in_clear(
        &mut self,
        to: Option<Iid>,
        packet: &[u8],
        now: Instant,
    ) -> Result<(), Refusal> {
        const TOO_BIG: Refusal = Refusal::TooBig { mtu: 0 };
        let link = LinkPair {
            src: LinkAddr::Extended(self.mac.config().extended),
            dst: to.map_or(LinkAddr::BROADCAST, LinkAddr::from_iid),
        };
        let mut frame = [0; PSDU_LEN_MAX];
        let compressed = compress(packet, link, &self.discovery.contexts, &mut frame);
        let compressed = compressed.map_err(|_| TOO_BIG)?;
        let rest = packet
            .get(compressed.uncompressed_len..)
            .unwrap_or_default();
        let end = compressed.compressed_len + rest.len();
        let room = frame.get_mut(compressed.compressed_len..end);
        cursor::copy(room.ok_or(TOO_BIG)?, rest);
        let frame = frame.get(..end).unwrap_or_default();
        let sent = self.mac.send_in_clear(link.dst, frame, now);
        sent.map_err(|reason| match reason {
            FrameDrop::BadLength => TOO_BIG,
            _ => Refusal::Full,
        })
    }
}
