//! Grouping and aggregation outside of loops: one state per group, looked up once per update.

use super::entries::Entries;
use super::errors::Outcome;
use super::extremes::Extreme;
use super::keyed::{Keyed, Slot, MANY_SLOTS};
use super::linear::split;
use super::ordered::{Clears, InOrder, Pieces};
use super::picks::Picks;
use super::reduce::{Arguments, Grouping};
use super::renderer::Context;
use super::storage::Storage;
use crate::checkpoint;
use crate::core::collection::Collection;
use crate::core::column::{read_any, write_any, Column};
use crate::core::diff::Mult;
use crate::layout::{ColumnType, Layout};
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::hashable::Hashable;
use plan::aggregate::Accum;
use plan::error::DataError;
use plan::row::Row;
use plan::value::Datum;
use plan::AggregateFunc;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::rc::Rc;

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// Groups rows; `columns` are those of the result.
    pub(super) fn reduce_in_order<L: Layout>(
        &mut self,
        rows: Collection<'s, L::Row, LOOPS>,
        grouping: Grouping<L>,
        columns: &[ColumnType],
        clears: Option<Clears>,
    ) -> (Collection<'s, L::Row, LOOPS>, Collection<'s, DataError, LOOPS>) {
        let only_counts = grouping.aggregates.iter().all(|a| a.arg.is_none());
        if only_counts {
            self.reduce_with::<L, Mult>(rows, grouping, columns, clears)
        } else {
            self.reduce_with::<L, Tallies>(rows, grouping, columns, clears)
        }
    }

    fn reduce_with<L: Layout, G: State>(
        &mut self,
        rows: Collection<'s, L::Row, LOOPS>,
        grouping: Grouping<L>,
        columns: &[ColumnType],
        clears: Option<Clears>,
    ) -> (Collection<'s, L::Row, LOOPS>, Collection<'s, DataError, LOOPS>) {
        let grouping = Rc::new(grouping);
        let mut groups = Groups::<L, G>::new(Rc::clone(&grouping), columns);
        let is_here = self.scope.index() == GLOBAL_GROUP_AT;
        if grouping.is_global && is_here && !checkpoint::has_origin() {
            groups.announce(L::Key::default());
        }
        let route = move |row: &L::Row| grouping.route(row);
        split(self.in_order(rows, "Reduce", route, groups, clears))
    }
}

/// The worker that has the group of all rows.
const GLOBAL_GROUP_AT: usize = 0;

impl<L: Layout> Grouping<L> {
    /// The worker, modulo their number, that a row's group is at.
    fn route(&self, row: &L::Row) -> u64 {
        if self.is_global {
            return GLOBAL_GROUP_AT as u64;
        }
        // A row without a group is an error wherever it is.
        self.key(row).map_or(0, |key| key.hashed())
    }
}

/// What is kept of a group. Of the default nothing is left when updates have cancelled each other.
trait State: Default + 'static {
    /// What is to be known of a row beside its group.
    type Args;

    /// What is to be remembered of a group to tell later what its row was.
    type Seen<L: Layout>: PartialEq + 'static;

    fn new(funcs: &[AggregateFunc]) -> Self;

    fn args<L: Layout>(grouping: &Grouping<L>, row: &L::Row) -> Result<Self::Args, DataError>;

    /// Adds a row so many times.
    fn update(&mut self, args: Self::Args, diff: Mult);

    fn seen<L: Layout>(&self, key: &L::Key, result: &ResultRow<L>) -> Self::Seen<L>;

    /// The group's row when it was seen, if it existed.
    fn outcome<L: Layout>(
        seen: Self::Seen<L>,
        key: &L::Key,
        result: &ResultRow<L>,
    ) -> Option<Outcome<L::Row>>;

    fn is_zero(&self) -> bool;

    /// What is saved of it.
    type Known: Column;

    fn known(&self) -> Self::Known;

    fn restore(funcs: &[AggregateFunc], known: Self::Known) -> Self;
}

/// A number of rows, where rows are counted and nothing else.
impl State for Mult {
    type Args = ();
    type Seen<L: Layout> = Mult;

    fn new(_funcs: &[AggregateFunc]) -> Self {
        Mult(0)
    }

    fn args<L: Layout>(_grouping: &Grouping<L>, _row: &L::Row) -> Result<(), DataError> {
        Ok(())
    }

    #[inline]
    fn update(&mut self, _args: (), diff: Mult) {
        self.plus_equals(&diff);
    }

    fn seen<L: Layout>(&self, _key: &L::Key, _result: &ResultRow<L>) -> Mult {
        *self
    }

    fn outcome<L: Layout>(
        rows: Mult,
        key: &L::Key,
        result: &ResultRow<L>,
    ) -> Option<Outcome<L::Row>> {
        let count = Datum::Int8(rows.0);
        let counts = std::iter::repeat_n(&count, result.funcs.len());
        result.has_row(rows).then(|| result.row(key, counts))
    }

    fn is_zero(&self) -> bool {
        IsZero::is_zero(self)
    }

    type Known = Mult;

    fn known(&self) -> Mult {
        *self
    }

    fn restore(_funcs: &[AggregateFunc], rows: Mult) -> Mult {
        rows
    }
}

/// Any aggregates.
#[derive(Default)]
struct Tallies {
    rows: Mult,
    tallies: Box<[Tally]>,
}

/// What is known of one aggregate's arguments.
enum Tally {
    /// They add up.
    Sum(Accum),
    /// One of them is picked.
    Pick(Picks),
    /// All are kept in order.
    Collect(Entries),
}

impl Tally {
    fn new(func: AggregateFunc) -> Self {
        match (func, Extreme::of(func)) {
            (AggregateFunc::Collect(..), _) => Tally::Collect(Entries::default()),
            (_, Some(extreme)) => Tally::Pick(Picks::new(extreme)),
            (_, None) => Tally::Sum(Accum::zero(func)),
        }
    }

    fn update(&mut self, arg: Option<Datum>, diff: Mult) {
        match self {
            Tally::Sum(accum) => accum.add(arg.as_ref(), diff.0),
            Tally::Pick(picks) => {
                if let Some(value) = &arg {
                    picks.add(value, diff);
                }
            }
            Tally::Collect(entries) => entries.add(arg, diff),
        }
    }

    fn finish(&self, func: AggregateFunc) -> Result<Datum, DataError> {
        match self {
            Tally::Sum(accum) => accum.finish(func),
            Tally::Pick(picks) => Ok(picks.best()),
            Tally::Collect(entries) => entries.finish(func),
        }
    }

    fn known(&self) -> KnownTally {
        match self {
            Tally::Sum(accum) => KnownTally::Sum(accum.clone()),
            Tally::Pick(picks) => KnownTally::Values(picks.all()),
            Tally::Collect(entries) => KnownTally::Values(entries.all().collect()),
        }
    }

    fn restore(func: AggregateFunc, known: KnownTally) -> Self {
        match known {
            KnownTally::Sum(accum) => Tally::Sum(accum),
            KnownTally::Values(values) => {
                let mut tally = Tally::new(func);
                values.into_iter().for_each(|(value, copies)| tally.update(Some(value), copies));
                tally
            }
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Tally::Sum(accum) => accum.is_zero(),
            Tally::Pick(picks) => picks.is_empty(),
            Tally::Collect(entries) => entries.is_empty(),
        }
    }
}

impl State for Tallies {
    type Args = Arguments;
    type Seen<L: Layout> = Option<Outcome<L::Row>>;

    fn new(funcs: &[AggregateFunc]) -> Self {
        let tallies = funcs.iter().map(|func| Tally::new(*func)).collect();
        Tallies { rows: Mult(0), tallies }
    }

    fn args<L: Layout>(grouping: &Grouping<L>, row: &L::Row) -> Result<Arguments, DataError> {
        grouping.args(row)
    }

    fn update(&mut self, args: Arguments, diff: Mult) {
        self.rows.plus_equals(&diff);
        for (tally, arg) in self.tallies.iter_mut().zip(args) {
            tally.update(arg, diff);
        }
    }

    fn seen<L: Layout>(&self, key: &L::Key, result: &ResultRow<L>) -> Option<Outcome<L::Row>> {
        result.has_row(self.rows).then(|| {
            let results = self.tallies.iter().zip(&result.funcs);
            let results: SmallVec<[Datum; 4]> =
                results.map(|(tally, func)| tally.finish(*func)).collect::<Result<_, _>>()?;
            result.row(key, results.iter())
        })
    }

    fn outcome<L: Layout>(
        seen: Option<Outcome<L::Row>>,
        _key: &L::Key,
        _result: &ResultRow<L>,
    ) -> Option<Outcome<L::Row>> {
        seen
    }

    fn is_zero(&self) -> bool {
        IsZero::is_zero(&self.rows) && self.tallies.iter().all(Tally::is_zero)
    }

    type Known = KnownTallies;

    fn known(&self) -> KnownTallies {
        KnownTallies { rows: self.rows, tallies: self.tallies.iter().map(Tally::known).collect() }
    }

    fn restore(funcs: &[AggregateFunc], known: KnownTallies) -> Self {
        let tallies = funcs.iter().zip(known.tallies);
        let tallies = tallies.map(|(func, known)| Tally::restore(*func, known)).collect();
        Tallies { rows: known.rows, tallies }
    }
}

/// [`Tallies`] as they are saved.
#[derive(Clone, Serialize, Deserialize)]
struct KnownTallies {
    rows: Mult,
    tallies: Vec<KnownTally>,
}

#[derive(Clone, Serialize, Deserialize)]
enum KnownTally {
    Sum(Accum),
    /// What is picked from or collected.
    Values(Vec<(Datum, Mult)>),
}

impl Column for KnownTallies {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        write_any(values, out);
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        read_any(count, input)
    }
}

/// The results for a whole group, given its rows' arguments.
pub(super) fn whole<'a>(
    funcs: &[AggregateFunc],
    rows: impl Iterator<Item = (&'a Row, Mult)>,
) -> Result<Row, DataError> {
    let mut group = <Tallies as State>::new(funcs);
    for (args, copies) in rows {
        group.update(args.iter().map(Some).collect(), copies);
    }
    let results = group.tallies.iter().zip(funcs).map(|(tally, func)| tally.finish(*func));
    Ok(Row::pack(&results.collect::<Result<Vec<_>, _>>()?))
}

/// The state of a `Reduce`.
struct Groups<L: Layout, S: State> {
    grouping: Rc<Grouping<L>>,
    funcs: Vec<AggregateFunc>,
    groups: Keyed<L::Key, S>,
    /// Groups with updates at the time at hand, as they were before; `None` for one not put out yet.
    touched: Vec<(Slot, Option<S::Seen<L>>)>,
    /// Groups of which nothing was left at some time.
    gone: Vec<Slot>,
    /// Errors of rows at the time at hand.
    errors: Vec<(DataError, Mult)>,
    result: ResultRow<L>,
}

/// How a group becomes a row.
struct ResultRow<L: Layout> {
    key: L::Moves,
    shape: L::Shape,
    /// Whether groups exist without rows.
    is_global: bool,
    funcs: Vec<AggregateFunc>,
}

impl<L: Layout> ResultRow<L> {
    /// Whether a group of so many rows has one in the result.
    fn has_row(&self, rows: Mult) -> bool {
        rows > Mult(0) || self.is_global
    }

    fn row<'a>(
        &self,
        key: &L::Key,
        results: impl ExactSizeIterator<Item = &'a Datum>,
    ) -> Outcome<L::Row> {
        L::followed_by(key, &self.key, results, &self.shape)
    }
}

impl<L: Layout, S: State> Groups<L, S> {
    fn new(grouping: Rc<Grouping<L>>, columns: &[ColumnType]) -> Self {
        let funcs: Vec<AggregateFunc> = grouping.aggregates.iter().map(|a| a.func).collect();
        let shape = L::shape(columns);
        let all: Vec<usize> = (0..grouping.key_columns.len()).collect();
        let key = L::moves(&[&L::shape(&grouping.key_columns)], &all, &shape);
        let result = ResultRow { key, shape, is_global: grouping.is_global, funcs: funcs.clone() };
        let (groups, touched) = (Keyed::default(), Vec::new());
        let (gone, errors) = (Vec::new(), Vec::new());
        Groups { grouping, funcs, groups, touched, gone, errors, result }
    }

    /// A group that is about to change.
    #[inline]
    fn touch(&mut self, slot: Slot) -> &mut S {
        let is_new = self.groups.mark(slot);
        let (key, group) = self.groups.get_mut(slot);
        if is_new {
            self.touched.push((slot, Some(group.seen(key, &self.result))));
        }
        group
    }

    /// The slot of a group.
    #[inline]
    fn slot(&mut self, key: L::Key) -> Slot {
        self.groups.slot(key, || S::new(&self.funcs))
    }

    /// Puts out a group that is there without rows, with the first time.
    fn announce(&mut self, key: L::Key) {
        let slot = self.slot(key);
        self.touch(slot);
        self.touched.clear();
        self.touched.push((slot, None));
    }
}

impl<L: Layout, S: State> InOrder for Groups<L, S> {
    type Input = L::Row;
    type Output = Outcome<L::Row>;
    /// Or why the row has no group.
    type Work = Result<(Slot, S::Args), DataError>;

    fn look_up(&mut self, row: L::Row) -> Self::Work {
        let key = self.grouping.key(&row)?;
        let args = S::args(&self.grouping, &row)?;
        Ok((self.slot(key), args))
    }

    fn update(&mut self, work: Self::Work, diff: Mult) {
        match work {
            Ok((slot, args)) => {
                self.touch(slot);
                self.groups.get_mut(slot).1.update(args, diff);
            }
            Err(error) => self.errors.push((error, diff)),
        }
    }

    fn clear(&mut self) {
        for slot in self.groups.all() {
            let empty = S::new(&self.funcs);
            *self.touch(slot) = empty;
        }
    }

    fn finish(&mut self, mut emit: impl FnMut(Outcome<L::Row>, Mult)) {
        self.errors.drain(..).for_each(|(error, diff)| emit(Err(error), diff));
        for (slot, before) in self.touched.drain(..) {
            self.groups.unmark(slot);
            let (key, group) = self.groups.get_mut(slot);
            let after = group.seen(key, &self.result);
            if before.as_ref() != Some(&after) {
                let before = before.and_then(|seen| S::outcome(seen, key, &self.result));
                before.into_iter().for_each(|outcome| emit(outcome, Mult(-1)));
                let after = S::outcome(after, key, &self.result);
                after.into_iter().for_each(|outcome| emit(outcome, Mult(1)));
            }
            if State::is_zero(group) {
                self.gone.push(slot);
            }
        }
        self.touched.shrink_to(MANY_SLOTS);
    }

    fn sweep(&mut self) {
        self.groups.sweep(&mut self.gone, State::is_zero);
    }

    type Key = L::Key;
    type Known = S::Known;

    fn pieces(&self) -> Option<Pieces<'_, L::Key, S::Known>> {
        Some(Box::new(self.groups.iter().map(|(key, group)| (key.clone(), group.known()))))
    }

    fn restore(&mut self, key: L::Key, known: S::Known) -> bool {
        let funcs = &self.funcs;
        self.groups.slot(key, || S::restore(funcs, known));
        true
    }
}
