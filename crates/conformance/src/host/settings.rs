//! Settings of a host: whose defaults, and what a script or a flag changes.
//!
//! Place: a profile, the text of `--so_flags` and sysctl knobs make the settings; the host makes
//! the engine's [`Config`] of them. Left out: options of a single socket.

use std::net::Ipv6Addr;

use motet::tcp::{Config, CongestionAlgorithm};

use super::freebsd::Knobs;

/// The system whose defaults and option layout a host has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// The stack as it is, in a host with room for a few segments.
    #[default]
    Motet,
    /// FreeBSD's option layout, times and buffers. Frozen: it is kept as it is, and nothing is
    /// added to it.
    FreeBsd,
    /// Linux's choices.
    Linux,
}

impl Profile {
    /// The profile of a name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "motet" => Some(Self::Motet),
            "freebsd" => Some(Self::FreeBsd),
            "linux" => Some(Self::Linux),
            _ => None,
        }
    }
}

/// The settings of a host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The system whose defaults are in force.
    pub profile: Profile,
    /// Applies only the settings of the profile, and none of its changes to segments and calls.
    pub unlent: bool,
    /// The host's address.
    pub local: Ipv6Addr,
    /// Bytes of the largest packet.
    pub mtu: u32,
    /// The MTU was set by a flag or a script, not by default.
    mtu_is_asked: bool,
    /// Bytes of a receive buffer before a connection rounds it up.
    pub recv_space: u32,
    /// Bytes of a send buffer.
    pub send_space: u32,
    /// Window scale offered in our SYNs; `None`: none, as the stack itself does.
    pub window_scale: Option<u8>,
    /// The window scale where the profile `freebsd` offers one.
    pub scale_max: u8,
    /// Ask for ECN in our own SYNs too, not only agree to it when the peer asks.
    pub ecn_active: bool,
    /// Bound on the time to connect, ms; 0: only the number of SYNs counts.
    pub connect_timeout_ms: u32,
    /// Keepalive of sockets that ask for it: idle s, interval s, probes.
    pub keepalive: (u16, u16, u8),
    /// Settings that the profile `freebsd` alone has.
    pub freebsd: Knobs,
    /// The file into which the library that packetdrill loads writes every packet, if any.
    pub log: Option<std::path::PathBuf>,
    /// The library that packetdrill loads prints nothing on standard error.
    pub quiet: bool,
    /// The engine's settings that sockets start from.
    pub config: Config,
}

impl Settings {
    /// The default settings of `profile`.
    pub fn of(profile: Profile) -> Self {
        let mut settings = Self {
            profile,
            unlent: false,
            local: LOCAL,
            mtu: 1500,
            mtu_is_asked: false,
            recv_space: 8 * 1220,
            send_space: 8 * 1220,
            window_scale: None,
            scale_max: 6,
            ecn_active: false,
            connect_timeout_ms: 0,
            keepalive: (7200, 75, 9),
            freebsd: Knobs::default(),
            log: None,
            quiet: false,
            config: Config {
                ecn: false,
                rmss: 1440,
                smss: 1440,
                ..Config::DEFAULT
            },
        };
        match profile {
            Profile::Motet => {}
            Profile::FreeBsd => settings.be_freebsd(),
            Profile::Linux => settings.be_linux(),
        }
        settings
    }

    /// The system whose segments and calls the host's are made to match.
    pub fn lender(&self) -> Profile {
        match self.unlent {
            true => Profile::Motet,
            false => self.profile,
        }
    }

    fn be_freebsd(&mut self) {
        self.recv_space = 65536;
        self.send_space = 32768;
        self.window_scale = Some(6);
        self.connect_timeout_ms = 75_000;
        self.keepalive = (7200, 75, 8);
        self.config = Config {
            initial_window: 10,
            rto_initial_ms: 1000,
            rto_min_ms: 230,
            rto_slop_ms: 200,
            rto_max_ms: 60_000,
            retransmissions_max: 12,
            syn_retransmissions_max: 12,
            ack_delay_ms: 40,
            quick_acks: 0,
            time_wait_ms: 60_000,
            time_wait_reuse: false,
            challenge_interval_ms: 0,
            ecn: true,
            rack: false,
            tail_loss_probe: false,
            ..self.config
        };
    }

    fn be_linux(&mut self) {
        self.mtu = 1520;
        self.recv_space = 65535;
        self.send_space = 65535;
        self.window_scale = Some(8);
        self.config = Config {
            initial_window: 10,
            rto_initial_ms: 1000,
            rto_min_ms: 200,
            rto_slop_ms: 0,
            rto_max_ms: u16::MAX,
            retransmissions_max: 15,
            syn_retransmissions_max: 6,
            // Quick ACKs: Linux delays none before a conversation has gone back and forth.
            ack_every: 1,
            ack_delay_ms: 40,
            time_wait_ms: 60_000,
            fin_wait_2_ms: 60_000,
            ecn: false,
            congestion_algorithm: CongestionAlgorithm::Cubic,
            rmss: 1460,
            smss: 1460,
            ..self.config
        };
    }

    /// The settings in `--so_flags`: `local=ADDR,mtu=,iw=,rcvbuf=,sndbuf=,delack_ms=,
    /// profile=freebsd|linux,log=PATH,quiet`.
    ///
    /// # Errors
    /// A sentence: the key is unknown, or its value makes no sense.
    pub fn from_flags(flags: &str) -> Result<Self, String> {
        let pairs: Vec<(&str, &str)> = flags
            .split(',')
            .map(str::trim)
            .filter(|flag| !flag.is_empty())
            .map(|flag| flag.split_once('=').unwrap_or((flag, "")))
            .collect();
        // The profile comes first, wherever it stands: the others change it.
        let mut settings = Self::of(Profile::Motet);
        for (_, name) in pairs.iter().filter(|(key, _)| *key == "profile") {
            let profile = Profile::of(name).ok_or(format!("unknown profile `{name}`"))?;
            settings = Self::of(profile);
        }
        for (key, value) in pairs {
            settings.set_flag(key, value)?;
        }
        Ok(settings)
    }

    fn set_flag(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |max: u32| {
            let parsed = value.parse::<u32>().ok().filter(|n| *n <= max);
            parsed.ok_or(format!("`{key}` takes a number up to {max}, not `{value}`"))
        };
        match key {
            "profile" => {}
            "local" => {
                self.local = value
                    .parse()
                    .map_err(|_| format!("`local` takes an IPv6 address, not `{value}`"))?;
            }
            "mtu" => self.set_mtu(number(65_535)?)?,
            "iw" => self.config.initial_window = number(255)? as u8,
            "rcvbuf" => self.recv_space = number(1 << 24)?,
            "sndbuf" => self.send_space = number(1 << 24)?,
            "delack_ms" => self.config.ack_delay_ms = number(500)? as u16,
            "log" if !value.is_empty() => self.log = Some(value.into()),
            "quiet" if value.is_empty() => self.quiet = true,
            _ => return Err(format!("unknown flag `{key}`")),
        }
        Ok(())
    }

    /// Sets the largest packet, and with it the MSS both ways.
    ///
    /// # Errors
    /// A sentence: the MTU is below IPv6's minimum.
    pub fn set_mtu(&mut self, mtu: u32) -> Result<(), String> {
        if mtu < 1280 {
            return Err(format!("an MTU of {mtu} is below IPv6's 1280"));
        }
        self.mtu = mtu;
        self.mtu_is_asked = true;
        let mss = (mtu - 60).min(65_535) as u16;
        self.config.rmss = mss;
        self.config.smss = mss;
        Ok(())
    }

    /// Suits the MTU to a script, unless a flag set one; `mtu`: the script's own.
    ///
    /// # Errors
    /// As [`Self::set_mtu`].
    pub fn suit(&mut self, mtu: Option<u32>, is_for_ipv4: bool) -> Result<(), String> {
        if let (Some(mtu), false) = (mtu, self.mtu_is_asked) {
            self.set_mtu(mtu)?;
        }
        if is_for_ipv4 {
            self.suit_ipv4();
        }
        Ok(())
    }

    /// Raises the MTU for a script that was written for IPv4, unless a flag or the script set an
    /// MTU. Such a script of FreeBSD's is played over IPv6, whose header is 20 bytes longer; 20
    /// bytes more keep its MSS.
    pub fn suit_ipv4(&mut self) {
        if self.profile == Profile::FreeBsd && !self.mtu_is_asked {
            let _fits = self.set_mtu(self.mtu + 20);
        }
    }

    /// Sets a sysctl by name.
    ///
    /// # Errors
    /// A sentence: it is unknown, or this stack cannot do that.
    pub fn set_knob(&mut self, name: &str, value: &str) -> Result<(), String> {
        let refuse = || Err(format!("`{name}={value}` cannot be expressed"));
        if self.set_freebsd_knob(name, value) || KNOBS_WITHOUT_EFFECT.contains(&name) {
            return Ok(());
        }
        if let Some((_, only)) = KNOBS_FIXED.iter().find(|(known, _)| *known == name) {
            return if only.contains(&value) {
                Ok(())
            } else {
                refuse()
            };
        }
        let Ok(number) = value.split_whitespace().last().unwrap_or("").parse::<u32>() else {
            return refuse();
        };
        if self.set_number(name, number) {
            Ok(())
        } else {
            refuse()
        }
    }

    /// Sets a sysctl that takes a number; `false`: the sysctl is unknown, or the stack does not
    /// support this value.
    fn set_number(&mut self, name: &str, number: u32) -> bool {
        let config = &mut self.config;
        match name {
            "net.inet.tcp.rfc1323" => {
                config.timestamps = number == 1 || number == 3;
                let scale = (number == 1 || number == 2) && self.profile == Profile::FreeBsd;
                self.window_scale = scale.then_some(self.scale_max);
            }
            "net.ipv4.tcp_timestamps" => config.timestamps = number != 0,
            "net.ipv4.tcp_window_scaling" => {
                let scale = number != 0 && self.profile == Profile::Linux;
                self.window_scale = scale.then_some(8);
            }
            "net.inet.tcp.sack.enable" | "net.ipv4.tcp_sack" => config.sack = number != 0,
            "net.ipv4.tcp_dsack" => config.dsack = number != 0,
            "net.inet.tcp.ecn.enable" | "net.ipv4.tcp_ecn" if number <= 2 => {
                config.ecn = number != 0;
                self.ecn_active = number == 1;
            }
            "net.inet.tcp.recvspace" => self.recv_space = number,
            "net.inet.tcp.sendspace" => self.send_space = number,
            "net.inet.tcp.keepinit" => self.connect_timeout_ms = number,
            "net.inet.tcp.keepidle" => self.keepalive.0 = (number / 1000) as u16,
            "net.inet.tcp.keepintvl" => self.keepalive.1 = (number / 1000) as u16,
            "net.inet.tcp.keepcnt" | "net.ipv4.tcp_keepalive_probes" => {
                self.keepalive.2 = number as u8;
            }
            "net.ipv4.tcp_keepalive_time" => self.keepalive.0 = number as u16,
            "net.ipv4.tcp_keepalive_intvl" => self.keepalive.1 = number as u16,
            "net.inet.tcp.rexmit_initial" => config.rto_initial_ms = number as u16,
            "net.inet.tcp.rexmit_slop" => config.rto_slop_ms = number as u16,
            "net.inet.tcp.rexmit_min" => {
                config.rto_min_ms = number as u16 + config.rto_slop_ms;
            }
            "net.inet.tcp.msl" => config.time_wait_ms = number * 2,
            "net.inet.tcp.delayed_ack" => config.ack_every = if number == 0 { 1 } else { 2 },
            "net.inet.tcp.delacktime" => config.ack_delay_ms = number as u16,
            "net.inet.tcp.rfc3042" => config.limited_transmit = number != 0,
            "net.inet.tcp.initcwnd_segments" if number <= 255 => {
                config.initial_window = number as u8;
            }
            "net.ipv4.tcp_syn_retries" | "net.ipv4.tcp_synack_retries" => {
                config.syn_retransmissions_max = number as u8;
            }
            "net.ipv4.tcp_retries2" => config.retransmissions_max = number as u8,
            "net.ipv4.tcp_invalid_ratelimit" => config.challenge_interval_ms = number as u16,
            "net.ipv4.tcp_recovery" if number <= 1 => config.rack = number == 1,
            "net.ipv4.tcp_early_retrans" if number == 0 || number >= 3 => {
                config.tail_loss_probe = number != 0;
            }
            "net.ipv4.tcp_fin_timeout" => config.fin_wait_2_ms = number * 1000,
            "net.ipv4.tcp_rmem" => self.recv_space = number.min(65_535),
            "net.ipv4.tcp_wmem" => self.send_space = number.min(65_535),
            _ => return false,
        }
        true
    }

    /// Sets a knob that only the profile `freebsd` has; returns whether there is such a knob and
    /// the value fits.
    fn set_freebsd_knob(&mut self, name: &str, value: &str) -> bool {
        let Some(number) = value.parse::<u32>().ok() else {
            return false;
        };
        if self.profile != Profile::FreeBsd {
            return false;
        }
        let flag = (number <= 1).then_some(number == 1);
        let knobs = &mut self.freebsd;
        match name {
            "net.inet.tcp.insecure_rst" => put(&mut knobs.insecure_rst, flag),
            "net.inet.tcp.insecure_syn" => put(&mut knobs.insecure_syn, flag),
            "net.inet.tcp.drop_synfin" => put(&mut knobs.drop_synfin, flag),
            "net.inet.tcp.icmp_may_rst" => put(&mut knobs.icmp_may_rst, flag),
            "net.inet.tcp.rexmit_drop_options" => put(&mut knobs.drop_options, flag),
            "net.inet.tcp.ecn.maxretries" => put(&mut knobs.ecn_retries, u8::try_from(number).ok()),
            "kern.ipc.maxsockbuf" => {
                // The least scale with which a window can announce the largest buffer.
                let fits = (0..14).find(|scale| 65_535_u64 << scale >= u64::from(number));
                self.scale_max = fits.unwrap_or(14);
                self.window_scale = self.window_scale.map(|_| self.scale_max);
                true
            }
            _ => false,
        }
    }

    /// Sets one of the stack's own settings by its name; yes-or-no ones take 0 or 1. Returns
    /// whether there is such a setting and the number fits it.
    pub fn set_by_name(&mut self, name: &str, value: u32) -> bool {
        let (byte, short) = (u8::try_from(value), u16::try_from(value));
        let flag = (value <= 1).then_some(value == 1);
        let config = &mut self.config;
        macro_rules! table {
            ($($kind:ident: $($field:ident)*;)*) => {
                match name {
                    $($(stringify!($field) => table!(@$kind config.$field),)*)*
                    "congestion_algorithm" => {
                        let known = CongestionAlgorithm::ALL.get(value as usize);
                        put(&mut config.congestion_algorithm, known.copied())
                    }
                    "recv_space" => put(&mut self.recv_space, Some(value)),
                    "send_space" => put(&mut self.send_space, Some(value)),
                    "ecn_active" => put(&mut self.ecn_active, flag),
                    "connect_timeout_ms" => put(&mut self.connect_timeout_ms, Some(value)),
                    _ => false,
                }
            };
            (@byte $place:expr) => { put(&mut $place, byte.ok()) };
            (@short $place:expr) => { put(&mut $place, short.ok()) };
            (@word $place:expr) => { put(&mut $place, Some(value)) };
            (@flag $place:expr) => { put(&mut $place, flag) };
        }
        table! {
            byte: initial_window slow_start_segments_max retransmissions_max syn_retransmissions_max ack_every quick_acks;
            short: rmss smss rto_initial_ms rto_min_ms rto_max_ms rto_slop_ms ack_delay_ms
                challenge_interval_ms accept_timeout_ms peer_ack_delay_ms;
            word: time_wait_ms fin_wait_2_ms user_timeout_ms;
            flag: nagle timestamps sack dsack limited_transmit rack tail_loss_probe prr undo ecn time_wait_reuse
                congestion_control header_prediction;
        }
    }
}

/// Puts a value in its place, if there is one; returns whether there was.
fn put<T>(place: &mut T, value: Option<T>) -> bool {
    let fits = value.is_some();
    if let Some(value) = value {
        *place = value;
    }
    fits
}

/// The host's address unless a flag sets another.
pub const LOCAL: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1);
/// The peer's address in process.
pub const REMOTE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 2);

/// Knobs for things that this host does not have or does not bound: setting them changes nothing.
const KNOBS_WITHOUT_EFFECT: [&str; 29] = [
    "net.inet.tcp.hostcache.enable",
    "net.inet.tcp.hostcache.prune",
    "net.inet.tcp.reass.maxqueuelen",
    "net.inet.tcp.reass.maxsegments",
    "net.inet.tcp.reass.new_limit",
    "net.inet.tcp.reass.queueguard",
    "net.inet.tcp.sack.maxholes",
    "net.inet.tcp.sack.globalmaxholes",
    "net.inet.tcp.syncache.rexmtlimit",
    "net.inet.tcp.syncache.rst_on_sock_fail",
    "net.inet.tcp.icmplim",
    "net.inet.icmp.icmplim",
    "net.inet.tcp.tso",
    "kern.ipc.maxsockbuf",
    "net.inet.tcp.hostcache.purgenow",
    "net.inet.tcp.hostcache.expire",
    "net.inet.tcp.recvbuf_auto",
    "net.inet.tcp.sendbuf_auto",
    "net.inet.tcp.log_debug",
    "net.inet.tcp.log_in_vain",
    "net.inet.tcp.fast_finwait2_recycle",
    "net.ipv4.tcp_metrics_save",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_notsent_lowat",
];

/// Knobs that accept only the value that describes this stack's fixed behaviour.
const KNOBS_FIXED: [(&str, &[&str]); 24] = [
    ("net.inet.tcp.blackhole", &["0"]),
    ("net.inet.tcp.insecure_rst", &["0"]),
    ("net.inet.tcp.insecure_syn", &["0"]),
    ("net.inet.tcp.insecure_ack", &["0"]),
    ("net.inet.tcp.icmp_may_rst", &["1"]),
    ("net.inet.tcp.drop_synfin", &["0"]),
    ("net.inet.tcp.rexmit_drop_options", &["0"]),
    ("net.inet.tcp.always_keepalive", &["0", "1"]),
    ("net.inet.tcp.syncookies", &["1"]),
    ("net.inet.tcp.path_mtu_discovery", &["1"]),
    ("net.inet.tcp.tolerate_missing_ts", &["0"]),
    ("net.inet.tcp.nolocaltimewait", &["0"]),
    ("net.inet.tcp.rfc3390", &["1"]),
    ("net.inet.tcp.do_prr", &["0", "1"]),
    ("net.inet.tcp.fastopen.server_enable", &["0"]),
    ("net.inet.tcp.fastopen.client_enable", &["0"]),
    ("net.inet.tcp.cc.algorithm", &["newreno"]),
    ("net.inet.tcp.functions_default", &["freebsd"]),
    ("net.inet.tcp.pmtud_blackhole_detection", &["0"]),
    ("net.ipv4.tcp_congestion_control", &["reno"]),
    ("net.ipv4.tcp_syncookies", &["1"]),
    ("net.ipv4.tcp_fastopen", &["0"]),
    ("net.ipv4.tcp_reordering", &["3"]),
    ("net.ipv4.tcp_slow_start_after_idle", &["1"]),
];
