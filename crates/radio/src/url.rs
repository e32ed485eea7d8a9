//! Where a radio is: the URL that OpenThread's daemon takes.

use std::{fmt, path::PathBuf, str::FromStr};

/// Where a radio is.
///
/// ```text
/// spinel+hdlc+uart:///dev/ttyACM0?uart-baudrate=460800
/// spinel+hdlc+forkpty:///usr/bin/ot-rcp?forkpty-arg=1
/// wpan:wpan0
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RadioUrl {
    /// A radio co-processor on a serial line.
    Uart(Uart),
    /// A radio co-processor that is a program behind a pseudo-terminal.
    ForkPty {
        /// The program; without a slash it is looked for in `PATH`.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// An interface of Linux's own IEEE 802.15.4.
    Wpan {
        /// Its name, of 1 to 15 bytes.
        interface: String,
    },
}

/// A serial line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uart {
    /// The device.
    pub path: PathBuf,
    /// Its speed, bit/s. A device on USB has none, and ignores it.
    pub baud: u32,
    /// The parity bit of each byte.
    pub parity: Parity,
    /// Whether two bits end each byte, and not one.
    pub has_two_stop_bits: bool,
    /// Whether both ends hold each other up by RTS and CTS.
    pub has_flow_control: bool,
}

/// The parity bit of each byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parity {
    /// There is none.
    #[default]
    None,
    /// The number of ones is even.
    Even,
    /// The number of ones is odd.
    Odd,
}

/// The mistake in a radio's URL, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadUrl(String);

impl fmt::Display for BadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUrl {}

impl FromStr for RadioUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        if text.contains('\0') {
            return Err(BadUrl("a radio's URL has no NUL in it".to_owned()));
        }
        let unknown = || {
            BadUrl(format!(
                "a radio is at {UART}:///dev/ttyACM0, {FORKPTY}:///usr/bin/ot-rcp?forkpty-arg=1 or wpan:wpan0, not at {}",
                Shown(text)
            ))
        };
        let (scheme, place) = text.split_once(':').ok_or_else(unknown)?;
        if scheme == "wpan" {
            return wpan(place);
        }
        if !matches!(scheme, UART | FORKPTY) {
            return Err(match scheme.starts_with("spinel+") {
                true => BadUrl(format!(
                    "{} is no line to a radio that is known here: it is {UART} or {FORKPTY}",
                    Shown(scheme)
                )),
                false => unknown(),
            });
        }
        let place = place.strip_prefix("//").ok_or_else(unknown)?;
        let (path, parameters) = match place.split_once('?') {
            Some((path, parameters)) => (path, parameters.split('&').collect()),
            None => (place, Vec::new()),
        };
        if path.is_empty() {
            return Err(BadUrl(format!("{scheme}:// lacks a path behind it")));
        }
        match scheme {
            UART => uart(path, &parameters),
            _ => forkpty(path, &parameters),
        }
    }
}

fn wpan(name: &str) -> Result<RadioUrl, BadUrl> {
    let is_name = (1..=INTERFACE_LEN_MAX).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.contains(|char: char| char == '/' || char == ':' || char.is_whitespace());
    let interface = name.to_owned();
    is_name.then_some(RadioUrl::Wpan { interface }).ok_or_else(|| {
        BadUrl(format!(
            "{} is no name of a network interface: it is wpan:wpan0 or the like, as `iwpan dev` shows",
            Shown(name)
        ))
    })
}

fn forkpty(path: &str, parameters: &[&str]) -> Result<RadioUrl, BadUrl> {
    let mut arguments = Vec::new();
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "forkpty-arg" => arguments.push(value.to_owned()),
            "bus-latency" => {}
            name => return Err(no_such(FORKPTY, name, "forkpty-arg")),
        }
    }
    Ok(RadioUrl::ForkPty {
        program: path.into(),
        arguments,
    })
}

fn uart(path: &str, parameters: &[&str]) -> Result<RadioUrl, BadUrl> {
    let mut uart = Uart {
        path: path.into(),
        baud: BAUD,
        parity: Parity::None,
        has_two_stop_bits: false,
        has_flow_control: false,
    };
    for parameter in parameters {
        let (name, value) = match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*parameter, None),
        };
        match name {
            "uart-baudrate" => {
                let baud = value.and_then(|baud| baud.parse().ok());
                let baud = baud.filter(|baud| (BAUD_MIN..=BAUD_MAX).contains(baud));
                uart.baud = baud.ok_or_else(|| {
                    let bauds = format!("{BAUD_MIN} to {BAUD_MAX} bit/s");
                    bad(name, &bauds)
                })?;
            }
            "uart-parity" => {
                uart.parity = match value {
                    Some("even") => Parity::Even,
                    Some("odd") => Parity::Odd,
                    _ => return Err(bad(name, "even or odd")),
                }
            }
            "uart-stop" => {
                uart.has_two_stop_bits = match value {
                    Some("1") => false,
                    Some("2") => true,
                    _ => return Err(bad(name, "1 or 2")),
                }
            }
            "uart-flow-control" => uart.has_flow_control = true,
            // A line that a reset has closed is opened again anyway; its delay is measured; and
            // RTS and DTR stay as the system sets them.
            "uart-reset" | "uart-init-deassert" | "bus-latency" => {}
            name => return Err(no_such(UART, name, KNOWN)),
        }
    }
    Ok(RadioUrl::Uart(uart))
}

fn bad(name: &str, values: &str) -> BadUrl {
    BadUrl(format!("{name} in a radio's URL is {values}"))
}

fn no_such(scheme: &str, name: &str, known: &str) -> BadUrl {
    BadUrl(format!(
        "{scheme} has no parameter {} here: it has {known}",
        Shown(name)
    ))
}

impl fmt::Display for RadioUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wpan { interface } => write!(f, "wpan:{interface}"),
            Self::ForkPty { program, arguments } => {
                write!(f, "{FORKPTY}://{}", program.display())?;
                for (n, argument) in arguments.iter().enumerate() {
                    let mark = if n == 0 { '?' } else { '&' };
                    write!(f, "{mark}forkpty-arg={argument}")?;
                }
                Ok(())
            }
            Self::Uart(uart) => {
                let (path, baud) = (uart.path.display(), uart.baud);
                write!(f, "{UART}://{path}?uart-baudrate={baud}")?;
                match uart.parity {
                    Parity::None => {}
                    Parity::Even => f.write_str("&uart-parity=even")?,
                    Parity::Odd => f.write_str("&uart-parity=odd")?,
                }
                if uart.has_two_stop_bits {
                    f.write_str("&uart-stop=2")?;
                }
                if uart.has_flow_control {
                    f.write_str("&uart-flow-control")?;
                }
                Ok(())
            }
        }
    }
}

/// What somebody wrote, on one line and of a length to be read.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars().filter(|char| !char.is_control());
        let start: String = chars.by_ref().take(SHOWN_MAX).collect();
        let more = if chars.next().is_some() { "…" } else { "" };
        match start.is_empty() {
            true => f.write_str("\"\""),
            false => write!(f, "{start}{more}"),
        }
    }
}

const UART: &str = "spinel+hdlc+uart";
const FORKPTY: &str = "spinel+hdlc+forkpty";

const KNOWN: &str = "uart-baudrate, uart-parity, uart-stop, uart-flow-control, uart-reset, uart-init-deassert and \
                     bus-latency";

/// The speed that OpenThread's daemon takes where none is named: the least at which frames of 127
/// bytes come through at the 250 kb/s of the air.
const BAUD: u32 = 460_800;
const BAUD_MIN: u32 = 1_200;
const BAUD_MAX: u32 = 12_000_000;

/// Without the NUL of Linux's IFNAMSIZ.
const INTERFACE_LEN_MAX: usize = 15;

const SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(path: &str) -> Uart {
        Uart {
            path: path.into(),
            baud: 460_800,
            parity: Parity::None,
            has_two_stop_bits: false,
            has_flow_control: false,
        }
    }

    #[test]
    fn urls_of_openthreads_daemon_are_read() {
        let program = |path: &str, arguments: &[&str]| RadioUrl::ForkPty {
            program: path.into(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
        };
        let uart = |uart| RadioUrl::Uart(uart);
        let all = "spinel+hdlc+uart:///dev/ttyUSB0?uart-baudrate=1000000&uart-parity=odd&uart-stop=2\
                   &uart-flow-control&uart-reset&uart-init-deassert&bus-latency=100";
        let cases = [
            (
                "spinel+hdlc+uart:///dev/ttyACM0?uart-baudrate=115200",
                uart(Uart {
                    baud: 115_200,
                    ..at("/dev/ttyACM0")
                }),
            ),
            ("spinel+hdlc+uart:///dev/ttyACM0", uart(at("/dev/ttyACM0"))),
            (
                all,
                uart(Uart {
                    baud: 1_000_000,
                    parity: Parity::Odd,
                    has_two_stop_bits: true,
                    has_flow_control: true,
                    ..at("/dev/ttyUSB0")
                }),
            ),
            (
                "spinel+hdlc+forkpty:///path/ot-rcp?forkpty-arg=1&forkpty-arg=-v=2",
                program("/path/ot-rcp", &["1", "-v=2"]),
            ),
            ("spinel+hdlc+forkpty://ot-rcp", program("ot-rcp", &[])),
            (
                "wpan:wpan0",
                RadioUrl::Wpan {
                    interface: "wpan0".into(),
                },
            ),
        ];
        for (text, url) in cases {
            assert_eq!(text.parse(), Ok(url.clone()), "{text}");
            assert_eq!(url.to_string().parse(), Ok(url), "{text}");
        }
    }

    #[test]
    fn a_mistake_is_named() {
        for (wrong, sentence) in [
            (
                "",
                "a radio is at spinel+hdlc+uart:///dev/ttyACM0, spinel+hdlc+forkpty:///usr/bin/ot-rcp?forkpty-arg=1 or wpan:wpan0, not at \"\"",
            ),
            (
                "/dev/ttyACM0",
                "a radio is at spinel+hdlc+uart:///dev/ttyACM0, spinel+hdlc+forkpty:///usr/bin/ot-rcp?forkpty-arg=1 or wpan:wpan0, not at /dev/ttyACM0",
            ),
            (
                "spinel+spi:///dev/spidev0.0",
                "spinel+spi is no line to a radio that is known here: it is spinel+hdlc+uart or spinel+hdlc+forkpty",
            ),
            (
                "spinel+hdlc+uart://",
                "spinel+hdlc+uart:// lacks a path behind it",
            ),
            (
                "spinel+hdlc+uart://?uart-baudrate=9600",
                "spinel+hdlc+uart:// lacks a path behind it",
            ),
            (
                "spinel+hdlc+uart:///dev/a?uart-baudrate=fast",
                "uart-baudrate in a radio's URL is 1200 to 12000000 bit/s",
            ),
            (
                "spinel+hdlc+uart:///dev/a?uart-baudrate",
                "uart-baudrate in a radio's URL is 1200 to 12000000 bit/s",
            ),
            (
                "spinel+hdlc+uart:///dev/a?uart-baudrate=0",
                "uart-baudrate in a radio's URL is 1200 to 12000000 bit/s",
            ),
            (
                "spinel+hdlc+uart:///dev/a?uart-parity=both",
                "uart-parity in a radio's URL is even or odd",
            ),
            (
                "spinel+hdlc+uart:///dev/a?uart-stop=3",
                "uart-stop in a radio's URL is 1 or 2",
            ),
            (
                "spinel+hdlc+forkpty:///ot-rcp?uart-stop=1",
                "spinel+hdlc+forkpty has no parameter uart-stop here: it has forkpty-arg",
            ),
            (
                "wpan:",
                "\"\" is no name of a network interface: it is wpan:wpan0 or the like, as `iwpan dev` shows",
            ),
            (
                "wpan:a-name-of-16-byte",
                "a-name-of-16-byte is no name of a network interface: it is wpan:wpan0 or the like, as `iwpan dev` shows",
            ),
        ] {
            let error = wrong.parse::<RadioUrl>().unwrap_err();
            assert_eq!(error.to_string(), sentence, "{wrong}");
        }
        let baud = "spinel+hdlc+uart:///dev/a?baud=9600".parse::<RadioUrl>();
        let sentence = baud.unwrap_err().to_string();
        assert!(
            sentence
                .starts_with("spinel+hdlc+uart has no parameter baud here: it has uart-baudrate, ")
        );
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_shown_as_it_is_read(
            scheme in "(spinel\\+hdlc\\+(uart|forkpty)://|wpan:|.{0,9})",
            rest in "(/[a-z0-9/]{0,9})?(\\?(uart-baudrate|uart-stop|forkpty-arg|uart-parity|.{0,5})=?.{0,6}(&.{0,9}){0,3})?",
        ) {
            let text = format!("{scheme}{rest}");
            match text.parse::<RadioUrl>() {
                Ok(url) => prop_assert_eq!(url.to_string().parse(), Ok(url)),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }

        #[test]
        fn every_url_is_read_as_it_is_shown(
            path in "/[^?\0]{1,20}",
            (baud, parity, has_two_stop_bits, has_flow_control) in
                (1_200_u32..12_000_000, 0..3, any::<bool>(), any::<bool>()),
            arguments in prop::collection::vec("[^&\0]{0,9}", 0..4),
        ) {
            let parity = [Parity::None, Parity::Even, Parity::Odd][parity as usize];
            let uart = Uart { path: path.clone().into(), baud, parity, has_two_stop_bits, has_flow_control };
            let program = path.into();
            for url in [RadioUrl::Uart(uart), RadioUrl::ForkPty { program, arguments }] {
                prop_assert_eq!(url.to_string().parse(), Ok(url));
            }
        }
    }
}
