//! A device of a Thread network: OpenThread attaches it and carries its packets, and MQTT and HTTP
//! run on Motet's sockets above. What the chips share; their own parts are in `bin`.
#![no_std]

use core::fmt::Write as _;
use core::net::{Ipv6Addr, SocketAddr};

use embassy_time::{Instant, Timer};
use motet_embassy::Stack;

mod network;
#[path = "../../shared/telemetry.rs"]
mod telemetry;

pub use network::{Refused, start};

/// Publishes how long the device has been up, for good. How often, a page says.
pub async fn report(stack: Stack) -> ! {
    let mut pause_s = 60;
    loop {
        if let Ok(seconds) = telemetry::number(&stack, PAGE).await {
            pause_s = seconds.clamp(1, 86_400);
        }
        let mut text = heapless::String::<20>::new();
        let _fits = write!(text, "{}", Instant::now().as_secs());
        if let Ok(addr) = BROKER.parse::<Ipv6Addr>() {
            let broker = SocketAddr::new(addr.into(), 1883);
            let names = ("motet", "motet/uptime");
            let _retried_later = telemetry::publish(&stack, broker, names, text.as_bytes()).await;
        }
        Timer::after_secs(pause_s).await;
    }
}

// `.cargo/config.toml` has values that compile; set your network's own before you flash a board.
/// The network's dataset, as `ot-ctl dataset active -x` prints it.
pub const DATASET: &str = env!("THREAD_DATASET");
/// The address of an MQTT broker at port 1883.
const BROKER: &str = env!("MQTT_BROKER");
/// A page with the seconds between two messages.
const PAGE: &str = env!("INTERVAL_URL");
