//! What a view is at every time, by the naive evaluator, and whether that is what a dataflow has put out.

use super::generate::ARITIES;
use super::history::{apply, Contents, History};
use super::{Delta, Output};
use engine::Time;
use plan::error::DataError;
use plan::naive::evaluate;
use plan::row::Row;
use plan::ViewPlan;
use std::collections::BTreeMap;

/// What the view is at a time: rows, or an error.
pub type Expected = (Delta<Row>, Delta<DataError>);

/// The view at every time; `None` if a recursion passes the limit at one of them.
pub fn expect(
    plan: &ViewPlan,
    history: &History,
    max_recursion: u64,
) -> Option<BTreeMap<Time, Expected>> {
    let mut contents: Contents = vec![BTreeMap::new(); ARITIES.len()];
    let mut expected = BTreeMap::new();
    for (time, events) in history {
        apply(&mut contents, events);
        expected.insert(*time, evaluate(plan, &contents, max_recursion).ok()?);
    }
    Some(expected)
}

/// While there are errors only they matter; they and the rows go when their cause goes. Each is raised by some
/// operator, and there are no more of it than all operators raise: however often a collection is used.
pub fn compare(expected: &BTreeMap<Time, Expected>, output: &Output) {
    for (time, (oks, errs)) in expected {
        let (actual_oks, actual_errs) = output.at(*time);
        assert!(actual_errs.values().all(|diff| *diff > 0), "time {time}: {actual_errs:?}");
        assert_eq!(errs.is_empty(), actual_errs.is_empty(), "time {time}: {errs:?}");
        for (error, count) in &actual_errs {
            let raised = errs.get(error).copied().unwrap_or(0);
            assert!(
                *count <= raised,
                "time {time}: {count} times, raised {raised} times: {error:?}"
            );
        }
        if errs.is_empty() {
            assert_eq!(*oks, actual_oks, "time {time}");
        }
    }
}
