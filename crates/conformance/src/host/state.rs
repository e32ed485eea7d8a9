//! What a host tells of its connections: `TCP_INFO`, and a table of states.

use motet::tcp::{Connection, Endpoints, State};

use super::{Errno, Fail, Host, Kind};

/// What `TCP_INFO` tells, with Linux's numbers and units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// State, 1 to 11.
    pub state: u8,
    /// 0 open, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Bits of `TCPI_OPT_…`.
    pub options: u8,
    /// Times the RTO was doubled.
    pub backoff: u8,
    /// RTO, µs.
    pub rto: u32,
    /// MSS towards the peer, and from it.
    pub snd_mss: u32,
    /// MSS that we announced.
    pub rcv_mss: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// SRTT, µs.
    pub rtt: u32,
    /// RTTVAR, µs.
    pub rttvar: u32,
    /// ssthresh, segments; the greatest number before the first loss.
    pub snd_ssthresh: u32,
    /// cwnd, segments.
    pub snd_cwnd: u32,
}

impl TcpInfo {
    /// `TCPI_OPT_TIMESTAMPS`
    pub const TIMESTAMPS: u8 = 1;
    /// `TCPI_OPT_SACK`
    pub const SACK: u8 = 2;
    /// `TCPI_OPT_WSCALE`
    pub const WINDOW_SCALE: u8 = 4;
    /// `TCPI_OPT_ECN`
    pub const ECN: u8 = 8;
}

impl Host<'_> {
    /// `TCP_INFO` of `fd`.
    ///
    /// # Errors
    /// `EBADF`, `ENOPROTOOPT`.
    pub fn tcp_info(&self, fd: i32) -> Result<TcpInfo, Fail> {
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        let stream = match &file.kind {
            Kind::Connected(stream) => stream,
            Kind::Listening { .. } => {
                return Ok(TcpInfo {
                    state: 10,
                    ..TcpInfo::default()
                });
            }
            Kind::Fresh => {
                return Ok(TcpInfo {
                    state: 7,
                    ..TcpInfo::default()
                });
            }
            Kind::Epoll(_) | Kind::Pipe(_) => return Err(Errno::ENOPROTOOPT.into()),
        };
        let Some(connection) = self.tcp.connection(stream.handle) else {
            return Ok(TcpInfo {
                state: 7,
                ..TcpInfo::default()
            });
        };
        let seen = connection.telemetry();
        let mss = u32::from(seen.smss_bytes.max(1));
        let segments = |bytes: u16| u32::from(bytes).div_ceil(mss);
        Ok(TcpInfo {
            state: linux_number(connection.state()),
            ca_state: match (seen.is_recovering, seen.rto_doublings) {
                (false, _) => 0,
                (true, 0) => 3,
                (true, _) => 4,
            },
            options: self.options_of(connection),
            backoff: seen.rto_doublings,
            rto: seen.rto_ms * 1000,
            snd_mss: mss,
            rcv_mss: u32::from(connection.config().rmss),
            unacked: segments(seen.inflight_bytes),
            rtt: seen.srtt_ms * 1000,
            rttvar: seen.rttvar_ms * 1000,
            snd_ssthresh: match seen.ssthresh_bytes {
                u16::MAX => 0x7fff_ffff,
                bytes => u32::from(bytes) / mss,
            },
            snd_cwnd: u32::from(seen.cwnd_bytes) / mss,
        })
    }

    /// What both sides agreed upon, window scaling by the edge included.
    fn options_of(&self, connection: &Connection<'_>) -> u8 {
        let (agreed, ends) = (connection.agreed(), connection.endpoints());
        let flow = (ends.remote, ends.remote_port, ends.local_port);
        let bits = [
            (agreed.timestamps, TcpInfo::TIMESTAMPS),
            (agreed.sack, TcpInfo::SACK),
            (self.edge.is_scaled(flow), TcpInfo::WINDOW_SCALE),
            (agreed.ecn, TcpInfo::ECN),
        ];
        bits.iter()
            .filter(|(agreed, _)| *agreed)
            .fold(0, |options, (_, bit)| options | bit)
    }

    /// One line per connection, as FreeBSD's `sockstat -s` prints them; `name`: of the
    /// program that owns the descriptors.
    pub fn state_lines(&self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (fd, file) in &self.files {
            if matches!(file.kind, Kind::Listening { .. }) {
                lines.push(format!(
                    "root {name} 1 {fd} tcp6 *:{} *:* LISTEN",
                    file.port
                ));
            }
        }
        for ends in self.tcp.handshakes() {
            lines.push(format!("? ? ? ? {} SYN_RCVD", ends_text(&ends)));
        }
        for (fd, stream) in self.streams() {
            let Some(connection) = self.tcp.connection(stream.handle) else {
                continue;
            };
            let ends = ends_text(&connection.endpoints());
            let state = freebsd_name(connection.state());
            lines.push(match fd {
                Some(fd) => format!("root {name} 1 {fd} {ends} {state}"),
                None => format!("? ? ? ? {ends} {state}"),
            });
        }
        lines
    }
}

/// Both ends, as `sockstat` prints them.
fn ends_text(ends: &Endpoints) -> String {
    let Endpoints {
        local,
        remote,
        local_port,
        remote_port,
    } = ends;
    format!("tcp6 [{local}]:{local_port} [{remote}]:{remote_port}")
}

/// Linux's number of a state.
pub(crate) const fn linux_number(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

const fn freebsd_name(state: State) -> &'static str {
    match state {
        State::Closed => "CLOSED",
        State::Listen => "LISTEN",
        State::SynSent => "SYN_SENT",
        State::SynReceived => "SYN_RCVD",
        State::Established => "ESTABLISHED",
        State::CloseWait => "CLOSE_WAIT",
        State::FinWait1 => "FIN_WAIT_1",
        State::Closing => "CLOSING",
        State::LastAck => "LAST_ACK",
        State::FinWait2 => "FIN_WAIT_2",
        State::TimeWait => "TIME_WAIT",
    }
}
