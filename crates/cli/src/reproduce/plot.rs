//! Charts as SVG.

use motet_lab::experiments::chart::{Chart, Series, Style};
use plotters::prelude::*;

use crate::error::Error;

const SIZE: (u32, u32) = (720, 420);

/// Told apart also by those who see few colours (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];

type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A chart as the text of an SVG file.
///
/// # Errors
/// [`Error::Failed`] when the chart cannot be drawn.
pub(super) fn svg(chart: &Chart) -> Result<String, Error> {
    let mut text = String::new();
    draw(chart, &mut text)
        .map_err(|error| Error::failed(format!("cannot draw {}: {error}", chart.title)))?;
    Ok(text)
}

fn draw(chart: &Chart, text: &mut String) -> Drawn {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let right = points().map(|(x, ..)| *x).fold(1.0, f64::max);
    let top = points()
        .map(|(_, y, ci)| y + ci)
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut context = ChartBuilder::on(&area)
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right * 1.02, 0.0..top * 1.25)?;
    context
        .configure_mesh()
        .x_desc(chart.x.as_str())
        .y_desc(chart.y.as_str())
        .light_line_style(WHITE)
        .label_style(("sans-serif", 13))
        .draw()?;
    for (place, series) in chart.series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        draw_series(&mut context, series, colour)?;
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .label_font(("sans-serif", 12))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .draw()?;
    drop(context);
    area.present()?;
    Ok(())
}

type Context<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn draw_series(context: &mut Context<'_, '_>, series: &Series, colour: RGBColor) -> Drawn {
    let line = series.points.iter().map(|(x, y, _)| (*x, *y));
    let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2));
    let circle = |x, y| Circle::new((x, y), 3, colour.filled());
    match series.style {
        Style::Trace => {
            let drawn = context.draw_series(LineSeries::new(line, &colour))?;
            drawn.label(&series.name).legend(key);
        }
        Style::Measured => {
            let drawn = context.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
            drawn.label(&series.name).legend(key);
            let points = series.points.iter();
            context.draw_series(points.map(|(x, y, _)| circle(*x, *y)))?;
            let bars = series.points.iter().map(|(x, y, ci)| {
                ErrorBar::new_vertical(*x, y - ci, *y, y + ci, colour.filled(), 6)
            });
            context.draw_series(bars)?;
        }
        Style::Paper => {
            let crosses = line.map(|at| Cross::new(at, 6, colour.stroke_width(2)));
            let drawn = context.draw_series(crosses)?;
            drawn
                .label(&series.name)
                .legend(move |(x, y)| Cross::new((x + 9, y), 5, colour.stroke_width(2)));
        }
        Style::Bound => {
            let dashes = DashedLineSeries::new(line, 6, 4, colour.stroke_width(1));
            let drawn = context.draw_series(dashes)?;
            drawn.label(&series.name).legend(key);
        }
    }
    Ok(())
}
