//! Images that imgtool 2.5.0 made (`tests/images`, see its README), and images spoilt by hand.

use embassy_futures::block_on;
use motet_update::{Demands, Header, ImageError, PublicKey, Slot, SlotError, Version};

use crate::flash::{Chip, image, noise};

const PLAIN: &[u8] = include_bytes!("../images/plain.bin");
const PROTECTED: &[u8] = include_bytes!("../images/protected.bin");
const ENCRYPTED: &[u8] = include_bytes!("../images/encrypted.bin");
const P256: &[u8] = include_bytes!("../images/p256.bin");
const P256_PADDED: &[u8] = include_bytes!("../images/p256-padded.bin");
const ED25519: &[u8] = include_bytes!("../images/ed25519.bin");
const P256_KEY: &[u8] = include_bytes!("../images/p256.pub");
const ED25519_KEY: &[u8; 32] = include_bytes!("../images/ed25519.pub");

/// Stores an image in a slot of 64 KiB with words of `W` bytes, reads of `R`, and finishes it.
fn store_in<const R: usize, const W: usize>(
    chip: &Chip,
    image: &[u8],
    demands: Demands,
) -> Result<Version, SlotError> {
    let slot = chip.part::<R, W, 4_096>(8_192, 16 * 4_096);
    let notes = chip.part::<R, W, 4_096>(0, 8_192);
    block_on(async {
        let mut slot = Slot::open(slot, notes, demands).await?;
        let header = image.first_chunk().ok_or(SlotError::Misplaced)?;
        slot.begin(image.len() as u32, header).await?;
        for piece in image.chunks(77) {
            slot.append(piece).await?;
        }
        let version = slot.finish().await?;
        let held = slot.held().await?;
        assert_eq!(held.len as usize, image.len());
        assert!(held.is_verified);
        Ok(version)
    })
}

fn store(image: &[u8], demands: Demands) -> Result<Version, SlotError> {
    store_in::<1, 4>(&Chip::new(18 * 4_096), image, demands)
}

fn key(key: Option<PublicKey>) -> Demands {
    assert!(key.is_some());
    Demands {
        key,
        version_min: None,
    }
}

const VERSION: Version = Version {
    major: 1,
    minor: 2,
    revision: 3,
    build: 4,
};

#[test]
fn images_of_imgtool_are_verified() {
    let two = Version {
        major: 2,
        ..Version::default()
    };
    let p256 = || key(PublicKey::ecdsa_p256(P256_KEY));
    let ed25519 = || key(PublicKey::ed25519(ED25519_KEY));
    for (image, demands, version) in [
        (PLAIN, Demands::default(), VERSION),
        (PROTECTED, Demands::default(), two),
        (P256, Demands::default(), VERSION),
        (P256, p256(), VERSION),
        (P256_PADDED, p256(), VERSION),
        (ED25519, ed25519(), VERSION),
    ] {
        assert_eq!(store(image, demands), Ok(version));
    }
}

#[test]
fn an_image_without_the_right_signature_is_refused() {
    let p256 = || key(PublicKey::ecdsa_p256(P256_KEY));
    let ed25519 = || key(PublicKey::ed25519(ED25519_KEY));
    for (image, demands) in [(PLAIN, p256()), (ED25519, p256()), (P256, ed25519())] {
        assert_eq!(
            store(image, demands),
            Err(SlotError::Image(ImageError::Unsigned))
        );
    }
    // Each byte of both signatures counts, padding aside.
    for (good, demands) in [
        (P256, p256 as fn() -> Demands),
        (ED25519, ed25519 as fn() -> Demands),
    ] {
        for back in [1, 20, 40, 60] {
            let mut image = good.to_vec();
            let at = image.len() - back;
            image[at] ^= 1;
            let refused = store(&image, demands());
            assert_eq!(
                refused,
                Err(SlotError::Image(ImageError::WrongSignature)),
                "{back}"
            );
        }
    }
}

#[test]
fn each_byte_that_is_wrong_is_noticed() {
    for image in [PLAIN, PROTECTED] {
        for at in (0..image.len()).step_by(7) {
            let mut spoilt = image.to_vec();
            spoilt[at] ^= 0x10;
            let stored = store(&spoilt, Demands::default());
            assert!(stored.is_err(), "byte {at}: {stored:?}");
        }
    }
}

#[test]
fn what_is_no_whole_image_is_refused() {
    let mut longer = PLAIN.to_vec();
    longer.push(0);
    let mut no_hash = PLAIN.to_vec();
    let at = no_hash.len() - 36;
    no_hash[at] = 0x50;
    let mut wrong = PLAIN.to_vec();
    wrong[40] ^= 1;
    let cases: [(&[u8], ImageError); 7] = [
        (&noise(500, 1), ImageError::Foreign),
        (&PLAIN[..400], ImageError::Truncated),
        (&PLAIN[..PLAIN.len() - 1], ImageError::Truncated),
        (&longer, ImageError::Longer),
        (ENCRYPTED, ImageError::Encrypted),
        (&no_hash, ImageError::NoHash),
        (&wrong, ImageError::WrongHash),
    ];
    for (image, error) in cases {
        let stored = store(image, Demands::default());
        assert_eq!(stored, Err(SlotError::Image(error)), "{error}");
    }
}

#[test]
fn an_older_image_is_refused_where_a_least_version_is_given() {
    let least = |build| Demands {
        key: None,
        version_min: Some(Version { build, ..VERSION }),
    };
    assert_eq!(store(PLAIN, least(4)), Ok(VERSION));
    let older = SlotError::Image(ImageError::Older(VERSION));
    assert_eq!(store(PLAIN, least(5)), Err(older));
}

#[test]
fn an_image_that_does_not_fit_is_refused() {
    let chip = Chip::new(18 * 4_096);
    let fits = image(&noise(15 * 4_096 - 72, 1), [1; 8]);
    assert_eq!(fits.len(), 15 * 4_096);
    assert!(store_in::<1, 4>(&chip, &fits, Demands::default()).is_ok());
    let large = image(&noise(15 * 4_096 - 71, 1), [1; 8]);
    let refused = store_in::<1, 4>(&chip, &large, Demands::default());
    assert_eq!(refused, Err(SlotError::TooLarge));
}

/// What `imgtool sign --pad --max-align N` writes at a slot's end.
#[test]
fn a_verified_image_has_the_magic_number_of_imgtool() {
    let magic = |pending: &dyn Fn(&Chip) -> Result<Version, SlotError>| {
        let chip = Chip::new(18 * 4_096);
        pending(&chip).unwrap();
        let bytes = chip.bytes.borrow();
        let end: [u8; 16] = bytes[bytes.len() - 16..].try_into().unwrap();
        u128::from_be_bytes(end)
    };
    let demands = Demands::default;
    for (found, expected) in [
        (
            magic(&|chip| store_in::<1, 4>(chip, PLAIN, demands())),
            0x77c2_95f3_60d2_ef7f_3552_500f_2cb6_7980,
        ),
        (
            magic(&|chip| store_in::<4, 8>(chip, PLAIN, demands())),
            0x77c2_95f3_60d2_ef7f_3552_500f_2cb6_7980,
        ),
        (
            magic(&|chip| store_in::<16, 16>(chip, PLAIN, demands())),
            0x1000_2de1_5d29_410b_8d77_679c_110f_1f8a,
        ),
        (
            magic(&|chip| store_in::<32, 32>(chip, PLAIN, demands())),
            0x2000_2de1_5d29_410b_8d77_679c_110f_1f8a,
        ),
    ] {
        assert_eq!(found, expected, "{found:x}");
    }
}

#[test]
fn headers_of_any_bytes_are_judged() {
    let mut header: [u8; 32] = *PLAIN.first_chunk().unwrap();
    assert!(Header::parse(&header).is_ok());
    header[12..16].fill(0xFF);
    assert_eq!(Header::parse(&header), Err(ImageError::Foreign));
}
