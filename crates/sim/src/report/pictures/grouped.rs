//! Bars in groups, with a name for each group and a figure for each bar.

use std::fmt::Write as _;

use super::theme::{escape, series_css};
use crate::stats::measured;

/// Figures of several things under several conditions, such as flows under policies.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Grouped {
    /// The conditions: a colour each.
    pub(super) names: Vec<String>,
    /// The things, each with a bar for each condition.
    pub(super) groups: Vec<(String, Vec<Bar>)>,
}

/// A value and half the width of its interval; none where there is no value.
pub(super) type Bar = Option<(f64, f64)>;

impl Grouped {
    /// The bars as inline SVG, from zero.
    pub(super) fn svg(&self) -> String {
        let longest = self.groups.iter().map(|(name, _)| name.chars().count());
        let left = 16.0 + CHARACTER * longest.max().unwrap_or(0) as f64;
        let values = self.groups.iter().flat_map(|(_, bars)| bars).flatten();
        let most = values.map(|(value, half)| value + half).fold(0.0, f64::max);
        let scale = (WIDTH - left - REMARK) / if most > 0.0 { most } else { 1.0 };
        let (mut text, mut y) = (String::new(), self.legend(&mut String::new()));
        self.legend(&mut text);
        for (name, bars) in &self.groups {
            let middle = y + BAR * bars.len() as f64 / 2.0 + 5.0;
            let _ = write!(
                text,
                "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"var(--ink)\">{}</text>",
                left - 8.0,
                escape(name)
            );
            for (place, bar) in bars.iter().enumerate() {
                if let Some((value, half)) = bar {
                    let at = [left, y + BAR * place as f64];
                    draw_bar(&mut text, at, scale, (*value, *half), place);
                }
            }
            y += BAR * bars.len() as f64 + GAP;
        }
        format!(
            "<svg viewBox=\"0 0 {WIDTH:.0} {y:.0}\" xmlns=\"http://www.w3.org/2000/svg\" \
             font-family=\"system-ui,sans-serif\" font-size=\"14\">{text}</svg>"
        )
    }

    /// Writes the conditions with their colours; gives the height that they take.
    fn legend(&self, text: &mut String) -> f64 {
        let (mut x, mut y) = (0.0, 0.0);
        for (place, name) in self.names.iter().enumerate() {
            let width = 34.0 + CHARACTER * name.chars().count() as f64;
            if x > 0.0 && x + width > WIDTH {
                (x, y) = (0.0, y + LEGEND);
            }
            let _ = write!(
                text,
                "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"12\" height=\"12\" fill=\"{}\"/>\
                 <text x=\"{:.0}\" y=\"{:.0}\" fill=\"var(--ink)\">{}</text>",
                x + 2.0,
                y + 4.0,
                series_css(place),
                x + 20.0,
                y + 15.0,
                escape(name)
            );
            x += width;
        }
        y + LEGEND + GAP
    }
}

/// A bar, the interval of its value, and the value in figures.
fn draw_bar(
    text: &mut String,
    [x, y]: [f64; 2],
    scale: f64,
    (value, half): (f64, f64),
    colour: usize,
) {
    let (end, middle) = (x + scale * value, y + BAR / 2.0);
    let _ = write!(
        text,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
        y + 1.5,
        (end - x).max(0.5),
        BAR - 3.0,
        series_css(colour)
    );
    let mut label = format!("{value:.1}");
    if half > 0.0 {
        let (from, to) = (x.max(end - scale * half), end + scale * half);
        let _ = write!(
            text,
            "<path d=\"M{from:.1} {middle:.1}H{to:.1}M{to:.1} {:.1}v6\" stroke=\"var(--ink)\" \
             stroke-width=\"1.5\" fill=\"none\"/>",
            middle - 3.0
        );
        let (value, error) = measured(value, half);
        label = format!("{value} ± {error}");
    }
    let _ = write!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"13\" fill=\"var(--quiet)\">{label}</text>",
        end + scale * half + 8.0,
        middle + 4.5
    );
}

const WIDTH: f64 = 600.0;
const BAR: f64 = 18.0;
const GAP: f64 = 8.0;
const LEGEND: f64 = 22.0;
/// Width of most characters in this size, pixels.
const CHARACTER: f64 = 7.5;
/// Room for the figure behind a full bar.
const REMARK: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_length_and_its_figure() {
        let bars = Grouped {
            names: vec!["policy none".to_owned(), "policy <fq>".to_owned()],
            groups: vec![
                (
                    "1 → host".to_owned(),
                    vec![Some((20.0, 0.0)), Some((10.0, 1.26))],
                ),
                ("2 → host".to_owned(), vec![None, Some((0.0, 0.0))]),
            ],
        };
        let svg = bars.svg();
        assert_eq!(svg.matches("<rect").count(), 2 + 3);
        assert!(
            svg.contains(">20.0<") && svg.contains(">10.0 ± 1.3<"),
            "{svg}"
        );
        assert!(svg.contains("policy &lt;fq&gt;") && svg.contains(">1 → host<"));
        // Twice as much is twice as long.
        let width = |svg: &str, place: usize| -> f64 {
            let bar = svg.split("<rect").nth(place).unwrap();
            let (_, behind) = bar.split_once("width=\"").unwrap();
            behind.split('"').next().unwrap().parse().unwrap()
        };
        assert!((width(&svg, 3) / width(&svg, 4) - 2.0).abs() < 0.01);
    }
}
