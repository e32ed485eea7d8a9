//! What the parent tells of the network: prefixes, contexts, partitions.

use super::*;

#[test]
fn network_data_is_asked_for_when_its_version_changes_and_addresses_are_registered() {
    let mut lone = Lone::attached();
    let mut leader = LEADER;
    leader[5] += 1;
    let told: [(u8, &[u8]); 2] = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0]),
        (tlv::LEADER_DATA, &leader),
    ];
    lone.hear(PARENT, command::ADVERTISEMENT, &told).unwrap();
    let sent = lone.poll();
    assert_eq!(sent[0].command, command::DATA_REQUEST);
    assert_eq!(sent[0].types(), [13, 11, 22]);
    assert_eq!(sent[0].tlv(tlv::TLV_REQUEST).unwrap(), [12]);
    let data = [told[0], told[1], (tlv::NETWORK_DATA, &PREFIX)];
    lone.hear(PARENT, command::DATA_RESPONSE, &data).unwrap();
    assert_eq!(lone.child.border_router(), Some(0x7400));
    let addresses: Vec<_> = lone.child.addresses().collect();
    assert_eq!(addresses.len(), 3);
    assert!(addresses[2].octets().starts_with(&PREFIX[4..12]));
    let sent = lone.poll();
    assert_eq!(sent[0].command, command::CHILD_UPDATE_REQUEST);
    let registered = sent[0].tlv(tlv::ADDRESS_REGISTRATION).unwrap();
    assert_eq!(
        (registered.len(), registered[0], registered[9]),
        (18, 0x80, 0x81)
    );
    assert_eq!(registered[10..], addresses[2].octets()[8..]);
    // A new parent gets them again.
    lone.hear(
        PARENT,
        command::CHILD_UPDATE_RESPONSE,
        &[(tlv::STATUS, &[1])],
    )
    .unwrap();
    assert_eq!(lone.child.addresses().count(), 2, "all but the RLOC last");
    lone.poll();
    lone.offer(OTHER, 0x4400, 80, 0).unwrap();
    lone.poll();
    let given = [
        (tlv::SOURCE_ADDRESS, &[0x44, 0][..]),
        (tlv::LEADER_DATA, &leader),
        (tlv::ADDRESS16, &[0x44, 1]),
        (tlv::NETWORK_DATA, &PREFIX),
    ];
    lone.hear(OTHER, command::CHILD_ID_RESPONSE, &given)
        .unwrap();
    let sent = lone.poll();
    let registered = sent[0].tlv(tlv::ADDRESS_REGISTRATION).unwrap();
    assert_eq!(registered.len(), 18);
    assert_eq!(
        lone.child.addresses().nth(2),
        Some(addresses[2]),
        "the same address"
    );
    // Damaged network data changes nothing.
    let cut = [given[0], given[1], (tlv::NETWORK_DATA, &PREFIX[..20])];
    lone.poll();
    assert_eq!(
        lone.hear(OTHER, command::DATA_RESPONSE, &cut),
        Err(MleDrop::Incomplete)
    );
    assert_eq!(lone.child.addresses().count(), 3);
}

/// The leader of another partition.
fn other_leader() -> [u8; LEADER.len()] {
    let mut leader = LEADER;
    leader[0] ^= 1;
    leader
}

/// What a parent advertises whose partition has this leader.
fn of_parent(leader: &[u8]) -> [(u8, &[u8]); 2] {
    [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0]),
        (tlv::LEADER_DATA, leader),
    ]
}

#[test]
fn another_partition_makes_an_update_and_a_parent_that_moved_is_asked_anew() {
    let mut lone = Lone::attached();
    let leader = other_leader();
    lone.hear(PARENT, command::ADVERTISEMENT, &of_parent(&leader))
        .unwrap();
    let sent = lone.poll();
    assert_eq!(sent[0].tlv(tlv::LEADER_DATA).unwrap(), leader);
    let moved = [
        (tlv::SOURCE_ADDRESS, &[0x44, 0][..]),
        (tlv::LEADER_DATA, &leader),
    ];
    lone.hear(PARENT, command::ADVERTISEMENT, &moved).unwrap();
    assert_eq!(lone.child.state(), ChildState::Searching);
}

/// Another leader counts its versions by itself: data of the same number are other data.
#[test]
fn another_partition_is_asked_for_its_network_data() {
    let mut lone = Lone::attached();
    let data = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::NETWORK_DATA, &PREFIX),
    ];
    lone.hear(PARENT, command::DATA_RESPONSE, &data).unwrap();
    lone.poll();
    let leader = other_leader();
    lone.hear(PARENT, command::ADVERTISEMENT, &of_parent(&leader))
        .unwrap();
    let sent = lone.poll();
    let asks = sent.iter().any(|it| it.command == command::DATA_REQUEST);
    assert!(asks, "{} messages", sent.len());
}

/// A context without the flag for it only decompresses: its prefix leaves the network.
#[test]
fn an_address_is_registered_whole_where_its_context_may_not_compress() {
    let mut lone = Lone::attached();
    let mut leader = LEADER;
    leader[5] += 1;
    let mut prefix = PREFIX;
    prefix[14] = 0x01;
    let data = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &leader),
        (tlv::NETWORK_DATA, &prefix),
    ];
    lone.hear(PARENT, command::DATA_RESPONSE, &data).unwrap();
    let formed = lone.child.addresses().nth(2).unwrap();
    let sent = lone.poll();
    let registered = sent[0].tlv(tlv::ADDRESS_REGISTRATION).unwrap();
    assert_eq!(registered[9..], [&[0][..], &formed.octets()].concat());
}

#[test]
fn a_parent_that_gives_no_network_data_is_asked_once_for_each_version() {
    let mut lone = Lone::attached();
    let mut leader = LEADER;
    for version in 1..=3 {
        leader[5] += 1;
        let told: [(u8, &[u8]); 2] = [
            (tlv::SOURCE_ADDRESS, &[0xa8, 0]),
            (tlv::LEADER_DATA, &leader),
        ];
        lone.hear(PARENT, command::ADVERTISEMENT, &told).unwrap();
        let sent = lone.poll();
        assert_eq!(sent[0].command, command::DATA_REQUEST, "{version}");
        lone.hear(PARENT, command::DATA_RESPONSE, &told).unwrap();
        assert!(lone.run(Duration::from_secs(5)).is_empty(), "{version}");
    }
}

/// Network data with one prefix for each of these flags of its border router.
fn prefixes(flags: &[u16]) -> Vec<u8> {
    let one = |(n, flags): (usize, &u16)| {
        let mut prefix = PREFIX;
        prefix[4..6].copy_from_slice(&[0xfd, n as u8]);
        prefix[20..22].copy_from_slice(&flags.to_be_bytes());
        prefix
    };
    flags.iter().enumerate().flat_map(one).collect()
}

/// The second bytes of the prefixes that a child forms addresses of.
fn formed(flags: &[u16]) -> Vec<u8> {
    let mut lone = Lone::attached();
    let data = prefixes(flags);
    let told = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::NETWORK_DATA, &data),
    ];
    lone.hear(PARENT, command::DATA_RESPONSE, &told).unwrap();
    let addresses = lone.child.addresses().skip(2);
    addresses.map(|address| address.octets()[1]).collect()
}

#[test]
fn preferred_prefixes_come_first_and_a_domain_gives_no_address() {
    let (preferred, other, domain) = (0x3300, 0x1300, 0x3340);
    assert_eq!(formed(&[other, other, preferred, preferred]), [2, 3]);
    assert_eq!(formed(&[other, preferred, other]), [1, 0]);
    assert_eq!(formed(&[domain, other]), [1]);
    assert_eq!(formed(&[domain, 0x2300]), []);
}
