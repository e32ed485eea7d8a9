//! What the images share: the radio, and what a small mote is.
#![no_std]

pub mod radio;

use motet::mac::RadioCapabilities;
use motet::mote::{MoteConfig, MoteStorage};
#[cfg(feature = "tcp")]
use motet::tcp::Config;

use radio::Radio;

/// Each of a connection's two buffers, bytes; eight ninths of the one for what arrives are
/// the window.
pub const BUFFER_LEN: usize = 2048;

/// All memory of a leaf with one connection.
pub type Storage = MoteStorage<'static, 1, BUFFER_LEN>;

/// The settings of every connection here.
#[cfg(feature = "tcp")]
pub static SETTINGS: Config = Config {
    accept_window: (BUFFER_LEN * 8 / 9) as u16,
    ..Config::DEFAULT
};

/// A leaf: no frame of others ever waits here.
pub fn leaf(eui64: [u8; 8], seed: [u64; 2]) -> MoteConfig {
    const RADIO: RadioCapabilities = Radio::CAPABILITIES;
    let mut config = MoteConfig::new(PAN, eui64, RADIO, seed);
    config.mac.reserve_forward = 0;
    config
}

/// The PAN that all images are in.
const PAN: u16 = 0x4d54;
