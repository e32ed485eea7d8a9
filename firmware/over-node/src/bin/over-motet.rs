//! The client and the server with Motet's sockets.
#![no_std]
#![no_main]

use core::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use cortex_m_rt::entry;
use embassy_futures::join::join3;
use motet_embassy::{PacketResources, Stack, StackConfig, over};
use over_node::{Device, ask, echo, run, seed};

static RESOURCES: PacketResources<2, 2048> = PacketResources::new();

#[entry]
fn main() -> ! {
    let seeds = [seed(), seed()];
    let config = StackConfig::packets();
    match over(Device, &RESOURCES, &[OWN], seeds, config) {
        Ok((stack, mut runner)) => run(async move {
            join3(runner.run(), serve(stack), question(stack)).await;
        }),
        Err(_) => run(async {}),
    }
}

async fn serve(stack: Stack) {
    let Ok(listener) = stack.listen(7) else {
        return;
    };
    while let Ok(mut socket) = listener.accept().await {
        let _ended = echo(&mut socket).await;
    }
}

async fn question(stack: Stack) {
    loop {
        if let Ok(mut socket) = stack.connect(PEER).await {
            let _ended = ask(&mut socket).await;
        }
    }
}

const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const PEER: SocketAddr = SocketAddr::V6(SocketAddrV6::new(
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
    1883,
    0,
    0,
));
