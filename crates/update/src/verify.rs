//! Judges an image that flash holds.
//!
//! Place: [`crate::Slot::finish`] before an image becomes pending, and when a slot is opened that
//! says it holds one.

use embassy_futures::yield_now;
use embedded_storage_async::nor_flash::NorFlash;
use sha2::{Digest as _, Sha256};

use crate::image::{self, Header, ImageError, TLV_HEAD_LEN, TlvHead, Version};
use crate::key::{PublicKey, SIGNATURE_LEN_MAX};
use crate::pages::Pages;

/// What an image has to be, besides whole.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// The key that it is signed for; without one no signature is demanded.
    pub key: Option<PublicKey>,
    /// The least version.
    pub version_min: Option<Version>,
}

impl Demands {
    /// Judges an image of `len` bytes by its header.
    ///
    /// # Errors
    /// What [`Header::parse`] says, [`ImageError::Truncated`], [`ImageError::Older`].
    pub(crate) fn judge_header(
        &self,
        header: &[u8; Header::LEN],
        len: u32,
    ) -> Result<Header, ImageError> {
        let header = Header::parse(header)?;
        let hashed = header.hashed_len().ok_or(ImageError::Foreign)?;
        if hashed > len {
            return Err(ImageError::Truncated);
        }
        match self.version_min {
            Some(least) if header.version < least => Err(ImageError::Older(header.version)),
            _ => Ok(header),
        }
    }

    /// Judges the image in the first `len` bytes of flash: `Ok(Err)` is the verdict.
    ///
    /// # Errors
    /// The flash's.
    pub(crate) async fn judge<F: NorFlash>(
        &self,
        flash: &mut Pages<F>,
        len: u32,
    ) -> Result<Result<Version, ImageError>, F::Error> {
        match self.parts(flash, len).await {
            Ok(version) => Ok(Ok(version)),
            Err(Fault::Image(error)) => Ok(Err(error)),
            Err(Fault::Flash(error)) => Err(error),
        }
    }

    async fn parts<F: NorFlash>(
        &self,
        flash: &mut Pages<F>,
        len: u32,
    ) -> Result<Version, Fault<F::Error>> {
        if (len as usize) < Header::LEN {
            return Err(ImageError::Truncated.into());
        }
        let mut head = [0; Header::LEN];
        flash.read(0, &mut head).await.map_err(Fault::Flash)?;
        let header = self.judge_header(&head, len)?;
        let (Some(payload_end), Some(hashed)) = (header.payload_end(), header.hashed_len()) else {
            return Err(ImageError::Foreign.into());
        };
        if hashed != payload_end {
            let area = tlv_head(flash, payload_end, len).await?;
            if area.kind != image::PROTECTED_AREA || area.len != header.protected_len {
                return Err(ImageError::Foreign.into());
            }
        }
        let digest = sum(flash, hashed).await.map_err(Fault::Flash)?;
        self.judge_tlvs(flash, hashed, len, &digest).await?;
        Ok(header.version)
    }

    /// Judges the unprotected TLVs, which begin at `at` and end the image of `len` bytes. The
    /// signature is checked only where the hash is right: it is over the hash.
    async fn judge_tlvs<F: NorFlash>(
        &self,
        flash: &mut Pages<F>,
        at: u32,
        len: u32,
        digest: &[u8; 32],
    ) -> Result<(), Fault<F::Error>> {
        let area = tlv_head(flash, at, len).await?;
        let end = at.checked_add(u32::from(area.len));
        let end = end.ok_or(ImageError::Foreign)?;
        if area.kind != image::AREA || usize::from(area.len) < TLV_HEAD_LEN {
            return Err(ImageError::Foreign.into());
        }
        if end > len {
            return Err(ImageError::Truncated.into());
        }
        if end < len {
            return Err(ImageError::Longer.into());
        }
        let wanted = self.key.as_ref().map(PublicKey::tlv);
        let (mut has_hash, mut is_signed) = (false, false);
        // At most 16,384 rounds: each TLV has four bytes of an area of 65,535.
        let mut at = at + TLV_HEAD_LEN as u32;
        while at < end {
            let tlv = tlv_head(flash, at, end).await?;
            at += TLV_HEAD_LEN as u32;
            let next = at + u32::from(tlv.len);
            if next > end {
                return Err(ImageError::Foreign.into());
            }
            if tlv.kind == image::SHA256 {
                let mut hash = [0; 32];
                if usize::from(tlv.len) != hash.len() {
                    return Err(ImageError::Foreign.into());
                }
                flash.read(at, &mut hash).await.map_err(Fault::Flash)?;
                if hash != *digest {
                    return Err(ImageError::WrongHash.into());
                }
                has_hash = true;
            } else if let Some(key) = self.key.as_ref().filter(|_| Some(tlv.kind) == wanted) {
                let mut signature = [0; SIGNATURE_LEN_MAX];
                let signature = signature.get_mut(..usize::from(tlv.len));
                let signature = signature.ok_or(ImageError::WrongSignature)?;
                flash.read(at, signature).await.map_err(Fault::Flash)?;
                // A second signature counts as little as none would: each has to be right.
                key.check(digest, signature)?;
                is_signed = true;
            }
            at = next;
        }
        match (has_hash, is_signed || self.key.is_none()) {
            (true, true) => Ok(()),
            (false, _) => Err(ImageError::NoHash.into()),
            (true, false) => Err(ImageError::Unsigned.into()),
        }
    }
}

/// The SHA-256 of the first `len` bytes; other tasks run between two blocks.
pub(crate) async fn sum<F: NorFlash>(flash: &mut Pages<F>, len: u32) -> Result<[u8; 32], F::Error> {
    Ok(summed(flash, len).await?.finalize().into())
}

/// The same, to add more bytes to.
pub(crate) async fn summed<F: NorFlash>(
    flash: &mut Pages<F>,
    len: u32,
) -> Result<Sha256, F::Error> {
    let mut sum = Sha256::new();
    let mut block = [0; BLOCK_LEN];
    let mut at = 0;
    while at < len {
        let count = (len - at).min(BLOCK_LEN as u32);
        let Some(part) = block.get_mut(..count as usize) else {
            break;
        };
        flash.read(at, part).await?;
        sum.update(part);
        at += count;
        yield_now().await;
    }
    Ok(sum)
}

async fn tlv_head<F: NorFlash>(
    flash: &mut Pages<F>,
    at: u32,
    end: u32,
) -> Result<TlvHead, Fault<F::Error>> {
    let after = at.checked_add(TLV_HEAD_LEN as u32);
    if after.is_none_or(|after| after > end) {
        return Err(ImageError::Truncated.into());
    }
    let mut head = [0; TLV_HEAD_LEN];
    flash.read(at, &mut head).await.map_err(Fault::Flash)?;
    Ok(TlvHead::parse(head))
}

enum Fault<E> {
    Image(ImageError),
    Flash(E),
}

impl<E> From<ImageError> for Fault<E> {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

/// Bytes read from flash at a time.
const BLOCK_LEN: usize = 256;
