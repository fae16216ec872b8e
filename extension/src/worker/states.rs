//! What `eddy.view_states` says of the views: a row for each that is not simply at the point of the others.
//!
//! The rows are written in the transactions that leave a view behind, bring it back, or find an error, so whoever sees
//! a view's rows, under whatever snapshot and on whatever server, sees how they are meant. A view that
//! is left behind needs its row only when another one is written: until then both are at one point.

use super::view::{Phase, View};
use crate::pg::ids::ViewId;
use crate::pg::states::{self, StateRow, BEHIND, ERROR};
use crate::pg::xact;
use std::collections::{BTreeMap, BTreeSet};

/// The rows as they are stored.
#[derive(Default)]
pub struct States {
    recorded: BTreeMap<ViewId, StateRow>,
    /// Everything before this position is in the views that are together.
    point: Option<u64>,
}

/// How a transaction leaves the rows, once it has committed.
pub struct Recorded(States);

impl States {
    /// As an earlier worker left them. Needs a transaction with an active snapshot.
    pub fn load() -> States {
        let recorded = states::read_all().into_iter().map(|row| (row.relation, row)).collect();
        States { recorded, point: None }
    }

    /// Whether there is something to record though no view has rows to write: an error that came or went, a view that is
    /// at the point of the others again, one that was dropped.
    pub fn is_due(&self, views: &BTreeMap<ViewId, View>, present: &[ViewId]) -> bool {
        let is_gone = self.recorded.keys().any(|relid| !views.contains_key(relid));
        let is_back =
            |relid: &ViewId| self.recorded.get(relid).is_some_and(|row| row.state == BEHIND);
        let present: BTreeSet<ViewId> = present.iter().copied().collect();
        let is_news = |view: &View| self.error_differs(view, present.contains(&view.relid));
        is_gone || present.iter().any(is_back) || views.values().any(is_news)
    }

    /// Whether it is on record that a view is not at the point of the others, so that it may be written without them.
    pub fn is_apart(&self, relid: ViewId) -> bool {
        self.recorded.contains_key(&relid)
    }

    /// The position of which the rows of such a view are, if it was left behind and that is known.
    pub fn position_behind(&self, relid: ViewId) -> Option<u64> {
        let row = self.recorded.get(&relid).filter(|row| row.state == BEHIND)?;
        row.applied_lsn
    }

    /// The views of which nothing else is on record have everything before a position.
    pub fn note_point(&mut self, position: u64) {
        self.point.get_or_insert(position);
    }

    /// Whether a view's error is not what its row says. One that is not at the point of the others says so later.
    fn error_differs(&self, view: &View, is_present: bool) -> bool {
        let recorded = self.recorded.get(&view.relid).filter(|row| row.state == ERROR);
        if !is_present && !matches!(view.phase, Phase::Failed { .. }) {
            return false;
        }
        match (view.problem(), recorded) {
            (None, None) => false,
            (Some(problem), Some(row)) => {
                row.sqlstate != Some(problem.sqlstate)
                    || row.message.as_ref() != Some(&problem.message)
            }
            // A view that is attached again says later whether its error has gone.
            (None, Some(_)) => view.is_stored(),
            (Some(_), None) => true,
        }
    }

    /// Records the views' states within the transaction that takes those of `written` to `position`.
    pub fn record(
        &self,
        views: &BTreeMap<ViewId, View>,
        written: &BTreeSet<ViewId>,
        position: u64,
    ) -> Recorded {
        let mut recorded = BTreeMap::new();
        for view in views.values() {
            let former = self.recorded.get(&view.relid);
            let Some(row) = self.row_of(view, former, written.contains(&view.relid)) else {
                if former.is_some() {
                    states::remove(view.relid);
                }
                continue;
            };
            if former != Some(&row) {
                states::write(&row);
            }
            recorded.insert(view.relid, row);
        }
        for relid in self.recorded.keys().filter(|relid| !views.contains_key(relid)) {
            states::remove(*relid);
        }
        Recorded(States { recorded, point: Some(position) })
    }

    fn row_of(&self, view: &View, former: Option<&StateRow>, is_written: bool) -> Option<StateRow> {
        let is_known = is_written || matches!(view.phase, Phase::Failed { .. });
        let row = match view.problem().filter(|_| is_known) {
            _ if !self.error_differs(view, is_written)
                && former.is_some_and(|row| row.state == ERROR) =>
            {
                return former.cloned();
            }
            Some(problem) => StateRow {
                relation: view.relid,
                state: ERROR.into(),
                applied_lsn: None,
                since: xact::now(),
                sqlstate: Some(problem.sqlstate),
                message: Some(problem.message),
                detail: None,
                hint: problem.hint,
            },
            None if is_written => return None,
            None => {
                if let Some(row) = former.filter(|row| row.state == BEHIND) {
                    return Some(row.clone());
                }
                StateRow {
                    relation: view.relid,
                    state: BEHIND.into(),
                    // What this worker has written was at the point of the others until now.
                    applied_lsn: self.point.filter(|_| view.is_stored()),
                    since: xact::now(),
                    ..StateRow::default()
                }
            }
        };
        Some(row)
    }

    /// The transaction has committed.
    pub fn committed(&mut self, Recorded(states): Recorded) {
        *self = states;
    }
}
