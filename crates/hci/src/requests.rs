//! A host's actions as HCI's commands and data packets.
//!
//! Source: Bluetooth Core 5.4 Vol 4 Part E §5.4 and §7.

use bt_hci::WriteHci;
use bt_hci::cmd::le::{
    LeConnUpdate, LeCreateConn, LeCreateConnCancel, LeRemoteConnectionParameterRequestReply,
    LeSetAdvData, LeSetAdvEnable, LeSetAdvParams, LeSetDataLength, LeSetPhy, LeSetScanEnable,
    LeSetScanParams,
};
use bt_hci::cmd::link_control::Disconnect;
use bt_hci::cmd::status::ReadRssi;
use bt_hci::cmd::{Cmd, Opcode};
use bt_hci::data::{AclBroadcastFlag, AclPacket, AclPacketBoundary};
use bt_hci::param::{
    AddrKind, AdvChannelMap, AdvFilterPolicy, AdvKind, AllPhys, BdAddr, CmdMask, ConnHandle,
    DisconnectReason, Duration, LeScanKind, PhyMask, PhyOptions, ScanningFilterPolicy,
};
use motet::ble::{Action, DeviceAddr, Handle, Phy, Timing};

use crate::h4;

/// The packet for one action.
#[derive(Debug)]
pub(crate) enum Request {
    /// A command, as it goes on the line.
    Command(Opcode, Vec<u8>),
    /// A data packet.
    Data(Vec<u8>),
    /// A command that this controller does not know. Some answer such a one with silence.
    Unknown,
}

/// The action of a host whose own address is `own`; `bytes`: those that it speaks of; `known`: the
/// controller's commands.
pub(crate) fn request(action: Action, bytes: &[u8], own: DeviceAddr, known: CmdMask) -> Request {
    match action {
        Action::Data {
            handle, is_first, ..
        } => data(handle, is_first, bytes),
        Action::SetPhy { .. } if !known.le_set_phy() => Request::Unknown,
        Action::SetDataLength { .. } if !known.le_set_data_length() => Request::Unknown,
        Action::ReadRssi { .. } if !known.read_rssi() => Request::Unknown,
        Action::AcceptTiming { .. } if !known.le_remote_conn_parameter_request_reply() => {
            Request::Unknown
        }
        Action::SetAdvertisingParameters { .. }
        | Action::SetAdvertisingData { .. }
        | Action::SetAdvertising { .. }
        | Action::SetScanParameters { .. }
        | Action::SetScan { .. }
        | Action::Connect { .. }
        | Action::CancelConnect => seeking(action, bytes, own),
        Action::Update { .. }
        | Action::AcceptTiming { .. }
        | Action::SetDataLength { .. }
        | Action::SetPhy { .. }
        | Action::ReadRssi { .. }
        | Action::Disconnect { .. } => of_connection(action),
    }
}

/// Commands before there is a connection.
fn seeking(action: Action, bytes: &[u8], own: DeviceAddr) -> Request {
    match action {
        Action::SetAdvertisingParameters { interval } => command(&LeSetAdvParams::new(
            Duration::from_u16(interval),
            Duration::from_u16(interval),
            AdvKind::AdvInd,
            kind(own),
            AddrKind::PUBLIC,
            BdAddr::default(),
            AdvChannelMap::ALL,
            AdvFilterPolicy::Unfiltered,
        )),
        Action::SetAdvertisingData { .. } => {
            let mut data = [0; 31];
            let len = bytes.len().min(data.len());
            for (to, from) in data.iter_mut().zip(bytes) {
                *to = *from;
            }
            // Lossless: at most 31.
            command(&LeSetAdvData::new(len as u8, data))
        }
        Action::SetAdvertising { is_on } => command(&LeSetAdvEnable::new(is_on)),
        Action::SetScanParameters { interval, window } => command(&LeSetScanParams::new(
            LeScanKind::Passive,
            Duration::from_u16(interval),
            Duration::from_u16(window),
            kind(own),
            ScanningFilterPolicy::BasicUnfiltered,
        )),
        Action::SetScan { is_on } => command(&LeSetScanEnable::new(is_on, true)),
        Action::Connect {
            peer,
            timing,
            event_len,
        } => {
            let times = Times::of(timing);
            command(&LeCreateConn::new(
                Duration::from_u16(SCAN_INTERVAL),
                Duration::from_u16(SCAN_INTERVAL),
                false,
                kind(peer),
                on_line(peer),
                kind(own),
                times.interval,
                times.interval,
                times.latency,
                times.timeout,
                Duration::default(),
                Duration::from_u16(event_len),
            ))
        }
        _ => command(&LeCreateConnCancel::new()),
    }
}

/// Commands about a connection.
fn of_connection(action: Action) -> Request {
    match action {
        Action::Update {
            handle,
            timing,
            event_len,
        } => {
            let times = Times::of(timing);
            command(&LeConnUpdate::new(
                named(handle),
                times.interval,
                times.interval,
                times.latency,
                times.timeout,
                Duration::default(),
                Duration::from_u16(event_len),
            ))
        }
        Action::AcceptTiming {
            handle,
            interval_min,
            timing,
        } => {
            let times = Times::of(timing);
            command(&LeRemoteConnectionParameterRequestReply::new(
                named(handle),
                Duration::from_u16(interval_min),
                times.interval,
                times.latency,
                times.timeout,
                Duration::default(),
                // As long as the interval: in units half as long.
                Duration::from_u16(timing.interval.saturating_mul(2)),
            ))
        }
        Action::SetDataLength {
            handle,
            octets,
            time_us,
        } => command(&LeSetDataLength::new(named(handle), octets, time_us)),
        Action::SetPhy { handle, phy } => {
            let phys = match phy {
                Phy::Le1M => PhyMask::new().set_le_1m_phy(true),
                Phy::Le2M => PhyMask::new().set_le_2m_phy(true),
            };
            let (preferred, coding) = (AllPhys::new(), PhyOptions::NoPreferredCoding);
            let handle = named(handle);
            command(&LeSetPhy::new(handle, preferred, phys, phys, coding))
        }
        Action::ReadRssi { handle } => command(&ReadRssi::new(named(handle))),
        Action::Disconnect { handle, reason } => {
            command(&Disconnect::new(named(handle), reason_of(reason)))
        }
        _ => Request::Unknown,
    }
}

/// The times of a connection as the commands have them.
struct Times {
    interval: Duration<1_250>,
    latency: u16,
    timeout: Duration<10_000>,
}

impl Times {
    fn of(timing: Timing) -> Self {
        Self {
            interval: Duration::from_u16(timing.interval),
            latency: timing.latency,
            timeout: Duration::from_u16(timing.timeout),
        }
    }
}

/// A command with H4's indicator before it.
pub(crate) fn command<C: Cmd>(command: &C) -> Request {
    let mut line = vec![h4::COMMAND; 1 + WriteHci::size(command)];
    // Fails where there is no room, and there is.
    let _ = WriteHci::write_hci(command, line.get_mut(1..).unwrap_or_default());
    Request::Command(C::OPCODE, line)
}

fn data(handle: Handle, is_first: bool, bytes: &[u8]) -> Request {
    let boundary = match is_first {
        true => AclPacketBoundary::FirstNonFlushable,
        false => AclPacketBoundary::Continuing,
    };
    let packet = AclPacket::new(
        named(handle),
        boundary,
        AclBroadcastFlag::PointToPoint,
        bytes,
    );
    let mut line = vec![h4::DATA; 1 + WriteHci::size(&packet)];
    let _ = WriteHci::write_hci(&packet, line.get_mut(1..).unwrap_or_default());
    Request::Data(line)
}

/// A handle that the controller has given, so within its bounds.
fn named(handle: Handle) -> ConnHandle {
    ConnHandle::new(handle.0.min(HANDLE_MAX))
}

const fn kind(addr: DeviceAddr) -> AddrKind {
    match addr.is_random {
        true => AddrKind::RANDOM,
        false => AddrKind::PUBLIC,
    }
}

/// An address in the order of HCI, which begins with what is printed last.
pub(crate) fn on_line(addr: DeviceAddr) -> BdAddr {
    let mut bytes = addr.bytes;
    bytes.reverse();
    BdAddr::new(bytes)
}

/// The reasons that a host may give (§7.1.6); others are its user's wish.
const fn reason_of(reason: u8) -> DisconnectReason {
    match reason {
        0x05 => DisconnectReason::AuthenticationFailure,
        0x14 => DisconnectReason::RemoteDeviceTerminatedConnLowResources,
        0x15 => DisconnectReason::RemoteDeviceTerminatedConnPowerOff,
        0x1a => DisconnectReason::UnsupportedRemoteFeature,
        0x29 => DisconnectReason::PairingWithUnitKeyNotSupported,
        0x3b => DisconnectReason::UnacceptableConnParameters,
        _ => DisconnectReason::RemoteUserTerminatedConn,
    }
}

/// The highest handle of a connection (§5.4.2).
pub(crate) const HANDLE_MAX: u16 = 0x0eff;

/// While it connects a central listens all the time, 60 ms to each channel: in units of 0.625 ms.
const SCAN_INTERVAL: u16 = 96;

#[cfg(test)]
mod tests {
    use bt_hci::FromHciBytes as _;

    use super::*;

    const OWN: DeviceAddr = DeviceAddr {
        bytes: [0xc2, 1, 2, 3, 4, 5],
        is_random: true,
    };
    const PEER: DeviceAddr = DeviceAddr {
        bytes: [0, 0x11, 0x22, 0x33, 0x44, 0x55],
        is_random: false,
    };
    const TIMING: Timing = Timing {
        interval: 40,
        latency: 1,
        timeout: 400,
    };

    fn line(action: Action, bytes: &[u8]) -> Vec<u8> {
        let (known, _) = CmdMask::from_hci_bytes(&[0xff; 64]).unwrap();
        match request(action, bytes, OWN, known) {
            Request::Command(_, line) | Request::Data(line) => line,
            Request::Unknown => panic!("every command is known"),
        }
    }

    #[test]
    fn each_action_is_its_command() {
        let handle = Handle(0x40);
        let cases: [(Action, &[u8]); 12] = [
            (
                Action::SetAdvertisingParameters { interval: 160 },
                &[
                    1, 6, 0x20, 15, 160, 0, 160, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0,
                ],
            ),
            (
                Action::SetAdvertising { is_on: true },
                &[1, 0x0a, 0x20, 1, 1],
            ),
            (
                Action::SetScanParameters {
                    interval: 96,
                    window: 96,
                },
                &[1, 0x0b, 0x20, 7, 0, 96, 0, 96, 0, 1, 0],
            ),
            (Action::SetScan { is_on: true }, &[1, 0x0c, 0x20, 2, 1, 1]),
            (
                Action::Connect {
                    peer: PEER,
                    timing: TIMING,
                    event_len: 80,
                },
                &[
                    1, 0x0d, 0x20, 25, 96, 0, 96, 0, 0, 0, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 1, 40,
                    0, 40, 0, 1, 0, 0x90, 1, 0, 0, 80, 0,
                ],
            ),
            (Action::CancelConnect, &[1, 0x0e, 0x20, 0]),
            (
                Action::Update {
                    handle,
                    timing: TIMING,
                    event_len: 80,
                },
                &[
                    1, 0x13, 0x20, 14, 0x40, 0, 40, 0, 40, 0, 1, 0, 0x90, 1, 0, 0, 80, 0,
                ],
            ),
            (
                Action::AcceptTiming {
                    handle,
                    interval_min: 6,
                    timing: TIMING,
                },
                &[
                    1, 0x20, 0x20, 14, 0x40, 0, 6, 0, 40, 0, 1, 0, 0x90, 1, 0, 0, 80, 0,
                ],
            ),
            (
                Action::SetDataLength {
                    handle,
                    octets: 251,
                    time_us: 2_120,
                },
                &[1, 0x22, 0x20, 6, 0x40, 0, 251, 0, 0x48, 8],
            ),
            (
                Action::SetPhy {
                    handle,
                    phy: Phy::Le2M,
                },
                &[1, 0x32, 0x20, 7, 0x40, 0, 0, 2, 2, 0, 0],
            ),
            (Action::ReadRssi { handle }, &[1, 5, 0x14, 2, 0x40, 0]),
            (
                Action::Disconnect {
                    handle,
                    reason: 0x13,
                },
                &[1, 6, 4, 3, 0x40, 0, 0x13],
            ),
        ];
        for (action, expected) in cases {
            assert_eq!(line(action, &[]), expected, "{action:?}");
        }
    }

    #[test]
    fn bytes_go_along() {
        let advertised = line(Action::SetAdvertisingData { len: 3 }, &[2, 1, 6]);
        assert_eq!(advertised[..8], [1, 8, 0x20, 32, 3, 2, 1, 6]);
        assert_eq!(advertised.len(), 4 + 32);
        let data = |is_first| Action::Data {
            handle: Handle(1),
            is_first,
            len: 2,
        };
        assert_eq!(line(data(true), &[7, 8]), [2, 1, 0, 2, 0, 7, 8]);
        assert_eq!(line(data(false), &[9]), [2, 1, 0x10, 1, 0, 9]);
    }

    #[test]
    fn what_a_controller_does_not_know_is_not_asked() {
        let handle = Handle(1);
        let phy = Phy::Le2M;
        let unknown = [Action::SetPhy { handle, phy }, Action::ReadRssi { handle }];
        for action in unknown {
            let request = request(action, &[], OWN, CmdMask::default());
            assert!(matches!(request, Request::Unknown), "{action:?}");
        }
    }
}
