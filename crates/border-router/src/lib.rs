//! Linux I/O for the border router.
