//! The crate `nrf-802154`.

use motet::wire::LinkAddr;
use motet_embassy::offload::{Driver, Port, Shared};
use nrf_802154::{Error, MAX_PSDU_SIZE, PsduMeta, TxError};

use crate::chip::{Failure, Hardware, Meta, Nordic};

/// The radio of the chip.
pub struct Radio {
    driver: nrf_802154::Radio<'static>,
}

/// Connects Nordic's driver with a node. Its power and its assessment stay as they are.
///
/// # Panics
/// When `shared` has a radio already.
pub fn new(
    mut driver: nrf_802154::Radio<'static>,
    shared: &'static Shared,
) -> (Port, Driver<Nordic<Radio>>) {
    driver.set_promiscuous(false);
    // Until a child's bit is set, its ACKs say that nothing waits.
    driver.clear_pending();
    driver.set_src_match_enabled(true);
    shared.attach(Nordic::new(Radio { driver }))
}

impl Hardware for Radio {
    fn set_addresses(&mut self, pan: u16, extended: [u8; 8], short: Option<u16>) {
        self.driver.set_pan_id(Some(pan));
        // It takes values, and sends their bytes in the order of the air.
        self.driver.set_ext_addr(Some(u64::from_be_bytes(extended)));
        // `None` would leave the one before.
        self.driver.set_short_addr(Some(short.unwrap_or(NO_SHORT)));
    }

    fn set_channel(&mut self, channel: u8) {
        self.driver.set_channel(channel);
    }

    fn set_listening(&mut self, is_listening: bool) -> bool {
        self.driver.set_rx_when_idle(is_listening);
        match is_listening {
            true => self.driver.enter_receive(),
            false => self.driver.sleep(),
        }
    }

    fn set_pending(&mut self, of: LinkAddr, is_pending: bool) -> bool {
        if let LinkAddr::Short(short) = of {
            self.driver.set_pending_short(short, is_pending)
        } else if let LinkAddr::Extended(extended) = of {
            let extended = u64::from_be_bytes(extended);
            self.driver.set_pending_ext(extended, is_pending)
        } else {
            false
        }
    }

    async fn receive(&mut self, psdu: &mut [u8]) -> Option<Meta> {
        self.driver.receive(psdu).await.ok().map(meta)
    }

    async fn transmit(&mut self, psdu: &[u8], ack: &mut [u8]) -> Result<Option<Meta>, Failure> {
        let ended = self.driver.transmit_csma_ca(psdu, Some(ack)).await;
        match ended {
            Ok(ack) => Ok(ack.map(meta)),
            Err(Error::Transmit(error)) => Err(failure(error)),
            Err(Error::ScheduleTransmit) => Err(Failure::NotScheduled),
            Err(_) => Err(Failure::Other),
        }
    }
}

fn failure(error: TxError) -> Failure {
    match error {
        TxError::BusyChannel => Failure::BusyChannel,
        TxError::InvalidAck => Failure::InvalidAck,
        TxError::TimeslotEnded => Failure::TimeslotEnded,
        TxError::NoAck => Failure::NoAck,
        TxError::TimeslotDenied => Failure::TimeslotDenied,
        _ => Failure::Other,
    }
}

fn meta(meta: PsduMeta) -> Meta {
    Meta {
        len: meta.len.into(),
        rssi_dbm: meta.power,
        lqi: meta.lqi.unwrap_or(u8::MAX),
        stamp_us: meta.time,
    }
}

// Its buffers have to be that large at least.
const _: () = assert!(MAX_PSDU_SIZE <= motet::limits::PSDU_LEN_MAX);

/// What says that a node has no short address.
const NO_SHORT: u16 = 0xfffe;
