//! The closed-loop curve: latency of a batch and throughput against the batch's size.

use std::path::Path;

use anyhow::Result;

use crate::compare::{nanoseconds, worker_count, Row};
use crate::plot::{draw, short, Line, Panel, Series};
use crate::workload::SideName;

/// Draws what a comparison measured.
pub fn draw_curve(name: &str, rows: &[Row], folder: &Path) -> Result<()> {
    let panels = [
        Panel {
            title: format!("{name}: median latency of a batch"),
            x: "swaps per batch",
            y: "latency",
            unit: nanoseconds,
            series: series(rows, |row, side| row.latency[side]),
        },
        Panel {
            title: format!("{name}: throughput"),
            x: "swaps per batch",
            y: "swaps per second",
            unit: short,
            series: series(rows, |row, side| row.swaps_per_second[side]),
        },
    ];
    draw(folder, name, &panels)
}

/// One curve per side and number of workers.
fn series(rows: &[Row], value: impl Fn(&Row, usize) -> f64) -> Vec<Series> {
    let mut workers: Vec<usize> = rows.iter().map(|row| row.workers).collect();
    workers.dedup();
    let mut all = Vec::new();
    for (line, workers) in [Line::Solid, Line::Dashed, Line::Dotted].into_iter().zip(workers) {
        for (side, name) in SideName::BOTH.into_iter().enumerate() {
            let rows = rows.iter().filter(|row| row.workers == workers);
            let points = rows.map(|row| (row.batch as f64, value(row, side))).collect();
            let label = format!("{}, {}", name.title(), worker_count(workers));
            all.push(Series { label, colour: side, line, points });
        }
    }
    all
}
