//! Many views: what 1, 10 and 40 of them over one join of orders with their customers cost, and how soon a change is in
//! all of a hundred.
//!
//! The views of a server differ in their filter. Each number of views, and none, has a server of its own, so that
//! no worker reads the WAL of another's load; the same load runs on one after the other (`side`). After each run the
//! views catch up before the next one begins. Then orders are changed one by one and each change is looked for in
//! what one view and what all views show (`followed`). A hundred views, beside one another, with groups in common, and each
//! over the one before, are followed in the same way, without a load (`many`).
//!
//! The memory that is judged is what the worker has for itself when it rests. The other parts of what is resident are
//! the program, which all processes have together, and those of the server's buffers that the worker has touched.

mod followed;
mod many;
mod side;

use anyhow::Result;
use harness::cluster::Settings;
use harness::timing::{median, readable};
use serde_json::json;

use super::memory::{wait_for_rest, Memory, MEBIBYTE};
use super::orders;
use super::setting::Setting;
use super::writers::turn;
use crate::compare::{nanoseconds, Ratio};
use crate::plot::{draw, Line, Panel, Series};
use crate::record::Recorder;
use side::Side;

pub const NAME: &str = "system/views";

const ROWS: u32 = 500_000;
const QUICK_ROWS: u32 = 20_000;
const SECONDS: f64 = 12.0;
const QUICK_SECONDS: f64 = 1.0;
/// Numbers of views that are compared with none.
const NUMBERS: [u32; 3] = [1, 10, 40];
const QUICK_NUMBERS: [u32; 2] = [1, 5];
/// Orders that are changed one by one.
const CHANGES: u32 = 1000;
const QUICK_CHANGES: u32 = 20;

/// What the server would do at moments of its own falls on all alike, or on none.
const CALM: Settings = &[("autovacuum", "off"), ("checkpoint_timeout", "1h")];

/// Prints tables, records every run and draws what grows with the number of views.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    let orders = setting.rows(ROWS, QUICK_ROWS);
    let mut numbers = vec![0];
    numbers.extend(setting.views(&NUMBERS, &QUICK_NUMBERS));
    println!("{NAME}: views over a join of {orders} orders that differ in their filter");
    let names: Vec<String> = numbers.iter().map(|views| format!("views-{views}")).collect();
    setting.with_clusters(&names, CALM, |clusters, folder| {
        let sides = clusters.iter().zip(&numbers);
        let sides = sides.map(|(cluster, views)| Side::create(cluster, folder, *views, orders));
        let mut sides = sides.collect::<Result<Vec<Side>>>()?;
        run_in_turn(setting, &mut sides)?;
        for side in &mut sides {
            side.follow(setting.choose(CHANGES, QUICK_CHANGES))?;
        }
        rest(&mut sides)?;
        for followed in sides.iter_mut().filter_map(|side| side.followed.as_mut()) {
            followed.verify()?;
        }
        record(&sides, orders, recorder)?;
        print_memory(&sides, orders);
        print_times(&sides, recorder)?;
        draw_growth(setting, &sides)
    })?;
    many::measure(setting, orders, recorder)
}

fn run_in_turn(setting: &Setting, sides: &mut [Side]) -> Result<()> {
    let seconds = setting.duration(SECONDS, QUICK_SECONDS)?.as_secs().max(1) as u32;
    for pair in 0..setting.pairs() {
        for index in turn(pair, sides.len()) {
            sides[index].run(seconds)?;
        }
    }
    Ok(())
}

/// All workers at once: each waits for itself only.
fn rest(sides: &mut [Side]) -> Result<()> {
    let followed = sides.iter_mut().filter_map(|side| side.followed.as_mut());
    wait_for_rest(followed.map(|followed| &mut followed.client))?;
    for side in sides {
        side.rested = side.memory()?;
    }
    Ok(())
}

fn base_rows(orders: u32) -> u64 {
    u64::from(orders) + u64::from(orders::customers(orders))
}

fn record(sides: &[Side], orders: u32, recorder: &mut Recorder) -> Result<()> {
    for side in sides {
        let views = side.views;
        for (run, (rate, delay)) in side.rates.iter().zip(&side.delays).enumerate() {
            recorder.write(&json!({
                "kind": "views load", "name": NAME, "views": views, "orders": orders, "run": run,
                "transactions_per_second": rate, "catch_up_seconds": delay.as_secs_f64(),
            }))?;
        }
        let moments = side.attached.iter().map(|memory| ("attached", memory));
        let moments = moments.chain(side.loaded.iter().map(|memory| ("loaded", memory)));
        for (moment, memory) in moments.chain(side.rested.iter().map(|memory| ("rest", memory))) {
            recorder.write(&json!({
                "kind": "views memory", "name": NAME, "views": views, "orders": orders,
                "moment": moment, "memory": memory.describe(base_rows(orders)),
                "mebibytes": memory.anonymous as f64 / MEBIBYTE,
            }))?;
        }
        let (Some(followed), Some(latencies)) = (&side.followed, &side.latencies) else { continue };
        recorder.write(&json!({
            "kind": "views change", "name": NAME, "views": views, "orders": orders,
            "form": "side by side", "create_seconds": followed.creation.as_secs_f64(),
            "attach_seconds": followed.attach.as_secs_f64(), "latency": latencies.describe(),
        }))?;
    }
    Ok(())
}

fn print_memory(sides: &[Side], orders: u32) {
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "views", "attached", "loaded", "at rest", "per row", "state", "file", "shared", "peak"
    );
    for side in sides {
        let (Some(attached), Some(rested)) = (side.attached, side.rested) else { continue };
        let loaded: Vec<u64> = side.loaded.iter().map(|memory| memory.anonymous).collect();
        println!(
            "{:>6} {:>9} {:>9} {:>9} {:>7.0} B {:>9} {:>9} {:>9} {:>9}",
            side.views,
            mebibytes(attached.anonymous as f64),
            mebibytes(median(&loaded) as f64),
            mebibytes(rested.anonymous as f64),
            rested.per_row(base_rows(orders)),
            mebibytes(rested.state as f64),
            mebibytes(rested.file as f64),
            mebibytes(rested.shared as f64),
            mebibytes(rested.peak as f64),
        );
    }
    println!(
        "(the worker's own memory; state: state_bytes of the views; shared: buffers it touched)"
    );
}

fn print_times(sides: &[Side], recorder: &mut Recorder) -> Result<()> {
    println!(
        "{:>6} {:>9} {:>6}  {:<14} {:>9}  {:>9} {:>9}  {:>9} {:>9}  {:>9}",
        "views", "tps", "ratio", "spread", "catch-up", "one", "99 %", "all", "99 %", "idle"
    );
    let Some(none) = sides.first() else { return Ok(()) };
    for side in sides {
        let ratio = Ratio::of_pairs(&side.rates, &none.rates);
        let columns = side.latencies.as_ref().map_or_else(String::new, |latencies| {
            let [one, all, idle] = [&latencies.one, &latencies.all, &latencies.idle].map(|times| {
                [0.5, 0.99].map(|quantile| nanoseconds(times.value_at_quantile(quantile) as f64))
            });
            format!("{:>9} {:>9}  {:>9} {:>9}  {:>9}", one[0], one[1], all[0], all[1], idle[0])
        });
        println!(
            "{:>6} {:>9.0} {:<22} {:>9}  {columns}",
            side.views,
            median(&side.rates),
            ratio.to_string(),
            readable(median(&side.delays)),
        );
        recorder.write(&json!({
            "kind": "views ratio", "name": NAME, "views": side.views, "ratio": ratio.median,
            "spread": [ratio.least, ratio.greatest],
        }))?;
    }
    println!("(ratios to no views, by pairs; catch-up: from the load's end until all are fresh; one, all: from a COMMIT");
    println!(" to a read that shows it; idle: a read of all with nothing to wait for)");
    Ok(())
}

fn draw_growth(setting: &Setting, sides: &[Side]) -> Result<()> {
    let series = |label: &str, colour, line, value: &dyn Fn(&Side) -> Option<f64>| Series {
        label: label.to_owned(),
        colour,
        line,
        points: sides
            .iter()
            .filter_map(|side| Some((f64::from(side.views), value(side)?)))
            .filter(|(views, _)| *views > 0.0)
            .collect(),
    };
    let own = |memory: &Option<Memory>| Some(memory.as_ref()?.anonymous as f64);
    let memory = Panel {
        title: format!("{NAME}: the worker's own memory"),
        x: "views",
        y: "memory",
        unit: mebibytes,
        series: vec![
            series("attached", 1, Line::Solid, &|side| own(&side.attached)),
            series("at rest", 0, Line::Solid, &|side| own(&side.rested)),
            series("state_bytes", 0, Line::Dashed, &|side| {
                Some(side.rested.as_ref()?.state as f64)
            }),
        ],
    };
    let times = Panel {
        title: format!("{NAME}: until fresh"),
        x: "views",
        y: "time",
        unit: nanoseconds,
        series: vec![
            series("all, after a load", 1, Line::Solid, &|side| {
                Some(median(&side.delays).as_nanos() as f64)
            }),
            series("all, after a change", 0, Line::Solid, &|side| {
                Some(side.latencies.as_ref()?.all.value_at_quantile(0.5) as f64)
            }),
            series("one, after a change", 0, Line::Dashed, &|side| {
                Some(side.latencies.as_ref()?.one.value_at_quantile(0.5) as f64)
            }),
        ],
    };
    draw(setting.output, NAME, &[memory, times])
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / MEBIBYTE)
}
