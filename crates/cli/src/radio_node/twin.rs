//! Whether another radio has the EUI-64 of this one.
//!
//! A node's address follows from the EUI-64 of its radio, and a registration names its owner by it
//! (RFC 8505 §5.3), so no router can tell two such nodes apart. The radios themselves can: each
//! acknowledges all frames to its address, and none acknowledges its own. So a node sends a frame
//! to its own address before it starts, and an ACK is the other radio's. A radio beyond reach, or
//! whose receiver is off, is not found so; its frames to all nodes show it later, if they are
//! heard. As anybody can send such frames, they end nothing.

use motet::{
    random::Rng,
    wire::{
        LinkAddr,
        ieee802154::{Command, Header},
    },
};
use motet_lab::keys::hex;
use motet_radio::{Error as RadioError, Event, SpinelRadio};
use motet_spinel::Outcome;

use crate::{error::Error, interrupt::Interrupt, real_radio::Clock, real_radio::failed};

/// Makes sure that no other radio within reach acknowledges frames to this address; returns whether
/// it came to an end before a signal. `radio`: ready, and no frame of its own under way.
///
/// # Errors
/// Another radio does; or this one cannot be used any more.
pub(super) fn seek(
    radio: &mut SpinelRadio,
    (eui64, pan): ([u8; 8], u16),
    rng: &mut Rng,
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<bool, Error> {
    let mut acks = 0;
    for attempt in 1..=ATTEMPTS_MAX {
        let frame = probe(eui64, pan, rng.next_u32() as u8);
        let ended = outcome_of(radio, &frame, clock, interrupt).map_err(|error| failed(&error))?;
        match ended {
            None => return Ok(false),
            Some(Outcome::Acked(_)) => acks += 1,
            Some(_) => {}
        }
        // One may have been an ACK of others' with the same number.
        if acks >= ACKS_MIN {
            return Err(Error::failed(format!(
                "another radio within reach has the EUI-64 of this one, {}: give one of the two another EUI-64 \
                 by its firmware, or use another radio",
                hex(&eui64)
            )));
        }
        if acks == 0 && attempt >= ATTEMPTS {
            break;
        }
    }
    Ok(true)
}

/// What to say of a frame that came from this radio's own address.
pub(super) fn warning(eui64: [u8; 8]) -> String {
    format!(
        "a frame came whose sender has the EUI-64 of this radio, {}: if another radio has it, give one of the two \
         another one, for neither is reached reliably",
        hex(&eui64)
    )
}

/// A data request to its own sender, without its FCS.
fn probe(eui64: [u8; 8], pan: u16, sequence: u8) -> Vec<u8> {
    let own = LinkAddr::Extended(eui64);
    let mut payload = [0; 1];
    let mut frame = vec![0; PROBE_LEN_MAX];
    let payload_len = Command::DataRequest.emit(&mut payload).unwrap_or(0);
    let payload = payload.get(..payload_len).unwrap_or_default();
    let header = Header::command(pan, own, own, sequence);
    let len = header.emit(&mut frame).unwrap_or(0);
    frame.truncate(len);
    frame.extend_from_slice(payload);
    frame
}

/// How one transmission of a frame ends; none where a signal came first. Frames that come meanwhile
/// are dropped.
fn outcome_of(
    radio: &mut SpinelRadio,
    frame: &[u8],
    clock: Clock,
    interrupt: &Interrupt,
) -> Result<Option<Outcome>, RadioError> {
    if radio.transmit(frame, None, clock.now()).is_err() {
        return Ok(Some(Outcome::Failed(None)));
    }
    loop {
        while let Some(event) = radio.poll(clock.now())? {
            if let Event::Sent { outcome, .. } = event {
                return Ok(Some(outcome));
            }
        }
        if interrupt.has_come() {
            return Ok(None);
        }
        radio.wait(Some(NAP), &[], clock.now())?;
    }
}

/// Attempts where none is acknowledged, and where one was.
const ATTEMPTS: usize = 3;
const ATTEMPTS_MAX: usize = 5;

/// So many ACKs are no accident.
const ACKS_MIN: usize = 2;

/// More than two extended addresses take.
const PROBE_LEN_MAX: usize = 32;

/// How late a signal may be noticed.
const NAP: std::time::Duration = std::time::Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use motet::wire::ieee802154::FrameType;

    #[test]
    fn a_probe_asks_its_own_sender_for_an_ack() {
        let eui64 = [2, 0, 0, 0, 0, 0, 0, 9];
        let frame = probe(eui64, 0xabcd, 77);
        let (header, payload) = Header::parse(&frame).unwrap();
        assert_eq!(header.frame_type, FrameType::Command);
        assert!(header.ack_request);
        assert_eq!(header.sequence, 77);
        assert_eq!(header.src, header.dst);
        let addr = header.src.map(|src| (src.pan_id, src.addr));
        assert_eq!(addr, Some((0xabcd, LinkAddr::Extended(eui64))));
        assert_eq!(Command::parse(payload), Ok(Command::DataRequest));
    }
}
