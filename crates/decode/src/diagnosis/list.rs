//! The list of findings, bounded.
//!
//! Place: below the rules, which add to it what they find.

/// Something that is wrong.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Finding {
    /// How bad it is, 1 to 100; the worst come first.
    pub(super) severity: u32,
    /// What kind of thing, for programs.
    pub(super) code: &'static str,
    /// The node, link or flow.
    pub(super) subject: String,
    /// What is wrong, for people.
    pub(super) sentence: String,
    /// Frames that show it.
    pub(super) frames: Vec<u64>,
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
}

impl Findings {
    /// One more, unless its kind has enough.
    pub(super) fn add(
        &mut self,
        severity: u32,
        code: &'static str,
        subject: &str,
        sentence: String,
        frames: &[u64],
    ) {
        // A table of hostile names must not become a page of sentences.
        if self
            .list
            .iter()
            .filter(|finding| finding.code == code)
            .count()
            >= OF_KIND_MAX
        {
            return;
        }
        self.list.push(Finding {
            severity,
            code,
            subject: subject.to_owned(),
            sentence,
            frames: frames.to_vec(),
        });
    }
}

/// Findings of one kind at most.
const OF_KIND_MAX: usize = 8;
