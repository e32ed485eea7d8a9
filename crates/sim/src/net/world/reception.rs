//! The reception of a frame when its last symbol has passed.
//!
//! Place: the medium returns the receivers that were locked on the frame, each with the chance of a
//! correct reception. A random draw decides, and radios and nodes are notified.

use motet::time::Instant;
use motet::wire::ieee802154::Header;

use super::World;
use super::port::radio_at;
use crate::air::filter;
use crate::air::medium::{Fate, FrameId, Interest, Reception};
use crate::air::radio::IncomingFrame;

impl World<'_> {
    /// A frame's last symbol has passed.
    pub(super) fn end_frame(&mut self, id: FrameId, now: Instant) {
        let mut receptions = std::mem::take(&mut self.receptions);
        receptions.clear();
        if let Some(finished) = self.air.medium.finish(id, now, &mut receptions) {
            let sender = finished.from;
            let header = filter::header(finished.frame.psdu());
            if let Some(radio) = radio_at(&mut self.motes, &self.places, sender) {
                radio.on_sent(header.as_ref(), &mut self.air, now);
            }
            let is_nodes = self.is_nodes(sender);
            let is_cut = is_nodes && self.motes[self.places.node(sender)].is_off;
            let mut fate = finished.fate;
            let matters =
                |reception: &Reception| matters(reception, finished.intended, header.as_ref());
            for reception in &receptions {
                let matters = matters(reception);
                let judged = match is_cut {
                    true => Fate::Corrupted,
                    false => self.judge(reception, matters || reception.intended),
                };
                if reception.intended {
                    fate = judged;
                }
                if !matters {
                    continue;
                }
                let heard = header.as_ref().filter(|_| judged == Fate::Received);
                let heard = heard.map(|header| IncomingFrame {
                    frame: &finished.frame,
                    header,
                    power: reception.power,
                    from: finished.from,
                });
                if let Some(radio) = radio_at(&mut self.motes, &self.places, reception.at) {
                    radio.on_reception(heard, &mut self.air, now);
                }
            }
            self.air.note_frame(&finished, header.as_ref(), fate, now);
            if is_nodes {
                if let Some(to) = finished.intended {
                    self.overhear(to, &finished.frame);
                }
                self.air.count(&finished, header.as_ref(), fate);
                self.drive(self.places.node(sender), now);
            }
            for reception in receptions.iter().filter(|reception| matters(reception)) {
                self.drive_if_told(self.places.node(reception.at), now);
            }
        }
        self.receptions = receptions;
    }

    /// Draws whether a frame arrives. `is_asked`: whether the result is needed; if not, it may be
    /// wrong, but the same number of random numbers is drawn.
    fn judge(&mut self, reception: &Reception, is_asked: bool) -> Fate {
        let node = self.places.node(reception.at);
        // Certain results draw nothing: most frames have no rival at all.
        if reception.survival < 1.0 {
            if !is_asked && self.frame_loss == 0.0 {
                self.survivals.pass(node);
            } else if !self.survivals.happens(node, reception.survival) {
                return Fate::Corrupted;
            }
        }
        if self.frame_loss > 0.0 && self.losses.happens(node, self.frame_loss) {
            return Fate::Injected;
        }
        Fate::Received
    }
}

/// Whether a radio has to hear of a frame that it received; most were for others.
fn matters(reception: &Reception, intended: Option<usize>, header: Option<&Header>) -> bool {
    let is_for_another = intended.is_some() && !reception.intended;
    let Some(header) = header.filter(|_| is_for_another) else {
        return true;
    };
    match reception.interest {
        Interest::All => true,
        Interest::AcksWith(number) => header.dst.is_none() && header.sequence == number,
        Interest::Nothing => false,
    }
}
