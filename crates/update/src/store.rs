//! From a body into the slot.

use embassy_futures::yield_now;
use embedded_io_async::Read;
use embedded_storage_async::nor_flash::NorFlash;

use crate::body::{Body, Broken};
use crate::image::{Header, ImageError, Version};
use crate::shared::Shared;
use crate::slot::SlotError;

/// Why a body did not come into the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault<E> {
    Slot(SlotError),
    Body(Broken<E>),
}

impl<E> From<SlotError> for Fault<E> {
    fn from(error: SlotError) -> Self {
        Self::Slot(error)
    }
}

/// Stores a body whose first byte is the image's byte `first` of `total`, and verifies the image
/// once it is whole: its version, or `None` where bytes are missing. Between two pieces of the body
/// others may read what is stored. Of an image of which only the header came, all pages are erased:
/// once, however often it comes.
pub(crate) async fn store<F: NorFlash, S: NorFlash, R: Read>(
    shared: &Shared<F, S>,
    body: &mut Body<'_, R>,
    (first, total): (u32, u32),
) -> Result<Option<Version>, Fault<R::Error>> {
    if first == 0 {
        let header = body.gather(Header::LEN).await.map_err(Fault::Body)?;
        let truncated = SlotError::Image(ImageError::Truncated);
        let header = header.first_chunk().ok_or(truncated)?;
        let mut slot = shared.change().await;
        if slot.announces(total, header).await? {
            drop(slot);
            body.skip(Header::LEN);
        } else {
            // A foreign image is refused before it takes the place of what is stored.
            slot.begin(total, header).await?;
        }
    }
    while let Some(bytes) = body.next().await.map_err(Fault::Body)? {
        shared.change().await.append(bytes).await?;
    }
    let mut slot = shared.change().await;
    if slot.stored() == total {
        return Ok(Some(slot.finish().await?));
    }
    if slot.stored() <= Header::LEN as u32 {
        drop(slot);
        // The image is announced: whoever sends the rest later does not wait for flash then.
        while shared.change().await.erase_next().await? {
            yield_now().await;
        }
    }
    Ok(None)
}
