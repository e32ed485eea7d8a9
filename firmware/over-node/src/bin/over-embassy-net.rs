//! The client and the server with embassy-net's sockets.
#![no_std]
#![no_main]

use core::net::Ipv6Addr;

use cortex_m_rt::entry;
use embassy_futures::join::join3;
use embassy_net::tcp::TcpSocket;
use embassy_net::{Config, Ipv6Cidr, Stack, StackResources, StaticConfigV6};
use over_node::{Device, ask, echo, run, seed};
use static_cell::{ConstStaticCell, StaticCell};

static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
static BUFFERS: ConstStaticCell<[[u8; 2048]; 4]> = ConstStaticCell::new([[0; 2048]; 4]);

#[entry]
fn main() -> ! {
    let config = Config::ipv6_static(StaticConfigV6 {
        address: Ipv6Cidr::new(OWN, 64),
        gateway: Some(GATEWAY),
        dns_servers: Default::default(),
    });
    let resources = RESOURCES.init_with(StackResources::new);
    let (stack, mut runner) = embassy_net::new(Device, config, resources, seed());
    let [a, b, c, d] = BUFFERS.take();
    let server = TcpSocket::new(stack, a, b);
    let client = TcpSocket::new(stack, c, d);
    run(async move {
        join3(runner.run(), serve(server), question(stack, client)).await;
    })
}

async fn serve(mut socket: TcpSocket<'static>) {
    loop {
        if socket.accept(7).await.is_ok() {
            let _ended = echo(&mut socket).await;
            socket.close();
            let _sent = socket.flush().await;
        }
        socket.abort();
    }
}

async fn question(stack: Stack<'static>, mut socket: TcpSocket<'static>) {
    stack.wait_config_up().await;
    loop {
        if socket.connect((PEER, 1883)).await.is_ok() {
            let _ended = ask(&mut socket).await;
            socket.close();
            let _sent = socket.flush().await;
        }
        socket.abort();
    }
}

const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const GATEWAY: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xff);
const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
