//! Data between hosts and packets.

use motet::ble::{Event, Handle};

use super::connection::{CONTINUATION, Pdu, START};
use super::{Air, Report};

impl Air {
    /// A host's data packet, cut to what packets on the air carry. Data for a connection that is
    /// over are dropped, as HCI has it.
    pub(super) fn take_data(
        &mut self,
        (device, handle): (usize, Handle),
        is_first: bool,
        bytes: &[u8],
    ) {
        let Some((connection, end)) = self.end_of(device, handle) else {
            return;
        };
        let end = &mut self.connections[connection].ends[end];
        let pieces = bytes.chunks(usize::from(end.octets));
        let count = pieces.len();
        for (n, piece) in pieces.enumerate() {
            end.data.push_back(Pdu {
                llid: if is_first && n == 0 {
                    START
                } else {
                    CONTINUATION
                },
                bytes: piece.to_vec(),
                ends_packet: n + 1 == count,
            });
        }
    }

    /// The packet that an end sent last has arrived: nothing of it is kept.
    pub(super) fn acknowledged(&mut self, connection: usize, end: usize) {
        let sender = &mut self.connections[connection].ends[end];
        sender.sn = !sender.sn;
        let Some(Some(pdu)) = sender.flying.take() else {
            return;
        };
        if pdu.ends_packet {
            let device = sender.device;
            let handle = Handle(connection as u16);
            if self.devices[device].profile.refills_when_empty {
                return;
            }
            let packets = 1;
            self.report(device, Report::Plain(Event::Completed { handle, packets }));
        }
    }

    /// An end has taken a packet out of its buffer to send it. Where the buffer is filled again
    /// only once it is empty, the host hears of all of them together.
    pub(super) fn taken_out(&mut self, connection: usize, end: usize) {
        let sender = &mut self.connections[connection].ends[end];
        let device = sender.device;
        let is_whole = matches!(&sender.flying, Some(Some(pdu)) if pdu.ends_packet);
        if !self.devices[device].profile.refills_when_empty || !is_whole {
            return;
        }
        sender.completed += 1;
        if sender.data.is_empty() {
            let handle = Handle(connection as u16);
            let packets = std::mem::take(&mut sender.completed);
            self.report(device, Report::Plain(Event::Completed { handle, packets }));
        }
    }

    /// A packet that is new to an end.
    pub(super) fn received(&mut self, connection: usize, end: usize, pdu: Pdu) {
        match pdu.llid {
            START | CONTINUATION => {
                let device = self.connections[connection].ends[end].device;
                let handle = Handle(connection as u16);
                self.report(device, Report::Data(handle, pdu.llid == START, pdu.bytes));
            }
            _ => self.on_control(connection, end, &pdu.bytes),
        }
    }
}
