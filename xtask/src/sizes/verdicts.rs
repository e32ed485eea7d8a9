//! What parts of the stack should take at most, and whether they do.

use super::Sizes;
use crate::over_text::against;

/// Whether TCP keeps to its limit, in a line.
pub(super) fn tcp_verdict(sizes: &Sizes) -> String {
    let adds = against("TCP adds", sizes.tcp_text_bytes, TCP_TEXT_MAX);
    format!("{adds}; of its code:\n")
}

/// Whether RPL keeps to its limits, in a line.
pub(super) fn rpl_verdict(sizes: &Sizes) -> String {
    let adds = against("RPL adds", sizes.rpl_text_bytes, RPL_TEXT_MAX);
    let ram = against("its RAM is", sizes.rpl_ram_bytes, RPL_RAM_MAX);
    format!("{adds} (RPL-lite alone: {RPL_LITE_TEXT}), and {ram}; of its code:\n")
}

/// Whether Bluetooth LE keeps to its limits, in a line.
pub(super) fn ble_verdict(sizes: &Sizes) -> String {
    let figures = [sizes.ble_text_bytes, sizes.ble_ram_bytes];
    verdict("Bluetooth LE adds", figures, [BLE_TEXT_MAX, BLE_RAM_MAX])
}

/// Whether TCPlE keeps to its limits, in a line.
pub(super) fn tcple_verdict(sizes: &Sizes) -> String {
    let figures = [sizes.tcple_text_bytes, sizes.tcple_ram_bytes];
    verdict("TCPlE adds", figures, [TCPLE_TEXT_MAX, TCPLE_RAM_MAX])
}

/// Whether link security keeps to its limits, in a line.
pub(super) fn security_verdict(sizes: &Sizes) -> String {
    let figures = [sizes.security_text_bytes, sizes.security_ram_bytes];
    let limits = [SECURITY_TEXT_MAX, SECURITY_RAM_MAX];
    verdict("Link security adds", figures, limits)
}

/// What sleep costs, in a line; nobody has set a limit to that.
pub(super) fn sleepy_verdict(sizes: &Sizes) -> String {
    let figures = [sizes.sleepy_text_bytes, sizes.sleepy_ram_bytes];
    let [text, ram] = figures.map(Option::unwrap_or_default);
    format!("Sleep, child and parent, adds {text} B, and its RAM is {ram} B; of its code:\n")
}

/// Whether a child of a Thread network keeps to its limits, in a line.
pub(super) fn thread_verdict(sizes: &Sizes) -> String {
    let figures = [sizes.thread_text_bytes, sizes.thread_ram_bytes];
    let limits = [THREAD_TEXT_MAX, THREAD_RAM_MAX];
    verdict("A child of a Thread network adds", figures, limits)
}

/// Whether a mote with all parts at once keeps to its limits, in a line. Its call stack counts as
/// much as that of minimal nodes: nobody has run it, and its own is no shallower.
pub(super) fn full_verdict(sizes: &Sizes) -> String {
    let figures = [
        sizes.full_node_text_bytes,
        sizes.full_node_ram_bytes,
        sizes.stack_high_water_bytes,
    ];
    let [text, ram, stack] = figures.map(Option::unwrap_or_default);
    let text = against("A mote with all parts takes", text, FULL_TEXT_MAX);
    let what = format!("its RAM with {stack} B of call stack, as minimal nodes have, is");
    let ram = against(&what, ram + stack, FULL_RAM_MAX);
    format!("{text}, and {ram}\n")
}

/// What something adds to flash and RAM, and the limits of both.
fn verdict(adds: &str, figures: [Option<u32>; 2], [text_max, ram_max]: [u32; 2]) -> String {
    let [text, ram] = figures.map(Option::unwrap_or_default);
    let adds = against(adds, text, text_max);
    let ram = against("its RAM is", ram, ram_max);
    format!("{adds}, and {ram}; of its code:\n")
}

/// What TCP should add to a node, at most.
const TCP_TEXT_MAX: u32 = 20 * 1024;

/// What RPL, registration and routing headers should add to a mote that passes packets on: flash,
/// and RAM with eight neighbours that may become its parent.
const RPL_TEXT_MAX: u32 = 12 * 1024;
const RPL_RAM_MAX: u32 = 600;

/// What a link over Bluetooth LE should add to a mote with TCP: flash, and RAM with all its
/// buffers, as TCPlE's layer takes them above another host (Performant TCP over BLE, Table VI; the
/// RAM is less).
const BLE_TEXT_MAX: u32 = 15_700;
const BLE_RAM_MAX: u32 = 8_192;

/// What TCPlE should add to that: flash and RAM of its layer as published (Table VI of the same).
const TCPLE_TEXT_MAX: u32 = 15_692;
const TCPLE_RAM_MAX: u32 = 12_194;

/// What link security with AES in software should add to a mote: flash, and RAM with sixteen
/// neighbours.
const SECURITY_TEXT_MAX: u32 = 12 * 1024;
const SECURITY_RAM_MAX: u32 = 1_280;

/// What a child of a Thread network should add to a mote with a key that may sleep.
const THREAD_TEXT_MAX: u32 = 10_240;
const THREAD_RAM_MAX: u32 = 320;

/// What a mote with all parts at once should take: flash, and all the RAM of a chip that has 32
/// KiB, with its call stack.
const FULL_TEXT_MAX: u32 = 150_000;
const FULL_RAM_MAX: u32 = 32 * 1024;

/// What Contiki-NG's RPL-lite alone takes on the same processor, with `-Os`.
const RPL_LITE_TEXT: u32 = 10_414;
