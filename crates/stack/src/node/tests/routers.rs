//! A node with two meshes, each with a router of its own.

use super::zones::{FIRST, HUB, Links, PORT, buffers, node};
use super::*;
use crate::udp::Inbox;

/// The hub's routers, in the order of its links.
const FIRST_ROUTER: usize = 1;
const SECOND_ROUTER: usize = 2;
/// An address outside both meshes: either router leads to it.
const BEYOND: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 1);

fn prefix(router: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, router as u16, 0, 0, 0, 0)
}

/// The mesh link of node `n`: of the hub, which learns, or of a router, which advertises for
/// `lifetime`.
fn mesh(n: usize, lifetime: Option<Duration>) -> Link<'static> {
    let mut rng = Rng::from_seed([6, n as u64]);
    let prefix = prefix(n);
    let config = MeshConfig {
        solicits: lifetime.is_none(),
        advertised: lifetime.map(|lifetime| Advertised { prefix, lifetime }),
        ..MeshConfig::default()
    };
    radio(n, config, Duration::ZERO, 8, &mut rng)
}

fn a_router(n: usize, lifetime: Duration) -> Node<'static> {
    let mut node = node(std::vec![mesh(n, Some(lifetime))], &[(BEYOND, FIRST)]);
    node.set_inbox(Inbox::new(&[PORT], memory(0, 1_000)));
    node
}

fn advertised(links: &mut Links, router: usize) -> &mut Option<Advertised> {
    let link = links.nodes[router].link_mut(FIRST).unwrap();
    link.mesh_mut().unwrap().advertised_mut()
}

/// How many datagrams have come for `BEYOND` at each router.
fn heard(links: &mut Links) -> [usize; 2] {
    [FIRST_ROUTER, SECOND_ROUTER].map(|router| {
        let inbox = links.nodes[router].inbox_mut().unwrap();
        let mut out = [0; 100];
        core::iter::from_fn(|| inbox.recv(&mut out)).count()
    })
}

fn way(links: &Links) -> Option<InterfaceId> {
    let hop = links.nodes[HUB].ip().default_route();
    hop.map(|hop| hop.interface)
}

/// How a router ceases to be one.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It says nothing more, and its lease runs out.
    Expires,
    /// It says that it stops, and says so again when it is asked.
    Stops,
    /// It says that it stops, and then hears nothing more.
    Vanishes,
}

fn end(links: &mut Links, router: usize, end: End) {
    if let End::Expires = end {
        *advertised(links, router) = None;
        return;
    }
    if let Some(advertised) = advertised(links, router) {
        advertised.lifetime = Duration::ZERO;
    }
    advertise(links, router);
    if let End::Vanishes = end {
        links.run_for(Duration::from_millis(20));
        links.nodes[router] = a_router(9, Advertised::LIFETIME);
    }
}

#[test]
fn when_one_router_goes_the_other_one_serves_at_once() {
    let short = Duration::from_secs(120);
    for (how, first_goes) in [
        (End::Expires, false),
        (End::Stops, false),
        (End::Vanishes, false),
        (End::Expires, true),
    ] {
        let (goes, stays) = match first_goes {
            true => (FIRST_ROUTER, SECOND_ROUTER),
            false => (SECOND_ROUTER, FIRST_ROUTER),
        };
        let lifetime = |n| match how {
            End::Expires if n == goes => short,
            _ => Advertised::LIFETIME,
        };
        let hub = node(std::vec![mesh(0, None), mesh(0, None)], &[]);
        let [first, second] = [FIRST_ROUTER, SECOND_ROUTER].map(|n| a_router(n, lifetime(n)));
        let mut links = Links::of(std::vec![hub, first, second]);
        links.run_for(Duration::from_secs(60));
        assert!(way(&links).is_some());
        // The router that goes was heard last.
        advertise(&mut links, goes);
        links.run_for(Duration::from_millis(100));
        let over = |router: usize| Some(InterfaceId(router as u8 - 1));
        assert_eq!(way(&links), over(goes), "{how:?}");
        end(&mut links, goes, how);
        let mut seconds = 0;
        while way(&links) == over(goes) && seconds < 600 {
            links.run_for(Duration::from_secs(1));
            seconds += 1;
        }
        assert_eq!(way(&links), over(stays), "{how:?} after {seconds} s");
        let before = heard(&mut links);
        let sent = links.nodes[HUB].send_datagram((BEYOND, PORT), PORT, b"still there");
        assert_eq!((before, sent), ([0; 2], Ok(())), "{how:?}");
        links.run_for(Duration::from_secs(1));
        let mut expected = [0; 2];
        expected[stays - 1] = 1;
        assert_eq!(heard(&mut links), expected, "{how:?}");
    }
}

fn advertise(links: &mut Links, router: usize) {
    let now = links.now;
    let Node {
        links: meshes, ip, ..
    } = &mut links.nodes[router];
    let Some(Link::Mesh(mesh)) = meshes.first_mut() else {
        panic!("a mesh");
    };
    mesh.announce(ip, now);
}

/// A route that the application has taken away stays away: no router went.
#[test]
fn a_default_route_taken_away_is_not_given_back() {
    let hub = node(std::vec![mesh(0, None), mesh(0, None)], &[]);
    let routers = [FIRST_ROUTER, SECOND_ROUTER].map(|n| a_router(n, Advertised::LIFETIME));
    let [first, second] = routers;
    let mut links = Links::of(std::vec![hub, first, second]);
    links.run_for(Duration::from_secs(60));
    links.nodes[HUB].ip_mut().set_default_route(None);
    end(&mut links, SECOND_ROUTER, End::Stops);
    links.run_for(Duration::from_secs(60));
    assert_eq!(way(&links), None);
    let refused = links.nodes[HUB].connect((BEYOND, PORT), buffers(), &SETTINGS, links.now);
    assert!(refused.is_err());
}
