//! Why there is no radio in the kernel, as sentences that say what to do.

use std::{fmt, io};

use crate::why::Why;

/// Why an interface is no radio of use.
#[derive(Debug)]
pub enum Fault {
    /// There is none of this name.
    Absent,
    /// It is none of IEEE 802.15.4.
    Foreign,
    /// It is a monitor, and a node needs one that acknowledges.
    Monitor,
    /// It is no monitor: a radio of this name receives only what is for its node.
    NoMonitor {
        /// The name of its radio.
        phy: String,
    },
    /// It is down.
    Down,
    /// This user may not open it.
    NotPermitted,
    /// It is in another PAN.
    OtherPan {
        /// Its PAN.
        is: u16,
        /// The PAN that is wanted.
        wanted: u16,
    },
    /// It is on another channel, or another page.
    OtherChannel {
        /// The name of its radio.
        phy: String,
        /// Its page and channel.
        is: (u8, u8),
        /// The channel of page 0 that is wanted.
        wanted: u8,
    },
    /// Frames shall have link security, and the kernel drops those.
    Security,
    /// The node shall sleep, and the kernel keeps the radio on and sends no data request of others.
    Sleep,
    /// It was unplugged, and what has its name now has another EUI-64.
    Exchanged,
    /// The kernel refuses it for another reason.
    System(io::Error),
}

impl Fault {
    /// Whether another command line would mend it.
    pub(crate) const fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Absent
                | Self::Foreign
                | Self::Monitor
                | Self::NoMonitor { .. }
                | Self::Security
                | Self::Sleep
                | Self::OtherPan { .. }
                | Self::OtherChannel { .. }
        )
    }

    /// The sentence about the interface `name`.
    pub(crate) fn explain(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(
                f,
                "there is no interface {name}: plug the radio in, or see by `iwpan dev` which name it has"
            ),
            Self::Foreign => write!(
                f,
                "{name} is no interface of IEEE 802.15.4: `iwpan dev` shows those"
            ),
            Self::Monitor => write!(
                f,
                "{name} is a monitor, which acknowledges nothing: name an interface of type node"
            ),
            Self::NoMonitor { phy } => write!(
                f,
                "{name} is no monitor, and receives only what is for it: sudo iwpan dev {name} del, \
                 sudo iwpan phy {phy} interface add mon0 type monitor, sudo ip link set mon0 up, then name wpan:mon0"
            ),
            Self::Down => write!(f, "{name} is down: sudo ip link set {name} up"),
            Self::NotPermitted => write!(
                f,
                "this user may not open {name}: run it with sudo, or once \
                 sudo setcap cap_net_raw+ep \"$(command -v motet)\""
            ),
            Self::OtherPan { is, wanted } => write!(
                f,
                "{name} is in PAN {is:#06x} and not in {wanted:#06x}: name its PAN, or change it while it is down: \
                 sudo ip link set {name} down, sudo iwpan dev {name} set pan_id {wanted:#06x}, \
                 sudo ip link set {name} up"
            ),
            Self::OtherChannel {
                phy,
                is: (page, channel),
                wanted,
            } => {
                write!(f, "{name} is on channel {channel}")?;
                if *page != 0 {
                    write!(f, " of page {page}")?;
                }
                write!(
                    f,
                    " and not on {wanted}: name its channel, or sudo iwpan phy {phy} set channel 0 {wanted}"
                )
            }
            Self::Security => write!(
                f,
                "Linux drops frames whose link security is not its own: use {name} without a key, or a radio co-processor, \
                 spinel+hdlc+uart"
            ),
            Self::Sleep => write!(
                f,
                "Linux keeps the radio of {name} on, and sends no request for waiting packets: leave out --sleep, or \
                 use a radio co-processor, spinel+hdlc+uart"
            ),
            Self::Exchanged => write!(
                f,
                "{name} is another radio than at the start: start again, or plug the first one in"
            ),
            Self::System(why) => write!(f, "{name} cannot be opened: {}", Why(why)),
        }
    }
}
