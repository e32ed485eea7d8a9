//! The simulated air.
