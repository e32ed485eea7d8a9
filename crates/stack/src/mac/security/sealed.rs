//! A frame that is kept closed until its ACK has left.

use crate::limits::PSDU_LEN_MAX;
use crate::mac::radio::RxMeta;
use crate::wire::cursor;
use crate::wire::ieee802154::FCS_LEN;

/// A frame that was heard and acknowledged, and is still closed; opened, it has its payload in
/// clear.
#[derive(Debug)]
pub(in crate::mac) struct Sealed {
    pub(in crate::mac) bytes: [u8; PSDU_LEN_MAX - FCS_LEN],
    pub(in crate::mac) len: u8,
    pub(in crate::mac) meta: RxMeta,
    pub(in crate::mac) is_answered: bool,
}

impl Sealed {
    pub(in crate::mac) fn of(mpdu: &[u8], meta: RxMeta, is_answered: bool) -> Self {
        let mut bytes = [0; PSDU_LEN_MAX - FCS_LEN];
        let len = cursor::copy(&mut bytes, mpdu) as u8;
        Self {
            bytes,
            len,
            meta,
            is_answered,
        }
    }
}
