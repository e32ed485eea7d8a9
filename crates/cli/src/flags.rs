//! Options of a mesh that are keys of a scenario, and their translation into a document.
//!
//! Place: the lab lists the keys that have an option ([`Setting`]). This file makes clap options of
//! them, and a few further options that set several keys or none. All values go into one document,
//! from which the lab builds a mesh. The lab's errors about keys are reworded here as errors about
//! options.

use clap::{
    Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, parser::ValueSource,
};
use motet_lab::scenario::{Document, Rule, ScenarioError, Setting};

/// Adds the options that are keys to a command, and others, each behind the one that it is given
/// with.
pub(crate) fn add(
    command: Command,
    others: impl IntoIterator<Item = (Arg, &'static str)>,
) -> Command {
    let mut all: Vec<Arg> = settings().iter().map(argument).collect();
    for (other, behind) in others {
        let place = all.iter().position(|arg| arg.get_id() == behind);
        all.insert(place.map_or(all.len(), |place| place + 1), other);
    }
    command.args(all)
}

/// The names of the options that are keys.
pub(crate) fn names() -> Vec<&'static str> {
    settings().iter().map(Setting::name).collect()
}

/// Puts what the options say into a document.
///
/// # Errors
/// As [`Setting::read`]: clap has asked it before.
pub(crate) fn say(matches: &ArgMatches, document: &mut Document) -> Result<(), clap::Error> {
    for setting in settings() {
        let name = setting.name();
        if matches.value_source(name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let text = match setting.value_name() {
            Some(_) => matches.get_one::<String>(name).map(String::as_str),
            None => None,
        };
        let said = document.say(&setting, text);
        said.map_err(|why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why))?;
    }
    Ok(())
}

/// The lab's error as a sentence about the command line.
pub(crate) fn sentence(error: &ScenarioError) -> String {
    match error.rule() {
        Some(Rule::OfMesh(paths)) => foreign_to_ble(first_of(paths)),
        Some(Rule::OfBle(_)) => "--phy, --interval and --tcple are options of Bluetooth LE: name --radio \
                                 ble, or leave them out"
            .to_owned(),
        Some(Rule::IntervalOfTcple) => {
            "TCPlE sets the interval itself: leave out --interval or --tcple".to_owned()
        }
        Some(Rule::SharedBuffer) => "this radio has one buffer for both directions, so its relays have to \
                                     copy: name --radio telosb, which has two, or leave out --forwarding \
                                     cit"
        .to_owned(),
        Some(Rule::OwnAttempts) => "this radio makes attempts by itself, so no relay can send a frame on at \
                                    once: name --radio telosb, or leave out --forwarding cit"
            .to_owned(),
        Some(Rule::PaceByHand) => "with --pacing auto no time is set by hand: leave out --hold and \
                                   --retry-delay"
            .to_owned(),
        Some(Rule::NoPending) => "with this radio no parent can say that something waits, so no mote can \
                                  sleep: name --radio hamilton or nrf52840, or leave out --sleep"
            .to_owned(),
        None => in_options(&error.to_string()),
    }
}

/// An option that has no meaning for Bluetooth LE.
pub(crate) fn foreign_to_ble(name: &str) -> String {
    format!("--{name} is an option of IEEE 802.15.4: leave it out with --radio ble")
}

/// The first of these keys, as an option, in the order of help.
fn first_of(paths: &[String]) -> &'static str {
    let mut settings = settings().into_iter();
    let first = settings.find(|setting| paths.contains(&setting.path()));
    match first.map(|setting| setting.name()) {
        // Over Bluetooth LE there is one hop: to say so is right.
        Some("hops") => "hops above 1",
        Some(name) => name,
        // The one key without an option of its own.
        None => "sleep",
    }
}

/// A sentence about keys, with the options in their place.
fn in_options(sentence: &str) -> String {
    settings()
        .iter()
        .fold(sentence.to_owned(), |sentence, setting| {
            sentence.replace(&setting.path(), &format!("--{}", setting.name()))
        })
}

/// All keys that have an option: those of [`ORDER`], and what was added since.
fn settings() -> Vec<Setting> {
    let mut settings: Vec<Setting> = Setting::all().collect();
    let place = |setting: &Setting| ORDER.iter().position(|name| *name == setting.name());
    settings.sort_by_key(|setting| place(setting).unwrap_or(ORDER.len()));
    settings
}

fn argument(setting: &Setting) -> Arg {
    let arg = Arg::new(setting.name())
        .long(setting.name())
        .help(setting.help());
    let Some(value_name) = setting.value_name() else {
        return arg.action(ArgAction::SetTrue);
    };
    let arg = match setting.shown_default() {
        Some(default) => arg.default_value(default),
        None => arg,
    };
    let arg = arg.value_name(value_name).action(ArgAction::Set);
    if let Some(choices) = setting.choices() {
        // A value that is not named by its choices has them listed behind its help.
        return arg
            .hide_possible_values(value_name.contains('|'))
            .value_parser(PossibleValuesParser::new(choices));
    }
    let setting = *setting;
    arg.allow_negative_numbers(true)
        .value_parser(move |text: &str| setting.read(text).map(|_| text.to_owned()))
}

/// The order of options in help.
const ORDER: [&str; 17] = [
    "hops",
    "frame-loss",
    "packet-loss",
    "no-hidden",
    "no-deaf",
    "pacing",
    "retry-delay",
    "mss-frames",
    "compression",
    "phy",
    "interval",
    "tcple",
    "forwarding",
    "channels",
    "hold",
    "window",
    "congestion",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_help_has_options_alone() {
        let names: Vec<&str> = Setting::all().map(|setting| setting.name()).collect();
        for name in ORDER {
            assert!(names.contains(&name), "there is no --{name}");
        }
    }

    /// A sentence of a file is one of a command line, too.
    #[test]
    fn a_sentence_without_a_rule_names_options() {
        assert_eq!(
            in_options("stack.retry_delay_ms is 90, but must be at most stack.frame_age_ms"),
            "--retry-delay is 90, but must be at most stack.frame_age_ms"
        );
    }
}
