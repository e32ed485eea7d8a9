//! How a figure is written for people.
//!
//! Purpose: one meaning for tables of the command and for pages of measurements, which
//! `cargo xtask evidence` makes: `xtask` compiles this file, too, instead of the whole lab.

/// Enough digits to compare, and no exponent; `-` where it is no finite number.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        0.0 => "0".into(),
        size if size < 0.1 => format!("{value:.4}"),
        size if size < 2.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
