//! What TCP costs. Built as it is, a node whose application makes every call that TCP has, so
//! that no feature can be left out; built without the feature `tcp`, the same node without
//! TCP. `cargo xtask sizes` takes the difference of the two images.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

#[cfg(feature = "tcp")]
use application::{Application, Memory};
use cortex_m_rt::entry;
#[cfg(feature = "tcp")]
use minimal_node::Sockets;
use minimal_node::radio::Radio;
use minimal_node::{Bytes, Layers, Tables};
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event};

#[entry]
fn main() -> ! {
    static mut TABLES: Tables = Tables::EMPTY;
    static mut BYTES: Bytes = Bytes::EMPTY;
    static mut LAYERS: Layers = Layers::EMPTY;
    #[cfg(feature = "tcp")]
    static mut SOCKETS: Sockets = Sockets::EMPTY;
    #[cfg(feature = "tcp")]
    static mut MEMORY: Memory = Memory::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    #[cfg(feature = "tcp")]
    let (node, mut application) = {
        let (node, buffers) = minimal_node::start(TABLES, SOCKETS, BYTES, LAYERS, eui64, seed, now);
        (node, Application::new(MEMORY, buffers, radio.noise()))
    };
    #[cfg(not(feature = "tcp"))]
    let node = minimal_node::start_without_tcp(TABLES, BYTES, LAYERS, eui64, seed, now);
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Radio(event), now);
        }
        #[cfg(feature = "tcp")]
        application.run(node, radio.noise(), now);
        while let Some((_, action)) = node.poll_action(now, OUT) {
            if let Action::Radio(action) = action {
                radio.perform(action, OUT);
            }
        }
        radio.wake_at(node.next_deadline());
    }
}

/// The application: what it does next, a word of the radio's noise says, so that the
/// optimiser cannot know.
#[cfg(feature = "tcp")]
mod application {
    use core::hint::black_box;
    use core::mem::MaybeUninit;
    use core::net::Ipv6Addr;

    use minimal_node::SETTINGS;
    use motet::node::Node;
    use motet::tcp::{
        Buffers, Config, Connection, Handle, ListenerHandle, Piece, SendBuffer, SliceQueue,
    };
    use motet::time::Instant;

    /// Where the list of slices to send lies.
    pub(super) struct Memory {
        pieces: [Piece<'static>; 4],
        queue: MaybeUninit<SliceQueue<'static>>,
    }

    impl Memory {
        pub(super) const EMPTY: Self = Self {
            pieces: [Piece::EMPTY; 4],
            queue: MaybeUninit::uninit(),
        };
    }

    pub(super) struct Application {
        buffers: Option<Buffers<'static>>,
        listener: Option<ListenerHandle>,
        connection: Option<Handle>,
    }

    impl Application {
        /// Sends from slices or from a ring, as `word` says.
        #[inline(never)]
        pub(super) fn new(
            memory: &'static mut Memory,
            mut buffers: Buffers<'static>,
            word: u32,
        ) -> Self {
            if word & 1 == 0
                && let SendBuffer::Ring(ring) = buffers.send
            {
                let queue = SliceQueue::new(&mut memory.pieces, ring.into_bytes());
                buffers.send = SendBuffer::Slices(memory.queue.write(queue));
            }
            Self {
                buffers: Some(buffers),
                listener: None,
                connection: None,
            }
        }

        // Out of line: what an application does is not the main loop's to keep in registers.
        #[inline(never)]
        pub(super) fn run(&mut self, node: &mut Node<'static>, word: u32, now: Instant) {
            let config: &'static Config = black_box(&SETTINGS);
            match self.connection {
                Some(connection) => self.use_connection(node, connection, config, word, now),
                None => self.open(node, config, word, now),
            }
        }

        #[inline(never)]
        fn open(
            &mut self,
            node: &mut Node<'static>,
            config: &'static Config,
            word: u32,
            now: Instant,
        ) {
            match (word, self.listener) {
                (0, None) => self.listener = node.tcp_mut().listen(None, PORT, config).ok(),
                (1, Some(listener)) => {
                    node.tcp_mut().unlisten(listener);
                    self.listener = None;
                }
                (_, listener) => {
                    let Some(buffers) = self.buffers.take() else {
                        return;
                    };
                    let ready = listener.filter(|listener| node.tcp().can_accept(*listener));
                    self.connection = match ready {
                        Some(listener) => node.tcp_mut().accept(listener, buffers, now).ok(),
                        None => node.connect((PEER, PORT), buffers, config, now).ok(),
                    };
                }
            }
        }

        #[inline(never)]
        fn use_connection(
            &mut self,
            node: &mut Node<'static>,
            connection: Handle,
            config: &'static Config,
            word: u32,
            now: Instant,
        ) {
            let mut bytes = [0; 64];
            let tcp = node.tcp_mut();
            match word {
                0 => drop(black_box(tcp.send(connection, &PAGE, now))),
                1 => drop(black_box(tcp.send_slice(connection, &PAGE, now))),
                2 => drop(black_box(tcp.recv(connection, &mut bytes))),
                3 => {
                    let len = tcp.peek(connection).map_or(0, <[u8]>::len);
                    tcp.consume(connection, len);
                }
                4 => tcp.shutdown(connection, now),
                5 => tcp.close(connection, now),
                6 => tcp.abort(connection),
                7 => tcp.set_config(connection, config, now),
                8 => drop(black_box(
                    tcp.connection(connection).map(Connection::telemetry),
                )),
                _ => {
                    self.buffers = tcp.remove(connection);
                    self.connection = self.connection.filter(|_| self.buffers.is_none());
                }
            }
        }
    }

    /// What is sent.
    static PAGE: [u8; 8] = [0x55; 8];

    const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const PORT: u16 = 7;
}
