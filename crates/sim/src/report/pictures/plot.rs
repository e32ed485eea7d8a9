//! Lines over an axis, and shares as bars, by plotters.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::theme::{GRID, INK, QUIET, series, themed};

/// Lines over a common axis.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Plot {
    pub(super) x: String,
    pub(super) y: String,
    /// Coloured bands behind the lines.
    pub(super) bands: Vec<Band>,
    pub(super) lines: Vec<Line>,
}

/// One line of a plot.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    /// Lines with one panel share a part of the picture, under this title.
    pub(super) panel: String,
    /// x, y, and half the width of y's interval.
    pub(super) points: Vec<(f64, f64, f64)>,
    pub(super) look: Look,
    /// Which colour, and which marks or dashes.
    pub(super) colour: usize,
}

/// The band that most of many lines lie within.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Band {
    /// x, and y from and to.
    pub(super) points: Vec<(f64, f64, f64)>,
    pub(super) colour: usize,
}

/// The look of a line.
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
    /// Dots: what was estimated.
    Dots,
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
        let panels = self.panels();
        let legend = legend_height(&self.entries());
        let height = match panels.len() {
            0 | 1 => PLOT_HEIGHT,
            many => {
                let rows = many.div_ceil(panel_columns(many));
                legend as u32 + rows as u32 * PANEL_HEIGHT + LEGEND_HEIGHT as u32
            }
        };
        svg((PLOT_WIDTH, height), |area| self.draw(area, &panels))
    }

    /// The titles of its parts, in order.
    fn panels(&self) -> Vec<&str> {
        let mut panels: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !panels.contains(&line.panel.as_str()) {
                panels.push(&line.panel);
            }
        }
        panels
    }

    /// The entries of a legend: each name once.
    fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for line in self.lines.iter().filter(|line| !line.name.is_empty()) {
            let entry = (line.name.as_str(), line.colour, line.look);
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        match entries.len() {
            // A single line needs no legend: the axis names it.
            0 | 1 => Vec::new(),
            _ => entries,
        }
    }

    fn draw(&self, area: &Area<'_>, panels: &[&str]) -> Drawn {
        let legend_height = draw_legend(area, &self.entries())?;
        let range = self.range();
        if let [] | [_] = panels {
            let lines: Vec<&Line> = self.lines.iter().collect();
            let frame = Frame {
                top: legend_height + 8,
                ..Frame::WHOLE
            };
            return self.draw_chart(area, &frame, &range, &lines);
        }
        let columns = panel_columns(panels.len());
        let rows = panels.len().div_ceil(columns);
        let (_, below) = area.split_vertically(legend_height);
        let bottom = below.dim_in_pixel().1 as i32 - LEGEND_HEIGHT;
        let (parts, rim) = below.split_vertically(bottom);
        let style = font(FONT)
            .color(&QUIET)
            .pos(Pos::new(HPos::Center, VPos::Center));
        let at = (PLOT_WIDTH as i32 / 2, LEGEND_HEIGHT / 2);
        rim.draw(&Text::new(self.x.clone(), at, style))?;
        for (place, (part, title)) in parts
            .split_evenly((rows, columns))
            .iter()
            .zip(panels)
            .enumerate()
        {
            let style = font(SMALL)
                .color(&INK)
                .pos(Pos::new(HPos::Left, VPos::Center));
            let at = (PANEL_LEFT, PANEL_TITLE_HEIGHT / 2);
            part.draw(&Text::new((*title).to_owned(), at, style))?;
            let own = self.lines.iter().filter(|line| line.panel == *title);
            let frame = Frame {
                // All panels share one scale: only those at the rim show it.
                has_y: place % columns == 0,
                ..Frame::PANEL
            };
            self.draw_chart(part, &frame, &range, &own.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// The range of all parts: from left to right, and up from zero.
    fn range(&self) -> [f64; 3] {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let bands = || self.bands.iter().flat_map(|band| &band.points);
        let across = || points().chain(bands()).map(|(x, ..)| *x);
        let left = across().fold(f64::INFINITY, f64::min).min(0.0);
        let right = across().fold(left, f64::max);
        let right = if right > left { right } else { left + 1.0 };
        let high = points().map(|(_, y, ci)| y + ci);
        let top = high
            .chain(bands().map(|(_, _, to)| *to))
            .fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.08 } else { 1.0 };
        [left, right, top]
    }

    fn draw_chart(
        &self,
        area: &Area<'_>,
        frame: &Frame,
        [left, right, top]: &[f64; 3],
        lines: &[&Line],
    ) -> Drawn {
        let mut chart = ChartBuilder::on(area)
            .margin_top(frame.top)
            .margin_right(16)
            .x_label_area_size(if frame.has_x { 44 } else { 24 })
            .y_label_area_size(frame.left)
            .build_cartesian_2d(*left..*right, 0.0..*top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .x_labels(frame.labels)
            .y_labels(frame.labels.min(6))
            .x_label_formatter(&|x| number(*x))
            .y_label_formatter(&|y| number(*y))
            .label_style(font(frame.font).color(&QUIET))
            .axis_desc_style(font(frame.font).color(&QUIET))
            .x_desc(if frame.has_x { self.x.as_str() } else { "" })
            .y_desc(if frame.has_y { self.y.as_str() } else { "" })
            .draw()?;
        for band in &self.bands {
            let there = band.points.iter().map(|(x, from, _)| (*x, *from));
            let back = band.points.iter().rev().map(|(x, _, to)| (*x, *to));
            let outline: Vec<(f64, f64)> = there.chain(back).collect();
            let fill = series(band.colour).mix(0.18).filled();
            chart.draw_series([Polygon::new(outline, fill)])?;
        }
        for line in lines {
            draw_line(&mut chart, line)?;
        }
        Ok(())
    }
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn draw_line(chart: &mut Chart<'_, '_>, line: &Line) -> Drawn {
    let colour = series(line.colour);
    let at = || line.points.iter().map(|(x, y, _)| (*x, *y));
    let style = match line.look {
        Look::Faint => colour.mix(0.35).stroke_width(1),
        Look::Dashes | Look::Dots => colour.stroke_width(1),
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
        Look::Dots => {
            chart.draw_series(DashedLineSeries::new(at(), 2, 4, style))?;
        }
        Look::Trace if is_dashed(line.colour) => {
            chart.draw_series(DashedLineSeries::new(at(), 8, 3, style))?;
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
        let marks = at().map(|at| EmptyElement::at(at) + mark(line.colour));
        chart.draw_series(marks)?;
    }
    Ok(())
}

/// The place of a chart in its area, and the labels around it.
struct Frame {
    top: i32,
    left: u32,
    font: u32,
    labels: usize,
    has_x: bool,
    has_y: bool,
}

impl Frame {
    const WHOLE: Self = Self {
        top: 8,
        left: 62,
        font: FONT,
        labels: 8,
        has_x: true,
        has_y: true,
    };
    const PANEL: Self = Self {
        top: PANEL_TITLE_HEIGHT,
        left: PANEL_LEFT as u32,
        font: SMALL,
        labels: 4,
        has_x: false,
        has_y: true,
    };
}

/// Few are large, many are small.
fn panel_columns(panels: usize) -> usize {
    match panels {
        0..=2 | 4 => 2,
        _ => 3,
    }
}

/// The mark of a series: another shape for each of eight.
fn mark(colour: usize) -> Polygon<(i32, i32)> {
    let shape: &[(i32, i32)] = match colour % 8 {
        0 => &[
            (-4, -2),
            (-2, -4),
            (2, -4),
            (4, -2),
            (4, 2),
            (2, 4),
            (-2, 4),
            (-4, 2),
        ],
        1 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2 => &[(0, -5), (5, 4), (-5, 4)],
        3 => &[(0, -6), (5, 0), (0, 6), (-5, 0)],
        4 => &[(0, 5), (5, -4), (-5, -4)],
        5 => &[(-6, -2), (6, -2), (6, 2), (-6, 2)],
        6 => &[(-2, -6), (2, -6), (2, 6), (-2, 6)],
        _ => &[
            (-5, -5),
            (0, -1),
            (5, -5),
            (1, 0),
            (5, 5),
            (0, 1),
            (-5, 5),
            (-1, 0),
        ],
    };
    Polygon::new(shape, series(colour).filled())
}

/// Whether a line over time is dashed, so that colour alone need not tell it.
fn is_dashed(colour: usize) -> bool {
    colour % 8 >= 4
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
            // A square, whatever the colour.
            .map(|(colour, part)| (part.as_str(), colour, Look::Faint))
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
    let (mut row, mut x) = (0, LEGEND_LEFT);
    let place = |(name, ..): &Entry<'_>| {
        let width = 34 + CHARACTER_WIDTH * name.chars().count() as i32;
        if x > LEGEND_LEFT && x + width > PLOT_WIDTH as i32 {
            (row, x) = (row + 1, LEGEND_LEFT);
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
        let number = *colour;
        let (colour, line) = (series(number), series(number).stroke_width(2));
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
            Look::Dots => {
                for from in [x, x + 6, x + 12] {
                    let dot = [(from, y + 10), (from + 2, y + 10)];
                    area.draw(&PathElement::new(dot, line))?;
                }
            }
            Look::Points => {
                area.draw(&PathElement::new([(x, y + 10), (x + 16, y + 10)], line))?;
                area.draw(&(EmptyElement::at((x + 8, y + 10)) + mark(number)))?;
            }
            Look::Trace if is_dashed(number) => {
                for from in [x, x + 9] {
                    let dash = [(from, y + 10), (from + 6, y + 10)];
                    area.draw(&PathElement::new(dash, line))?;
                }
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
/// Where there is less room.
const SMALL: u32 = 12;
const PANEL_HEIGHT: u32 = 190;
const PANEL_LEFT: i32 = 52;
const PANEL_TITLE_HEIGHT: i32 = 24;
/// Width of most characters in this size, pixels.
const CHARACTER_WIDTH: i32 = 7;
const ROW_HEIGHT: i32 = 24;
const LEGEND_HEIGHT: i32 = 22;
const LEGEND_LEFT: i32 = 4;
/// Room for the remark behind a full bar.
const REMARK_WIDTH: i32 = 130;

/// The most lines that a reader of one picture can tell apart.
pub(super) const LINES_MAX: usize = 8;
