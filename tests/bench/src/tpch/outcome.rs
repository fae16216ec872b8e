//! What becomes of a query, as a line of the table and as JSON.

use std::time::Duration;

use harness::timing::{median, readable};
use serde_json::{json, Value};

use super::query::Query;

pub enum Outcome {
    /// Right after every change.
    Maintained(Maintained),
    /// The message of the refusal.
    Refused(String),
    /// A wrong view or an error, whatever else there was to measure.
    Failed(String),
}

/// What was measured of a view that was right all the time.
pub struct Maintained {
    pub created: Duration,
    /// The first read, which waits for the dataflow.
    pub live: Step,
    pub inserted: Step,
    pub deleted: Step,
    /// One row each.
    pub churn: Vec<Step>,
    /// The query run as such.
    pub afresh: Duration,
    /// The view's rows at the end.
    pub rows: usize,
    /// Bytes that the view keeps at the end, its share of what others read included.
    pub state_bytes: i64,
    pub differing_texts: i64,
}

/// One transaction, and the read that sees it.
pub struct Step {
    /// Of the base tables.
    pub changed_rows: u64,
    /// From the end of COMMIT to the end of the read.
    pub time: Duration,
    /// The view's rows are others than before.
    pub is_visible: bool,
}

impl Maintained {
    /// Median time of the changes of one row that changed the view, or of all if none did; `None` without
    /// churn. What a filter drops is fresh at once and would flatter the median.
    fn per_change(&self) -> Option<Duration> {
        let has_visible = self.visible_changes() > 0;
        let steps = self.churn.iter().filter(|step| step.is_visible || !has_visible);
        let times: Vec<Duration> = steps.map(|step| step.time).collect();
        (!times.is_empty()).then(|| median(&times))
    }

    /// How many times longer the query afresh takes.
    fn ratio(&self) -> Option<f64> {
        Some(self.afresh.as_secs_f64() / self.per_change()?.as_secs_f64())
    }

    fn visible_changes(&self) -> usize {
        self.churn.iter().filter(|step| step.is_visible).count()
    }
}

impl Outcome {
    pub fn is_success(&self) -> bool {
        matches!(self, Outcome::Maintained(_))
    }

    pub fn print_header() {
        println!(
            "{:<4} {:<11} {:>6} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
            "",
            "",
            "rows",
            "state",
            "created",
            "live",
            "RF1",
            "RF2",
            "visible",
            "a row",
            "afresh",
            "ratio"
        );
    }

    pub fn print(&self, query: &Query) {
        let name = query.name();
        let maintained = match self {
            Outcome::Maintained(maintained) => maintained,
            Outcome::Refused(message) => return println!("{name:<4} refused: {message}"),
            Outcome::Failed(message) => return println!("{name:<4} FAILED: {message}"),
        };
        let Maintained { created, live, inserted, deleted, churn, afresh, rows, .. } = maintained;
        let state = format!("{:.1} MB", maintained.state_bytes as f64 / 1e6);
        println!(
            "{name:<4} maintained  {rows:>6} {state:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
            readable(*created),
            readable(live.time),
            readable(inserted.time),
            readable(deleted.time),
            format!("{}/{}", maintained.visible_changes(), churn.len()),
            maintained.per_change().map_or_else(String::new, readable),
            readable(*afresh),
            maintained.ratio().map_or_else(String::new, |ratio| format!("{ratio:.0}")),
        );
        if maintained.differing_texts > 0 {
            println!("     {} rows equal but written differently", maintained.differing_texts);
        }
    }

    pub fn describe(&self, query: &Query) -> Value {
        let mut value = match self {
            Outcome::Maintained(maintained) => maintained.describe(),
            Outcome::Refused(message) => json!({ "outcome": "refused", "message": message }),
            Outcome::Failed(message) => json!({ "outcome": "failed", "message": message }),
        };
        value["kind"] = json!("query");
        value["query"] = json!(query.number);
        value["title"] = json!(query.title);
        value
    }
}

impl Maintained {
    fn describe(&self) -> Value {
        let step = |step: &Step| {
            json!({
                "changed_rows": step.changed_rows, "seconds": step.time.as_secs_f64(),
                "visible": step.is_visible,
            })
        };
        json!({
            "outcome": "maintained", "rows": self.rows, "state_bytes": self.state_bytes,
            "create_seconds": self.created.as_secs_f64(),
            "live_seconds": self.live.time.as_secs_f64(),
            "rf1": step(&self.inserted), "rf2": step(&self.deleted),
            "churn": self.churn.iter().map(step).collect::<Vec<Value>>(),
            "row_seconds": self.per_change().map(|time| time.as_secs_f64()),
            "afresh_seconds": self.afresh.as_secs_f64(), "ratio": self.ratio(),
            "differing_texts": self.differing_texts,
        })
    }
}
