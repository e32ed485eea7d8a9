//! An interface of Linux's IEEE 802.15.4, found and checked.

use nix::{
    ifaddrs::getifaddrs,
    net::if_::InterfaceFlags,
    sys::socket::{LinkAddr, SockaddrStorage},
};

use super::{fault::Fault, nl802154};
use crate::Error;

/// What an interface is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It receives what is for it, and acknowledges that.
    Node,
    /// It receives everything, and acknowledges nothing.
    Monitor,
}

/// An interface that is up.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    /// Where a socket is bound to: its number, and no protocol.
    pub(super) place: LinkAddr,
    pub(super) settings: nl802154::Settings,
}

impl Interface {
    /// Finds the interface of this name and kind.
    ///
    /// # Errors
    /// There is none, or it is not up.
    pub(super) fn find(name: &str, kind: Kind) -> Result<Self, Error> {
        let fault = |why| Error::Interface(name.to_owned(), why);
        let mut all = getifaddrs().map_err(|error| fault(Fault::System(error.into())))?;
        let found = all.find_map(|entry| {
            let place = *entry
                .address
                .as_ref()
                .and_then(SockaddrStorage::as_link_addr)?;
            (entry.interface_name == name).then_some((place, entry.flags))
        });
        let (place, flags) = found.ok_or_else(|| fault(Fault::Absent))?;
        if !matches!(place.hatype(), NODE | MONITOR) {
            return Err(fault(Fault::Foreign));
        }
        let index = u32::try_from(place.ifindex()).unwrap_or(0);
        let settings = nl802154::settings(index);
        let settings = settings.map_err(|error| fault(Fault::System(error)))?;
        match (kind, place.hatype()) {
            (Kind::Node, MONITOR) => return Err(fault(Fault::Monitor)),
            (Kind::Monitor, NODE) => {
                let phy = settings.phy;
                return Err(fault(Fault::NoMonitor { phy }));
            }
            _ => {}
        }
        if !flags.contains(InterfaceFlags::IFF_UP) {
            return Err(fault(Fault::Down));
        }
        Ok(Self {
            name: name.to_owned(),
            place,
            settings,
        })
    }

    /// Whether it is tuned to this channel and, unless that does not matter, in this PAN.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn check(&self, channel: u8, pan: Option<u16>) -> Result<(), Error> {
        let fault = |why| Err(Error::Interface(self.name.clone(), why));
        let is = (self.settings.page, self.settings.channel);
        if is != (0, channel) {
            return fault(Fault::OtherChannel {
                phy: self.settings.phy.clone(),
                is,
                wanted: channel,
            });
        }
        match pan {
            Some(wanted) if wanted != self.settings.pan => fault(Fault::OtherPan {
                is: self.settings.pan,
                wanted,
            }),
            _ => Ok(()),
        }
    }
}

/// `ARPHRD_IEEE802154` and `ARPHRD_IEEE802154_MONITOR`.
const NODE: u16 = 804;
const MONITOR: u16 = 805;
