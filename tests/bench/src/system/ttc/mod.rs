//! Social Media: the queries of the Transformation Tool Contest 2018 as views, while people write, like and
//! befriend each other.
//!
//! Posts have comments, which have comments; persons like comments, and are friends of persons. The first query
//! (`q1.sql`) asks for the three posts with most points: ten for each comment below a post, however deep, and one
//! for each like of these. The second (`q2.sql`) asks for the three comments whose public holds together best:
//! persons who like the same comment and are friends belong together, and each such component adds the square of
//! its size to the comment's score. Among equal ones the newest come first. What `q2.sql` says first, who is tied to
//! whom by which comment, `q2_in_the_step.sql` says within its recursion.
//!
//! The networks (`network`) have the contest's sizes; what happens then (`change`) also takes likes and friendships
//! away, which the contest does not. Each query is kept up to date in databases of their own (`side`): as a
//! view, and by triggers that somebody has written for it, which see the same transactions and must answer the
//! same after each of them. Beside it: the query afresh.

mod change;
mod load;
mod network;
mod side;

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::timing::readable;
use hdrhistogram::Histogram;
use network::{Network, Sizes, SIZES};
use side::{Extent, Measured, Query, Way};

use super::setting::Setting;
use crate::compare::nanoseconds;
use crate::plot::{draw, Line, Panel, Series};
use crate::record::Recorder;

pub const NAME: &str = "system/ttc";

const FACTORS: [u32; 5] = [1, 4, 16, 64, 256];
const QUICK_FACTORS: [u32; 2] = [1, 8];
const SEED: u64 = 2018;

const QUERIES: [Query; 3] = [
    Query {
        name: "Q1",
        sql: include_str!("q1.sql"),
        by_hand: Some(include_str!("q1_by_hand.sql")),
    },
    Query {
        name: "Q2",
        sql: include_str!("q2.sql"),
        by_hand: Some(include_str!("q2_by_hand.sql")),
    },
    Query { name: "Q2, ties in the step", sql: include_str!("q2_in_the_step.sql"), by_hand: None },
];

/// What was measured of a query at one size: the view, and triggers where somebody has written them.
struct Point {
    query: &'static str,
    factor: u32,
    view: Measured,
    triggers: Option<Measured>,
}

/// Prints a table, records every line of it and draws the times against the size.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: Social Media (TTC 2018); changes are transactions of one to four events");
    print_header();
    let mut points = Vec::new();
    for factor in setting.sizes(&FACTORS, &QUICK_FACTORS) {
        let known = || SIZES.map(|sizes| sizes.factor.to_string()).join(", ");
        let sizes = SIZES.into_iter().find(|sizes| sizes.factor == factor);
        let sizes = sizes.with_context(|| format!("scale factors are {}", known()))?;
        points.extend(
            setting
                .with_cluster(&[], |cluster, _| measure_size(setting, cluster, sizes, recorder))?,
        );
    }
    println!(
        "(CREATE: until the first read; all other times are of one change; both: write and read)"
    );
    draw_points(setting, &points)
}

fn measure_size(
    setting: &Setting,
    cluster: &Cluster,
    sizes: Sizes,
    recorder: &mut Recorder,
) -> Result<Vec<Point>> {
    let network = Network::new(sizes, SEED);
    cluster.connect("postgres")?.batch_execute("CREATE DATABASE network")?;
    load::create_tables(&mut cluster.connect("network")?, &network)?;
    let mut points = Vec::new();
    for query in &QUERIES {
        let mut take = |way| {
            let measured = measure_side(setting, cluster, query, way, &network)?;
            print(query, sizes, &measured);
            recorder.write(&measured.describe(query, sizes))?;
            anyhow::Ok(measured)
        };
        let view = take(Way::View)?;
        let triggers = query.by_hand.map(|_| take(Way::Triggers)).transpose()?;
        if let Some(triggers) = &triggers {
            let difference = view.answers.iter().zip(&triggers.answers).position(|(a, b)| a != b);
            ensure!(difference.is_none(), "{}: triggers differ at {difference:?}", query.name);
        }
        points.push(Point { query: query.name, factor: sizes.factor, view, triggers });
    }
    Ok(points)
}

/// In a copy of the tables, which is gone afterwards: a worker beside it would read its changes, too.
fn measure_side(
    setting: &Setting,
    cluster: &Cluster,
    query: &Query,
    way: Way,
    network: &Network,
) -> Result<Measured> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE DATABASE side TEMPLATE network STRATEGY file_copy")?;
    let extent = Extent {
        creations: setting.pairs(),
        warming: setting.choose(20, 5),
        counted: setting.choose(300, 40),
        checks_all: setting.is_quick(),
    };
    let measured = side::run(cluster.connect("side")?, query, way, network.clone(), extent);
    client.batch_execute("DROP DATABASE side")?;
    measured
}

fn print_header() {
    println!(
        "{:>6} {:<21} {:<9} {:>9} {:>9}  {:^19}  {:^19}  {:^19} {:>9}",
        "factor",
        "query",
        "by",
        "CREATE",
        "no data",
        "write 50 %, 90 %",
        "fresh read",
        "both",
        "afresh"
    );
}

fn print(query: &Query, sizes: Sizes, measured: &Measured) {
    let show = |all: &Histogram<u64>| {
        let [p50, p90] = [0.5, 0.9].map(|share| nanoseconds(all.value_at_quantile(share) as f64));
        format!("{p50:>9} {p90:>9}")
    };
    let or_dash = |time: Option<_>| time.map_or("–".to_owned(), readable);
    println!(
        "{:>6} {:<21} {:<9} {:>9} {:>9}  {}  {}  {} {:>9}",
        sizes.factor,
        query.name,
        measured.way.as_str(),
        readable(measured.first_read()),
        or_dash(measured.no_data),
        show(&measured.writes),
        show(&measured.reads),
        show(&measured.both),
        or_dash(measured.afresh()),
    );
}

fn draw_points(setting: &Setting, points: &[Point]) -> Result<()> {
    let panel = |query: &'static str| {
        let points = || points.iter().filter(move |point| point.query == query);
        let series = |label: &str, colour, line, value: &dyn Fn(&Point) -> Option<f64>| Series {
            label: label.to_owned(),
            colour,
            line,
            points: points()
                .filter_map(|point| Some((f64::from(point.factor), value(point)?)))
                .collect(),
        };
        let of = |all: &Histogram<u64>, share| Some(all.value_at_quantile(share) as f64);
        let mut series = vec![
            series("COMMIT to a fresh read, median", 0, Line::Solid, &|point| {
                of(&point.view.reads, 0.5)
            }),
            series("the same, 90 %", 0, Line::Dashed, &|point| of(&point.view.reads, 0.9)),
            series("triggers, write and read, median", 1, Line::Dotted, &|point| {
                of(&point.triggers.as_ref()?.both, 0.5)
            }),
            series("the query afresh", 1, Line::Solid, &|point| {
                Some(point.view.afresh()?.as_nanos() as f64)
            }),
        ];
        series.retain(|series| !series.points.is_empty());
        let title = format!("{NAME}, {query}: a change");
        Panel { title, x: "scale factor", y: "time", unit: nanoseconds, series }
    };
    let panels: Vec<Panel> = QUERIES.iter().map(|query| panel(query.name)).collect();
    draw(setting.output, NAME, &panels)
}
