//! What parts of the stack should take at most, and whether they do.

use super::Sizes;
use crate::budget::Budget;
use crate::over_text::against;

/// Whether TCP keeps to its limit, in a line.
pub(super) fn tcp_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let adds = against(
        "TCP adds",
        sizes.tcp_text_bytes,
        limit(budget, "tcp_text_bytes"),
    );
    format!("{adds}; of its code:\n")
}

/// Whether RPL keeps to its limits, in a line.
pub(super) fn rpl_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let adds = against(
        "RPL adds",
        sizes.rpl_text_bytes,
        limit(budget, "rpl_text_bytes"),
    );
    let ram = against(
        "its RAM is",
        sizes.rpl_ram_bytes,
        limit(budget, "rpl_ram_bytes"),
    );
    format!("{adds} (RPL-lite alone: {RPL_LITE_TEXT}), and {ram}; of its code:\n")
}

/// Whether Bluetooth LE keeps to its limits, in a line.
pub(super) fn ble_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let figures = [sizes.ble_text_bytes, sizes.ble_ram_bytes];
    let names = ["ble_text_bytes", "ble_ram_bytes"];
    verdict("Bluetooth LE adds", figures, names, budget)
}

/// Whether TCPlE keeps to its limits, in a line.
pub(super) fn tcple_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let figures = [sizes.tcple_text_bytes, sizes.tcple_ram_bytes];
    let names = ["tcple_text_bytes", "tcple_ram_bytes"];
    verdict("TCPlE adds", figures, names, budget)
}

/// Whether link security keeps to its limits, in a line.
pub(super) fn security_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let figures = [sizes.security_text_bytes, sizes.security_ram_bytes];
    let names = ["security_text_bytes", "security_ram_bytes"];
    verdict("Link security adds", figures, names, budget)
}

/// What sleep costs, in a line; nobody has set a limit to that.
pub(super) fn sleepy_verdict(sizes: &Sizes) -> String {
    let figures = [sizes.sleepy_text_bytes, sizes.sleepy_ram_bytes];
    let [text, ram] = figures.map(Option::unwrap_or_default);
    format!("Sleep, child and parent, adds {text} B, and its RAM is {ram} B; of its code:\n")
}

/// Whether a child of a Thread network keeps to its limits, in a line.
pub(super) fn thread_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let figures = [sizes.thread_text_bytes, sizes.thread_ram_bytes];
    let names = ["thread_text_bytes", "thread_ram_bytes"];
    verdict("A child of a Thread network adds", figures, names, budget)
}

/// Whether a mote with all parts at once keeps to its limits, in a line. Its call stack counts as
/// much as that of minimal nodes: nobody has run it, and its own is no shallower.
pub(super) fn full_verdict(sizes: &Sizes, budget: &Budget) -> String {
    let figures = [
        sizes.full_node_text_bytes,
        sizes.full_node_ram_bytes,
        sizes.stack_high_water_bytes,
    ];
    let [text, ram, stack] = figures.map(Option::unwrap_or_default);
    let text = against(
        "A mote with all parts takes",
        text,
        limit(budget, "full_node_text_bytes"),
    );
    let what = format!("its RAM with {stack} B of call stack, as minimal nodes have, is");
    let ram = against(&what, ram + stack, limit(budget, "full_node_ram_bytes"));
    format!("{text}, and {ram}\n")
}

/// What something adds to flash and RAM, and the limits of both, which have these names.
fn verdict(adds: &str, figures: [Option<u32>; 2], names: [&str; 2], budget: &Budget) -> String {
    let [text, ram] = figures.map(Option::unwrap_or_default);
    let [text_max, ram_max] = names.map(|name| limit(budget, name));
    let adds = against(adds, text, text_max);
    let ram = against("its RAM is", ram, ram_max);
    format!("{adds}, and {ram}; of its code:\n")
}

/// The limit of a figure; no budget lacks one that a line is about.
pub(super) fn limit(budget: &Budget, name: &str) -> u32 {
    budget.figure(name).unwrap_or_default()
}

/// What Contiki-NG's RPL-lite alone takes on the same processor, with `-Os`.
const RPL_LITE_TEXT: u32 = 10_414;
