//! The head of a page of measurements: which command wrote it, when, and from which revision.

use std::time::{SystemTime, UNIX_EPOCH};

/// The version of this program, with the revision that it is built from where that is known.
pub(crate) const VERSION: &str = match option_env!("MOTET_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The first lines of such a page, in Markdown; `command` repeats the measurement.
pub(crate) fn heading(title: &str, command: &str) -> String {
    let source = option_env!("MOTET_REVISION").map_or_else(
        || concat!("version ", env!("CARGO_PKG_VERSION")).to_owned(),
        |revision| format!("revision {revision}"),
    );
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since.unwrap_or_default().as_secs() / SECONDS_PER_DAY;
    format!(
        "# {title}\n\n<!-- Written by the command below. Do not edit. -->\n\n\
         Measured with `{command}` on {} at {source}.\n",
        date(days)
    )
}

/// A cell of a Markdown table: a bar would end it.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The date `days` days after 1 January 1970, as year-month-day.
fn date(mut days: u64) -> String {
    let mut year = 1970;
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    for length in month_lengths(year) {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

fn days_in_year(year: u64) -> u64 {
    month_lengths(year).iter().sum()
}

/// Days of each month in the Gregorian calendar.
fn month_lengths(year: u64) -> [u64; 12] {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let february = if is_leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

const SECONDS_PER_DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_453, "2025-12-31"),
            (20_454, "2026-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn a_page_names_its_command_its_date_and_its_source() {
        let text = heading("Soak", "motet soak --markdown");
        assert!(text.starts_with("# Soak\n"), "{text}");
        let line = text.lines().last().unwrap();
        assert!(
            line.starts_with("Measured with `motet soak --markdown` on 2"),
            "{line}"
        );
        assert!(
            line.contains(" at revision ") || line.contains(" at version "),
            "{line}"
        );
    }
}
