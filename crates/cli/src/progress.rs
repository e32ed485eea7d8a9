//! A progress bar on stderr: on a terminal only, and only for work over two seconds.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work is over before a user starts to wonder.
const PATIENCE: Duration = Duration::from_secs(2);

const BYTES: &str = "{bar:30} {bytes}/{total_bytes}  {msg}  {elapsed_precise}";
const PERCENTAGE: &str = "{bar:30} {percent} %  {msg}  {elapsed_precise}";

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

fn bar(total: u64, template: &str) -> ProgressBar {
    // Five times a second is smooth enough; `stderr` hides itself where there is no terminal.
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    // The bar shows the time since the work began, not since the bar appeared.
    let bar = bar.with_elapsed(PATIENCE);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar
}
