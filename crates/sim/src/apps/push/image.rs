//! An image as imgtool makes them, of any length, signed by the lab's own key.

use motet::random::Rng;
use motet_update::{Demands, Header, PublicKey};
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::ecdsa::{Signature, SigningKey};
use sha2::{Digest as _, Sha256};

/// The least length of an image, bytes: header, TLVs, and a byte of payload.
pub const IMAGE_LEN_MIN: usize = Header::LEN + TLVS_LEN + 1;

/// An image of `len` bytes, at least [`IMAGE_LEN_MIN`]: its payload is noise.
pub(crate) fn image(seed: [u64; 2], len: usize) -> Vec<u8> {
    let payload_len = len.max(IMAGE_LEN_MIN) - Header::LEN - TLVS_LEN;
    let mut image = vec![0; Header::LEN];
    image[..4].copy_from_slice(&MAGIC.to_le_bytes());
    image[8..10].copy_from_slice(&(Header::LEN as u16).to_le_bytes());
    image[12..16].copy_from_slice(&(payload_len as u32).to_le_bytes());
    image[20] = 1;
    let mut rng = Rng::from_seed(seed);
    image.extend((0..payload_len).map(|_| rng.next_u32() as u8));
    let hash: [u8; 32] = Sha256::digest(&image).into();
    let mut signature = signed(&hash);
    // A signature in DER has 70 to 72 bytes; imgtool, too, fills them up where lengths matter.
    signature.resize(SIGNATURE_LEN, 0);
    let area = (TLVS_LEN as u16).to_le_bytes();
    image.extend(AREA.to_le_bytes().into_iter().chain(area));
    for (kind, value) in [(SHA256, &hash[..]), (ECDSA, &signature[..])] {
        image.extend(kind.to_le_bytes());
        image.extend((value.len() as u16).to_le_bytes());
        image.extend(value);
    }
    image
}

/// What a mote demands of an image: the lab's signature.
pub(crate) fn demands() -> Demands {
    let key = key().map(|key| key.verifying_key().to_encoded_point(true));
    Demands {
        key: key.and_then(|point| PublicKey::ecdsa_p256(point.as_bytes())),
        version_min: None,
    }
}

fn signed(hash: &[u8; 32]) -> Vec<u8> {
    let signature: Option<Signature> = key().and_then(|key| key.sign_prehash(hash).ok());
    signature.map_or(Vec::new(), |signature| signature.to_der().as_bytes().into())
}

/// The key of nobody's device.
fn key() -> Option<SigningKey> {
    SigningKey::from_slice(&[0x4d; 32]).ok()
}

/// The area's head, and two TLVs with theirs.
const TLVS_LEN: usize = 4 + (4 + 32) + (4 + SIGNATURE_LEN);

const SIGNATURE_LEN: usize = 72;

/// MCUboot's `IMAGE_MAGIC`, and of the area of TLVs: `IMAGE_TLV_INFO_MAGIC`.
const MAGIC: u32 = 0x96f3_b83d;
const AREA: u16 = 0x6907;

/// `IMAGE_TLV_SHA256` and `IMAGE_TLV_ECDSA_SIG`.
const SHA256: u16 = 0x10;
const ECDSA: u16 = 0x22;
