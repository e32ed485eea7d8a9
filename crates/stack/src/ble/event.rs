//! A controller's reports and commands, which map one to one to HCI's events and commands.
//!
//! Place: between a driver, which sends and receives HCI packets, and the [`Host`](super::Host).
//! Times are in HCI's units. Left out: the initial setup by a driver, before there is a host:
//! reset, event masks, the sizes of buffers and the device's address.
//!
//! Source: Bluetooth Core 5.4 Vol 4 Part E §7.

/// Names a connection, as its controller does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(pub u16);

/// The address of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceAddr {
    /// The octets in the order in which an address is printed, which is not that of HCI.
    pub bytes: [u8; 6],
    /// A random address, not one that the IEEE has given.
    pub is_random: bool,
}

/// The role of a device on a connection (Core 5.4 Vol 3 Part C §2.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapRole {
    /// The device began the connection, and sets its times.
    Central,
    /// The device advertised, and accepted the central's connection.
    Peripheral,
}

/// The physical layer of a connection: its symbol rate (Core 5.4 Vol 6 Part A §1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phy {
    /// LE 1M: 1 Mb/s.
    Le1M,
    /// LE 2M: 2 Mb/s.
    Le2M,
}

/// The times of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The connection interval, in units of 1.25 ms: 6 to 3,200.
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

    /// These times with another interval. With a longer interval the peripheral may leave out fewer
    /// events, so that the time between two events does not grow. The interval stays below half the
    /// supervision timeout.
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

    /// The time from one event that the peripheral must attend to the next, when it has nothing to
    /// send, in units of 1.25 ms.
    const fn between_events(&self) -> u32 {
        self.interval as u32 * (1 + self.latency as u32)
    }
}

/// One report of an advertising device (LE Advertising Report).
#[derive(Clone, Copy, Debug)]
pub struct Advertisement<'a> {
    /// Address of the advertising device.
    pub from: DeviceAddr,
    /// Whether the advertisement is connectable (ADV_IND).
    pub is_connectable: bool,
    /// Received signal strength of the advertisement, dBm; 127: not available.
    pub rssi: i8,
    /// Advertising data: a list of length, type and value.
    pub data: &'a [u8],
}

/// The outcome of a connection event, from controllers that report it (a vendor's event).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventReport {
    /// The connection that the report is about.
    pub handle: Handle,
    /// Number of the connection event, counted from the connection's first.
    pub counter: u16,
    /// Packets received with a good check sum, and with a bad one.
    pub good: u16,
    /// Packets received with a bad check sum; [`Self::good`] counts the others.
    pub bad: u16,
    /// Packets of ours that the peer did not acknowledge.
    pub unacknowledged: u16,
    /// The event ended because nothing was received.
    pub is_missed: bool,
}

/// A report of a controller. Where HCI has a status, 0 is success.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The controller has been reset, and has these buffers: LE Read Buffer Size.
    Started {
        /// The longest data packet it takes, bytes, without HCI's header.
        packet_len: u16,
        /// Data packets that the controller can hold.
        packets: u8,
    },
    /// The command that was given last has been carried out or refused: Command Complete, or
    /// Command Status.
    Answered {
        /// HCI error code; 0: the command was carried out.
        status: u8,
    },
    /// LE Advertising Report, one report of it.
    Advertised(Advertisement<'a>),
    /// LE Connection Complete: a connection is made, or the attempt has failed.
    Connected {
        /// HCI error code of a failed attempt; 0: the connection is made.
        status: u8,
        /// Names it from now on.
        handle: Handle,
        /// This device's role on the connection.
        role: GapRole,
        /// Address of the peer.
        peer: DeviceAddr,
        /// Interval, latency and supervision timeout of the connection.
        timing: Timing,
    },
    /// Disconnection Complete: a connection is over.
    Disconnected {
        /// The connection that is over.
        handle: Handle,
        /// HCI error code: why the connection ended.
        reason: u8,
    },
    /// LE Connection Update Complete: a connection has other times, or keeps its old ones.
    Updated {
        /// HCI error code of a failed update; 0: `timing` holds from now on.
        status: u8,
        /// The connection that was to be updated.
        handle: Handle,
        /// The times of the connection from now on.
        timing: Timing,
    },
    /// LE Remote Connection Parameter Request: the peer asks for other times, and waits for an
    /// answer.
    TimingAsked {
        /// The connection for which the peer asks.
        handle: Handle,
        /// The shortest interval it wants.
        interval_min: u16,
        /// The longest interval and the other times it wants.
        timing: Timing,
    },
    /// LE Data Length Change: packets on the air may have other lengths from now on.
    DataLength {
        /// The connection whose packets are longer or shorter.
        handle: Handle,
        /// The longest payload of a packet on the air, sent, bytes.
        sent: u16,
        /// The longest payload of a packet on the air, received, bytes.
        received: u16,
    },
    /// LE PHY Update Complete: a connection has another PHY, or keeps its old one.
    Phy {
        /// HCI error code of a failed update; 0: the PHYs below hold from now on.
        status: u8,
        /// The connection that was to be updated.
        handle: Handle,
        /// The PHY of packets that this device sends.
        sent: Phy,
        /// The PHY of packets that this device receives.
        received: Phy,
    },
    /// Number Of Completed Packets, of one connection: as many buffers are free again.
    Completed {
        /// The connection whose packets were acknowledged or flushed.
        handle: Handle,
        /// Packets completed, each of which has freed a buffer.
        packets: u16,
    },
    /// Read RSSI, Command Complete: the answer to [`Action::ReadRssi`].
    Rssi {
        /// The connection that was measured.
        handle: Handle,
        /// Received signal strength on the connection, dBm; `None`: not available, which HCI writes
        /// as 127.
        rssi: Option<i8>,
    },
    /// A vendor's report on a connection event.
    Report(EventReport),
    /// An ACL data packet has come: an L2CAP PDU or a part of one.
    Data {
        /// The connection that the packet came over.
        handle: Handle,
        /// Whether an L2CAP PDU begins with this packet.
        is_first: bool,
        /// The packet's data, without HCI's header.
        bytes: &'a [u8],
    },
}

impl Action {
    /// How many bytes of `out` belong to the action.
    pub const fn bytes_len(&self) -> usize {
        match self {
            Self::SetAdvertisingData { len } | Self::Data { len, .. } => *len,
            _ => 0,
        }
    }
}

/// An order to a controller; bytes are in the caller's `out[..len]`.
///
/// All but [`Self::Data`] are commands: one is given at a time, and the next one after
/// [`Event::Answered`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// LE Set Advertising Parameters: connectable, undirected, on all three channels.
    SetAdvertisingParameters {
        /// The advertising interval, in units of 0.625 ms.
        interval: u16,
    },
    /// LE Set Advertising Data: `out[..len]`.
    SetAdvertisingData {
        /// Bytes of advertising data in `out`.
        len: usize,
    },
    /// LE Set Advertising Enable: begins or ends advertising.
    SetAdvertising {
        /// Whether to advertise. A connection ends it, too.
        is_on: bool,
    },
    /// LE Set Scan Parameters: passive.
    SetScanParameters {
        /// Scan interval: from the start of one scan window to the next, in units of 0.625 ms.
        interval: u16,
        /// Scan window: how long the receiver is on in each interval, in units of 0.625 ms.
        window: u16,
    },
    /// LE Set Scan Enable, without duplicates.
    SetScan {
        /// Whether to scan from now on.
        is_on: bool,
    },
    /// LE Create Connection: connects to an advertising device.
    Connect {
        /// Address of the device to connect to.
        peer: DeviceAddr,
        /// The times of the connection.
        timing: Timing,
        /// The longest connection event, in units of 0.625 ms.
        event_len: u16,
    },
    /// LE Create Connection Cancel: gives the attempt to connect up.
    CancelConnect,
    /// LE Connection Update: asks for other times of a connection.
    Update {
        /// The connection to update.
        handle: Handle,
        /// The interval, latency and supervision timeout wanted.
        timing: Timing,
        /// The longest connection event, in units of 0.625 ms.
        event_len: u16,
    },
    /// LE Remote Connection Parameter Request Reply.
    AcceptTiming {
        /// The connection for which the peer asked.
        handle: Handle,
        /// The shortest interval that is accepted, in units of 1.25 ms.
        interval_min: u16,
        /// The times, with the longest interval.
        timing: Timing,
    },
    /// LE Set Data Length: asks for longer packets on the air.
    SetDataLength {
        /// The connection whose packets are to be longer.
        handle: Handle,
        /// The longest payload of a packet on the air, bytes.
        octets: u16,
        /// The longest time of a packet on the air, µs.
        time_us: u16,
    },
    /// LE Set PHY, both ways.
    SetPhy {
        /// The connection to change.
        handle: Handle,
        /// The PHY wanted for both directions.
        phy: Phy,
    },
    /// Read RSSI: asks for the signal strength; [`Event::Rssi`] answers.
    ReadRssi {
        /// The connection to measure.
        handle: Handle,
    },
    /// Disconnect: ends a connection.
    Disconnect {
        /// The connection to end.
        handle: Handle,
        /// Why, as the peer is to know it.
        reason: u8,
    },
    /// A data packet: `out[..len]`, without HCI's header. It takes one of the controller's buffers.
    Data {
        /// The connection to send over.
        handle: Handle,
        /// Whether an L2CAP PDU begins with this packet.
        is_first: bool,
        /// Bytes of the packet in `out`.
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
