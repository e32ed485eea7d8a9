//! Translates HCI's events and data packets into the events of the stack's Bluetooth host.
//!
//! Source: Bluetooth Core 5.4 Vol 4 Part E §5.4 and §7.7.

use bt_hci::FromHciBytes;
use bt_hci::cmd::Opcode;
use bt_hci::event::le::{
    LeAdvertisingReport, LeConnectionComplete, LeConnectionUpdateComplete, LeDataLengthChange,
    LeEnhancedConnectionComplete, LeEventParams, LeExtendedAdvertisingReport, LePhyUpdateComplete,
    LeRemoteConnectionParameterRequest,
};
use bt_hci::event::{
    CommandComplete, CommandStatus, DisconnectionComplete, EventParams, NumberOfCompletedPackets,
};
use bt_hci::param::{
    AddrKind, BdAddr, ConnHandle, Duration, LeAdvEventKind, LeConnRole, PhyKind, Status,
};
use motet::ble::{Advertisement, DeviceAddr, Event, GapRole, Handle, Phy, Timing};

use crate::Error;
use crate::h4;
use crate::requests::HANDLE_MAX;

/// A controller's answer to a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) opcode: Opcode,
    pub(crate) status: u8,
    /// The other return parameters.
    pub(crate) rest: &'a [u8],
}

/// Reports the event in a packet by calling `tell`; returns the answer to a command, if the packet
/// holds one. Packets of other kinds are ignored.
///
/// # Errors
/// [`Error::Malformed`]: the parameters do not match the event code.
pub(crate) fn read<'a>(
    (kind, packet): (u8, &'a [u8]),
    tell: &mut impl FnMut(Event<'_>),
) -> Result<Option<Answer<'a>>, Error> {
    match (kind, packet) {
        (h4::EVENT, [code, _, params @ ..]) => event(*code, params, tell),
        (h4::DATA, [low, high, _, _, bytes @ ..]) => {
            data(u16::from_le_bytes([*low, *high]), bytes, tell);
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// A data packet; `handle`: with the flags of its boundary.
fn data(handle: u16, bytes: &[u8], tell: &mut impl FnMut(Event<'_>)) {
    // Broadcast and reserved flags are not Bluetooth LE's.
    let is_point_to_point = handle >> 14 == 0;
    let is_first = handle >> 12 & 3 != CONTINUING;
    let handle = handle & 0x0fff;
    if is_point_to_point && handle <= HANDLE_MAX {
        tell(Event::Data {
            handle: Handle(handle),
            is_first,
            bytes,
        });
    }
}

fn event<'a>(
    code: u8,
    params: &'a [u8],
    tell: &mut impl FnMut(Event<'_>),
) -> Result<Option<Answer<'a>>, Error> {
    match code {
        CommandComplete::EVENT_CODE => {
            let complete: CommandComplete<'a> = parse(code, params)?;
            let rest = params.get(3..).unwrap_or_default();
            return match rest.split_first() {
                Some((status, rest)) => Ok(Some(Answer {
                    opcode: complete.cmd_opcode,
                    status: *status,
                    rest,
                })),
                // This Command Complete only announces that commands may be sent, and answers no
                // command.
                None if complete.cmd_opcode == Opcode::UNSOLICITED => Ok(None),
                None => Err(Error::Malformed(code)),
            };
        }
        CommandStatus::EVENT_CODE => {
            let status: CommandStatus = parse(code, params)?;
            return Ok(Some(Answer {
                opcode: status.cmd_opcode,
                status: status.status.into_inner(),
                rest: &[],
            }));
        }
        DisconnectionComplete::EVENT_CODE => {
            let over: DisconnectionComplete = parse(code, params)?;
            if over.status.into_inner() == 0 {
                tell(Event::Disconnected {
                    handle: handle(over.handle),
                    reason: over.reason.into_inner(),
                });
            }
        }
        NumberOfCompletedPackets::EVENT_CODE => {
            let completed: NumberOfCompletedPackets<'_> = parse(code, params)?;
            for each in completed.completed_packets {
                let malformed = |_| Error::Malformed(code);
                tell(Event::Completed {
                    handle: handle(each.handle().map_err(malformed)?),
                    packets: each.num_completed_packets().map_err(malformed)?,
                });
            }
        }
        LE_META => {
            if let Some((sub, params)) = params.split_first() {
                le_event(*sub, params, tell)?;
            }
        }
        _ => {}
    }
    Ok(None)
}

fn le_event(sub: u8, params: &[u8], tell: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
    let code = LE_META;
    match sub {
        LeConnectionComplete::SUBEVENT_CODE => {
            let made: LeConnectionComplete = parse(code, params)?;
            let peer = addr(made.peer_addr, made.peer_addr_kind);
            let times = (made.conn_interval, made.peripheral_latency);
            let timing = timing(times, made.supervision_timeout);
            let handle = handle(made.handle);
            tell(connected(made.status, handle, made.role, peer, timing));
        }
        LeEnhancedConnectionComplete::SUBEVENT_CODE => {
            let made: LeEnhancedConnectionComplete = parse(code, params)?;
            let peer = addr(made.peer_addr, made.peer_addr_kind);
            let times = (made.conn_interval, made.peripheral_latency);
            let timing = timing(times, made.supervision_timeout);
            let handle = handle(made.handle);
            tell(connected(made.status, handle, made.role, peer, timing));
        }
        LeAdvertisingReport::SUBEVENT_CODE => {
            let all: LeAdvertisingReport<'_> = parse(code, params)?;
            for report in all.reports.iter() {
                let report = report.map_err(|_| Error::Malformed(code))?;
                tell(Event::Advertised(Advertisement {
                    from: addr(report.addr, report.addr_kind),
                    is_connectable: report.event_kind == LeAdvEventKind::AdvInd,
                    rssi: report.rssi,
                    data: report.data,
                }));
            }
        }
        LeExtendedAdvertisingReport::SUBEVENT_CODE => extended(params, tell),
        LeConnectionUpdateComplete::SUBEVENT_CODE => {
            let updated: LeConnectionUpdateComplete = parse(code, params)?;
            let times = (updated.conn_interval, updated.peripheral_latency);
            tell(Event::Updated {
                status: updated.status.into_inner(),
                handle: handle(updated.handle),
                timing: timing(times, updated.supervision_timeout),
            });
        }
        LeRemoteConnectionParameterRequest::SUBEVENT_CODE => {
            let asked: LeRemoteConnectionParameterRequest = parse(code, params)?;
            tell(Event::TimingAsked {
                handle: handle(asked.handle),
                interval_min: asked.interval_min.as_u16(),
                timing: timing((asked.interval_max, asked.max_latency), asked.timeout),
            });
        }
        LeDataLengthChange::SUBEVENT_CODE => {
            let changed: LeDataLengthChange = parse(code, params)?;
            tell(Event::DataLength {
                handle: handle(changed.handle),
                sent: changed.max_tx_octets,
                received: changed.max_rx_octets,
            });
        }
        LePhyUpdateComplete::SUBEVENT_CODE => {
            let updated: LePhyUpdateComplete = parse(code, params)?;
            tell(Event::Phy {
                status: updated.status.into_inner(),
                handle: handle(updated.handle),
                sent: phy(updated.tx_phy),
                received: phy(updated.rx_phy),
            });
        }
        _ => {}
    }
    Ok(())
}

/// Advertisements as extended reports, which some controllers send to a host that scans without
/// them.
///
/// By hand: the parser of bt-hci 0.11 panics where a report is cut short. What is cut short here is
/// left.
fn extended(params: &[u8], tell: &mut impl FnMut(Event<'_>)) {
    let mut rest = params.get(1..).unwrap_or_default();
    while let Some((head, after)) = rest.split_first_chunk::<EXTENDED_HEAD_LEN>() {
        let [
            kind,
            _,
            addr_kind,
            a,
            b,
            c,
            d,
            e,
            f,
            _,
            _,
            _,
            _,
            rssi,
            ..,
            len,
        ] = *head;
        let Some((data, next)) = after.split_at_checked(len.into()) else {
            return;
        };
        tell(Event::Advertised(Advertisement {
            from: addr(BdAddr::new([a, b, c, d, e, f]), AddrKind::new(addr_kind)),
            is_connectable: kind & EXTENDED_CONNECTABLE != 0,
            rssi: rssi.cast_signed(),
            data,
        }));
        rest = next;
    }
}

/// Parameters of an event with this code. Those that a later version has added behind them are
/// left.
fn parse<'a, T: FromHciBytes<'a>>(code: u8, params: &'a [u8]) -> Result<T, Error> {
    match T::from_hci_bytes(params) {
        Ok((parsed, _)) => Ok(parsed),
        Err(_) => Err(Error::Malformed(code)),
    }
}

fn handle(handle: ConnHandle) -> Handle {
    Handle(handle.raw())
}

fn connected(
    status: Status,
    handle: Handle,
    role: LeConnRole,
    peer: DeviceAddr,
    timing: Timing,
) -> Event<'static> {
    Event::Connected {
        status: status.into_inner(),
        handle,
        role: match role {
            LeConnRole::Central => GapRole::Central,
            LeConnRole::Peripheral => GapRole::Peripheral,
        },
        peer,
        timing,
    }
}

/// Byte order as printed, most significant first. If the controller has resolved a private address,
/// the type is one of the two identity types.
fn addr(addr: BdAddr, kind: AddrKind) -> DeviceAddr {
    let mut bytes = addr.into_inner();
    bytes.reverse();
    DeviceAddr {
        bytes,
        is_random: matches!(
            kind,
            AddrKind::RANDOM | AddrKind::RESOLVABLE_PRIVATE_OR_RANDOM
        ),
    }
}

fn timing((interval, latency): (Duration<1_250>, u16), timeout: Duration<10_000>) -> Timing {
    Timing {
        interval: interval.as_u16(),
        latency,
        timeout: timeout.as_u16(),
    }
}

const fn phy(phy: PhyKind) -> Phy {
    match phy {
        PhyKind::Le2M => Phy::Le2M,
        _ => Phy::Le1M,
    }
}

/// The code of all events of Bluetooth LE, which have codes of their own.
const LE_META: u8 = 0x3e;

/// Bytes of an extended report in front of its data (§7.7.65.13), and the bit of those that may be
/// connected to.
const EXTENDED_HEAD_LEN: usize = 24;
const EXTENDED_CONNECTABLE: u8 = 1;

/// The flag of an ACL packet that continues the L2CAP PDU which the packet before it began.
const CONTINUING: u16 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events in a packet, as text.
    fn told(kind: u8, packet: &[u8]) -> Vec<String> {
        let mut told = Vec::new();
        let answer = read((kind, packet), &mut |event| told.push(format!("{event:?}"))).unwrap();
        assert_eq!(answer, None);
        told
    }

    #[test]
    fn each_event_is_told() {
        let connected = [
            0x3e, 19, 1, 0, 0x40, 0, 1, 1, 5, 4, 3, 2, 1, 0xc2, 40, 0, 1, 0, 0x90, 1, 0,
        ];
        let cases: [(&[u8], &[&str]); 9] = [
            (
                &connected,
                &[
                    "Connected { status: 0, handle: Handle(64), role: Peripheral, peer: DeviceAddr { bytes: \
                     [194, 1, 2, 3, 4, 5], is_random: true }, timing: Timing { interval: 40, latency: 1, \
                     timeout: 400 } }",
                ],
            ),
            (
                &[5, 4, 0, 0x40, 0, 0x13],
                &["Disconnected { handle: Handle(64), reason: 19 }"],
            ),
            (&[5, 4, 2, 0x40, 0, 0x13], &[]),
            (
                &[0x13, 9, 2, 0x40, 0, 3, 0, 0x41, 0, 1, 0],
                &[
                    "Completed { handle: Handle(64), packets: 3 }",
                    "Completed { handle: Handle(65), packets: 1 }",
                ],
            ),
            (
                &[0x3e, 10, 3, 0, 0x40, 0, 12, 0, 0, 0, 200, 0],
                &[
                    "Updated { status: 0, handle: Handle(64), timing: Timing { interval: 12, latency: 0, \
                     timeout: 200 } }",
                ],
            ),
            (
                &[0x3e, 11, 7, 0x40, 0, 251, 0, 0x48, 8, 27, 0, 0x48, 1],
                &["DataLength { handle: Handle(64), sent: 251, received: 27 }"],
            ),
            (
                &[0x3e, 6, 12, 0, 0x40, 0, 2, 1],
                &["Phy { status: 0, handle: Handle(64), sent: Le2M, received: Le1M }"],
            ),
            // A subevent and an event that nobody has asked for.
            (&[0x3e, 2, 0x7f, 1], &[]),
            (&[0xff, 1, 1], &[]),
        ];
        for (packet, expected) in cases {
            assert_eq!(told(h4::EVENT, packet), expected, "{packet:?}");
        }
    }

    #[test]
    fn an_advertisement_is_told_with_its_data() {
        let packet = [
            0x3e, 17, 2, 1, 0, 0, 6, 5, 4, 3, 2, 1, 5, 3, 3, 0x20, 0x18, 9, 0xc4,
        ];
        let told = told(h4::EVENT, &packet);
        assert_eq!(
            told,
            [
                "Advertised(Advertisement { from: DeviceAddr { bytes: [1, 2, 3, 4, 5, 6], is_random: false }, \
              is_connectable: true, rssi: -60, data: [3, 3, 32, 24, 9] })"
            ]
        );
    }

    #[test]
    fn an_extended_report_is_told_as_an_advertisement_and_a_cut_one_is_not() {
        let mut packet = vec![
            0x3e, 0, 13, 1, 0x13, 0, 1, 6, 5, 4, 3, 2, 0xc1, 1, 0, 0, 0, 0xc4,
        ];
        packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 1, 6]);
        let expected = "Advertised(Advertisement { from: DeviceAddr { bytes: [193, 2, 3, 4, 5, 6], is_random: \
                        true }, is_connectable: true, rssi: -60, data: [2, 1, 6] })";
        assert_eq!(told(h4::EVENT, &packet), [expected]);
        for len in 3..packet.len() {
            assert!(told(h4::EVENT, &packet[..len]).is_empty(), "{len}");
        }
    }

    #[test]
    fn data_are_told_with_their_boundary() {
        for (flags, is_first) in [(0x20, true), (0x10, false), (0x00, true)] {
            let told = told(h4::DATA, &[0x40, flags, 2, 0, 7, 8]);
            let expected =
                format!("Data {{ handle: Handle(64), is_first: {is_first}, bytes: [7, 8] }}");
            assert_eq!(told, [expected]);
        }
        // A handle that none has, and a broadcast.
        for (low, high) in [(0xff, 0x2f), (0x40, 0x60)] {
            assert!(told(h4::DATA, &[low, high, 1, 0, 7]).is_empty());
        }
    }

    #[test]
    fn answers_name_their_command() {
        let read = |packet: &'static [u8]| read((h4::EVENT, packet), &mut |_| {}).unwrap();
        let opcode = |raw: u16| Opcode(raw);
        assert_eq!(
            read(&[0x0e, 7, 1, 5, 0x14, 0, 0x40, 0, 0xc4]),
            Some(Answer {
                opcode: opcode(0x1405),
                status: 0,
                rest: &[0x40, 0, 0xc4]
            })
        );
        assert_eq!(
            read(&[0x0f, 4, 2, 1, 0x32, 0x20]),
            Some(Answer {
                opcode: opcode(0x2032),
                status: 2,
                rest: &[]
            })
        );
        assert_eq!(read(&[0x0e, 3, 1, 0, 0]), None);
    }

    #[test]
    fn an_event_that_is_cut_short_is_an_error() {
        for packet in [
            &[0x0e, 2, 1, 3][..],
            &[0x0e, 3, 1, 3, 0x0c],
            &[0x13, 2, 9, 0],
            &[0x3e, 3, 1, 0, 0x40],
            &[5, 1, 0],
        ] {
            let error = read((h4::EVENT, packet), &mut |_| {}).unwrap_err();
            assert!(matches!(error, Error::Malformed(code) if code == packet[0]));
        }
    }

    proptest! {
        #[test]
        fn no_packet_brings_the_driver_down(
            kind in 2_u8..=5,
            packet in prop::collection::vec(any::<u8>(), 0..300),
            code in prop::sample::select(vec![0x05, 0x0e, 0x0f, 0x13, 0x3e]),
            sub in 0_u8..40,
        ) {
            let _ = read((kind, &packet), &mut |_| {});
            let mut event = vec![code, packet.len() as u8, sub];
            event.extend(&packet);
            let _ = read((h4::EVENT, &event), &mut |_| {});
        }
    }
}
