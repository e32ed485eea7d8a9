//! What a check gave, a line each.

/// One figure, and what it has to be.
pub(crate) struct Check {
    app: String,
    check: String,
    value: Option<f64>,
    unit: &'static str,
    pass: bool,
}

impl Check {
    /// A figure that must not be above `most`.
    pub(crate) fn at_most(
        app: &str,
        check: &str,
        value: Result<f64, String>,
        most: f64,
        unit: &'static str,
    ) -> Self {
        let value = value
            .inspect_err(|reason| eprintln!("{app}, {check}: {reason}"))
            .ok();
        let pass = value.is_some_and(|value| value <= most);
        Self::new(app, check, value, unit, pass)
    }

    /// A figure that must not be below `least`.
    pub(crate) fn at_least(
        app: &str,
        check: &str,
        value: f64,
        least: f64,
        unit: &'static str,
    ) -> Self {
        Self::new(app, check, Some(value), unit, value >= least)
    }

    fn new(app: &str, check: &str, value: Option<f64>, unit: &'static str, pass: bool) -> Self {
        Self {
            app: app.to_owned(),
            check: check.to_owned(),
            value,
            unit,
            pass,
        }
    }

    /// Whether it is as it has to be.
    pub(crate) const fn passes(&self) -> bool {
        self.pass
    }

    /// Prints it, for a program or for people.
    pub(crate) fn print(&self, json: bool) {
        let Self {
            app,
            check,
            value,
            unit,
            pass,
        } = self;
        if json {
            let line = serde_json::json!({
                "app": app, "check": check, "value": value, "unit": unit, "pass": pass,
            });
            println!("{line}");
        } else {
            let verdict = if *pass { "ok" } else { "FAILED" };
            let value = value.map_or("none".to_owned(), |value| format!("{value:.1}"));
            println!("{app:<20} {check:<50} {value:>8} {unit:<7} {verdict}");
        }
    }
}
