//! What both tests of the library have in common: loading it, and addresses as libc has them.

use std::ffi::{CString, c_char};
use std::mem::{MaybeUninit, size_of};
use std::net::Ipv6Addr;
use std::path::PathBuf;

use libc::{sockaddr_in6, socklen_t};
use motet_packetdrill::interface::Interface;

/// The library that cargo built beside this test.
fn library() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.set_file_name("libmotet_packetdrill.so");
    path
}

/// The library's interface, with its own host.
pub(crate) fn load(flags: &str) -> Interface {
    let path = CString::new(library().to_str().unwrap()).unwrap();
    let flags = CString::new(flags).unwrap();
    let mut table = MaybeUninit::<Interface>::zeroed();
    // SAFETY: the library exports this function with this signature, and fills the table.
    unsafe {
        let mode = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE | libc::RTLD_DEEPBIND;
        let handle = libc::dlopen(path.as_ptr(), mode);
        assert!(!handle.is_null(), "cannot load {path:?}");
        let symbol = libc::dlsym(handle, c"packetdrill_interface_init".as_ptr());
        assert!(!symbol.is_null());
        let init: extern "C" fn(*const c_char, *mut Interface) = std::mem::transmute(symbol);
        init(flags.as_ptr(), table.as_mut_ptr());
        let words = table.as_ptr().cast::<[usize; 33]>().read();
        assert!(
            words.iter().all(|word| *word != 0),
            "an empty slot: {words:?}"
        );
        table.assume_init()
    }
}

pub(crate) const LEN: socklen_t = size_of::<sockaddr_in6>() as socklen_t;

pub(crate) fn address(ip: Ipv6Addr, port: u16) -> sockaddr_in6 {
    // SAFETY: all zeros is a valid address.
    let mut addr: sockaddr_in6 = unsafe { MaybeUninit::zeroed().assume_init() };
    addr.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    addr.sin6_port = port.to_be();
    addr.sin6_addr.s6_addr = ip.octets();
    addr
}
