//! Copying, moving and filling memory in 100 B of code, in place of 2,700 B.
//!
//! The compiler calls these functions for each copy of a struct, and its own library unrolls them
//! for speed. Most copies of a node are of 4 to 40 bytes; those of a packet go word by word here,
//! too, where both ends are aligned, and so does clearing. Names and arguments are those of C and
//! of the run-time ABI for Arm (RTABI §4.3.4).

// Registers r0 to r3 may change. Each function but the `aeabi` ones returns its first argument.
core::arch::global_asm!(
    r#"
    .syntax unified
    .thumb

    .macro define name
    .global \name
    .thumb_func
    \name:
    .endm

    .section .text.memory_copy, "ax", %progbits
    .balign 2
    define memmove
    define __aeabi_memmove
    define __aeabi_memmove4
    define __aeabi_memmove8
        subs    r3, r0, r1
        cmp     r3, r2
        blo     20f                     @ the destination begins within the source
    define memcpy
    define __aeabi_memcpy
    define __aeabi_memcpy4
    define __aeabi_memcpy8
        push    {{r0, r4, lr}}
        mov     r3, r0
        orrs    r3, r1
        lsls    r3, r3, #30
        bne     13f                     @ not both aligned
        b       12f
    11: ldmia   r1!, {{r3}}
        stmia   r0!, {{r3}}
    12: subs    r2, #4
        bhs     11b
        adds    r2, #4
    13: movs    r4, #0
        b       15f
    14: ldrb    r3, [r1, r4]
        strb    r3, [r0, r4]
        adds    r4, #1
    15: cmp     r4, r2
        blo     14b
        pop     {{r0, r4, pc}}
    20: subs    r2, #1
        blo     21f
        ldrb    r3, [r1, r2]
        strb    r3, [r0, r2]
        b       20b
    21: bx      lr

    .section .text.memory_set, "ax", %progbits
    .balign 2
    define __aeabi_memclr
    define __aeabi_memclr4
    define __aeabi_memclr8
        movs    r2, #0
    define __aeabi_memset
    define __aeabi_memset4
    define __aeabi_memset8
        mov     r3, r1
        mov     r1, r2
        mov     r2, r3
    define memset
        push    {{r0, r4, lr}}
        movs    r4, r1
        bne     33f                     @ words are filled with zero alone
        lsls    r3, r0, #30
        bne     33f
        b       32f
    31: stmia   r0!, {{r1}}
    32: subs    r2, #4
        bhs     31b
        adds    r2, #4
    33: movs    r4, #0
        b       35f
    34: strb    r1, [r0, r4]
        adds    r4, #1
    35: cmp     r4, r2
        blo     34b
        pop     {{r0, r4, pc}}
    "#
);
