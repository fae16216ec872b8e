//! A hundred views: beside one another over one join, with the same groups of it in common, and stacked, each over the one before.

use anyhow::Result;
use harness::timing::readable;
use serde_json::json;

use super::super::memory::{wait_for_rest, Memory, MEBIBYTE};
use super::super::orders::{create_tables, filtered};
use super::super::setting::Setting;
use super::followed::Followed;
use super::{base_rows, mebibytes, CALM, NAME};
use crate::compare::nanoseconds;
use crate::record::Recorder;

const VIEWS: u32 = 100;
const QUICK_VIEWS: u32 = 10;
const CHANGES: u32 = 200;
const QUICK_CHANGES: u32 = 10;

#[derive(Clone, Copy)]
enum Form {
    SideBySide,
    InCommon,
    Stacked,
}

impl Form {
    const ALL: [Form; 3] = [Form::SideBySide, Form::InCommon, Form::Stacked];

    fn as_str(self) -> &'static str {
        match self {
            Form::SideBySide => "side by side",
            Form::InCommon => "in common",
            Form::Stacked => "stacked",
        }
    }

    /// The query of the `number`-th view; the one below it is called `v` and its number.
    fn query(self, number: u32) -> String {
        match (self, number) {
            (Form::SideBySide, _) | (Form::Stacked, 0) => filtered(number),
            (Form::InCommon, _) => {
                format!(
                    "SELECT region, orders, total + {number} AS total FROM ({}) AS common",
                    filtered(0)
                )
            }
            (Form::Stacked, _) => {
                format!("SELECT region, orders, total + 1 AS total FROM v{}", number - 1)
            }
        }
    }
}

/// Prints a table and records all forms.
pub fn measure(setting: &Setting, orders: u32, recorder: &mut Recorder) -> Result<()> {
    let views = setting.choose(VIEWS, QUICK_VIEWS);
    println!("{NAME}: {views} views over a join of {orders} orders, from a COMMIT to a read that shows it");
    println!(
        "{:<13} {:>9} {:>9}  {:>9} {:>9}  {:>9} {:>9}  {:>9} {:>9}",
        "views", "created", "fresh", "last", "99 %", "all", "99 %", "idle", "at rest"
    );
    for form in Form::ALL {
        setting.with_cluster(CALM, |cluster, _| {
            create_tables(&mut cluster.connect("postgres")?, orders)?;
            let queries = (0..views).map(|number| form.query(number));
            let followed = Followed::create(cluster.connect("postgres")?, queries)?;
            measure_form(setting, (form, views, orders), followed, recorder)
        })?;
    }
    println!();
    Ok(())
}

fn measure_form(
    setting: &Setting,
    (form, views, orders): (Form, u32, u32),
    mut followed: Followed,
    recorder: &mut Recorder,
) -> Result<()> {
    let latencies = followed.follow(orders, setting.choose(CHANGES, QUICK_CHANGES))?;
    if !setting.is_quick() {
        wait_for_rest(std::iter::once(&mut followed.client))?;
    }
    let memory = Memory::read(&mut followed.client)?;
    followed.verify()?;
    let at = |times: &hdrhistogram::Histogram<u64>, quantile| {
        nanoseconds(times.value_at_quantile(quantile) as f64)
    };
    println!(
        "{:<13} {:>9} {:>9}  {:>9} {:>9}  {:>9} {:>9}  {:>9} {:>9}",
        form.as_str(),
        readable(followed.creation),
        readable(followed.attach),
        at(&latencies.one, 0.5),
        at(&latencies.one, 0.99),
        at(&latencies.all, 0.5),
        at(&latencies.all, 0.99),
        at(&latencies.idle, 0.5),
        mebibytes(memory.anonymous as f64),
    );
    recorder.write(&json!({
        "kind": "views change", "name": NAME, "views": views, "orders": orders,
        "form": form.as_str(), "create_seconds": followed.creation.as_secs_f64(),
        "attach_seconds": followed.attach.as_secs_f64(), "latency": latencies.describe(),
        "memory": memory.describe(base_rows(orders)), "mebibytes": memory.anonymous as f64 / MEBIBYTE,
    }))
}
