//! `cargo xtask sizes --peers`: whole nodes, ours beside those of others.

use anyhow::Result;

use crate::budget::Budget;
use crate::firmware::{
    ECHO_NODE, RPL_COST, build_minimal_node, build_small_node, build_with_rpl, image_path,
};
use crate::footprint::smoltcp_node;
use crate::image::Image;
use crate::over_text::OverText;
use crate::workspace::Workspace;

/// Builds what can be built here with the same compiler, and prints it before what is quoted.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let budget = Budget::read(workspace)?;
    let flash = |name| Image::open(&image_path(workspace, name))?.flash_bytes();
    let panics = build_minimal_node(workspace)?.panics;
    let echo = flash(ECHO_NODE)?;
    let small_panics = build_small_node(workspace)?;
    let small = flash(ECHO_NODE)?;
    let router_panics = build_with_rpl(workspace)?;
    let over = OverText::measure(workspace)?;
    println!("whole nodes, flash\n\nbuilt here, by one compiler");
    let m0 = "Cortex-M0+";
    row(
        "motet",
        echo,
        m0,
        "802.15.4, 6LoWPAN, TCP echo; a radio's driver is a stub",
    );
    row(
        "motet, small TCP",
        small,
        m0,
        "the same with the smallest TCP that peers may connect to",
    );
    row(
        "motet, router",
        flash(RPL_COST)?,
        m0,
        "the first with RPL, without TCP",
    );
    row(
        "motet, over",
        over.motet,
        "Cortex-M4",
        "above a driver of packets: TCP and IPv6 alone",
    );
    row(
        "embassy-net, over",
        over.embassy_net,
        "Cortex-M4",
        "the same program with smoltcp",
    );
    row(
        "smoltcp",
        smoltcp_node(workspace)?,
        m0,
        "IPv6 and TCP alone: no 802.15.4, no 6LoWPAN",
    );
    println!("\nquoted");
    for peer in budget.peers() {
        row(
            &peer.name,
            peer.flash_bytes,
            &peer.processor,
            &peer.contains,
        );
    }
    Ok([panics, small_panics, router_panics]
        .iter()
        .all(Vec::is_empty))
}

fn row(name: &str, flash_bytes: u32, processor: &str, contains: &str) {
    println!("{name:<20}{flash_bytes:>8}  {processor:<12}{contains}");
}
