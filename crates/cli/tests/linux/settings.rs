//! The settings of Linux that decide about source routes, and its counters.

use motet_lab::net::plan;

use crate::forwarding::routed;
use crate::judge::{Routers, Row};
use crate::peer::NotPermitted;

/// A mote that no other check has.
const MOTE: u16 = 0x401;

pub(crate) fn checks(routers: &mut Routers) -> Result<Vec<Row>, NotPermitted> {
    let router = routers.at(plan::mesh_addr(MOTE))?;
    let packet = routed(&[MOTE, 2, 3].map(plan::mesh_addr));
    let mut as_set = 0;
    let settings = ["conf/mesh0/rpl_seg_enabled", "conf/all/rpl_seg_enabled"];
    for setting in settings {
        router.set(setting, "0");
        let is_dropped = router.give(&packet).is_empty();
        router.set(setting, "1");
        as_set += usize::from(is_dropped && router.give(&packet).len() == 1);
    }
    let before = router.counter("Ip6InHdrErrors");
    let mut hostile = packet;
    // A segment more than addresses.
    hostile[43] = 3;
    router.give(&hostile);
    let counted = router.counter("Ip6InHdrErrors") - before;
    let unit = "settings";
    Ok(vec![
        Row::all(
            "rpl_seg_enabled, of the interface and of all",
            unit,
            as_set,
            settings.len(),
        )
        .with("without either, source routes are dropped"),
        Row {
            check: "Ip6InHdrErrors: a segment more than addresses".to_owned(),
            value: counted as f64,
            unit: "packets",
            pass: counted == 1,
            note: "counted by Linux, as by Motet".to_owned(),
        },
    ])
}
