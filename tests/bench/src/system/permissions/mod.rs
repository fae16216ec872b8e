//! File permissions: who may see which files, as four views, while rights come and go.
//!
//! Persons are in groups, which are in groups; folders are in folders; rules allow or forbid a person or a group a file or
//! a folder with all that is in it. A file is visible to whom some rule allows it and none forbids it. The views
//! (`belongs.sql`, `inside.sql`, `visible.sql`, `checked.sql`) are written over one another as people do: the groups that a
//! person is in, the folders that a folder is in, the files that a person may see, and, of some pairs of a
//! person and a file, whether it is one of those.
//!
//! The same changes (`company`) go to copies of the tables (`side`) without views, with both recursive ones, and
//! with all four. Beside the lists and checks that are read from views: queries for just that person, written
//! by hand (`list_afresh.sql`, `check_afresh.sql`).

mod company;
mod load;
mod side;

use anyhow::Result;
use company::{Company, Sizes};
use harness::cluster::Cluster;
use harness::timing::{median, readable};
use hdrhistogram::Histogram;
use serde_json::json;
use side::{Changed, Side};

use super::setting::Setting;
use crate::compare::nanoseconds;
use crate::record::{percentiles, Recorder};

pub const NAME: &str = "system/permissions";

const FULL: Sizes =
    Sizes { persons: 1_000, groups: 100, folders: 10, files: 101_100, watched: 1_000 };
const QUICK: Sizes = Sizes { persons: 100, groups: 20, folders: 5, files: 5_000, watched: 100 };
const SEED: u64 = 11;

/// A view by its query, with the columns of its unique index.
pub struct View {
    name: &'static str,
    sql: &'static str,
    index: &'static str,
}

/// The recursive ones first, which the others read.
const VIEWS: &[View] = &[
    View { name: "belongs", sql: include_str!("belongs.sql"), index: "person, grp" },
    View { name: "inside", sql: include_str!("inside.sql"), index: "folder, ancestor" },
    View { name: "visible", sql: include_str!("visible.sql"), index: "person, file" },
    View { name: "checked", sql: include_str!("checked.sql"), index: "person, file" },
];

/// Prints tables and records every line of them.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    let sizes = setting.choose(FULL, QUICK);
    let files = setting.rows(FULL.files as u32, QUICK.files as u32);
    let company = Company::new(Sizes { files: i32::try_from(files)?, ..sizes }, SEED);
    println!(
        "{NAME}: {} persons in {} groups, {} folders with {files} files, {} rules",
        sizes.persons,
        sizes.groups,
        company.folders(),
        company.rules.len(),
    );
    setting.with_cluster(&[], |cluster, _| {
        cluster.connect("postgres")?.batch_execute("CREATE DATABASE company")?;
        load::create_tables(&mut cluster.connect("company")?, &company)?;
        let sides = [("no views", &VIEWS[..0]), ("recursive views", &VIEWS[..2])];
        let mut rates = Vec::new();
        for (name, views) in sides {
            let mut side = Side::create(cluster, "company", name, views, &company)?;
            side.create_views()?;
            rates.push((name, change(setting, &mut side, recorder)?));
            side.verify()?;
            side.remove(cluster)?;
        }
        let mut side = measure_all_views(setting, cluster, &company, recorder)?;
        rates.push((side.name, change(setting, &mut side, recorder)?));
        // After the changes, lists and checks are those of a company that has had some.
        read(setting, &mut side, recorder)?;
        side.verify()?;
        print_rates(&rates);
        Ok(())
    })
}

/// Creates all views and revokes rights.
fn measure_all_views(
    setting: &Setting,
    cluster: &Cluster,
    company: &Company,
    recorder: &mut Recorder,
) -> Result<Side> {
    let mut side = Side::create(cluster, "company", "all views", VIEWS, company)?;
    println!("{:<16} {:>9} {:>9} {:>9}", "view", "rows", "CREATE", "afresh");
    for created in side.create_views()? {
        let (first_read, afresh) = (created.first_read, created.afresh);
        println!(
            "{:<16} {:>9} {:>9} {:>9}",
            created.view,
            created.rows,
            readable(first_read),
            readable(afresh)
        );
        recorder.write(&json!({
            "kind": "permissions view", "name": NAME, "view": created.view, "rows": created.rows,
            "first_read_seconds": first_read.as_secs_f64(), "afresh_seconds": afresh.as_secs_f64(),
        }))?;
    }
    println!("(CREATE: until the first read)\n");
    println!("{:<16} {:>7}  {:^29}  {:^29}", "COMMIT to list", "number", "revoked", "granted");
    let persons = side.revoke_from_persons(setting.choose(500, 30))?;
    let groups = side.revoke_from_groups(setting.choose(100, 10))?;
    for (whose, latencies) in [("of a person", persons), ("of a group", groups)] {
        let number = latencies.revoked.len();
        let (revoked, granted) = (show(&latencies.revoked), show(&latencies.granted));
        println!("{whose:<16} {number:>7}  {revoked}  {granted}");
        recorder.write(&json!({
            "kind": "permissions revocation", "name": NAME, "whose": whose, "number": number,
            "without_effect": latencies.without_effect,
            "revoked_ns": percentiles(&latencies.revoked),
            "granted_ns": percentiles(&latencies.granted),
        }))?;
    }
    println!(
        "(median, 99 %, maximum; from the end of COMMIT to that of a read of a person's list)\n"
    );
    Ok(side)
}

fn change(setting: &Setting, side: &mut Side, recorder: &mut Recorder) -> Result<Vec<Changed>> {
    let mut runs = Vec::new();
    // The first run warms caches and plans.
    for run in 0..=setting.pairs() {
        let changed = side.change(setting.choose(1_000, 100))?;
        if run == 0 {
            continue;
        }
        recorder.write(&json!({
            "kind": "permissions changes", "name": NAME, "by": side.name, "run": run,
            "changes": changed.changes, "rows": changed.rows,
            "writing_seconds": changed.writing.as_secs_f64(),
            "seconds": changed.elapsed.as_secs_f64(),
            "changes_per_second": changed.changes_per_second(),
            "rows_per_second": changed.rows_per_second(),
        }))?;
        runs.push(changed);
    }
    Ok(runs)
}

fn print_rates(rates: &[(&str, Vec<Changed>)]) {
    println!("{:<16} {:>9}  {:^19} {:>9}", "views", "changes/s", "spread", "rows/s");
    for (name, runs) in rates {
        let of = |figure: fn(&Changed) -> f64| runs.iter().map(figure).collect::<Vec<f64>>();
        let changes = of(Changed::changes_per_second);
        let least = changes.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = changes.iter().copied().fold(0.0, f64::max);
        let (median, rows) = (median(&changes), median(&of(Changed::rows_per_second)));
        println!("{name:<16} {median:>9.0}  {least:>8.0} – {greatest:<8.0} {rows:>9.0}");
    }
    println!("(until all is in the views; rows: of views, inserted, deleted and updated)\n");
}

fn read(setting: &Setting, side: &mut Side, recorder: &mut Recorder) -> Result<()> {
    let reads = side.read(setting.choose(300, 30))?;
    let files = reads.files.value_at_quantile(0.5);
    println!("{:<16} {:^29}  {:^29}", "read", "from the view", "afresh, for that person");
    for (what, view, afresh) in [
        ("list", &reads.list, &reads.list_afresh),
        ("check", &reads.check, &reads.check_afresh),
        ("watched check", &reads.watched, &reads.check_afresh),
    ] {
        println!("{what:<16} {}  {}", show(view), show(afresh));
        recorder.write(&json!({
            "kind": "permissions read", "name": NAME, "what": what, "files": files,
            "view_ns": percentiles(view), "afresh_ns": percentiles(afresh),
        }))?;
    }
    println!("(median, 99 %, maximum; lists have {files} files in the median)\n");
    Ok(())
}

fn show(all: &Histogram<u64>) -> String {
    let [p50, p99] = [0.5, 0.99].map(|share| all.value_at_quantile(share));
    let [p50, p99, max] = [p50, p99, all.max()].map(|value| nanoseconds(value as f64));
    format!("{p50:>9} {p99:>9} {max:>9}")
}
