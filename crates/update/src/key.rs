//! Public keys that images are signed for.

#[cfg(feature = "ecdsa-p256")]
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;

use crate::image::ImageError;

/// The public key that an image has to be signed for.
#[derive(Clone, Debug)]
pub struct PublicKey(Kind);

#[derive(Clone, Debug)]
enum Kind {
    #[cfg(feature = "ecdsa-p256")]
    EcdsaP256(p256::ecdsa::VerifyingKey),
    #[cfg(feature = "ed25519")]
    Ed25519(ed25519_dalek::VerifyingKey),
}

impl PublicKey {
    /// A key of ECDSA over P-256 from its point (SEC 1, 33 or 65 bytes): the last 65 bytes of what
    /// `imgtool getpub` prints. `None` if that is no point of the curve.
    #[cfg(feature = "ecdsa-p256")]
    pub fn ecdsa_p256(point: &[u8]) -> Option<Self> {
        let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(point).ok()?;
        Some(Self(Kind::EcdsaP256(key)))
    }

    /// A key of Ed25519: the last 32 bytes of what `imgtool getpub` prints. `None` if that is no
    /// point of the curve.
    #[cfg(feature = "ed25519")]
    pub fn ed25519(bytes: &[u8; 32]) -> Option<Self> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).ok()?;
        Some(Self(Kind::Ed25519(key)))
    }

    /// The type of the TLV that has this key's signature.
    pub(crate) fn tlv(&self) -> u16 {
        match self.0 {
            #[cfg(feature = "ecdsa-p256")]
            Kind::EcdsaP256(_) => crate::image::ECDSA,
            #[cfg(feature = "ed25519")]
            Kind::Ed25519(_) => crate::image::ED25519,
        }
    }

    /// Checks a signature over an image's SHA-256. imgtool signs that digest: by Ed25519 as a
    /// message, by ECDSA as the hash.
    ///
    /// # Errors
    /// [`ImageError::WrongSignature`].
    #[cfg_attr(
        not(any(feature = "ecdsa-p256", feature = "ed25519")),
        expect(
            unused_variables,
            unreachable_code,
            reason = "without the features there is no key"
        )
    )]
    pub(crate) fn check(&self, digest: &[u8; 32], signature: &[u8]) -> Result<(), ImageError> {
        let is_good = match self.0 {
            #[cfg(feature = "ecdsa-p256")]
            Kind::EcdsaP256(ref key) => p256::ecdsa::Signature::from_der(der(signature))
                .is_ok_and(|signature| key.verify_prehash(digest, &signature).is_ok()),
            #[cfg(feature = "ed25519")]
            Kind::Ed25519(ref key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(digest, &signature).is_ok()),
        };
        if is_good {
            Ok(())
        } else {
            Err(ImageError::WrongSignature)
        }
    }
}

/// The DER sequence at the begin of a TLV: `imgtool sign --pad-sig` adds up to two zeros.
#[cfg(feature = "ecdsa-p256")]
fn der(signature: &[u8]) -> &[u8] {
    let len = signature.get(1).map_or(0, |len| usize::from(*len) + 2);
    match signature.split_at_checked(len) {
        Some((der, padding)) if padding.iter().all(|byte| *byte == 0) => der,
        _ => signature,
    }
}

/// Bytes of the longest signature that is read: ECDSA's with padding.
pub(crate) const SIGNATURE_LEN_MAX: usize = 74;
