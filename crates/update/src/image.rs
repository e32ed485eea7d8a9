//! MCUboot's image format, as far as an image is judged by it.
//!
//! Place: [`crate::verify`] reads an image from flash by these types. Left out: encryption,
//! compression, dependencies between images, and every TLV that neither sums nor signs.
//! Source: MCUboot, design document, "Image format", and `boot/bootutil/include/bootutil/image.h`.

use core::fmt;

/// The header at the begin of an image.
///
/// ```text
///  0 magic           4 load address    8 header length (u16)   10 protected TLVs' length (u16)
/// 12 payload length 16 flags          20 major, minor (u8 each), revision (u16), build (u32)
/// 28 reserved; all little-endian
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes from the image's begin to its payload.
    pub header_len: u16,
    /// Bytes of the protected TLVs, their area's head included; 0 without them.
    pub protected_len: u16,
    /// Bytes of the payload.
    pub payload_len: u32,
    /// The image's version.
    pub version: Version,
}

/// An image's version: ordered as MCUboot orders them, the build number included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Version {
    /// Major number.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
    /// Revision.
    pub revision: u16,
    /// Build number.
    pub build: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            major,
            minor,
            revision,
            build,
        } = self;
        write!(f, "{major}.{minor}.{revision}+{build}")
    }
}

/// Why an image is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageError {
    /// It does not begin with MCUboot's magic number, or contradicts itself.
    Foreign,
    /// It ends before what its header announces.
    Truncated,
    /// Bytes follow its last TLV.
    Longer,
    /// It is encrypted: nobody but the boot loader can sum it.
    Encrypted,
    /// It has no SHA-256 of its own.
    NoHash,
    /// Its SHA-256 is not that of its bytes.
    WrongHash,
    /// It has no signature of the kind that the configured key makes.
    Unsigned,
    /// Its signature is not by the configured key.
    WrongSignature,
    /// Its version is below the least that is accepted.
    Older(Version),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Foreign => "this is no image of MCUboot",
            Self::Truncated => "the image ends before what its header announces",
            Self::Longer => "bytes follow the image's end",
            Self::Encrypted => "the image is encrypted",
            Self::NoHash => "the image has no SHA-256 of its own",
            Self::WrongHash => "the image's SHA-256 is not that of its bytes",
            Self::Unsigned => "the image has no signature of the key's kind",
            Self::WrongSignature => "the image's signature is not by the key of this device",
            Self::Older(version) => {
                return write!(f, "the image's version {version} is older than allowed");
            }
        };
        f.write_str(text)
    }
}

impl Header {
    /// Bytes of the header that have a meaning; the payload may begin later.
    pub const LEN: usize = 32;

    /// Reads the header of an image.
    ///
    /// # Errors
    /// [`ImageError::Foreign`], [`ImageError::Encrypted`].
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, ImageError> {
        let [
            m0,
            m1,
            m2,
            m3,
            _,
            _,
            _,
            _,
            h0,
            h1,
            t0,
            t1,
            p0,
            p1,
            p2,
            p3,
            f0,
            f1,
            f2,
            f3,
            major,
            minor,
            r0,
            r1,
            b0,
            b1,
            b2,
            b3,
            ..,
        ] = *bytes;
        let header = Self {
            header_len: u16::from_le_bytes([h0, h1]),
            protected_len: u16::from_le_bytes([t0, t1]),
            payload_len: u32::from_le_bytes([p0, p1, p2, p3]),
            version: Version {
                major,
                minor,
                revision: u16::from_le_bytes([r0, r1]),
                build: u32::from_le_bytes([b0, b1, b2, b3]),
            },
        };
        let is_magic = u32::from_le_bytes([m0, m1, m2, m3]) == MAGIC;
        let has_sense = usize::from(header.header_len) >= Self::LEN
            && header.payload_len > 0
            && (header.protected_len == 0 || usize::from(header.protected_len) >= TLV_HEAD_LEN)
            && header.hashed_len().is_some();
        if !is_magic || !has_sense {
            return Err(ImageError::Foreign);
        }
        if u32::from_le_bytes([f0, f1, f2, f3]) & ENCRYPTED != 0 {
            return Err(ImageError::Encrypted);
        }
        Ok(header)
    }

    /// Bytes from the begin to the end of the payload: there the TLVs are. `None` above 4 GiB.
    pub fn payload_end(&self) -> Option<u32> {
        u32::from(self.header_len).checked_add(self.payload_len)
    }

    /// Bytes that the image's hash is over: header, payload and protected TLVs. `None` above 4 GiB.
    pub fn hashed_len(&self) -> Option<u32> {
        self.payload_end()?
            .checked_add(u32::from(self.protected_len))
    }
}

/// The head of an area of TLVs, or of a TLV: both are two numbers of 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TlvHead {
    /// Magic number or type.
    pub(crate) kind: u16,
    /// Bytes of the area, this head included; of a TLV, those that follow.
    pub(crate) len: u16,
}

impl TlvHead {
    pub(crate) const fn parse(bytes: [u8; TLV_HEAD_LEN]) -> Self {
        let [k0, k1, l0, l1] = bytes;
        Self {
            kind: u16::from_le_bytes([k0, k1]),
            len: u16::from_le_bytes([l0, l1]),
        }
    }
}

/// Bytes of a head of TLVs.
pub(crate) const TLV_HEAD_LEN: usize = 4;

/// `IMAGE_TLV_INFO_MAGIC`.
pub(crate) const AREA: u16 = 0x6907;
/// `IMAGE_TLV_PROT_INFO_MAGIC`.
pub(crate) const PROTECTED_AREA: u16 = 0x6908;

/// `IMAGE_TLV_SHA256`.
pub(crate) const SHA256: u16 = 0x10;
/// `IMAGE_TLV_ECDSA_SIG`.
#[cfg(feature = "ecdsa-p256")]
pub(crate) const ECDSA: u16 = 0x22;
/// `IMAGE_TLV_ED25519`.
#[cfg(feature = "ed25519")]
pub(crate) const ED25519: u16 = 0x24;

/// `IMAGE_MAGIC`.
const MAGIC: u32 = 0x96f3_b83d;

/// `IMAGE_F_ENCRYPTED_AES128` and `IMAGE_F_ENCRYPTED_AES256`.
const ENCRYPTED: u32 = 0x04 | 0x08;
