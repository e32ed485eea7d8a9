//! What the kernel says of one of its interfaces of IEEE 802.15.4, by generic netlink.
//!
//! Two questions of fixed length and their answers, which need no rights. `iwpan` shows the same.
//! Left out: settings, which `iwpan` makes; everything of netlink that these two do not need.
//! Sources: netlink(7), Linux's `genetlink.h` and `nl802154.h`.

use std::{io, time};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

/// An interface as the kernel has set it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Settings {
    /// The name of its radio, such as phy0.
    pub(super) phy: String,
    pub(super) channel: u8,
    /// The channel's page: 0 at 2.4 GHz.
    pub(super) page: u8,
    pub(super) pan: u16,
    /// Big endian.
    pub(super) eui64: [u8; 8],
}

/// Asks for the settings of the interface with this number.
///
/// # Errors
/// The kernel does not answer, or not as `nl802154.h` has it.
pub(super) fn settings(index: u32) -> io::Result<Settings> {
    let kind = SocketType::RAW;
    let (flags, protocol) = (SocketFlags::CLOEXEC, Some(netlink::GENERIC));
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let ask = |family: u16, command: u8, attribute: (u16, &[u8])| {
        send(
            &socket,
            &question(family, command, attribute),
            SendFlags::empty(),
        )?;
        let mut answer = vec![0; ANSWER_MAX];
        let (len, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(len);
        Ok::<_, io::Error>(answer)
    };
    let family = ask(CONTROLLER, GET_FAMILY, (FAMILY_NAME, b"nl802154\0"))?;
    let family = number(attributes(&family)?, FAMILY_ID)?;
    let index = index.to_ne_bytes();
    let interface = ask(family, GET_INTERFACE, (IFINDEX, &index))?;
    let phy = ask(family, GET_WPAN_PHY, (IFINDEX, &index))?;
    read(&interface, &phy)
}

/// Reads both answers.
fn read(interface: &[u8], phy: &[u8]) -> io::Result<Settings> {
    let (interface, phy) = (attributes(interface)?, attributes(phy)?);
    let of_phy = |kind| bytes(phy, kind).and_then(|bytes| bytes.first());
    let (channel, page) = (of_phy(CHANNEL), of_phy(PAGE));
    let eui64 = bytes(interface, EXTENDED_ADDR).and_then(|bytes| bytes.try_into().ok());
    let eui64: [u8; 8] = eui64.ok_or_else(unreadable)?;
    Ok(Settings {
        phy: name(bytes(phy, WPAN_PHY_NAME).unwrap_or_default()),
        channel: *channel.ok_or_else(unreadable)?,
        page: *page.ok_or_else(unreadable)?,
        // Of a number in the order of the air, which is that of the machines that matter.
        pan: number(interface, PAN_ID)?.to_le(),
        eui64: u64::from_le_bytes(eui64).to_be_bytes(),
    })
}

fn name(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn question(family: u16, command: u8, (kind, value): (u16, &[u8])) -> Vec<u8> {
    let attribute_len = ATTRIBUTE_HEADER + value.len();
    let len = HEADERS + attribute_len.next_multiple_of(ALIGNMENT);
    let mut message = Vec::with_capacity(len);
    message.extend((len as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Neither a number of its own nor a sender's: there is one question at a time.
    message.extend([0; 8]);
    message.extend([command, VERSION, 0, 0]);
    message.extend((attribute_len as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(len, 0);
    message
}

/// The attributes of an answer, one behind the other.
type Attributes<'a> = &'a [u8];

/// # Errors
/// The kernel refuses the question, or the answer is too short.
fn attributes(answer: &[u8]) -> io::Result<Attributes<'_>> {
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok());
    match kind.map(u16::from_ne_bytes) {
        None => Err(unreadable()),
        Some(REFUSAL) => {
            let code = answer.get(16..20).and_then(|code| code.try_into().ok());
            let code = code.map_or(0, i32::from_ne_bytes);
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        Some(_) => answer.get(HEADERS..).ok_or_else(unreadable),
    }
}

/// The value of the first attribute of this kind.
fn bytes(mut attributes: Attributes<'_>, wanted: u16) -> Option<&[u8]> {
    loop {
        let len = attributes.get(..2)?.try_into().ok()?;
        let len = usize::from(u16::from_ne_bytes(len));
        let kind = u16::from_ne_bytes(attributes.get(2..ATTRIBUTE_HEADER)?.try_into().ok()?);
        let value = attributes.get(ATTRIBUTE_HEADER..len)?;
        if kind & KIND_MASK == wanted {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(ALIGNMENT)..)?;
    }
}

fn number(attributes: Attributes<'_>, kind: u16) -> io::Result<u16> {
    let value = bytes(attributes, kind).and_then(|value| value.try_into().ok());
    value.map(u16::from_ne_bytes).ok_or_else(unreadable)
}

fn unreadable() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's answer is unreadable",
    )
}

/// How long the kernel may take to answer.
const PATIENCE: time::Duration = time::Duration::from_secs(2);
/// Longer than what it says of a radio, with all its channels.
const ANSWER_MAX: usize = 16_384;

/// `nlmsghdr` and `genlmsghdr`.
const HEADERS: usize = 16 + 4;
const ATTRIBUTE_HEADER: usize = 4;
const ALIGNMENT: usize = 4;
/// `NLA_TYPE_MASK`: the upper bits say what an attribute holds.
const KIND_MASK: u16 = 0x3fff;
const REQUEST: u16 = 1;
/// `NLMSG_ERROR`.
const REFUSAL: u16 = 2;
const VERSION: u8 = 1;

/// `GENL_ID_CTRL`, which knows the numbers of all others.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const GET_WPAN_PHY: u8 = 1;
const GET_INTERFACE: u8 = 5;
const WPAN_PHY_NAME: u16 = 2;
const IFINDEX: u16 = 3;
const PAGE: u16 = 7;
const CHANNEL: u16 = 8;
const PAN_ID: u16 = 9;
const EXTENDED_ADDR: u16 = 23;

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these attributes.
    fn answer(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut answer = vec![0; HEADERS];
        answer[4] = 0x1c;
        for (kind, value) in attributes {
            let message = question(0, 0, (*kind, value));
            answer.extend(&message[HEADERS..]);
        }
        answer
    }

    const EUI64: [u8; 8] = [1, 0, 0, 0, 0, 0, 0x5a, 2];

    #[test]
    fn settings_are_read() {
        let interface = answer(&[
            (4, b"wpan1\0"),
            (PAN_ID, &0xabcd_u16.to_le_bytes()),
            (EXTENDED_ADDR, &EUI64),
        ]);
        let phy = answer(&[(WPAN_PHY_NAME, b"phy1\0"), (PAGE, &[0]), (CHANNEL, &[15])]);
        let settings = Settings {
            phy: "phy1".to_owned(),
            channel: 15,
            page: 0,
            pan: 0xabcd,
            eui64: [2, 0x5a, 0, 0, 0, 0, 0, 1],
        };
        assert_eq!(read(&interface, &phy).unwrap(), settings);
    }

    #[test]
    fn half_answers_are_refused() {
        let interface = answer(&[(PAN_ID, &[1, 2]), (EXTENDED_ADDR, &EUI64)]);
        let phy = answer(&[(PAGE, &[0]), (CHANNEL, &[15])]);
        assert!(read(&interface, &phy).is_ok());
        for len in 0..interface.len() {
            assert!(read(&interface[..len], &phy).is_err(), "{len}");
        }
        // The last three bytes fill up.
        for len in 0..phy.len() - 3 {
            assert!(read(&interface, &phy[..len]).is_err(), "{len}");
        }
        let endless = answer(&[(PAGE, &[])]);
        let mut endless = endless.clone();
        endless[HEADERS] = 0;
        assert!(read(&interface, &endless).is_err());
    }

    #[test]
    fn a_refusal_is_the_systems_error() {
        let mut refusal = vec![0; 36];
        refusal[4] = 2;
        refusal[16..20].copy_from_slice(&(-19_i32).to_ne_bytes());
        let error = attributes(&refusal).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(19));
        // The name of a family that no kernel has.
        assert!(settings(u32::MAX).is_err());
    }

    #[test]
    fn the_kernel_answers_what_it_is_asked() {
        let (family, name) = (CONTROLLER, b"nlctrl\0");
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::GENERIC),
        )
        .unwrap();
        let question = question(family, GET_FAMILY, (FAMILY_NAME, name));
        send(&socket, &question, SendFlags::empty()).unwrap();
        let mut bytes = [0; 4_096];
        let (len, _) = recv(&socket, &mut bytes[..], RecvFlags::empty()).unwrap();
        let answer = attributes(&bytes[..len]).unwrap();
        assert_eq!(number(answer, FAMILY_ID).unwrap(), CONTROLLER);
    }
}
