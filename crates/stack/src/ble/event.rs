//! What a controller reports, and what it shall do: HCI's events and commands, one for one.
//!
//! Place: between a driver, which has the packets of its HCI transport, and the
//! [`Host`](super::Host). Times are in HCI's units. Left out: what a driver does once, before there
//! is a host: reset, event masks, the sizes of buffers and the device's address.
//!
//! Source: Bluetooth Core 5.4 Vol 4 Part E §7.

/// Names a connection, as its controller does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(pub u16);

/// The address of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceAddr {
    /// In the order in which it is printed, which is not that of HCI.
    pub bytes: [u8; 6],
    /// A random address, not one that the IEEE has given.
    pub is_random: bool,
}

/// What a device is to the other one on its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapRole {
    /// It began the connection, and sets its times.
    Central,
    /// It advertised.
    Peripheral,
}

/// How fast symbols are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phy {
    /// 1 Mb/s.
    Le1M,
    /// 2 Mb/s.
    Le2M,
}

/// The times of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// From one connection event to the next, in units of 1.25 ms: 6 to 3,200.
    pub interval: u16,
    /// Events that the peripheral may leave out while it has nothing to say.
    pub latency: u16,
    /// The connection is lost after so long without a packet, in units of 10 ms: 10 to 3,200.
    pub timeout: u16,
}

impl Timing {
    /// Whether a connection can have these times: each is in its range, and the timeout is longer
    /// than two intervals with all the events between them that may be left out (Core 5.4 Vol 4
    /// Part E §7.8.18).
    pub const fn is_possible(&self) -> bool {
        self.interval >= 6
            && self.interval <= 3200
            && self.latency <= 499
            && self.timeout >= 10
            && self.timeout <= 3200
            && self.between_events() < self.timeout as u32 * 4
    }

    /// These times with another interval. Where it is longer, fewer events may be left out, so that
    /// no more time passes between two that are not; and it stays below half the timeout.
    pub(super) fn with_interval(self, interval: u16) -> Self {
        let interval = interval.min(self.timeout.saturating_mul(4).saturating_sub(1));
        let events = self.between_events().checked_div(interval.into());
        let left_out = events.unwrap_or(0).saturating_sub(1);
        let left_out = u16::try_from(left_out).unwrap_or(u16::MAX);
        Self {
            interval,
            latency: self.latency.min(left_out),
            ..self
        }
    }

    /// From an event of the peripheral's to the next, when it has nothing to say: in units of 1.25
    /// ms.
    const fn between_events(&self) -> u32 {
        self.interval as u32 * (1 + self.latency as u32)
    }
}

/// One advertisement.
#[derive(Clone, Copy, Debug)]
pub struct Advertisement<'a> {
    /// The device.
    pub from: DeviceAddr,
    /// Whether it may be connected to.
    pub is_connectable: bool,
    /// Received signal strength, dBm.
    pub rssi: i8,
    /// Advertising data: a list of length, type and value.
    pub data: &'a [u8],
}

/// How a connection event went, from controllers that say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventReport {
    /// The connection.
    pub handle: Handle,
    /// Its number, from the connection's first.
    pub counter: u16,
    /// Packets received with a good check sum, and with a bad one.
    pub good: u16,
    /// See [`Self::good`].
    pub bad: u16,
    /// Packets of ours that the peer did not acknowledge.
    pub unacknowledged: u16,
    /// The event ended because nothing was received.
    pub is_missed: bool,
}

/// What a controller reports. Where HCI has a status, 0 is success.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The controller has been reset, and has these buffers: LE Read Buffer Size.
    Started {
        /// The longest data packet it takes, bytes, without HCI's header.
        packet_len: u16,
        /// Packets that it holds.
        packets: u8,
    },
    /// The command that was given last has been carried out or refused: Command Complete, or
    /// Command Status.
    Answered {
        /// Why it was refused.
        status: u8,
    },
    /// LE Advertising Report, one report of it.
    Advertised(Advertisement<'a>),
    /// LE Connection Complete.
    Connected {
        /// Why there is none.
        status: u8,
        /// Names it from now on.
        handle: Handle,
        /// Of this device.
        role: GapRole,
        /// The other device.
        peer: DeviceAddr,
        /// Its times.
        timing: Timing,
    },
    /// Disconnection Complete.
    Disconnected {
        /// The connection that is over.
        handle: Handle,
        /// Why.
        reason: u8,
    },
    /// LE Connection Update Complete.
    Updated {
        /// Why nothing changed.
        status: u8,
        /// The connection.
        handle: Handle,
        /// Its times.
        timing: Timing,
    },
    /// LE Remote Connection Parameter Request: the peer asks for other times, and waits for an
    /// answer.
    TimingAsked {
        /// The connection.
        handle: Handle,
        /// The shortest interval it wants.
        interval_min: u16,
        /// The longest interval and the other times it wants.
        timing: Timing,
    },
    /// LE Data Length Change.
    DataLength {
        /// The connection.
        handle: Handle,
        /// The longest payload of a packet on the air, sent, bytes.
        sent: u16,
        /// As `sent`, received.
        received: u16,
    },
    /// LE PHY Update Complete.
    Phy {
        /// Why nothing changed.
        status: u8,
        /// The connection.
        handle: Handle,
        /// Of packets sent.
        sent: Phy,
        /// Of packets received.
        received: Phy,
    },
    /// Number Of Completed Packets, of one connection: as many buffers are free again.
    Completed {
        /// The connection.
        handle: Handle,
        /// How many.
        packets: u16,
    },
    /// The answer to [`Action::ReadRssi`].
    Rssi {
        /// The connection.
        handle: Handle,
        /// dBm.
        rssi: i8,
    },
    /// A vendor's report on a connection event.
    Report(EventReport),
    /// A data packet.
    Data {
        /// The connection.
        handle: Handle,
        /// Whether an L2CAP PDU begins with it.
        is_first: bool,
        /// Without HCI's header.
        bytes: &'a [u8],
    },
}

impl Action {
    /// How many bytes of `out` the action speaks of.
    pub const fn bytes_len(&self) -> usize {
        match self {
            Self::SetAdvertisingData { len } | Self::Data { len, .. } => *len,
            _ => 0,
        }
    }
}

/// What a controller shall do; bytes are in the caller's `out[..len]`.
///
/// All but [`Self::Data`] are commands: one is given at a time, and the next one after
/// [`Event::Answered`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// LE Set Advertising Parameters: connectable, undirected, on all three channels.
    SetAdvertisingParameters {
        /// From one advertisement to the next, in units of 0.625 ms.
        interval: u16,
    },
    /// LE Set Advertising Data: `out[..len]`.
    SetAdvertisingData {
        /// Bytes.
        len: usize,
    },
    /// LE Set Advertising Enable.
    SetAdvertising {
        /// Whether to advertise. A connection ends it, too.
        is_on: bool,
    },
    /// LE Set Scan Parameters: passive.
    SetScanParameters {
        /// From one look at a channel to the next, in units of 0.625 ms.
        interval: u16,
        /// How long each look is.
        window: u16,
    },
    /// LE Set Scan Enable, without duplicates.
    SetScan {
        /// Whether to scan.
        is_on: bool,
    },
    /// LE Create Connection.
    Connect {
        /// The device.
        peer: DeviceAddr,
        /// The times of the connection.
        timing: Timing,
        /// The longest connection event, in units of 0.625 ms.
        event_len: u16,
    },
    /// LE Create Connection Cancel.
    CancelConnect,
    /// LE Connection Update.
    Update {
        /// The connection.
        handle: Handle,
        /// Its new times.
        timing: Timing,
        /// The longest connection event, in units of 0.625 ms.
        event_len: u16,
    },
    /// LE Remote Connection Parameter Request Reply.
    AcceptTiming {
        /// The connection.
        handle: Handle,
        /// The shortest interval.
        interval_min: u16,
        /// The times, with the longest interval.
        timing: Timing,
    },
    /// LE Set Data Length.
    SetDataLength {
        /// The connection.
        handle: Handle,
        /// The longest payload of a packet on the air, bytes.
        octets: u16,
        /// The longest time of a packet on the air, µs.
        time_us: u16,
    },
    /// LE Set PHY, both ways.
    SetPhy {
        /// The connection.
        handle: Handle,
        /// The one wanted.
        phy: Phy,
    },
    /// Read RSSI.
    ReadRssi {
        /// The connection.
        handle: Handle,
    },
    /// Disconnect.
    Disconnect {
        /// The connection.
        handle: Handle,
        /// Why, as the peer is to know it.
        reason: u8,
    },
    /// A data packet: `out[..len]`, without HCI's header. It takes one of the controller's buffers.
    Data {
        /// The connection.
        handle: Handle,
        /// Whether an L2CAP PDU begins with it.
        is_first: bool,
        /// Bytes.
        len: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn timing(interval: u16, latency: u16, timeout: u16) -> Timing {
        Timing {
            interval,
            latency,
            timeout,
        }
    }

    #[test]
    fn the_timeout_is_longer_than_two_intervals_with_all_that_may_be_left_out() {
        // 2 s, and two intervals of 1 s or just less.
        assert!(!timing(800, 0, 200).is_possible());
        assert!(timing(799, 0, 200).is_possible());
        assert!(timing(115, 10, 472).is_possible());
        assert!(!timing(400, 10, 472).is_possible());
        for out_of_range in [
            timing(5, 0, 200),
            timing(3_201, 0, 3_200),
            timing(6, 500, 3_200),
            timing(6, 0, 9),
            timing(6, 0, 3_201),
        ] {
            assert!(!out_of_range.is_possible(), "{out_of_range:?}");
        }
    }

    #[test]
    fn a_longer_interval_leaves_a_peripheral_no_longer_away() {
        let usual = timing(115, 10, 472);
        assert_eq!(usual.with_interval(115), usual);
        assert_eq!(usual.with_interval(20), timing(20, 10, 472));
        // 11 events of 115 are three of 400 and a rest.
        assert_eq!(usual.with_interval(400), timing(400, 2, 472));
        assert_eq!(usual.with_interval(3_200), timing(1_887, 0, 472));
        for interval in 6..=3_200 {
            let changed = usual.with_interval(interval);
            assert!(changed.is_possible(), "{changed:?}");
        }
    }
}
