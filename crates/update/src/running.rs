//! The image that runs: what the boot loader has put into its place.

use embedded_storage_async::nor_flash::NorFlash;

use crate::image::{self, Header, TLV_HEAD_LEN, TlvHead};
use crate::pages::{Pages, UNIT_MAX};
use crate::slot::Held;
use crate::verify::sum;

impl Held {
    /// The image in MCUboot's primary slot, from its header to its last TLV: for
    /// [`crate::Firmware::running`]. `None` if flash fails, or has no image of MCUboot. Takes as
    /// long as reading it.
    pub async fn in_primary<F: NorFlash>(primary: F) -> Option<Self> {
        if F::READ_SIZE > UNIT_MAX {
            return None;
        }
        let mut pages = Pages::new(primary);
        let mut head = [0; Header::LEN];
        pages.read(0, &mut head).await.ok()?;
        let hashed = Header::parse(&head).ok()?.hashed_len()?;
        let capacity = pages.count().checked_mul(Pages::<F>::PAGE)?;
        let fits = |end: &u32| *end <= capacity;
        hashed.checked_add(TLV_HEAD_LEN as u32).filter(fits)?;
        let mut area = [0; TLV_HEAD_LEN];
        pages.read(hashed, &mut area).await.ok()?;
        let area = TlvHead::parse(area);
        let len = hashed.checked_add(u32::from(area.len)).filter(fits)?;
        if area.kind != image::AREA {
            return None;
        }
        Some(Self {
            len,
            is_verified: true,
            sha256: sum(&mut pages, len).await.ok()?,
        })
    }
}
