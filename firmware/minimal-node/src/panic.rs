//! No panic is reachable in this image: the handler calls a function that does not exist,
//! so the image links only when the optimiser has removed every path to it.

use core::panic::PanicInfo;

#[cfg(not(feature = "trap-panics"))]
unsafe extern "C" {
    fn a_panic_is_reachable() -> !;
}

#[cfg(not(feature = "trap-panics"))]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: never runs; an image that could run it does not link.
    unsafe { a_panic_is_reachable() }
}

#[cfg(feature = "trap-panics")]
#[panic_handler]
#[inline(never)]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
