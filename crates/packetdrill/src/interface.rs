//! The table of C functions that packetdrill fills its calls from.
//!
//! Thirty-three pointers, each set: packetdrill calls them without a check for null. Every
//! function gets `userdata` first, returns what libc's would, and lets no panic out.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_ulong, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    epoll_event, iovec, msghdr, nfds_t, off64_t, pollfd, size_t, sockaddr, socklen_t, ssize_t,
    timeval,
};
use motet_conformance::host::Settings;
use motet_conformance::run::kit::{Orders, orders};
use motet_conformance::script;

use crate::marshal::guard;
use crate::shared::Shared;
use crate::slots::device::{free, gettimeofday, netdev_receive, netdev_send, usleep};
use crate::slots::options::{fcntl, getsockopt, ioctl, option, setsockopt};
use crate::slots::sockets::{accept, bind, close, connect, listen, pipe, shutdown, socket};
use crate::slots::transfer::{
    read, readv, recv, recvfrom, recvmsg, send, sendmsg, sendto, splice, write, writev,
};
use crate::slots::wait::{epoll_create, epoll_ctl, epoll_wait, poll};
use crate::slots::{User, shared_of};

pub(crate) type Addr = *const sockaddr;
pub(crate) type AddrMut = *mut sockaddr;

/// `struct packetdrill_interface`: fields as packetdrill names them.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "they bear libc's names")]
pub struct Interface {
    pub userdata: User,
    pub free: extern "C" fn(User),
    pub socket: extern "C" fn(User, c_int, c_int, c_int) -> c_int,
    pub bind: extern "C" fn(User, c_int, Addr, socklen_t) -> c_int,
    pub listen: extern "C" fn(User, c_int, c_int) -> c_int,
    pub accept: extern "C" fn(User, c_int, AddrMut, *mut socklen_t) -> c_int,
    pub connect: extern "C" fn(User, c_int, Addr, socklen_t) -> c_int,
    pub read: extern "C" fn(User, c_int, *mut c_void, size_t) -> ssize_t,
    pub readv: extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t,
    pub recv: extern "C" fn(User, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    pub recvfrom:
        extern "C" fn(User, c_int, *mut c_void, size_t, c_int, AddrMut, *mut socklen_t) -> ssize_t,
    pub recvmsg: extern "C" fn(User, c_int, *mut msghdr, c_int) -> ssize_t,
    pub write: extern "C" fn(User, c_int, *const c_void, size_t) -> ssize_t,
    pub writev: extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t,
    pub send: extern "C" fn(User, c_int, *const c_void, size_t, c_int) -> ssize_t,
    pub sendto:
        extern "C" fn(User, c_int, *const c_void, size_t, c_int, Addr, socklen_t) -> ssize_t,
    pub sendmsg: extern "C" fn(User, c_int, *const msghdr, c_int) -> ssize_t,
    // Variadic in C; one more argument of a word's size is passed the same way on x86-64.
    pub fcntl: extern "C" fn(User, c_int, c_int, c_ulong) -> c_int,
    pub ioctl: extern "C" fn(User, c_int, c_ulong, *mut c_int) -> c_int,
    pub close: extern "C" fn(User, c_int) -> c_int,
    pub shutdown: extern "C" fn(User, c_int, c_int) -> c_int,
    pub getsockopt: extern "C" fn(User, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub setsockopt: extern "C" fn(User, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub poll: extern "C" fn(User, *mut pollfd, nfds_t, c_int) -> c_int,
    pub netdev_send: extern "C" fn(User, *const c_void, size_t) -> c_int,
    pub netdev_receive: extern "C" fn(User, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    pub usleep: extern "C" fn(User, c_uint) -> c_int,
    pub gettimeofday: extern "C" fn(User, *mut timeval, *mut c_void) -> c_int,
    pub epoll_create: extern "C" fn(User, c_int) -> c_int,
    pub epoll_ctl: extern "C" fn(User, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub epoll_wait: extern "C" fn(User, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub pipe: extern "C" fn(User, *mut c_int) -> c_int,
    pub splice:
        extern "C" fn(User, c_int, *mut off64_t, c_int, *mut off64_t, size_t, c_uint) -> c_int,
}

/// The function with which packetdrill starts. Flags that make no sense end the process: the
/// function cannot return an error, and a script must not be judged by other settings than it was
/// given.
///
/// # Safety
/// `flags` is null or a C string; `interface` points to a zeroed or filled table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut Interface,
) {
    let text = match flags.is_null() {
        true => String::new(),
        // SAFETY: a C string, as the caller promises.
        false => unsafe { CStr::from_ptr(flags) }
            .to_string_lossy()
            .into_owned(),
    };
    let settings = Settings::from_flags(&text).map_err(|why| format!("--so_flags: {why}"));
    let shared = settings.and_then(|mut settings| {
        let mut orders = orders_of_script(&mut settings)?;
        orders.obey(0, &mut settings)?;
        Shared::new(settings, orders)
    });
    let shared = shared.unwrap_or_else(|message| {
        eprintln!("libmotet_packetdrill: {message}");
        std::process::exit(1);
    });
    let shared: &'static Shared = Box::leak(Box::new(shared));
    let user = (&raw const *shared).cast_mut().cast::<c_void>();
    // SAFETY: the table is valid, as the caller promises.
    unsafe { interface.write(table(user)) };
    SHARED.store(user.cast(), Ordering::Release);
    offer_hook();
}

/// The settings that the commands of packetdrill's script make, and the script's MTU. The shell
/// to which packetdrill gives commands cannot reach this library; no other part of the script is
/// read.
fn orders_of_script(settings: &mut Settings) -> Result<Orders, String> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let path = arguments.rfind(|name| name.extension().is_some_and(|ending| ending == "pkt"));
    let text = path.and_then(|name| std::fs::read_to_string(name).ok());
    // packetdrill itself refuses a text that is no script.
    let Some(script) = text.and_then(|text| script::parse(&text).ok()) else {
        return Ok(Orders::default());
    };
    let mtu = script.option("mtu").and_then(|mtu| mtu.parse().ok());
    settings.suit(mtu, script.is_for_ipv4())?;
    orders(&script)
}

fn table(userdata: User) -> Interface {
    Interface {
        userdata,
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    }
}

/// The host of the process, for the hook, which is called without `userdata`.
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

type Hook = extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;

/// packetdrill's assertions call libc's `getsockopt` on the descriptor itself. A preloaded
/// library may offer a place for a function that answers for us.
fn offer_hook() {
    // SAFETY: a valid name; the place, if there is one, holds a function pointer of this type.
    unsafe {
        let place = libc::dlsym(libc::RTLD_DEFAULT, c"pd_getsockopt_hook".as_ptr());
        if !place.is_null() {
            place.cast::<Option<Hook>>().write(Some(hook));
        }
    }
}

/// -2: the descriptor is not one of ours.
extern "C" fn hook(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let shared = SHARED.load(Ordering::Acquire);
    if shared.is_null() {
        return -2;
    }
    let mut mine = false;
    let result = guard(|| {
        let shared = shared_of(shared.cast());
        mine = shared.look(|host| host.has(fd));
        match mine {
            true => {
                let user = (&raw const *shared).cast_mut().cast();
                i64::from(option(user, fd, (level, name), value, len))
            }
            false => 0,
        }
    });
    if mine { result as c_int } else { -2 }
}

// 33 pointers, as packetdrill lays them out.
const _: () = assert!(size_of::<Interface>() == 33 * size_of::<usize>());
