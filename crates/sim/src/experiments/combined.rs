//! What no paper has: Motet's own settings on the papers' radio.

use super::Experiment;

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 0] = [];
