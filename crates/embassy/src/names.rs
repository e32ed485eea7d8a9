//! Names of hosts: literals, a table, and a resolver that is asked over UDP.

use core::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use embassy_time::{Duration, Timer, with_timeout};
use embedded_nal_async::{AddrType, Dns};

use crate::error::Error;
use crate::resolver::{Answer, Question, question, read_answer};
use crate::stack::Stack;
use crate::udp::UdpSocket;

impl Stack {
    /// The IPv6 address of `host`: a literal (also in brackets), a name of
    /// [`StackConfig::names`](crate::StackConfig::names), or what
    /// [`StackConfig::resolver`](crate::StackConfig::resolver) answers.
    ///
    /// # Errors
    /// [`Error::NotIpv6`] (a literal), `Malformed`, `UnknownName`; of asking: `TimedOut`,
    /// `Resolver`, `NoSlot`, `NoRoute`.
    pub async fn resolve(self, host: &str) -> Result<Ipv6Addr, Error> {
        let literal = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if let Ok(address) = literal.unwrap_or(host).parse::<Ipv6Addr>() {
            return Ok(address);
        }
        match (literal, host.parse()) {
            (Some(_), _) => return Err(Error::Malformed),
            (None, Ok(IpAddr::V4(_))) => return Err(Error::NotIpv6),
            (None, _) => {}
        }
        let (known, resolver) = {
            let names = self.names();
            (names.known, names.resolver)
        };
        let bare = host.strip_suffix('.').unwrap_or(host);
        let mut known = known.iter();
        match known.find(|(name, _)| name.eq_ignore_ascii_case(bare)) {
            Some((_, address)) => Ok(*address),
            None => self.ask(host, resolver.ok_or(Error::UnknownName)?).await,
        }
    }

    /// Asks `resolver`, each time from another port and with another number (RFC 5452 §9).
    async fn ask(self, host: &str, resolver: Ipv6Addr) -> Result<Ipv6Addr, Error> {
        let resolver = SocketAddrV6::new(resolver, DNS_PORT, 0, 0);
        let mut failure = Error::TimedOut;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 && failure == Error::Resolver {
                // It answered at once, and may do so again.
                Timer::after(FAILURE_PAUSE).await;
            }
            let (id, timeout) = {
                let mut names = self.names();
                (names.rng.next_u32() as u16, names.timeout)
            };
            let question = question(id, host)?;
            let socket = self.udp(0)?;
            let asked = async {
                let to = SocketAddr::V6(resolver);
                socket.send_to(question.as_slice(), to).await?;
                answer(&socket, &question, resolver).await
            };
            failure = match with_timeout(timeout, asked).await {
                Ok(Err(Error::Resolver)) => Error::Resolver,
                Ok(result) => return result,
                Err(_) => Error::TimedOut,
            };
        }
        Err(failure)
    }
}

/// Waits for the answer of `resolver`, whatever else comes.
async fn answer(
    socket: &UdpSocket,
    question: &Question,
    resolver: SocketAddrV6,
) -> Result<Ipv6Addr, Error> {
    loop {
        let mut message = [0; MESSAGE_LEN_MAX];
        let (len, from) = socket.recv_from(&mut message).await;
        if (from.ip(), from.port()) != (resolver.ip(), resolver.port()) {
            continue;
        }
        match read_answer(message.get(..len).unwrap_or_default(), question) {
            Answer::Address(address) => return Ok(address),
            Answer::Unknown => return Err(Error::UnknownName),
            Answer::Failed => return Err(Error::Resolver),
            Answer::Foreign => {}
        }
    }
}

impl Dns for Stack {
    type Error = Error;

    async fn get_host_by_name(&self, host: &str, addr_type: AddrType) -> Result<IpAddr, Error> {
        match addr_type {
            AddrType::IPv4 => Err(Error::NotIpv6),
            AddrType::IPv6 | AddrType::Either => self.resolve(host).await.map(IpAddr::V6),
        }
    }

    async fn get_host_by_address(&self, _: IpAddr, _: &mut [u8]) -> Result<usize, Error> {
        Err(Error::Unsupported)
    }
}

const DNS_PORT: u16 = 53;
const ATTEMPTS: usize = 3;
/// Before a resolver that failed is asked again.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// The longest answer without extensions (RFC 1035 §4.2.1).
const MESSAGE_LEN_MAX: usize = 512;
