//! SVG plots: panels side by side, both axes logarithmic.

use std::ops::Range;
use std::path::Path;

use anyhow::{anyhow, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::record::file_stem;

pub struct Series {
    pub label: String,
    /// Curves that belong together have one colour.
    pub colour: usize,
    pub line: Line,
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Solid,
    Dashed,
    Dotted,
}

pub struct Panel {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    /// How values of y are written.
    pub unit: fn(f64) -> String,
    pub series: Vec<Series>,
}

const COLOURS: [RGBColor; 2] = [RGBColor(31, 119, 180), RGBColor(214, 102, 14)];
const PANEL: (u32, u32) = (560, 420);

/// Writes a benchmark's panels as one file of a folder, and says where.
pub fn draw(folder: &Path, name: &str, panels: &[Panel]) -> Result<()> {
    let file = folder.join(format!("{}.svg", file_stem(name)));
    draw_file(&file, panels)?;
    println!("{}\n", file.display());
    Ok(())
}

fn draw_file(file: &Path, panels: &[Panel]) -> Result<()> {
    let width = PANEL.0 * u32::try_from(panels.len())?;
    let root = SVGBackend::new(file, (width, PANEL.1)).into_drawing_area();
    let drawn = (|| {
        root.fill(&WHITE)?;
        for (panel, area) in panels.iter().zip(root.split_evenly((1, panels.len()))) {
            draw_panel(panel, &area)?;
        }
        root.present()
    })();
    drawn.map_err(|error| anyhow!("{}: {error}", file.display()))
}

type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw_panel<'a>(panel: &Panel, area: &DrawingArea<SVGBackend<'a>, Shift>) -> Drawn<'a> {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let (x, y) = (span(points().map(|point| point.0)), span(points().map(|point| point.1)));
    // Room for the legend above the curves.
    let y = y.start..y.end * (y.end / y.start).powf(0.08 * panel.series.len() as f64);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(72)
        .build_cartesian_2d(x.log_scale(), y.log_scale())?;
    chart
        .configure_mesh()
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| (panel.unit)(*y))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    for series in &panel.series {
        let style = COLOURS[series.colour % COLOURS.len()].stroke_width(2);
        let points = series.points.iter().copied();
        let drawn = match series.line {
            Line::Solid => chart.draw_series(LineSeries::new(points, style))?,
            Line::Dashed => chart.draw_series(DashedLineSeries::new(points, 8, 4, style))?,
            Line::Dotted => chart.draw_series(DashedLineSeries::new(points, 2, 4, style))?,
        };
        let [a, b, c] = pieces(series.line);
        let piece = move |(from, to): (i32, i32)| PathElement::new(vec![(from, 0), (to, 0)], style);
        drawn
            .label(&series.label)
            .legend(move |start| EmptyElement::at(start) + piece(a) + piece(b) + piece(c));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
}

/// Where the three pieces of a line in the legend begin and end.
fn pieces(line: Line) -> [(i32, i32); 3] {
    match line {
        Line::Solid => [(0, 6), (6, 12), (12, 18)],
        Line::Dashed => [(0, 5), (7, 12), (14, 19)],
        Line::Dotted => [(0, 2), (8, 10), (16, 18)],
    }
}

/// What a logarithmic axis has to show; never empty.
fn span(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| *value > 0.0) {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return 1.0..10.0;
    }
    low / 1.3..high * 1.3
}

/// 1, 10, 1k, 10k, 1M.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{v}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_its_curves_and_texts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plot.svg");
        let series = |label: &str, colour, line| Series {
            label: label.to_owned(),
            colour,
            line,
            points: vec![(1.0, 1e-5), (1000.0, 1e-3), (1e6, 2.0)],
        };
        let panel = Panel {
            title: "latency".to_owned(),
            x: "batch",
            y: "seconds",
            unit: |v| format!("{v} s"),
            series: vec![series("by hand", 0, Line::Solid), series("SQL", 1, Line::Dashed)],
        };
        draw_file(&file, &[panel]).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        for part in ["by hand", "SQL", "latency", "batch", "#D6660E"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}
