//! The figures that must be reached, what was measured, and whether it is enough.
//!
//! Reads the JSON lines of one folder, so that the benchmarks may have run one by one. Where a figure
//! has several measurements, the worst decides, and is named.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{json, Value};

use crate::results::{middle, ratio, Group, Results};

pub const NAME: &str = "verdicts";

/// What is to be reached.
struct Figure {
    name: &'static str,
    bound: Bound,
    must: f64,
    aim: f64,
    unit: Unit,
    measure: fn(&Results) -> Vec<Measured>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtMost,
    AtLeast,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Ratio,
    Seconds,
    Milliseconds,
    Mebibytes,
    PerSecond,
}

/// One measurement of a figure.
struct Measured {
    what: String,
    value: f64,
}

const FIGURES: &[Figure] = &[
    by_hand("SQL / hand-written, E1, every batch size, 1 worker", |results| {
        closed_ratios(results, "engine/E1")
    }),
    by_hand("SQL / hand-written, E2, every batch size, 1 worker", |results| {
        closed_ratios(results, "engine/E2")
    }),
    by_hand("SQL / hand-written, reach, every batch size, 1 worker", |results| {
        closed_ratios(results, "engine/reach")
    }),
    by_hand("SQL / hand-written, labels, every batch size, 1 worker", |results| {
        closed_ratios(results, "engine/labels")
    }),
    by_hand("SQL / hand-written, tc, every batch size, 1 worker", |results| {
        closed_ratios(results, "engine/tc")
    }),
    by_hand("SQL / hand-written, join3, every batch size, 1 worker", |results| {
        closed_ratios(results, "engine/join3")
    }),
    at_least("2 workers / 1, E1 1M/10M, batches of 1,000 and more", 1.3, 1.7, Unit::Ratio, scaling),
    at_least(
        "2 processes / 1, E1 1M/10M, batches of 1,000 and more",
        1.3,
        1.7,
        Unit::Ratio,
        spread,
    ),
    at_most("memory SQL / hand-written", 1.5, 1.0, Unit::Ratio, memory),
    at_most("system latency at 1,000 tx/s, median", 3.0, 1.0, Unit::Milliseconds, |results| {
        latencies(results, "p50")
    }),
    at_most("system latency at 1,000 tx/s, 99 %", 20.0, 5.0, Unit::Milliseconds, |results| {
        latencies(results, "p99")
    }),
    at_least(
        "row changes/s, aggregate view, 10,000-row transactions",
        2e5,
        5e5,
        Unit::PerSecond,
        throughput,
    ),
    at_least("writers with 10 views / none, 8 clients", 0.9, 0.97, Unit::Ratio, writers),
    at_most("growth, 3M edges / 10k edges, one deletion", 2.0, 1.0, Unit::Ratio, growth),
    at_most("TTC Q2 at 256, CREATE to first read", 5.0, 2.5, Unit::Seconds, ttc_first_reads),
    at_most("TTC Q2 at 256, COMMIT to fresh read, 90 %", 8.0, 5.0, Unit::Milliseconds, ttc_changes),
    at_least("attach, rows/s", 5e5, 2e6, Unit::PerSecond, attach),
    at_most("memory at rest, 1 view over 500k orders", 150.0, 100.0, Unit::Mebibytes, |results| {
        resident(results, 1)
    }),
    at_most("memory at rest, 10 views", 200.0, 130.0, Unit::Mebibytes, |results| {
        resident(results, 10)
    }),
    at_most("memory at rest, 40 views", 350.0, 200.0, Unit::Mebibytes, |results| {
        resident(results, 40)
    }),
    at_most("catch-up after 12 s of load, 10 views", 1.0, 0.3, Unit::Seconds, |results| {
        catch_up(results, 10)
    }),
    at_most("catch-up after 12 s of load, 40 views", 4.0, 1.0, Unit::Seconds, |results| {
        catch_up(results, 40)
    }),
    at_most("many rows of a view, with a table of changes / without", 1.6, 1.3, Unit::Ratio, kept),
    at_least("updates of orders with 10 views / none", 0.93, 0.97, Unit::Ratio, updates),
    at_most("a change until all of 100 views are fresh", 5.0, 2.0, Unit::Milliseconds, hundred),
    at_most("restart, 3 views over 5M orders, all fresh", 5.0, 3.0, Unit::Seconds, |results| {
        back_after(results, "restart", (false, false))
    }),
    at_most("the same with checkpoints", 2.0, 0.7, Unit::Seconds, |results| {
        back_after(results, "restart", (true, false))
    }),
    at_most("engine killed under load, there", 5.0, 1.0, Unit::Seconds, |results| {
        back_after(results, "engine kill", (true, true))
    }),
    at_most("99 % of latencies, with checkpoints / without", 1.3, 1.1, Unit::Ratio, |results| {
        checkpoints(results, "latency_ratio")
    }),
    at_least(
        "rows/s at full load, with checkpoints / without",
        0.9,
        0.97,
        Unit::Ratio,
        |results| checkpoints(results, "throughput_ratio"),
    ),
    at_least("attach alone, aggregate, rows/s", 5e6, 8e6, Unit::PerSecond, |results| {
        attach_alone(results, "aggregate")
    }),
    at_least("attach alone, join, rows/s", 1.5e6, 3e6, Unit::PerSecond, |results| {
        attach_alone(results, "join")
    }),
    at_least("attach alone, recursion, rows/s", 1e6, 2e6, Unit::PerSecond, |results| {
        attach_alone(results, "recursion")
    }),
];

/// The time that SQL takes, where a program written by hand takes 1.
const fn by_hand(name: &'static str, measure: fn(&Results) -> Vec<Measured>) -> Figure {
    at_most(name, 1.2, 1.0, Unit::Ratio, measure)
}

const fn at_most(
    name: &'static str,
    must: f64,
    aim: f64,
    unit: Unit,
    measure: fn(&Results) -> Vec<Measured>,
) -> Figure {
    Figure { name, bound: Bound::AtMost, must, aim, unit, measure }
}

const fn at_least(
    name: &'static str,
    must: f64,
    aim: f64,
    unit: Unit,
    measure: fn(&Results) -> Vec<Measured>,
) -> Figure {
    Figure { name, bound: Bound::AtLeast, must, aim, unit, measure }
}

// ---- what was measured -----------------------------------------------------------------------

fn measured(what: impl Into<String>, value: Option<f64>) -> Option<Measured> {
    Some(Measured { what: what.into(), value: value? })
}

/// `by hand` and `SQL` as rates: the ratio of their times is that of the rates the other way round.
fn closed_ratios(results: &Results, name: &str) -> Vec<Measured> {
    let is_wanted = |line: &Value| line["name"] == name && line["workers"] == 1;
    let groups = results.groups("closed", is_wanted, &["nodes", "edges", "batch"]);
    let ratio_of = |(key, lines): (Vec<String>, Group)| {
        let ratio = ratio(&lines, "swaps_per_second", "side", (&json!("hand"), &json!("sql")));
        measured(format!("{}/{} in batches of {}", key[0], key[1], key[2]), ratio)
    };
    groups.into_iter().filter_map(ratio_of).collect()
}

fn scaling(results: &Results) -> Vec<Measured> {
    let is_wanted = |line: &Value| {
        line["name"] == "engine/E1"
            && line["side"] == "sql"
            && line["nodes"] == 1_000_000
            && line["batch"].as_u64().is_some_and(|batch| batch >= 1000)
    };
    let groups = results.groups("closed", is_wanted, &["batch"]);
    let ratio_of = |(key, lines): (Vec<String>, Group)| {
        let ratio = ratio(&lines, "swaps_per_second", "workers", (&json!(2), &json!(1)));
        measured(format!("batches of {}", key[0]), ratio)
    };
    groups.into_iter().filter_map(ratio_of).collect()
}

fn spread(results: &Results) -> Vec<Measured> {
    let is_wanted = |line: &Value| {
        line["name"] == "engine/E1"
            && line["nodes"] == 1_000_000
            && line["batch"].as_u64().is_some_and(|batch| batch >= 1000)
    };
    let groups = results.groups("spread", is_wanted, &["batch"]);
    let ratio_of = |(key, lines): (Vec<String>, Group)| {
        let of = (&json!("2 processes"), &json!("1 process"));
        let ratio = ratio(&lines, "swaps_per_second", "placement", of);
        measured(format!("batches of {}", key[0]), ratio)
    };
    groups.into_iter().filter_map(ratio_of).collect()
}

fn memory(results: &Results) -> Vec<Measured> {
    let groups = results.groups("load", |line| line["workers"] == 1, &["name", "nodes", "edges"]);
    let ratio_of = |(key, lines): (Vec<String>, Group)| {
        let ratio = ratio(&lines, "bytes", "side", (&json!("sql"), &json!("hand")));
        measured(format!("{} {}/{}", key[0].trim_matches('"'), key[1], key[2]), ratio)
    };
    groups.into_iter().filter_map(ratio_of).collect()
}

fn latencies(results: &Results, percentile: &str) -> Vec<Measured> {
    let groups = results.groups("latency", |line| line["offered_per_second"] == 1000, &["view"]);
    let latency_of = |(key, lines): (Vec<String>, Group)| {
        let nanoseconds = lines.last()?["visible_ns"][percentile].as_f64();
        measured(format!("{} view", key[0].trim_matches('"')), nanoseconds.map(|ns| ns / 1e6))
    };
    groups.into_iter().filter_map(latency_of).collect()
}

fn throughput(results: &Results) -> Vec<Measured> {
    let is_wanted =
        |line: &Value| line["view"] == "aggregate" && line["rows_per_transaction"] == 10_000;
    let groups = results.groups("throughput", is_wanted, &["rows"]);
    let rate_of = |(key, lines): (Vec<String>, Group)| {
        measured(format!("{} rows", key[0]), middle(&lines, "changes_per_second"))
    };
    groups.into_iter().filter_map(rate_of).collect()
}

fn writers(results: &Results) -> Vec<Measured> {
    let groups = results.groups("writers", |_| true, &["scale"]);
    let ratio_of = |(key, lines): (Vec<String>, Group)| {
        let ratio = ratio(&lines, "transactions_per_second", "views", (&json!(10), &json!(0)));
        measured(format!("scale {}", key[0]), ratio)
    };
    groups.into_iter().filter_map(ratio_of).collect()
}

/// Of what a reader waits for, and of the worker's own time.
fn growth(results: &Results) -> Vec<Measured> {
    let groups = results.groups("growth", |_| true, &["name"]);
    let lines: Group = groups.into_values().flatten().collect();
    let of = |what: &str, field: &str| {
        let sizes = (&json!(3_000_000), &json!(10_000));
        measured(what, ratio(&lines, field, "edges", sizes))
    };
    [of("COMMIT to a fresh read", "latency_ns"), of("worker", "work_ns")]
        .into_iter()
        .flatten()
        .collect()
}

fn ttc_first_reads(results: &Results) -> Vec<Measured> {
    ttc(results, |line| line["first_read_seconds"].as_f64())
}

fn ttc_changes(results: &Results) -> Vec<Measured> {
    ttc(results, |line| Some(line["read_ns"]["p90"].as_f64()? / 1e6))
}

/// Of the second query's texts, as views over the largest network.
fn ttc(results: &Results, figure: fn(&Value) -> Option<f64>) -> Vec<Measured> {
    let is_wanted = |line: &Value| {
        let is_second = line["query"].as_str().is_some_and(|query| query.starts_with("Q2"));
        is_second && line["by"] == "view" && line["factor"] == 256
    };
    let groups = results.groups("ttc", is_wanted, &["query"]);
    let figure_of = |(key, lines): (Vec<String>, Group)| {
        measured(key[0].trim_matches('"'), figure(lines.last()?))
    };
    groups.into_iter().filter_map(figure_of).collect()
}

fn attach(results: &Results) -> Vec<Measured> {
    let groups = results.groups("attach", |_| true, &["view", "attach"]);
    let rate_of = |(key, lines): (Vec<String>, Group)| {
        let what = format!("{}, {}", key[0].trim_matches('"'), key[1].trim_matches('"'));
        measured(what, middle(&lines, "rows_per_second"))
    };
    groups.into_iter().filter_map(rate_of).collect()
}

/// What the worker has for itself.
fn resident(results: &Results, views: u32) -> Vec<Measured> {
    let is_wanted = |line: &Value| line["views"] == views && line["moment"] == "rest";
    by_orders(results, ("views memory", "mebibytes"), is_wanted)
}

fn catch_up(results: &Results, views: u32) -> Vec<Measured> {
    by_orders(results, ("views load", "catch_up_seconds"), |line| line["views"] == views)
}

/// Until all views are fresh after something, where their state is saved and where they are computed by a process.
fn back_after(
    results: &Results,
    event: &str,
    (are_saved, is_process): (bool, bool),
) -> Vec<Measured> {
    let is_wanted = |line: &Value| {
        let is = |what: &str| line[what].as_bool().unwrap_or(false);
        line["after"] == event && is("are_saved") == are_saved && is("is_process") == is_process
    };
    by_orders(results, ("start", "all_seconds"), is_wanted)
}

/// The middle of a field of the lines of a kind that `is_wanted`, for each size of the tables.
fn by_orders(
    results: &Results,
    (kind, field): (&str, &str),
    is_wanted: impl Fn(&Value) -> bool,
) -> Vec<Measured> {
    let groups = results.groups(kind, is_wanted, &["orders"]);
    let middle_of = |(key, lines): (Vec<String>, Group)| {
        measured(format!("{} orders", key[0]), middle(&lines, field))
    };
    groups.into_iter().filter_map(middle_of).collect()
}

fn checkpoints(results: &Results, figure: &str) -> Vec<Measured> {
    let groups = results.groups("checkpoints", |line| line["side"] == "with", &["side"]);
    let figure_of =
        |(_, lines): (Vec<String>, Group)| measured("two views", lines.last()?[figure].as_f64());
    groups.into_iter().filter_map(figure_of).collect()
}

/// The cost of keeping changes.
fn kept(results: &Results) -> Vec<Measured> {
    let groups = results.groups("changes", |line| line["side"] == "changes", &["side"]);
    let cost_of = |(_, lines): (Vec<String>, Group)| {
        measured("5,000 rows at once", lines.last()?["cost_of_many"].as_f64())
    };
    groups.into_iter().filter_map(cost_of).collect()
}

fn updates(results: &Results) -> Vec<Measured> {
    let groups = results.groups("views load", |_| true, &["orders"]);
    let ratio_of = |(key, lines): (Vec<String>, Group)| {
        let ratio = ratio(&lines, "transactions_per_second", "views", (&json!(10), &json!(0)));
        measured(format!("{} orders", key[0]), ratio)
    };
    groups.into_iter().filter_map(ratio_of).collect()
}

fn hundred(results: &Results) -> Vec<Measured> {
    let groups = results.groups("views change", |line| line["views"] == 100, &["form"]);
    let latency_of = |(key, lines): (Vec<String>, Group)| {
        let nanoseconds = lines.last()?["latency"]["all_ns"]["p50"].as_f64();
        measured(key[0].trim_matches('"'), nanoseconds.map(|ns| ns / 1e6))
    };
    groups.into_iter().filter_map(latency_of).collect()
}

fn attach_alone(results: &Results, view: &str) -> Vec<Measured> {
    let groups = results.groups("start attach", |line| line["view"] == view, &["base_rows"]);
    let rate_of = |(key, lines): (Vec<String>, Group)| {
        measured(format!("{} rows", key[0]), middle(&lines, "rows_per_second"))
    };
    groups.into_iter().filter_map(rate_of).collect()
}

// ---- verdicts --------------------------------------------------------------------------------

/// A figure with its worst measurement.
struct Verdict {
    figure: &'static Figure,
    worst: Option<Measured>,
}

impl Figure {
    fn is_reached(&self, value: f64) -> bool {
        match self.bound {
            Bound::AtMost => value <= self.must,
            Bound::AtLeast => value >= self.must,
        }
    }

    fn judge(&'static self, results: &Results) -> Verdict {
        let is_worse = |a: &Measured, b: &Measured| match self.bound {
            Bound::AtMost => a.value > b.value,
            Bound::AtLeast => a.value < b.value,
        };
        let worst = (self.measure)(results).into_iter().reduce(|worst, next| {
            if is_worse(&next, &worst) {
                next
            } else {
                worst
            }
        });
        Verdict { figure: self, worst }
    }

    fn sign(&self) -> &'static str {
        match self.bound {
            Bound::AtMost => "≤",
            Bound::AtLeast => "≥",
        }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Ratio => format!("{value:.2}"),
            Unit::Seconds => format!("{value:.1} s"),
            Unit::Milliseconds => format!("{value:.1} ms"),
            Unit::Mebibytes => format!("{value:.0} MiB"),
            Unit::PerSecond if value >= 1e6 => format!("{:.2}M", value / 1e6),
            Unit::PerSecond => format!("{:.0}k", value / 1e3),
        }
    }
}

impl Verdict {
    fn word(&self) -> &'static str {
        match &self.worst {
            None => "not measured",
            Some(worst) if self.figure.is_reached(worst.value) => "holds",
            Some(_) => "does not hold",
        }
    }

    /// Figure, must, aim, measured, verdict, what was worst.
    fn columns(&self) -> [String; 6] {
        let Figure { name, unit, must, aim, .. } = self.figure;
        let bound = |value: f64| format!("{} {}", self.figure.sign(), unit.show(value));
        let (value, what) = match &self.worst {
            None => ("–".to_owned(), String::new()),
            Some(worst) => (unit.show(worst.value), worst.what.clone()),
        };
        [(*name).to_owned(), bound(*must), bound(*aim), value, self.word().to_owned(), what]
    }

    fn describe(&self) -> Value {
        let Figure { name, must, aim, .. } = self.figure;
        json!({
            "kind": "verdict", "name": name, "sign": self.figure.sign(), "must": must, "aim": aim,
            "measured": self.worst.as_ref().map(|worst| worst.value),
            "worst": self.worst.as_ref().map(|worst| &worst.what), "verdict": self.word(),
        })
    }
}

const HEADER: [&str; 6] = ["figure", "must", "aim", "measured", "verdict", "worst"];

/// Judges what a folder holds: prints the table and writes it as `verdicts.json` and `verdicts.md`.
pub fn judge(folder: &Path) -> Result<()> {
    let results = Results::read(folder)?;
    let verdicts: Vec<Verdict> = FIGURES.iter().map(|figure| figure.judge(&results)).collect();
    print!("{}", plain_table(&verdicts));
    let described: Vec<Value> = verdicts.iter().map(Verdict::describe).collect();
    let machines: Vec<&Value> = results.machines.iter().map(|(_, machine)| machine).collect();
    let all = json!({ "machine": machines.last(), "verdicts": described });
    fs::write(folder.join("verdicts.json"), format!("{all:#}\n"))?;
    let file = folder.join("verdicts.md");
    fs::write(&file, markdown(&verdicts, &results))?;
    println!("{}\n", file.display());
    Ok(())
}

fn plain_table(verdicts: &[Verdict]) -> String {
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(verdicts.iter().map(Verdict::columns));
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn markdown(verdicts: &[Verdict], results: &Results) -> String {
    let mut text = String::from("# Benchmarks: what must be reached, and what was measured\n\n");
    let row = |cells: &[String; 6]| format!("| {} |\n", cells.join(" | "));
    text += &row(&HEADER.map(str::to_owned));
    text += "|---|---|---|---|---|---|\n";
    for verdict in verdicts {
        text += &row(&verdict.columns());
    }
    text += "\nWhere a figure has several measurements, the worst is judged, and named.\n\n## Machine\n\n";
    let Some((_, machine)) = results.machines.last() else { return text };
    let show = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for key in ["processor", "cores", "memory", "kernel", "postgresql"] {
        let _ = writeln!(text, "- {key}: {}", show(&machine[key]));
    }
    text += "\n| measurements | commit | load average before |\n|---|---|---|\n";
    for (file, machine) in &results.machines {
        let (commit, load) = (show(&machine["commit"]), show(&machine["load_average"]));
        let _ = writeln!(text, "| {file} | {commit} | {load} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_measurement_decides() {
        let folder = tempfile::tempdir().unwrap();
        let line = |view: &str, p50: u64, p99: u64| {
            let line = json!({
                "kind": "latency", "view": view, "offered_per_second": 1000,
                "visible_ns": { "p50": p50, "p99": p99 },
            });
            format!("{line}\n")
        };
        let machine = json!({ "kind": "machine", "cores": 2, "commit": "abc" });
        let lines = [
            format!("{machine}\n"),
            line("join", 2_000_000, 4_000_000),
            line("aggregate", 1_000_000, 30_000_000),
        ];
        fs::write(folder.path().join("system-latency.jsonl"), lines.concat()).unwrap();
        judge(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("verdicts.md")).unwrap();
        for row in [
            "median | ≤ 3.0 ms | ≤ 1.0 ms | 2.0 ms | holds | join view |",
            "99 % | ≤ 20.0 ms | ≤ 5.0 ms | 30.0 ms | does not hold | aggregate view |",
            "attach, rows/s | ≥ 500k | ≥ 2.00M | – | not measured |",
            "| system-latency | abc |",
        ] {
            assert!(text.contains(row), "no {row} in {text}");
        }
    }

    #[test]
    fn views_are_judged_by_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let memory = |views: u32, moment: &str, mebibytes: f64| json!({ "kind": "views memory", "orders": 500, "views": views, "moment": moment, "mebibytes": mebibytes });
        let change = |form: &str, nanoseconds: u64| {
            json!({
                "kind": "views change", "views": 100, "form": form,
                "latency": { "all_ns": { "p50": nanoseconds } },
            })
        };
        let load = |views: u32, seconds: f64| json!({ "kind": "views load", "orders": 500, "views": views, "catch_up_seconds": seconds });
        let lines = [
            memory(10, "attached", 900.0),
            memory(10, "rest", 180.0),
            memory(40, "rest", 800.0),
            change("stacked", 7_000_000),
            change("side by side", 3_000_000),
            load(40, 3.0),
            load(40, 2.0),
            load(40, 9.0),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.path().join("system-views.jsonl"), text).unwrap();
        judge(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("verdicts.md")).unwrap();
        for row in [
            "10 views | ≤ 200 MiB | ≤ 130 MiB | 180 MiB | holds | 500 orders |",
            "40 views | ≤ 350 MiB | ≤ 200 MiB | 800 MiB | does not hold | 500 orders |",
            "fresh | ≤ 5.0 ms | ≤ 2.0 ms | 7.0 ms | does not hold | stacked |",
            "40 views | ≤ 4.0 s | ≤ 1.0 s | 3.0 s | holds | 500 orders |",
        ] {
            assert!(text.contains(row), "no {row} in {text}");
        }
    }

    #[test]
    fn the_contests_second_query_is_judged_as_a_view_of_the_largest_network() {
        let folder = tempfile::tempdir().unwrap();
        let line = |query: &str, by: &str, factor: u32, seconds: f64| {
            let line = json!({
                "kind": "ttc", "query": query, "by": by, "factor": factor,
                "first_read_seconds": seconds, "read_ns": { "p90": 7_000_000 },
            });
            format!("{line}\n")
        };
        let lines = [
            line("Q1", "view", 256, 9.0),
            line("Q2", "view", 64, 9.0),
            line("Q2", "triggers", 256, 9.0),
            line("Q2", "view", 256, 3.0),
            line("Q2, ties in the step", "view", 256, 4.0),
        ];
        fs::write(folder.path().join("system-ttc.jsonl"), lines.concat()).unwrap();
        judge(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("verdicts.md")).unwrap();
        for row in [
            "first read | ≤ 5.0 s | ≤ 2.5 s | 4.0 s | holds | Q2, ties in the step |",
            "fresh read, 90 % | ≤ 8.0 ms | ≤ 5.0 ms | 7.0 ms | holds |",
        ] {
            assert!(text.contains(row), "no {row} in {text}");
        }
    }

    #[test]
    fn ratios_are_taken_in_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = String::new();
        for (none, ten) in [(100.0, 90.0), (200.0, 190.0), (50.0, 20.0)] {
            for (views, rate) in [(0, none), (10, ten)] {
                let line = json!({
                    "kind": "writers", "scale": 10, "views": views, "transactions_per_second": rate,
                });
                lines += &format!("{line}\n");
            }
        }
        fs::write(folder.path().join("system-writers.jsonl"), lines).unwrap();
        let results = Results::read(folder.path()).unwrap();
        let found = writers(&results);
        assert!((found[0].value - 0.9).abs() < 1e-9, "{}", found[0].value);
    }
}
