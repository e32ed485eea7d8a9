//! Whether a node measures its own pace: the combined meaning of `pacing`, `hold_ms` and
//! `retry_delay_ms`. By default it does.

use toml::{Table, Value};

use super::error::{Rule, ScenarioError};

/// Whether the pace is measured, with the keys of `[stack]` and of a `[[node]]` that a file has.
/// `name`: which of the two tables a key is in.
///
/// # Errors
/// A time set by hand beside a pace that is measured, or a part of a pace that is not.
pub(super) fn is_measured(
    given: &Table,
    name: impl Fn(&str) -> &'static str,
) -> Result<bool, ScenarioError> {
    let by_hand = BY_HAND
        .iter()
        .find_map(|key| Some((*key, given.get(*key)?)));
    let pacing = given.get("pacing").and_then(Value::as_str);
    let is_measured = match (pacing, by_hand) {
        (Some("auto"), Some((key, value))) => {
            return Err(ScenarioError::new(format!(
                "{}.{key} is {value}, but must be left out where {}.pacing is \"auto\", which sets \
                 no time by hand",
                name(key),
                name("pacing")
            ))
            .by(Rule::PaceByHand));
        }
        (Some(pacing), _) => pacing == "auto",
        (None, by_hand) => by_hand.is_none(),
    };
    match given.get("pace_percent") {
        Some(percent) if !is_measured => Err(ScenarioError::new(format!(
            "{}.pace_percent is {percent}, but must be left out unless pacing is \"auto\", as it \
             is where neither hold_ms nor retry_delay_ms is given",
            name("pace_percent")
        ))),
        _ => Ok(is_measured),
    }
}

/// Times that are set by hand.
const BY_HAND: [&str; 2] = ["hold_ms", "retry_delay_ms"];
