//! What must hold.
//!
//! A reader's own properties are judged at the moment of its read (`reads`). The others are about states in which nobody
//! goes on by himself: what has not come about then never would.

use super::reads::{fault, Stage};
use super::state::*;
use super::worker::{Phase, Worker};
use super::Protocol;
use stateright::{Model, Property};

/// A view is its query, nothing in between.
pub const EXACT: &str = "a fresh read shows each view as its query was at a point of commit order";
/// Of a table and a view that a statement reads.
pub const NOT_AHEAD: &str = "no view shows what its tables do not, SERIALIZABLE neither less";
/// Of several views.
pub const ONE_POINT: &str = "views read by one statement are at one point of commit order";
/// Read your writes, and those of all others.
pub const FRESH: &str = "a fresh read shows all that was committed before it began";
/// After crashes too; and all is current in the end.
pub const CRASH_PROOF: &str = "when nothing is left to do each view equals its query";
/// Of what a view shows.
pub const INDEPENDENT: &str = "what keeps a view back keeps no other view back";
/// Of reads: each ends.
pub const NOBODY_WAITS: &str = "nobody waits for views that nothing keeps back";

pub fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(EXACT, |_, state| is_free_of(state, fault::INEXACT)),
        Property::always(NOT_AHEAD, |_, state| is_free_of(state, fault::AHEAD)),
        Property::always(ONE_POINT, |_, state| is_free_of(state, fault::APART)),
        Property::always(FRESH, |_, state| is_free_of(state, fault::STALE)),
        Property::always(CRASH_PROOF, |model, state| {
            !model.is_at_rest(state) || model.kept_back(state) != 0 || model.are_right(state, 0)
        }),
        Property::always(INDEPENDENT, |model, state| {
            let kept_back = model.kept_back(state);
            kept_back == 0 || !model.is_at_rest(state) || model.are_right(state, kept_back)
        }),
        Property::always(NOBODY_WAITS, |model, state| {
            !model.is_at_rest(state) || model.nobody_waits(state)
        }),
    ]
}

fn is_free_of(state: &State, fault: u8) -> bool {
    state.readers.iter().all(|reader| reader.faults & fault == 0)
}

impl Protocol {
    /// Whether nothing happens any more unless somebody begins something, or ends what keeps a view back.
    fn is_at_rest(&self, state: &State) -> bool {
        let has_more = |worker: &Worker| worker.position < state.insert_lsn();
        if state.workers.is_empty() || state.workers.iter().any(has_more) {
            return false;
        }
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.iter().all(|action| self.is_left_to_others(state, *action))
    }

    /// Views that something other than the protocol keeps back.
    fn kept_back(&self, state: &State) -> Views {
        let running = state.running();
        let of_worker = |worker: &Worker| {
            // To attach a view all that was decoded must be visible.
            let waits = worker.recent_writers() & running != 0;
            let waiting = worker.views.iter().map(|phase| *phase == Phase::Waiting && waits);
            let waiting = waiting.enumerate().fold(0, |set, (view, is)| set | u8::from(is) << view);
            (worker.at_work() & self.slow) | worker.invisible(running) | waiting
        };
        self.with_above(
            state.workers.iter().fold(state.locked, |set, worker| set | of_worker(worker)),
        )
    }

    /// Whether all views but some are as their queries are, and say so.
    fn are_right(&self, state: &State, but: Views) -> bool {
        let committed = state.recorded_before(state.insert_lsn());
        let is_right = |view: usize| {
            state.heaps.rows[view] == self.query(view, committed)
                && state.shared.state[view] == ViewState::Live
                && !has(state.heaps.behind, view)
        };
        let are_right = members(ALL_VIEWS & !but).all(is_right);
        are_right && state.shared.applied == state.insert_lsn()
    }

    fn nobody_waits(&self, state: &State) -> bool {
        let kept_back = self.kept_back(state);
        state.readers.iter().zip(&self.readers).all(|(reader, session)| {
            let is_left = !matches!(reader.stage, Stage::Idle | Stage::Done);
            let reads = session.first | session.second;
            !is_left || reads & kept_back != 0
        })
    }
}
