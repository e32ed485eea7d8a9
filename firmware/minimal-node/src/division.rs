//! Dividing in 26 B of code, in place of 440 B.
//!
//! Armv6-M has no instruction for it. The compiler's own library divides by steps of different
//! sizes, for speed; here each bit of the quotient takes nine or ten cycles, of which a taken
//! branch is two, so that a division takes about 6 µs at 48 MHz. A node divides a few times for
//! each segment and frame. Names, arguments and results are those of the run-time ABI for Arm
//! (RTABI §4.3.1): the quotient in r0, the remainder in r1.

core::arch::global_asm!(
    r#"
    .syntax unified
    .thumb
    .section .text.division, "ax", %progbits
    .balign 2
    .global __aeabi_uidiv
    .global __aeabi_uidivmod
    .thumb_func
    __aeabi_uidiv:
    .thumb_func
    __aeabi_uidivmod:
        movs    r2, #0                  @ the remainder so far
        movs    r3, #32                 @ bits of the dividend that are left
    51: adds    r0, r0                  @ its highest bit goes over; below, room for the quotient's
        adcs    r2, r2
        bcs     52f                     @ above any divisor
        cmp     r2, r1
        blo     53f
    52: subs    r2, r1
        adds    r0, #1
    53: subs    r3, #1
        bne     51b
        mov     r1, r2
        bx      lr
    "#
);
