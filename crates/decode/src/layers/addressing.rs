//! The addressing fields of an IEEE 802.15.4 header, and those of a header that is not whole.
//!
//! Place: under `mac` and `envelope`. A capture may hold some bytes of each frame only; what these
//! say is shown. Source: IEEE 802.15.4-2015 §7.2, Table 7-2 for the PAN ids.

use motet::wire::LinkAddr;
use motet::wire::cursor::{Reader, Truncated};

/// The fields in front of the place where a header ends too early.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    pub(super) sequence: Option<u8>,
    pub(super) dst_pan: Option<u16>,
    pub(super) dst: Option<LinkAddr>,
    pub(super) src_pan: Option<u16>,
    pub(super) src: Option<LinkAddr>,
}

impl Begun {
    /// Reads the fields of `mpdu`, a frame with a header that is not whole. Where the control field
    /// does not say which fields follow, there are none.
    pub(super) fn of(mpdu: &[u8]) -> Self {
        let mut begun = Self::default();
        // Where the header ends too early is what the caller knows already.
        let _: Result<(), Truncated> = begun.read(&mut Reader::new(mpdu));
        begun
    }

    fn read(&mut self, r: &mut Reader<'_>) -> Result<(), Truncated> {
        let control = r.u16_le()?;
        let modes = [control >> 10 & 3, control >> 14];
        let version = control >> 12 & 3;
        if control & 7 > COMMAND || version > VERSION_2015 || modes.contains(&RESERVED_MODE) {
            return Ok(());
        }
        if version < VERSION_2015 || control & SEQUENCE_SUPPRESSED == 0 {
            self.sequence = Some(r.u8()?);
        }
        let [has_dst_pan, has_src_pan] = pans(version, modes, control & PAN_ID_COMPRESSION != 0);
        self.dst_pan = has_dst_pan.then(|| r.u16_le()).transpose()?;
        self.dst = address(r, modes[0])?;
        self.src_pan = has_src_pan.then(|| r.u16_le()).transpose()?;
        self.src = address(r, modes[1])?;
        Ok(())
    }
}

/// Whether a frame has the PAN ids of its destination and of its source, by the modes of its
/// addresses.
pub(super) const fn pans(version: u16, [dst, src]: [u16; 2], compressed: bool) -> [bool; 2] {
    match (version, dst, src) {
        (VERSION_2015, 0, 0) => [compressed, false],
        (VERSION_2015, 0, _) => [false, !compressed],
        (VERSION_2015, _, 0) | (VERSION_2015, EXTENDED, EXTENDED) => [!compressed, false],
        (VERSION_2015, ..) => [true, !compressed],
        _ => [dst != 0, src != 0 && !(compressed && dst != 0)],
    }
}

/// The address that a field of this mode holds.
pub(super) fn address(r: &mut Reader<'_>, mode: u16) -> Result<Option<LinkAddr>, Truncated> {
    match mode {
        0 => Ok(None),
        EXTENDED => {
            let mut bytes: [u8; 8] = r.array()?;
            bytes.reverse();
            Ok(Some(LinkAddr::Extended(bytes)))
        }
        _ => Ok(Some(LinkAddr::Short(r.u16_le()?))),
    }
}

/// Value of the frame version field for IEEE 802.15.4-2015 and its revisions.
pub(super) const VERSION_2015: u16 = 2;

/// Addressing modes.
pub(super) const RESERVED_MODE: u16 = 1;
const EXTENDED: u16 = 3;

/// The last of the frame types with a header of the common form.
const COMMAND: u16 = 3;
/// Bits of the frame control field.
const PAN_ID_COMPRESSION: u16 = 1 << 6;
const SEQUENCE_SUPPRESSED: u16 = 1 << 8;
