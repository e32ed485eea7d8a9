//! How far each mote is: bars on a terminal, nothing elsewhere.

use std::{collections::BTreeMap, net::SocketAddrV6};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// A bar for each mote.
#[derive(Debug)]
pub(super) struct Show {
    all: MultiProgress,
    bars: BTreeMap<SocketAddrV6, ProgressBar>,
}

impl Show {
    pub(super) fn new(motes: &[SocketAddrV6], len: u64) -> Self {
        let all = MultiProgress::new();
        let style = ProgressStyle::with_template(TEMPLATE);
        let style = style.map(|style| style.progress_chars("━╸ "));
        let bars = motes.iter().map(|mote| {
            let bar = all.add(ProgressBar::new(len));
            if let Ok(style) = &style {
                bar.set_style(style.clone());
            }
            bar.set_prefix(name(*mote));
            bar.set_message("waits");
            (*mote, bar)
        });
        let bars = bars.collect();
        Self { all, bars }
    }

    /// The mote has so many bytes; the time left follows from when it began.
    pub(super) fn update(&self, mote: SocketAddrV6, stored: u64, from: &str) {
        let Some(bar) = self.bars.get(&mote) else {
            return;
        };
        if bar.message() != from {
            bar.set_message(from.to_owned());
            bar.set_position(stored);
            bar.reset_eta();
        }
        bar.set_position(stored);
    }

    pub(super) fn done(&self, mote: SocketAddrV6) {
        if let Some(bar) = self.bars.get(&mote) {
            bar.finish_and_clear();
        }
    }

    pub(super) fn failed(&self, mote: SocketAddrV6) {
        if let Some(bar) = self.bars.get(&mote) {
            bar.abandon_with_message("failed");
        }
    }

    /// A sentence on standard error, between the bars.
    pub(super) fn say(&self, sentence: &str) {
        self.all.suspend(|| crate::output::say(sentence));
    }
}

/// A mote's name in what is said.
pub(super) fn name(mote: SocketAddrV6) -> String {
    mote.ip().to_string()
}

const TEMPLATE: &str = "{prefix}  {bar:20} {bytes}/{total_bytes}  {msg}  {eta} left";
