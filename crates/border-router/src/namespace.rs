//! A private user, network and mount namespace, without root.
//!
//! Place in the data flow: the first call of a command that talks to the
//! kernel, before any thread exists. Everything the process does afterwards, and
//! every child it starts, lives inside; the interfaces made there vanish with
//! the last process in it, however that ends. A second process comes in by
//! [`join`].
//!
//! Left out: mapping more than one uid, which needs newuidmap(1) and entries in /etc/subuid.
//! Configure daemons inside to keep their privileges.
//!
//! Sources: unshare(2), setns(2), user_namespaces(7), namespaces(7).

use std::{
    env, fmt,
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use nix::{
    errno::Errno,
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
    unistd::{Gid, Uid},
};

use crate::netlink::Netlink;

/// The private namespace this process now lives in.
///
/// Holding one proves that [`crate::port::PacketPort::open`] will not touch the
/// machine's own network. Nothing is undone on drop: a process leaves a
/// namespace by ending.
#[derive(Debug)]
pub struct Namespace {
    with_user: bool,
}

impl Namespace {
    /// Whether a user namespace was needed. If so, this process is uid 0 inside
    /// and every other uid is missing there.
    pub fn has_user_namespace(&self) -> bool {
        self.with_user
    }
}

/// Moves this process into a private network with only `lo` in it, up.
///
/// Root keeps its user namespace where the kernel allows it, so that a command run inside may
/// still change uid. Every other user, and root in a container without `CAP_SYS_ADMIN`, becomes
/// uid 0 of a new user namespace.
///
/// # Errors
/// After any but [`NamespaceError::ThreadsExist`] the process may be half way in:
/// report the error and go on without a network of one's own, or exit.
pub fn enter() -> Result<Namespace, NamespaceError> {
    match fs::read_dir("/proc/self/task")
        .map_err(NamespaceError::NoProc)?
        .count()
    {
        1 => {}
        threads => return Err(NamespaceError::ThreadsExist { threads }),
    }
    let with_user = unshare_what_is_allowed().map_err(NamespaceError::from_errno)?;
    keep_mounts_private().map_err(NamespaceError::from_errno)?;
    // AppArmor may let a user namespace be made and then grant it nothing; this
    // is the first call that notices.
    bring_loopback_up().map_err(|error| NamespaceError::from_errno(errno_of(&error)))?;
    Ok(Namespace { with_user })
}

/// Moves this process into the namespaces of process `pid`, as far as they are not its own: user,
/// mount and network. Its working directory stays, where it is there too.
///
/// Like [`enter`] it needs a process without further threads.
///
/// # Errors
/// There is no such process; it is another user's; or this process has threads.
pub fn join(pid: u32) -> io::Result<()> {
    let folder = env::current_dir();
    let place = |process: &str, kind: &str| format!("/proc/{process}/ns/{kind}");
    let mut others = Vec::new();
    // All are opened before the first is entered: /proc may be another one behind that. The user
    // namespace comes first, for its owner may enter the others.
    for (kind, flag) in [
        ("user", CloneFlags::CLONE_NEWUSER),
        ("mnt", CloneFlags::CLONE_NEWNS),
        ("net", CloneFlags::CLONE_NEWNET),
    ] {
        let theirs = place(&pid.to_string(), kind);
        if fs::read_link(&theirs)? != fs::read_link(place("self", kind))? {
            others.push((File::open(theirs)?, flag));
        }
    }
    for (namespace, flag) in &others {
        setns(namespace, *flag)?;
    }
    if let Ok(folder) = folder {
        // A new mount namespace is entered at its root.
        let _ = env::set_current_dir(folder);
    }
    Ok(())
}

/// Shows `content` in the place of the file at `path` to all processes in the namespace.
///
/// # Errors
/// What the system says.
pub fn cover(_: &Namespace, path: &Path, content: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = env::temp_dir().join(format!("motet-{}-{name}", std::process::id()));
    // Not through a link that somebody else has laid there.
    let mut file = File::create_new(&source)?;
    file.write_all(content.as_bytes())?;
    let bound = mount(
        Some(&source),
        path,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    );
    // The mount keeps the file itself.
    let removed = fs::remove_file(&source);
    bound?;
    removed
}

/// Returns whether a user namespace was made.
fn unshare_what_is_allowed() -> Result<bool, Errno> {
    let network = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    let (uid, gid) = (Uid::effective(), Gid::effective());
    if uid.is_root() {
        match unshare(network) {
            Err(Errno::EPERM) => {}
            other => return other.map(|()| false),
        }
    }
    unshare(network | CloneFlags::CLONE_NEWUSER)?;
    // Without CAP_SETGID outside, a gid map is accepted only once setgroups(2)
    // is given up (user_namespaces(7)). The order matters.
    for (file, content) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
    ] {
        fs::write(file, content).map_err(|error| errno_of(&error))?;
    }
    Ok(true)
}

/// Keeps what a command mounts inside from showing up outside.
fn keep_mounts_private() -> Result<(), Errno> {
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    match mount(None::<&str>, "/", None::<&str>, flags, None::<&str>) {
        // In a chroot `/` is no mount point. Nothing of ours is mounted, so the
        // rest still works.
        Err(Errno::EINVAL) => Ok(()),
        other => other,
    }
}

fn bring_loopback_up() -> io::Result<()> {
    /// `lo` is the first interface of every network namespace.
    const LOOPBACK_INDEX: u32 = 1;
    Netlink::open()?.set_up(LOOPBACK_INDEX)
}

fn errno_of(error: &io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::UnknownErrno, Errno::from_raw)
}

/// Why there is no private network, and what would change that.
///
/// `Display` is one sentence for the user.
#[derive(Debug)]
pub enum NamespaceError {
    /// `enter` was called too late: threads share their process's namespaces.
    /// A mistake in the program, not on the machine.
    ThreadsExist {
        /// How many threads there were, the caller's included.
        threads: usize,
    },
    /// /proc is not mounted.
    NoProc(io::Error),
    /// The kernel refused.
    Refused {
        /// The likely cause, as far as this machine's settings show it.
        cause: Refusal,
        /// The kernel's error.
        errno: Errno,
    },
}

/// The reason that a process cannot have a network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Debian's and Arch's switch `kernel.unprivileged_userns_clone` is off.
    UsernsCloneOff,
    /// A limit `user.max_*_namespaces` is zero or used up.
    LimitReached,
    /// Ubuntu's AppArmor restriction on user namespaces.
    AppArmor,
    /// A seccomp filter, as a container runtime sets it.
    Seccomp,
    /// The kernel was built without one of the namespaces.
    NotInKernel,
    /// None of the reasons above.
    Unknown,
}

impl NamespaceError {
    fn from_errno(errno: Errno) -> Self {
        let cause = Settings::read().cause_of(errno);
        Self::Refused { cause, errno }
    }
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThreadsExist { threads } => write!(
                f,
                "a private network namespace must be entered before any thread starts, but {threads} are running"
            ),
            Self::NoProc(error) => write!(f, "cannot read /proc/self/task ({error}): mount /proc"),
            Self::Refused { cause, errno } => write!(
                f,
                "this system does not allow a private network namespace ({}): {}",
                errno.desc(),
                cause.remedy()
            ),
        }
    }
}

impl std::error::Error for NamespaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ThreadsExist { .. } => None,
            Self::NoProc(error) => Some(error),
            Self::Refused { errno, .. } => Some(errno),
        }
    }
}

impl Refusal {
    /// How to remove the cause: a clause without a full stop.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::UsernsCloneOff => {
                "run `sudo sysctl kernel.unprivileged_userns_clone=1`, or run as root"
            }
            Self::LimitReached => {
                "raise user.max_user_namespaces, user.max_net_namespaces and user.max_mnt_namespaces with sysctl"
            }
            Self::AppArmor => {
                "run `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
            }
            Self::Seccomp => {
                "start the container with --cap-add SYS_ADMIN or --security-opt seccomp=unconfined"
            }
            Self::NotInKernel => "boot a kernel with CONFIG_USER_NS and CONFIG_NET_NS",
            Self::Unknown => "run as root",
        }
    }
}

/// The settings of this machine that decide about namespaces; `None` where the
/// kernel has no such switch.
#[derive(Default)]
struct Settings {
    unprivileged_userns_clone: Option<u64>,
    apparmor_restrict_unprivileged_userns: Option<u64>,
    max_namespaces_min: Option<u64>,
    seccomp_mode: Option<u64>,
}

impl Settings {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            unprivileged_userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restrict_unprivileged_userns: number(
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            ),
            max_namespaces_min: ["user", "net", "mnt"]
                .iter()
                .filter_map(|kind| number(&format!("/proc/sys/user/max_{kind}_namespaces")))
                .min(),
            seccomp_mode: status
                .lines()
                .find_map(|line| line.strip_prefix("Seccomp:")?.trim().parse().ok()),
        }
    }

    /// The likeliest cause, the most specific setting first: a container usually
    /// has a seccomp filter whether or not that is what refused.
    fn cause_of(&self, errno: Errno) -> Refusal {
        /// `SECCOMP_MODE_FILTER` in `linux/seccomp.h`.
        const FILTER: u64 = 2;
        if matches!(errno, Errno::EINVAL | Errno::ENOSYS) {
            Refusal::NotInKernel
        } else if matches!(errno, Errno::ENOSPC | Errno::EUSERS)
            || self.max_namespaces_min == Some(0)
        {
            Refusal::LimitReached
        } else if self.unprivileged_userns_clone == Some(0) {
            Refusal::UsernsCloneOff
        } else if self
            .apparmor_restrict_unprivileged_userns
            .is_some_and(|value| value != 0)
        {
            Refusal::AppArmor
        } else if self.seccomp_mode == Some(FILTER) {
            Refusal::Seccomp
        } else {
            Refusal::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_setting_explains_a_refusal() {
        let open = Settings::default;
        let cases = [
            ("nothing known", open(), Errno::EPERM, Refusal::Unknown),
            (
                "Debian's switch",
                Settings {
                    unprivileged_userns_clone: Some(0),
                    seccomp_mode: Some(2),
                    ..open()
                },
                Errno::EPERM,
                Refusal::UsernsCloneOff,
            ),
            (
                "Debian's switch is on",
                Settings {
                    unprivileged_userns_clone: Some(1),
                    ..open()
                },
                Errno::EPERM,
                Refusal::Unknown,
            ),
            (
                "Ubuntu's AppArmor",
                Settings {
                    apparmor_restrict_unprivileged_userns: Some(1),
                    ..open()
                },
                Errno::EACCES,
                Refusal::AppArmor,
            ),
            (
                "a container's filter",
                Settings {
                    seccomp_mode: Some(2),
                    max_namespaces_min: Some(9),
                    ..open()
                },
                Errno::EPERM,
                Refusal::Seccomp,
            ),
            (
                "a limit of zero beats the filter",
                Settings {
                    seccomp_mode: Some(2),
                    max_namespaces_min: Some(0),
                    ..open()
                },
                Errno::EPERM,
                Refusal::LimitReached,
            ),
            (
                "a limit used up",
                open(),
                Errno::ENOSPC,
                Refusal::LimitReached,
            ),
            (
                "nested too deep",
                open(),
                Errno::EUSERS,
                Refusal::LimitReached,
            ),
            (
                "no CONFIG_USER_NS",
                open(),
                Errno::EINVAL,
                Refusal::NotInKernel,
            ),
        ];
        for (name, settings, errno, expected) in cases {
            assert_eq!(settings.cause_of(errno), expected, "{name}");
        }
    }

    #[test]
    fn a_process_with_threads_is_refused_and_left_where_it_is() {
        let network = || fs::read_link("/proc/self/ns/net").expect("a network namespace");
        let before = network();
        // libtest itself runs this in a second thread.
        let error = enter().expect_err("threads exist");
        assert!(
            matches!(error, NamespaceError::ThreadsExist { threads } if threads > 1),
            "{error}"
        );
        assert_eq!(network(), before);
    }

    #[test]
    fn every_refusal_is_one_sentence_with_a_way_out() {
        for cause in [
            Refusal::UsernsCloneOff,
            Refusal::LimitReached,
            Refusal::AppArmor,
            Refusal::Seccomp,
            Refusal::NotInKernel,
            Refusal::Unknown,
        ] {
            let text = NamespaceError::Refused {
                cause,
                errno: Errno::EPERM,
            }
            .to_string();
            assert!(
                !text.contains('\n') && text.ends_with(cause.remedy()),
                "{text}"
            );
        }
    }
}
