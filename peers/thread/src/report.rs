//! A line for each check: a table, or JSON.

use serde_json::json;

/// Prints what the checks found, and counts them.
pub(crate) struct Report {
    is_json: bool,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
}

impl Report {
    pub(crate) const fn new(is_json: bool) -> Self {
        Self {
            is_json,
            passed: 0,
            failed: 0,
        }
    }

    /// A check that measured `value`.
    pub(crate) fn row(&mut self, check: &str, value: f64, unit: &str, pass: bool) {
        self.passed += u32::from(pass);
        self.failed += u32::from(!pass);
        if self.is_json {
            let object = json!({
                "schema": 1, "peer": "OpenThread", "check": check, "value": value, "unit": unit,
                "pass": pass,
            });
            println!("{object}");
        } else {
            let word = if pass { "ok" } else { "FAILED" };
            println!("{word:<7}{check:<68}{value:>8} {unit}");
        }
    }

    /// A check of `good` cases among `all`.
    pub(crate) fn all(&mut self, check: &str, good: usize, all: usize, unit: &str) {
        self.row(check, good as f64, unit, good == all && all > 0);
    }

    /// The line that a test binary ends with.
    pub(crate) fn sum(&self) {
        let word = if self.failed == 0 { "ok" } else { "FAILED" };
        let Self { passed, failed, .. } = self;
        println!("\ntest result: {word}. {passed} passed; {failed} failed");
    }
}
