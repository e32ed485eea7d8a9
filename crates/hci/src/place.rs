//! Where a controller is.

use std::{
    fmt,
    fs::OpenOptions,
    io,
    net::{TcpStream, ToSocketAddrs as _},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use nix::{
    fcntl::OFlag,
    sys::termios::{self, BaudRate, ControlFlags, SetArg, cfmakeraw, cfsetspeed},
};

/// Where a controller is: `tcp:HOST:PORT`, or `serial:PATH` with or without `,BAUD`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControllerAddress {
    /// H4 over TCP: host and port.
    Tcp(String),
    /// H4 over a serial line with RTS and CTS.
    Serial {
        /// The path of the serial device.
        path: PathBuf,
        /// The speed of the line, bit/s.
        baud: u32,
    },
}

/// The mistake in the name of a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPlace(String);

impl fmt::Display for BadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPlace {}

impl FromStr for ControllerAddress {
    type Err = BadPlace;

    fn from_str(text: &str) -> Result<Self, BadPlace> {
        let bad = || {
            BadPlace(
                "a controller is at tcp:HOST:PORT, or at serial:PATH or serial:PATH,BAUD"
                    .to_owned(),
            )
        };
        match text.split_once(':') {
            Some(("tcp", place)) => {
                let (host, port) = place.rsplit_once(':').ok_or_else(bad)?;
                let port: u16 = port.parse().map_err(|_| bad())?;
                let is_place = !host.is_empty() && port > 0;
                let place = Self::Tcp(place.to_owned());
                is_place.then_some(place).ok_or_else(bad)
            }
            Some(("serial", place)) => {
                let (path, baud) = place.split_once(',').unwrap_or((place, BAUD));
                let baud: u32 = baud.parse().map_err(|_| bad())?;
                if speed(baud).is_none() {
                    let known: Vec<String> =
                        SPEEDS.iter().map(|(baud, _)| baud.to_string()).collect();
                    return Err(BadPlace(format!(
                        "a serial line's speed is one of {}",
                        known.join(", ")
                    )));
                }
                let path = PathBuf::from(path);
                let is_path = !path.as_os_str().is_empty();
                let place = Self::Serial { path, baud };
                is_path.then_some(place).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for ControllerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => write!(f, "tcp:{place}"),
            Self::Serial { path, baud } => write!(f, "serial:{},{baud}", path.display()),
        }
    }
}

impl ControllerAddress {
    /// A stream of bytes to the controller; reading and writing never wait.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(place) => {
                let mut last = io::Error::from(io::ErrorKind::NotFound);
                for addr in place.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&addr, CONNECT_TIMEOUT) {
                        Ok(stream) => {
                            // Small packets that are waited for at the other end.
                            stream.set_nodelay(true)?;
                            stream.set_nonblocking(true)?;
                            return Ok(stream.into());
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Self::Serial { path, baud } => {
                let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .custom_flags(flags.bits())
                    .open(path)?;
                let mut settings = termios::tcgetattr(&file)?;
                cfmakeraw(&mut settings);
                settings.control_flags |= ControlFlags::CRTSCTS | ControlFlags::CLOCAL;
                if let Some(speed) = speed(*baud) {
                    cfsetspeed(&mut settings, speed)?;
                }
                termios::tcsetattr(&file, SetArg::TCSANOW, &settings)?;
                // What was sent before is of no controller that was reset by us.
                termios::tcflush(&file, termios::FlushArg::TCIOFLUSH)?;
                Ok(file.into())
            }
        }
    }
}

fn speed(baud: u32) -> Option<BaudRate> {
    let mut speeds = SPEEDS.iter();
    speeds.find_map(|(known, speed)| (*known == baud).then_some(*speed))
}

/// The speed of Zephyr's and most chips' H4.
const BAUD: &str = "1000000";

const SPEEDS: &[(u32, BaudRate)] = &[
    (9_600, BaudRate::B9600),
    (19_200, BaudRate::B19200),
    (38_400, BaudRate::B38400),
    (57_600, BaudRate::B57600),
    (115_200, BaudRate::B115200),
    (230_400, BaudRate::B230400),
    #[cfg(target_os = "linux")]
    (460_800, BaudRate::B460800),
    #[cfg(target_os = "linux")]
    (921_600, BaudRate::B921600),
    #[cfg(target_os = "linux")]
    (1_000_000, BaudRate::B1000000),
    #[cfg(target_os = "linux")]
    (2_000_000, BaudRate::B2000000),
    #[cfg(target_os = "linux")]
    (3_000_000, BaudRate::B3000000),
];

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_shown() {
        let serial = |path: &str, baud| ControllerAddress::Serial {
            path: path.into(),
            baud,
        };
        let cases = [
            (
                "tcp:127.0.0.1:7002",
                ControllerAddress::Tcp("127.0.0.1:7002".into()),
            ),
            ("tcp:[::1]:1", ControllerAddress::Tcp("[::1]:1".into())),
            ("serial:/dev/ttyACM0", serial("/dev/ttyACM0", 1_000_000)),
            ("serial:/dev/tty,115200", serial("/dev/tty", 115_200)),
        ];
        for (text, place) in cases {
            assert_eq!(text.parse(), Ok(place.clone()), "{text}");
            assert_eq!(place.to_string().parse(), Ok(place), "{text}");
        }
        for wrong in [
            "",
            "tcp:",
            "tcp:host",
            "tcp::80",
            "tcp:host:0",
            "tcp:host:65536",
            "serial:",
            "serial:,9600",
            "serial:/dev/tty,123",
            "usb:0",
            "127.0.0.1:7002",
        ] {
            assert!(wrong.parse::<ControllerAddress>().is_err(), "{wrong}");
        }
    }
}
