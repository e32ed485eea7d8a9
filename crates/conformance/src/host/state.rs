//! The state of a host's connections, for reading: `TCP_INFO`, and a table of states.

use motet::tcp::{Connection, Endpoints, State, Telemetry};
use motet::time::{Duration, Instant};

use super::{Errno, Fail, Host, Kind};

/// The fields of `TCP_INFO`, with Linux's names, numbers and units: `tcpi_rtt` in µs, windows of
/// the network in segments. Fields that this stack does not keep are absent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo(Vec<(&'static str, u64)>);

/// Segments and bytes of one flow, both ways.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) segments_in: u32,
    pub(super) segments_out: u32,
    pub(super) data_segments_in: u32,
    pub(super) data_segments_out: u32,
    pub(super) bytes_out: u64,
    pub(super) segments_again: u32,
    pub(super) bytes_again: u64,
    /// When the handshake was over, and since then when data came, data went and an
    /// acknowledgment came.
    pub(super) latest: Option<Latest>,
}

/// When data came, data left and an ACK came last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latest {
    pub(super) data_in: Instant,
    pub(super) data_out: Instant,
    pub(super) ack_in: Instant,
}

impl Traffic {
    /// A segment that has come.
    pub(super) fn came(&mut self, has_data: bool, has_ack: bool, now: Instant) {
        self.segments_in += 1;
        self.data_segments_in += u32::from(has_data);
        let Some(latest) = &mut self.latest else {
            // The first acknowledgment ends the handshake: all clocks start there, as Linux's.
            self.latest = has_ack.then_some(Latest {
                data_in: now,
                data_out: now,
                ack_in: now,
            });
            return;
        };
        if has_data {
            latest.data_in = now;
        }
        if has_ack {
            latest.ack_in = now;
        }
    }

    /// A segment that has been sent.
    pub(super) fn went(&mut self, data_len: usize, again: bool, now: Instant) {
        let bytes = data_len as u64;
        self.segments_out += 1;
        self.segments_again += u32::from(again);
        if data_len == 0 {
            return;
        }
        self.data_segments_out += 1;
        self.bytes_out += bytes;
        self.bytes_again += if again { bytes } else { 0 };
        if let Some(latest) = &mut self.latest {
            latest.data_out = now;
        }
    }
}

impl TcpInfo {
    /// The fields that `fields` names.
    pub fn new(fields: Vec<(&'static str, u64)>) -> Self {
        Self(fields)
    }

    /// The fields of a socket of which only the state is known.
    fn state(number: u8) -> Self {
        Self(vec![("tcpi_state", u64::from(number))])
    }

    /// A field, by its name in C; `None`: this stack does not keep it.
    pub fn get(&self, name: &str) -> Option<u64> {
        let field = self.0.iter().find(|(known, _)| *known == name);
        field.map(|(_, value)| *value)
    }
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
            Kind::Listening { .. } => return Ok(TcpInfo::state(10)),
            Kind::Fresh => return Ok(TcpInfo::state(7)),
            Kind::Epoll(_) | Kind::Pipe(_) => return Err(Errno::ENOPROTOOPT.into()),
        };
        let Some(connection) = self.tcp.connection(stream.handle) else {
            return Ok(TcpInfo::state(7));
        };
        let (seen, under_way) = (connection.telemetry(), connection.under_way());
        let mss = u32::from(seen.smss_bytes.max(1));
        let segments = |bytes: u32| u64::from(bytes.div_ceil(mss));
        let ends = connection.endpoints();
        let flow = (ends.remote, ends.remote_port, ends.local_port);
        let traffic = self.traffic.get(&flow).copied().unwrap_or_default();
        let us = |ms: u32| u64::from(ms) * 1000;
        let ago = |when: fn(Latest) -> Instant| {
            let since = traffic.latest.map(|latest| self.now.since(when(latest)));
            since.map_or(0, Duration::as_millis)
        };
        let unsent = u32::from(connection.unacknowledged()).saturating_sub(under_way.bytes);
        let rmss = u64::from(connection.config().rmss);
        Ok(TcpInfo(vec![
            ("tcpi_state", linux_number(connection.state()).into()),
            ("tcpi_ca_state", congestion_state(&seen)),
            ("tcpi_retransmits", seen.rto_doublings.into()),
            ("tcpi_backoff", seen.rto_doublings.into()),
            ("tcpi_options", self.options_of(connection).into()),
            ("tcpi_snd_wscale", self.edge.scales(flow).1.into()),
            ("tcpi_rcv_wscale", self.edge.scales(flow).0.into()),
            ("tcpi_rto", us(seen.rto_ms)),
            ("tcpi_ato", us(connection.config().ack_delay_ms.into())),
            ("tcpi_snd_mss", mss.into()),
            ("tcpi_rcv_mss", rmss),
            ("tcpi_unacked", segments(under_way.bytes)),
            ("tcpi_sacked", segments(under_way.sacked)),
            ("tcpi_lost", segments(under_way.lost)),
            ("tcpi_retrans", segments(under_way.resent)),
            ("tcpi_last_data_sent", ago(|latest| latest.data_out)),
            ("tcpi_last_data_recv", ago(|latest| latest.data_in)),
            ("tcpi_last_ack_recv", ago(|latest| latest.ack_in)),
            ("tcpi_pmtu", self.settings.mtu.into()),
            ("tcpi_rtt", us(seen.srtt_ms)),
            ("tcpi_rttvar", us(seen.rttvar_ms)),
            ("tcpi_snd_ssthresh", ssthresh(seen.ssthresh_bytes, mss)),
            ("tcpi_snd_cwnd", u64::from(u32::from(seen.cwnd_bytes) / mss)),
            ("tcpi_advmss", rmss),
            // Duplicates that a fast retransmission takes.
            ("tcpi_reordering", 3),
            ("tcpi_rcv_space", stream.recv_space.into()),
            ("tcpi_total_retrans", traffic.segments_again.into()),
            ("tcpi_segs_out", traffic.segments_out.into()),
            ("tcpi_segs_in", traffic.segments_in.into()),
            ("tcpi_notsent_bytes", unsent.into()),
            ("tcpi_min_rtt", us(seen.rtt_min_ms.into())),
            ("tcpi_data_segs_in", traffic.data_segments_in.into()),
            ("tcpi_data_segs_out", traffic.data_segments_out.into()),
            ("tcpi_bytes_sent", traffic.bytes_out),
            ("tcpi_bytes_retrans", traffic.bytes_again),
            ("tcpi_snd_wnd", seen.snd_wnd_bytes.into()),
        ]))
    }

    /// `SO_MEMINFO`: bytes in the receive buffer, its size, bytes that wait to be acknowledged,
    /// the send buffer's size, and zeros for all that this host does not have.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn memory_info(&self, fd: i32) -> Result<[u32; 9], Fail> {
        let file = self.files.get(&fd).ok_or(Errno::EBADF)?;
        let (options, space, held) = match &file.kind {
            Kind::Connected(stream) => {
                let connection = self.tcp.connection(stream.handle);
                let held = connection.map_or((0, 0), |c| (c.can_recv(), c.unacknowledged()));
                (&stream.options, stream.recv_space, held)
            }
            _ => (&file.options, file.options.recv_space, (0, 0)),
        };
        let (unread, unsent) = (u32::from(held.0), u32::from(held.1));
        Ok([
            unread,
            space,
            unsent,
            options.send_space,
            0,
            unsent,
            0,
            0,
            0,
        ])
    }

    /// The options that both sides agreed upon, as `TCPI_OPT_` bits; the edge adds window scaling.
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
        ..
    } = ends;
    format!("tcp6 [{local}]:{local_port} [{remote}]:{remote_port}")
}

/// Linux's number of what congestion control is doing: `TCP_CA_Open`, `TCP_CA_Recovery` or
/// `TCP_CA_Loss`.
const fn congestion_state(seen: &Telemetry) -> u64 {
    match (seen.is_recovering, seen.rto_doublings) {
        (false, _) => 0,
        (true, 0) => 3,
        (true, _) => 4,
    }
}

/// The slow-start threshold in segments of `mss` bytes; the largest value stands for a threshold
/// that no loss has set yet, and Linux shows it as its own largest one.
fn ssthresh(bytes: u16, mss: u32) -> u64 {
    match bytes {
        u16::MAX => 0x7fff_ffff,
        bytes => u64::from(u32::from(bytes) / mss),
    }
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
