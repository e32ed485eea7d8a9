//! A progress bar on stderr: on a terminal only, and only for work over two seconds.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Shorter work is over before a user starts to wonder.
const PATIENCE: Duration = Duration::from_secs(2);

// The message takes what is left of the line, and is cut where that is too little: a bar that wraps
// leaves rubbish.
const BYTES: &str = "{bar:20} {bytes}/{total_bytes}  {wide_msg}  {left} left";
const PERCENTAGE: &str = "{bar:20} {percent} %  {wide_msg}  {left} left";
/// A bar of runs.
pub(crate) const RUNS: &str = "{bar:20} {pos}/{len} runs  {wide_msg}  {left} left";

/// A bar that appears once the work has lasted.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    total: u64,
    template: &'static str,
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Progress {
    /// A bar for `bytes_total` bytes; `wanted` false never shows one.
    pub(crate) fn new(bytes_total: u64, wanted: bool) -> Self {
        Self::with_template(BYTES, bytes_total, wanted)
    }

    /// A bar for anything, shown as a percentage.
    pub(crate) fn percentage(total: u64, wanted: bool) -> Self {
        Self::with_template(PERCENTAGE, total, wanted)
    }

    fn with_template(template: &'static str, total: u64, wanted: bool) -> Self {
        Self {
            started: Instant::now(),
            total,
            template,
            bar: None,
            wanted,
        }
    }

    /// Shows the progress; `message` is called only while the bar is visible.
    pub(crate) fn update(&mut self, done: u64, message: impl FnOnce() -> String) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let (total, template) = (self.total, self.template);
        let bar = self.bar.get_or_insert_with(|| bar(total, template));
        if !bar.is_hidden() {
            bar.set_message(message());
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How a bar is drawn: `{left}` is the time that is left at the pace so far.
pub(crate) fn style(template: &str) -> Option<ProgressStyle> {
    let style = ProgressStyle::with_template(template).ok()?;
    let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let done = state.pos();
        let rest = state.len().unwrap_or(done).saturating_sub(done);
        let left = state.elapsed().as_secs_f64() * rest as f64 / done.max(1) as f64;
        let _ = match done {
            0 => out.write_str("?"),
            _ => out.write_str(&span(left)),
        };
    };
    Some(style.with_key("left", left).progress_chars("━╸ "))
}

/// A time in two units at most.
fn span(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
    }
}

fn bar(total: u64, template: &str) -> ProgressBar {
    // Five times a second is smooth enough; `stderr` hides itself where there is no terminal.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    // The bar shows the time since the work began, not since the bar appeared.
    let bar = bar.with_elapsed(PATIENCE);
    if let Some(style) = style(template) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, text) in [
            (0.2, "1 s"),
            (59.0, "59 s"),
            (61.0, "1 min 1 s"),
            (7_290.0, "2 h 1 min"),
        ] {
            assert_eq!(span(seconds), text);
        }
        assert!(
            [BYTES, PERCENTAGE, RUNS]
                .iter()
                .all(|template| style(template).is_some())
        );
    }
}
