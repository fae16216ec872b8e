//! Rows that are valid for some time: they come and go as the present time moves on.
//!
//! A row is kept for as long as something is still to happen to it, under the instant at which that will be. When the
//! clock moves, the rows under the instants it passes come or go, and no others are looked at. A row whose time is
//! over leaves nothing behind, nor does one that goes at infinity, unless TRUNCATE is to retract it from here.
//!
//! The present is the same for all workers: the clock's rows go to each of them. Other rows go to the worker of their
//! hash, so that a retraction meets what it retracts. All this is in memory, also where other state is on disk: it is no
//! more than the rows that are valid or will be.

use super::ordered::{InOrder, Pieces};
use super::renderer::{Bundle, Context, Renderer};
use super::storage::Storage;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::layout::infer::temporal_columns;
use crate::layout::{Layout, Tuple};
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::hashable::Hashable;
use differential_dataflow::{AsCollection, ExchangeData};
use plan::{Plan, SourceId};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::{BTreeMap, Entry};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::vec::{Broadcast, Map};

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_temporal(
        &mut self,
        plan: &Plan,
        clock: SourceId,
        (from, until): (&[usize], &[usize]),
        output: &[usize],
    ) -> Bundle<'s, L, LOOPS> {
        let input = self.render(plan);
        let columns = temporal_columns(&input.columns, output);
        let (shape, to) = (L::shape(&input.columns), L::shape(&columns));
        let moves = L::moves(&[&shape], output, &to);
        let (from, until) = (from.to_vec(), until.to_vec());
        let rows = input.oks.inner.flat_map(move |(row, stamp, diff)| {
            let instant = |column: &usize| L::column(row.view(), &shape, *column).as_timestamp();
            let span = Span::of(from.iter().map(instant), until.iter().map(instant))?;
            Some(((span, L::Row::project(&moves, &[row.view()])), stamp, diff))
        });
        let clock = &self.sources[clock.0];
        let shape = L::shape(&clock.columns);
        let ticks = clock.oks.inner.clone().flat_map(move |(row, stamp, diff)| {
            let now = L::column(row.view(), &shape, 0).as_timestamp();
            now.map(|now| (now, stamp, diff))
        });
        let clears = self.clears_of(plan);
        let valid = Valid::<L>::new(clears.is_some());
        let changes = self.context.changes(rows.as_collection(), ticks.as_collection());
        let oks = self.context.in_order(changes, "Temporal", Change::route, valid, clears);
        Bundle { oks, errs: input.errs, columns }
    }
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// Rows and the moves of the clock, which every worker is told. Rows whose time is over already stop here: they
    /// do not have to wait until all others of their time are there.
    fn changes<R: ExchangeData>(
        &self,
        rows: Collection<'s, (Span, R), LOOPS>,
        ticks: Collection<'s, i64, LOOPS>,
    ) -> Collection<'s, Change<R>, LOOPS> {
        let worker = self.scope.index() as u64;
        let ticks = ticks.inner.broadcast();
        let guard = self.guard.clone();
        let mut told = Told::default();
        let changes = ticks.binary::<_, CapacityContainerBuilder<Vec<_>>, _, _, _, _>(
            rows.inner,
            Pipeline,
            Pipeline,
            "Changes",
            move |_, _| {
                move |ticks, rows, output| {
                    ticks.for_each(|capability, data: &mut Vec<_>| {
                        let ticks = data.drain(..).map(|(now, stamp, diff)| {
                            told.note(now, stamp, diff);
                            (Change::Tick { worker, now }, stamp, diff)
                        });
                        output.session(&capability).give_iterator(ticks);
                    });
                    rows.for_each(|capability, data: &mut Vec<_>| {
                        guard.proceed(data.len());
                        let rows = data.drain(..).filter(|(row, s, _)| !told.is_over(row, s));
                        let rows = rows.map(|((span, row), s, d)| (Change::Row(span, row), s, d));
                        output.session(&capability).give_iterator(rows);
                    });
                }
            },
        );
        changes.as_collection()
    }
}

/// What the clock was last, as far as a worker has been told, and since when.
#[derive(Default)]
struct Told(Option<(Time, i64)>);

impl Told {
    fn note<const LOOPS: usize>(&mut self, now: i64, stamp: Stamp<LOOPS>, diff: Mult) {
        if diff > Mult(0) {
            self.0 = self.0.max(Some((stamp.time, now)));
        }
    }

    /// Whether the row will not be valid any more, because the clock does not go back.
    fn is_over<R, const LOOPS: usize>(&self, (span, _): &(Span, R), stamp: &Stamp<LOOPS>) -> bool {
        self.0.is_some_and(|(since, now)| stamp.time >= since && span.until <= now)
    }
}

/// Infinity: no clock gets there.
const NEVER: i64 = i64::MAX;

/// When a row is valid: from one instant on, before another, later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Span {
    from: i64,
    until: i64,
}

impl Span {
    /// The instants at which all bounds hold, if there are any. A bound that is NULL never holds.
    fn of(
        from: impl Iterator<Item = Option<i64>>,
        until: impl Iterator<Item = Option<i64>>,
    ) -> Option<Span> {
        let from = from.chain([Some(i64::MIN)]).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let until = until.chain([Some(NEVER)]).collect::<Option<Vec<_>>>()?.into_iter().min()?;
        (from < until).then_some(Span { from, until })
    }
}

/// What changes what is valid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Change<R> {
    Row(Span, R),
    /// The clock of a worker.
    Tick {
        worker: u64,
        now: i64,
    },
}

impl<R: Hashable<Output = u64>> Change<R> {
    fn route(&self) -> u64 {
        match self {
            Change::Row(_, row) => row.hashed(),
            Change::Tick { worker, .. } => *worker,
        }
    }
}

/// A row and what is to happen to it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Event<R> {
    /// When that is.
    at: i64,
    /// When the row goes; if that is later, it comes first.
    until: i64,
    row: R,
}

impl<R> Event<R> {
    fn is_valid(&self) -> bool {
        self.at == self.until
    }
}

/// The state of a `Temporal`.
struct Valid<L: Layout> {
    /// The present time, once there is one.
    now: Option<i64>,
    events: BTreeMap<Event<L::Row>, Mult>,
    /// Whether rows that never go are among the events, so that they can be undone.
    keeps_all: bool,
    /// Updates of the time at hand.
    ticks: Vec<(i64, Mult)>,
    rows: Vec<(Span, L::Row, Mult)>,
    /// What was valid before all was undone.
    undone: Vec<(L::Row, Mult)>,
}

impl<L: Layout> Valid<L> {
    fn new(keeps_all: bool) -> Self {
        let (ticks, rows, undone) = (Vec::new(), Vec::new(), Vec::new());
        Valid { now: None, events: BTreeMap::new(), keeps_all, ticks, rows, undone }
    }

    /// Notes what is to happen to a row.
    fn expect(&mut self, event: Event<L::Row>, diff: Mult) {
        if event.at == NEVER && !self.keeps_all {
            return;
        }
        match self.events.entry(event) {
            Entry::Vacant(entry) => {
                entry.insert(diff);
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().plus_equals(&diff);
                if entry.get().is_zero() {
                    entry.remove_entry();
                }
            }
        }
    }

    /// Moves the clock if it was told to.
    fn tick(&mut self, emit: &mut impl FnMut(L::Row, Mult)) {
        if self.ticks.is_empty() {
            return;
        }
        consolidate(&mut self.ticks);
        let told = self.ticks.drain(..).filter(|(_, diff)| *diff > Mult(0)).map(|(now, _)| now);
        // It never goes back.
        self.now = self.now.max(told.max());
        while let Some(entry) = self.events.first_entry().filter(|e| Some(e.key().at) <= self.now) {
            let (event, copies) = entry.remove_entry();
            let Event { at, until, row } = event;
            if at == until {
                emit(row, copies.negated());
            } else {
                self.add(Span { from: at, until }, row, copies, emit);
            }
        }
    }

    /// Adds a row of which nothing is known yet: it is valid now, will be, or is not any more.
    fn add(&mut self, span: Span, row: L::Row, diff: Mult, emit: &mut impl FnMut(L::Row, Mult)) {
        let Span { from, until } = span;
        if self.now >= Some(until) {
            return;
        }
        let has_begun = self.now >= Some(from);
        if has_begun {
            emit(row.clone(), diff);
        }
        self.expect(Event { at: if has_begun { until } else { from }, until, row }, diff);
    }
}

impl<L: Layout> InOrder for Valid<L> {
    type Input = Change<L::Row>;
    type Output = L::Row;
    type Work = Change<L::Row>;

    fn look_up(&mut self, change: Change<L::Row>) -> Change<L::Row> {
        change
    }

    fn update(&mut self, change: Change<L::Row>, diff: Mult) {
        match change {
            Change::Row(span, row) => self.rows.push((span, row, diff)),
            Change::Tick { now, .. } => self.ticks.push((now, diff)),
        }
    }

    fn clear(&mut self) {
        let events = std::mem::take(&mut self.events).into_iter();
        let valid = events.filter(|(event, _)| event.is_valid());
        self.undone.extend(valid.map(|(event, copies)| (event.row, copies)));
    }

    /// The clock first: it decides about the rows of its time.
    fn finish(&mut self, mut emit: impl FnMut(L::Row, Mult)) {
        self.undone.drain(..).for_each(|(row, copies)| emit(row, copies.negated()));
        self.tick(&mut emit);
        for (span, row, diff) in std::mem::take(&mut self.rows) {
            self.add(span, row, diff, &mut emit);
        }
    }

    fn sweep(&mut self) {}

    type Key = ();
    type Known = ();

    fn pieces(&self) -> Option<Pieces<'_, (), ()>> {
        None
    }

    fn restore(&mut self, _key: (), _known: ()) -> bool {
        false
    }
}
