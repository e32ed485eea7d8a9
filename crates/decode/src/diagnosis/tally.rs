//! Counts with the frames that show them.

use std::collections::BTreeMap;

/// Something that happens again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// How often.
    pub(super) count: u64,
    /// Most within ten seconds.
    pub(super) peak: u64,
    /// The first frames of it.
    pub(super) frames: Vec<u64>,
    /// When it was seen first and last, s.
    pub(super) span_s: (f64, f64),
    window: (f64, u64),
}

impl Events {
    /// One more, in frame `number` at `at_s`.
    pub(super) fn add(&mut self, number: u64, at_s: f64) {
        if self.count == 0 {
            self.span_s.0 = at_s;
        }
        self.count += 1;
        self.span_s.1 = at_s;
        if self.frames.len() < EXAMPLES_MAX {
            self.frames.push(number);
        }
        if self.window.1 == 0 || at_s - self.window.0 >= WINDOW_S {
            self.window = (at_s, 0);
        }
        self.window.1 += 1;
        self.peak = self.peak.max(self.window.1);
    }
}

/// A table of bounded size: what comes later than its room is left out.
#[derive(Debug)]
pub(super) struct Table<K, V>(BTreeMap<K, V>);

impl<K: Ord, V: Default> Default for Table<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Default> Table<K, V> {
    /// The entry of `key`, made where there is room.
    pub(super) fn at(&mut self, key: K) -> Option<&mut V> {
        if self.0.len() >= ROWS_MAX && !self.0.contains_key(&key) {
            return None;
        }
        Some(self.0.entry(key).or_default())
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().inspect(|_| step())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<V> Table<(String, String), V> {
    /// The rows whose key begins with `first`.
    pub(super) fn of<'a>(
        &'a self,
        first: &'a str,
    ) -> impl Iterator<Item = (&'a (String, String), &'a V)> {
        let rows = self.0.range((first.to_owned(), String::new())..);
        let rows = rows.take_while(move |((one, _), _)| one == first);
        rows.inspect(|_| step())
    }
}

/// A row was looked at: tests count how often.
fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

#[cfg(test)]
std::thread_local! {
    /// Rows of tables that this thread looked at.
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Frames named for each finding.
const EXAMPLES_MAX: usize = 6;
const WINDOW_S: f64 = 10.0;
/// Rows of each table; a hostile capture can invent nodes at will.
const ROWS_MAX: usize = 16_384;
