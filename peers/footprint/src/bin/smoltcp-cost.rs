//! The image that `cargo xtask peers` measures, for a device; on any other machine, nothing.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod device {
    use core::panic::PanicInfo;

    /// Where the linker begins to look for what is needed; the image is never run.
    #[unsafe(no_mangle)]
    extern "C" fn _start() -> ! {
        motet_footprint::run()
    }

    #[panic_handler]
    fn panic(_: &PanicInfo<'_>) -> ! {
        loop {}
    }
}

#[cfg(not(target_os = "none"))]
fn main() {}
