//! Why there is no radio, as sentences that say what to do.

use std::{fmt, io, path::PathBuf, process::ExitStatus};

use motet_spinel as spinel;

use crate::why::Why;
#[cfg(target_os = "linux")]
use crate::wpan::Fault;

/// Why a radio cannot be used.
#[derive(Debug)]
pub enum Error {
    /// There is no such device.
    NoSuchDevice(PathBuf),
    /// This user may not open the device.
    NotPermitted {
        /// The device.
        path: PathBuf,
        /// The group that may; `None`: it has no name, or may not either.
        group: Option<String>,
    },
    /// Another program has the device.
    InUse(PathBuf),
    /// It is no serial line.
    NoLine(PathBuf),
    /// It has no such speed, or no such other setting.
    NoSuchSetting(PathBuf),
    /// It cannot be opened for another reason.
    Unreachable(PathBuf, io::Error),
    /// The program cannot be started.
    NoProgram(PathBuf, io::Error),
    /// The program ends again and again.
    Ends(PathBuf, Option<ExitStatus>),
    /// What answers is no Spinel.
    Babble(PathBuf),
    /// What answers is a bootloader.
    Bootloader(PathBuf),
    /// The radio says so.
    Radio(PathBuf, spinel::Error),
    /// The kernel's interface of this name cannot be used.
    #[cfg(target_os = "linux")]
    Interface(String, Fault),
    /// This kind of radio cannot be driven so.
    Unsupported(&'static str),
    /// Waiting for the line failed.
    Wait(io::Error),
    /// The caller gave up waiting.
    GivenUp,
}

impl Error {
    /// Whether another command line would mend it.
    pub const fn is_input(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Self::Interface(_, fault) = self {
            return fault.is_input();
        }
        matches!(
            self,
            Self::NoSuchDevice(_)
                | Self::NoLine(_)
                | Self::NoSuchSetting(_)
                | Self::NoProgram(..)
                | Self::Unsupported(_)
                | Self::Radio(_, spinel::Error::NoSuchChannel { .. })
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchDevice(path) => write!(
                f,
                "there is no {}: plug the radio in, or see under /dev/serial/by-id which name it has",
                path.display()
            ),
            Self::NotPermitted { path, group } => {
                let path = path.display();
                match group {
                    Some(group) => write!(
                        f,
                        "this user may not open {path}, and the group {group} may: sudo usermod -aG {group} $USER, then log in anew"
                    ),
                    None => write!(f, "this user may not open {path}: change its owner or mode"),
                }
            }
            Self::InUse(path) => write!(
                f,
                "{0} is in use by another program: end that one, which `fuser {0}` names",
                path.display()
            ),
            Self::NoLine(path) => write!(
                f,
                "{} is no serial line: name the radio's device",
                path.display()
            ),
            Self::NoSuchSetting(path) => write!(
                f,
                "{} does not take this baud rate, parity or number of stop bits: choose others",
                path.display()
            ),
            Self::Unreachable(path, why) => {
                write!(f, "{} cannot be opened: {}", path.display(), Why(why))
            }
            Self::NoProgram(path, why) => {
                write!(f, "{} cannot be started: {}", path.display(), Why(why))
            }
            Self::Ends(path, status) => {
                write!(f, "{} ends again and again", path.display())?;
                if let Some(status) = status {
                    write!(f, " ({status})")?;
                }
                f.write_str(": see whether its arguments are right")
            }
            Self::Babble(path) => write!(
                f,
                "what answers at {} is no Spinel: see whether its firmware is ot-rcp, and whether it speaks at this baud rate",
                path.display()
            ),
            Self::Bootloader(path) => write!(
                f,
                "a bootloader answers at {}: flash ot-rcp, or plug the radio in anew without its button held",
                path.display()
            ),
            Self::Radio(path, why) => write!(f, "{}: {why}", path.display()),
            #[cfg(target_os = "linux")]
            Self::Interface(name, fault) => fault.explain(name, f),
            Self::Unsupported(sentence) => f.write_str(sentence),
            Self::Wait(why) => write!(f, "waiting for the radio failed: {}", Why(why)),
            Self::GivenUp => f.write_str("the radio had not started yet"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable(_, why) | Self::NoProgram(_, why) | Self::Wait(why) => Some(why),
            Self::Radio(_, why) => Some(why),
            #[cfg(target_os = "linux")]
            Self::Interface(_, Fault::System(why)) => Some(why),
            _ => None,
        }
    }
}
