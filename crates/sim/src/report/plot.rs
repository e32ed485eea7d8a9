//! Lines over an axis, and shares as bars, by plotters.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::theme::{GRID, INK, QUIET, series, themed};

/// Lines over a common axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plot {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) lines: Vec<Line>,
}

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    /// x, y, and half the width of y's interval.
    pub(super) points: Vec<(f64, f64, f64)>,
    pub(super) look: Look,
    /// Which colour.
    pub(super) colour: usize,
}

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// A quantity over time.
    Trace,
    /// The same, in the background.
    Faint,
    /// Measured points with their intervals, joined.
    Points,
    /// Crosses: what others published.
    Crosses,
    /// Dashes: what cannot be exceeded.
    Dashes,
}

/// Rows of shares of a whole.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bars {
    /// Names of the parts; the first takes the first colour.
    pub(super) parts: Vec<String>,
    /// Label, the shares (0 to 1) of the parts, and a remark at the end.
    pub(super) rows: Vec<(String, Vec<f64>, String)>,
}

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Plot {
    /// The plot as inline SVG.
    pub(super) fn svg(&self) -> String {
        svg((PLOT_WIDTH, PLOT_HEIGHT), |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let named = self.lines.iter().filter(|line| !line.name.is_empty());
        let entries: Vec<Entry<'_>> = named
            .map(|line| (line.name.as_str(), line.colour, line.look))
            .collect();
        let legend_height = if entries.len() > 1 {
            draw_legend(area, &entries)?
        } else {
            0
        };
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let left = points()
            .map(|(x, ..)| *x)
            .fold(f64::INFINITY, f64::min)
            .min(0.0);
        let right = points().map(|(x, ..)| *x).fold(left, f64::max);
        let right = if right > left { right } else { left + 1.0 };
        let top = points().map(|(_, y, ci)| y + ci).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.08 } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .margin_top(legend_height + 8)
            .margin_right(16)
            .x_label_area_size(44)
            .y_label_area_size(62)
            .build_cartesian_2d(left..right, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|x| number(*x))
            .y_label_formatter(&|y| number(*y))
            .label_style(font(FONT).color(&QUIET))
            .axis_desc_style(font(FONT).color(&QUIET))
            .x_desc(self.x.as_str())
            .y_desc(self.y.as_str())
            .draw()?;
        for line in &self.lines {
            let colour = series(line.colour);
            let at = || line.points.iter().map(|(x, y, _)| (*x, *y));
            let style = match line.look {
                Look::Faint => colour.mix(0.35).stroke_width(1),
                Look::Dashes => colour.stroke_width(1),
                Look::Trace | Look::Points | Look::Crosses => colour.stroke_width(2),
            };
            match line.look {
                Look::Crosses => {
                    let crosses = at().map(|at| Cross::new(at, 6, style));
                    chart.draw_series(crosses)?;
                }
                Look::Dashes => {
                    chart.draw_series(DashedLineSeries::new(at(), 6, 4, style))?;
                }
                Look::Trace | Look::Faint | Look::Points => {
                    chart.draw_series(LineSeries::new(at(), style))?;
                }
            }
            if line.look == Look::Points {
                let bars = line.points.iter().filter(|(_, _, ci)| *ci > 0.0);
                chart.draw_series(bars.map(|(x, y, ci)| {
                    ErrorBar::new_vertical(*x, y - ci, *y, y + ci, colour.filled(), 8)
                }))?;
                chart.draw_series(at().map(|at| Circle::new(at, 4, colour.filled())))?;
            }
        }
        Ok(())
    }
}

impl Bars {
    /// The bars as inline SVG.
    pub(super) fn svg(&self) -> String {
        let height = legend_height(&self.entries()) + 10 + self.rows.len() as i32 * ROW_HEIGHT;
        svg((PLOT_WIDTH, height.max(40) as u32), |area| self.draw(area))
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        let parts = self.parts.iter().enumerate();
        parts
            .map(|(colour, part)| (part.as_str(), colour, Look::Trace))
            .collect()
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let top = draw_legend(area, &self.entries())? + 10;
        let longest = self.rows.iter().map(|(label, ..)| label.chars().count());
        let left = 12 + CHARACTER_WIDTH * longest.max().unwrap_or(0) as i32;
        let full = PLOT_WIDTH as i32 - left - REMARK_WIDTH;
        for (place, (label, shares, remark)) in self.rows.iter().enumerate() {
            let y = top + place as i32 * ROW_HEIGHT;
            let middle = y + ROW_HEIGHT / 2;
            let style = font(FONT)
                .color(&INK)
                .pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(label.clone(), (left - 8, middle), style))?;
            let mut so_far = 0.0;
            for (number, share) in shares.iter().enumerate() {
                let from = left + (so_far * f64::from(full)) as i32;
                so_far += share;
                let to = left + (so_far * f64::from(full)) as i32;
                if to > from {
                    let part = [(from, y + 3), (to, y + ROW_HEIGHT - 3)];
                    area.draw(&Rectangle::new(part, series(number).filled()))?;
                }
            }
            let at = (left + (so_far * f64::from(full)) as i32 + 8, middle);
            let style = font(FONT)
                .color(&QUIET)
                .pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(remark.clone(), at, style))?;
        }
        Ok(())
    }
}

/// Name, colour and look of what a legend explains.
type Entry<'a> = (&'a str, usize, Look);

/// Where each entry of a legend stands: row and pixel.
fn legend_places(entries: &[Entry<'_>]) -> Vec<(i32, i32)> {
    let (mut row, mut x) = (0, 0);
    let place = |(name, ..): &Entry<'_>| {
        let width = 34 + CHARACTER_WIDTH * name.chars().count() as i32;
        if x > 0 && x + width > PLOT_WIDTH as i32 {
            (row, x) = (row + 1, 0);
        }
        let place = (row, x);
        x += width;
        place
    };
    entries.iter().map(place).collect()
}

fn legend_height(entries: &[Entry<'_>]) -> i32 {
    let places = legend_places(entries);
    places
        .last()
        .map_or(0, |(row, _)| (row + 1) * LEGEND_HEIGHT)
}

/// Draws names with their signs at the top of `area`; gives the height they take.
fn draw_legend(area: &Area<'_>, entries: &[Entry<'_>]) -> Result<i32, Box<dyn std::error::Error>> {
    for ((row, x), (name, colour, look)) in legend_places(entries).into_iter().zip(entries) {
        let y = row * LEGEND_HEIGHT;
        let (colour, line) = (series(*colour), series(*colour).stroke_width(2));
        match look {
            Look::Crosses => area.draw(&Cross::new((x + 8, y + 10), 6, line))?,
            Look::Dashes => {
                for from in [x, x + 9] {
                    area.draw(&PathElement::new(
                        [(from, y + 10), (from + 6, y + 10)],
                        line,
                    ))?;
                }
            }
            Look::Points => {
                area.draw(&PathElement::new([(x, y + 10), (x + 16, y + 10)], line))?;
                area.draw(&Circle::new((x + 8, y + 10), 4, colour.filled()))?;
            }
            Look::Trace | Look::Faint => {
                let square = [(x + 2, y + 4), (x + 14, y + 16)];
                area.draw(&Rectangle::new(square, colour.filled()))?;
            }
        }
        let style = font(FONT)
            .color(&INK)
            .pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new((*name).to_owned(), (x + 20, y + 10), style))?;
    }
    Ok(legend_height(entries))
}

/// Draws on a transparent ground; colours are variables afterwards.
fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        // A string takes everything: what could fail is our own drawing off the area.
        let drawn = draw(&area).and_then(|()| Ok(area.present()?));
        debug_assert!(drawn.is_ok(), "{drawn:?}");
    }
    themed(&text)
}

fn font(size: u32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(size), FontStyle::Normal)
}

/// As short as it can be.
fn number(value: f64) -> String {
    let decimals = if value.abs() >= 10.0 || value == 0.0 {
        1
    } else {
        3
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

const PLOT_WIDTH: u32 = 600;
const PLOT_HEIGHT: u32 = 280;
const FONT: u32 = 14;
/// Of most characters in this size, pixels.
const CHARACTER_WIDTH: i32 = 7;
const ROW_HEIGHT: i32 = 24;
const LEGEND_HEIGHT: i32 = 22;
/// Room for the remark behind a full bar.
const REMARK_WIDTH: i32 = 130;
