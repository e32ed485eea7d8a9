//! A short page from rows: what was measured, how sure it is, what missed and why.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::rows::{Results, Row};
use super::{Page, figure};

/// The page in Markdown.
///
/// # Errors
/// Where a criterion is missed and the list of pages has no reason.
pub(super) fn markdown(page: &Page, results: &Results) -> Result<String> {
    let origin = &results.origin;
    let name = &page.name;
    let mut text = format!(
        "# {}\n\n{MADE}{name}.jsonl by `cargo xtask evidence --rewrite`. Do not edit. -->\n\n\
         Measured with `{}` on {} at {}. Every row is in [{name}.jsonl]({name}.jsonl).\n\n{}\n\n",
        page.title,
        origin.command,
        origin.date,
        origin.source(),
        page.summary.trim()
    );
    let count = |wanted: bool| {
        let rows = results.rows.iter();
        rows.filter(|row| row.pass == Some(wanted)).count()
    };
    let withdrawn = results.rows.iter().filter(|row| is_withdrawn(row)).count();
    let withdrawn = match withdrawn {
        0 => String::new(),
        count => format!(" Withdrawn: {count}; the reasons stand below."),
    };
    let _ = writeln!(
        text,
        "Criteria that hold: {}; missed: {}.{withdrawn} {SURE}\n",
        count(true),
        count(false)
    );
    for id in &page.experiments {
        let rows: Vec<&Row> = results
            .rows
            .iter()
            .filter(|row| row.experiment == *id)
            .collect();
        ensure!(!rows.is_empty(), "{name}.jsonl has no rows of {id}");
        if let Some(experiment) = origin.experiments.get(id) {
            let [first, second] = experiment.seeds;
            // An experiment that ends by itself has no length.
            let runs = match experiment.seconds {
                0 => String::new(),
                seconds => format!("Runs of {seconds} s. "),
            };
            let _ = writeln!(
                text,
                "## {id}\n\n{}. {runs}Seeds {} to {} and {} to {}.\n",
                experiment.title, first[0], first[1], second[0], second[1]
            );
        }
        text += &table(&rows, page.by.get(id).map(String::as_str));
        let missed: Vec<&&Row> = rows.iter().filter(|row| row.pass == Some(false)).collect();
        if !missed.is_empty() {
            let Some(why) = page.why.get(id) else {
                anyhow::bail!("{name}: {id} misses criteria, and pages.toml does not say why");
            };
            text += "\nMissed:\n\n";
            for row in missed {
                let _ = writeln!(
                    text,
                    "- {}: {} is {} ({}); asked: {}.",
                    escape(&row.setting()),
                    row.named(),
                    number(row.value),
                    interval(row),
                    row.criterion.as_deref().unwrap_or_default()
                );
            }
            let _ = writeln!(text, "\n{}", why.trim());
        }
        text += &unjudged(&rows);
        text.push('\n');
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// The rows that were judged once, or have a published figure that nothing is judged by, and why.
fn unjudged(rows: &[&Row]) -> String {
    let is_listed = |row: &&&Row| is_withdrawn(row) || says(row, SHOWN);
    let lines = rows.iter().filter(is_listed).map(|row| {
        let beside = row.paper.map_or_else(String::new, |paper| {
            format!(", in the paper {}", number(Some(paper)))
        });
        format!(
            "- {}: {} is {} ({}){beside}; {}.\n",
            escape(&row.setting()),
            row.named(),
            number(row.value),
            interval(row),
            row.criterion.as_deref().unwrap_or_default()
        )
    });
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\nWithout a verdict:\n\n{lines}"),
    }
}

/// Whether a criterion was asked once, and is no more.
fn is_withdrawn(row: &Row) -> bool {
    says(row, WITHDRAWN)
}

/// Whether the sentence of a row without a verdict begins so.
fn says(row: &Row, first: &str) -> bool {
    let text = row.criterion.as_deref().unwrap_or_default();
    row.pass.is_none() && row.role == "prediction" && text.starts_with(first)
}

/// As the lab's `unjudged.rs` begins the sentences.
const WITHDRAWN: &str = "withdrawn, ";
const SHOWN: &str = "shown, ";

/// A line for each metric: its least and its greatest value, and the verdicts. `by`: each value of
/// this setting has lines of its own.
fn table(rows: &[&Row], by: Option<&str>) -> String {
    let mut text = String::from(
        "| metric | settings | from | to | widest interval | beside the paper | criteria |\n\
         |---|---:|---:|---:|---:|---|---|\n",
    );
    let named = |row: &Row| match by.and_then(|key| Some((key, row.value_of(key)?))) {
        Some((key, value)) => format!("{}, {key}={value}", row.named()),
        None => row.named(),
    };
    let mut lines: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let name = named(row);
        match lines.iter_mut().find(|(other, _)| *other == name) {
            Some((_, of)) => of.push(row),
            None => lines.push((name, vec![row])),
        }
    }
    for (name, of) in lines {
        let values = of.iter().filter_map(|row| row.value);
        let least = values.clone().reduce(f64::min);
        let most = values.reduce(f64::max);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            escape(&name),
            of.len(),
            number(least),
            number(most),
            widest(&of),
            beside(&of),
            verdicts(&of)
        );
    }
    text
}

/// The widest interval among rows, relative to the value.
fn widest(rows: &[&Row]) -> String {
    let shares = rows.iter().filter_map(|row| {
        let (low, high, value) = (row.low?, row.high?, row.value?);
        (value.abs() > f64::EPSILON).then(|| (high - low) / 2.0 / value.abs())
    });
    let widest = shares.reduce(f64::max);
    widest.map_or(String::new(), |share| format!("± {:.0} %", share * 100.0))
}

/// How far values are from those of the papers: the middle and the farthest.
fn beside(rows: &[&Row]) -> String {
    let shares = rows.iter().filter_map(|row| {
        let (value, paper) = (row.value?, row.paper?);
        (paper.abs() > f64::EPSILON && row.role != "fit").then(|| value / paper)
    });
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    match shares[..] {
        [] => String::new(),
        [one] => format!("{one:.2} ×"),
        [first, .., last] => format!(
            "{:.2} × ({first:.2} to {last:.2}, {} figures)",
            shares[shares.len() / 2],
            shares.len()
        ),
    }
}

fn verdicts(rows: &[&Row]) -> String {
    let count = |wanted: bool| rows.iter().filter(|row| row.pass == Some(wanted)).count();
    match (count(true), count(false)) {
        (0, 0) => "shown".to_owned(),
        (hold, 0) => format!("{hold} hold"),
        (hold, missed) => format!("{hold} hold, **{missed} missed**"),
    }
}

fn interval(row: &Row) -> String {
    match (row.low, row.high) {
        (Some(low), Some(high)) => format!("{} to {}", number(Some(low)), number(Some(high))),
        _ => "no interval".to_owned(),
    }
}

/// A figure; `-` where there is none.
fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure::number)
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

/// How the second line of every page begins that is made from rows.
pub(super) const MADE: &str = "<!-- Made from ";

/// What a verdict is worth.
const SURE: &str = "A criterion holds when the whole 95 % interval meets it on each of two disjoint \
                    sets of seeds; intervals are of the air's chance alone, not of the models.";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ROWS: &str = r#"{"schema":1,"record":"provenance","version":"0.1.0","revision":"abcdef0","date":"2026-01-02","command":"motet reproduce a-b --full","experiments":{"a-b":{"title":"A beside B","seconds":60,"seeds":[[1,2],[3,4]]}}}
{"experiment":"a-b","point":{"hops":3,"design":"x|y"},"metric":"goodput","unit":"kb/s","value":20.0,"low":19.0,"high":21.0,"paper":25.0,"role":"prediction","criterion":"at least 18","pass":true}
{"experiment":"a-b","point":{"hops":4,"design":"x|y"},"metric":"goodput","unit":"kb/s","value":10.0,"low":5.0,"high":15.0,"paper":10.0,"role":"prediction","criterion":"at least 18","pass":false}
"#;

    fn page(why: &[(&str, &str)]) -> Page {
        let why = why.iter();
        let why = why.map(|(id, why)| ((*id).to_owned(), (*why).to_owned()));
        Page {
            name: "ab".to_owned(),
            title: "A and B".to_owned(),
            summary: "Two things.".to_owned(),
            experiments: vec!["a-b".to_owned()],
            command: None,
            lost: None,
            measures: Vec::new(),
            by: BTreeMap::new(),
            why: why.collect(),
        }
    }

    #[test]
    fn a_page_says_what_was_measured_how_sure_it_is_and_what_missed() {
        let results = Results::read(ROWS).unwrap();
        let text = markdown(&page(&[("a-b", "B is slow.")]), &results).unwrap();
        for line in [
            "Measured with `motet reproduce a-b --full` on 2026-01-02 at revision abcdef0. Every row is in \
             [ab.jsonl](ab.jsonl).",
            "| goodput (kb/s) | 2 | 10.0 | 20.0 | ± 50 % | 1.00 × (0.80 to 1.00, 2 figures) | 1 hold, **1 missed** |",
            "- hops=4 design=x\\|y: goodput (kb/s) is 10.0 (5.00 to 15.0); asked: at least 18.",
            "B is slow.",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_values_of_a_named_setting_have_lines_of_their_own() {
        let results = Results::read(ROWS).unwrap();
        let mut page = page(&[("a-b", "B is slow.")]);
        page.by.insert("a-b".to_owned(), "hops".to_owned());
        let text = markdown(&page, &results).unwrap();
        for line in [
            "| goodput (kb/s), hops=3 | 1 | 20.0 | 20.0 | ± 5 % | 0.80 × | 1 hold |",
            "| goodput (kb/s), hops=4 | 1 | 10.0 | 10.0 | ± 50 % | 1.00 × | 0 hold, **1 missed** |",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_page_says_why_a_row_has_no_verdict() {
        let rows = ROWS.replace(
            "\"at least 18\",\"pass\":false",
            "\"withdrawn, B is slow: at least 18\",\"pass\":null",
        );
        let results = Results::read(&rows).unwrap();
        let text = markdown(&page(&[]), &results).unwrap();
        for line in [
            "- hops=4 design=x\\|y: goodput (kb/s) is 10.0 (5.00 to 15.0), in the paper 10.0; \
             withdrawn, B is slow: at least 18.",
            "Without a verdict:",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(
            text.contains("Criteria that hold: 1; missed: 0. Withdrawn: 1"),
            "{text}"
        );
    }

    #[test]
    fn a_miss_without_a_reason_and_rows_of_another_version_are_refused() {
        let results = Results::read(ROWS).unwrap();
        let error = markdown(&page(&[]), &results).unwrap_err();
        assert!(error.to_string().contains("does not say why"), "{error}");
        let other = ROWS.replacen("\"schema\":1", "\"schema\":2", 1);
        assert!(Results::read(&other).is_err());
        assert!(Results::read("").is_err());
    }
}
