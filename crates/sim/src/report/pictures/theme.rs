//! Colours, the same in plots and page, for light and dark screens.
//!
//! Plotters knows only fixed colours: each of ours is drawn as a stand-in and replaced by a
//! CSS variable, which the page, or the plot itself where it stands alone, defines.

use plotters::style::RGBColor;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
/// Less important text.
pub(super) const QUIET: RGBColor = RGBColor(1, 2, 4);
/// Lines to measure by.
pub(super) const GRID: RGBColor = RGBColor(1, 2, 5);

/// The colour of series `number`; they repeat.
pub(super) const fn series(number: usize) -> RGBColor {
    RGBColor(1, 3, (number % SERIES) as u8)
}

/// The colour of a series as a CSS value.
pub(super) fn series_css(number: usize) -> String {
    format!("var(--s{})", number % SERIES)
}

/// How many colours tell series apart.
pub(super) const SERIES: usize = 16;

/// Okabe and Ito's eight colours, which most eyes tell apart, a little deeper on light paper;
/// then, one by one, the colour that is farthest from all before it (in the space OKLab).
const LIGHT: [&str; SERIES] = [
    "#0072b2", "#d55e00", "#009e73", "#b0559a", "#c98a00", "#3f9fd8", "#7a6f00", "#7d7d7d",
    "#720022", "#40128f", "#0c4714", "#b32035", "#6e44bc", "#574466", "#9c76f3", "#820a73",
];
const DARK: [&str; SERIES] = [
    "#56b4e9", "#f0803c", "#2fc79b", "#dd8fbf", "#e9b740", "#8267e2", "#d8cf56", "#a8a8a8",
    "#8fcdf2", "#768b09", "#d24572", "#76fbc7", "#0d9298", "#fecee4", "#9f7562", "#94c01f",
];

/// Definitions of the CSS variables.
pub(super) fn variables() -> String {
    let of = |fixed: &str, colours: [&str; SERIES]| {
        let series = colours.iter().enumerate();
        let series: String = series
            .map(|(number, colour)| format!("--s{number}:{colour};"))
            .collect();
        format!("{fixed}{series}")
    };
    let light = of(
        "--ink:#1c1f23;--quiet:#667079;--grid:#e4e7ea;--paper:#ffffff;--page:#f4f5f7;\
         --good:#1a7f4b;--fair:#c98a00;--bad:#c62828;",
        LIGHT,
    );
    let dark = of(
        "--ink:#e8eaed;--quiet:#9aa3ab;--grid:#343a40;--paper:#1d2125;--page:#14171a;\
         --good:#4cc38a;--fair:#e9b740;--bad:#ff7b72;",
        DARK,
    );
    format!(
        ":root{{color-scheme:light dark;{light}}}\
         @media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )
}

/// Puts variables in the place of the stand-ins.
pub(super) fn themed(svg: &str) -> String {
    let hex = |RGBColor(red, green, blue): RGBColor| format!("#{red:02X}{green:02X}{blue:02X}");
    let mut text = svg.to_owned();
    for (colour, name) in [(INK, "ink"), (QUIET, "quiet"), (GRID, "grid")] {
        text = text.replace(&hex(colour), &format!("var(--{name})"));
    }
    for number in 0..SERIES {
        text = text.replace(&hex(series(number)), &series_css(number));
    }
    text
}

/// An inline plot as a file of its own.
pub(super) fn standalone(svg: &str) -> String {
    let style = format!("<style>{}</style>", variables());
    match svg.find('>') {
        Some(end) => format!(
            "{}{style}<rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>{}",
            &svg[..=end],
            &svg[end + 1..]
        ),
        None => svg.to_owned(),
    }
}

/// Text as HTML and SVG have it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_series_have_one_colour() {
        for colours in [LIGHT, DARK] {
            let channels = |colour: &str| {
                [1, 3, 5].map(|at| i32::from_str_radix(&colour[at..at + 2], 16).unwrap())
            };
            for (place, a) in colours.iter().enumerate() {
                for b in &colours[..place] {
                    let pairs = channels(a).into_iter().zip(channels(b));
                    let apart: i32 = pairs.map(|(a, b)| (a - b).abs()).sum();
                    assert!(apart > 50, "{a} and {b} are {apart} apart");
                }
            }
        }
    }
}
