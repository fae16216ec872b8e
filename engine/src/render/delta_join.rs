//! Delta joins: each input arranged by the keys by which it is looked up, and a path from each to all others.

use super::arrangements::{Arranged, ArrangementKey};
use super::errors::Errs;
use super::linear::split as split_results;
use super::paths::{follow, Hop, KeyOf, Met, Path};
use super::renderer::{Bundle, Renderer};
use super::storage::Storage;
use crate::layout::infer::{delta_join_columns, mfp_columns, padded, Columns, Split};
use crate::layout::row_work::RowWork;
use crate::layout::{ColumnType, Layout, Tuple};
use plan::expr::{Expr, MfpBuilder};
use plan::{JoinTree, Mfp, Plan, ViewPlan};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::VecDeque;

/// The plan as so many workers compute it, in memory or on disk. Of several each has a part of what a delta join would look
/// up, and what is on disk has times that are not in order.
pub fn as_computed(plan: &ViewPlan, workers: usize, is_in_memory: bool) -> Cow<'_, ViewPlan> {
    match (workers, is_in_memory) {
        (1, true) => Cow::Borrowed(plan),
        _ => Cow::Owned(plan.clone().without_delta_joins()),
    }
}

/// An input by one of its keys.
struct Side<'p, 's, L: Layout, S: Storage, const LOOPS: usize> {
    input: usize,
    /// Over the columns of the input.
    key: &'p [Expr],
    arranged: Arranged<'s, L, S, LOOPS>,
    split: Split,
    /// From what is arranged to the columns of the input.
    work: Mfp,
}

impl<'p, 's, L: Layout, S: Storage, const LOOPS: usize> Side<'p, 's, L, S, LOOPS> {
    fn new(
        input: usize,
        key: &'p [Expr],
        arranged: Arranged<'s, L, S, LOOPS>,
        arity: usize,
    ) -> Self {
        let (columns, made) = match &arranged.made {
            Some(made) => (arranged.rows.columns.to_vec(), made.clone()),
            // A constant without rows does not say how many columns it has.
            None => (padded(&arranged.rows.columns, arity), MfpBuilder::new(arity).finish()),
        };
        let split = Split::of(&columns, &arranged.key);
        let work = split.over(&arranged.key, &made);
        Side { input, key, arranged, split, work }
    }

    /// The columns of the input.
    fn columns(&self) -> Columns {
        let columns: Vec<ColumnType> =
            self.split.key.iter().chain(&self.split.val).copied().collect();
        mfp_columns(&columns, &self.work)
    }
}

/// A step on a path: from a side that was met before to another one.
struct Step<'p> {
    from: usize,
    /// Over the columns of the input of the side that was met.
    key: &'p [Expr],
    to: usize,
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_delta_join(
        &mut self,
        inputs: &[Plan],
        tree: &JoinTree,
        closure: &Mfp,
    ) -> Bundle<'s, L, LOOPS> {
        // Several workers would have to hand rows to one another at each look-up.
        if !self.context.times_are_ordered() || self.context.scope.peers() > 1 {
            return self.render(&tree.as_joins(inputs.to_vec(), closure));
        }
        let sides = self.delta_sides(inputs, tree);
        let all: Vec<Columns> = (0..inputs.len())
            .map(|input| sides.iter().find(|side| side.input == input).map(Side::columns))
            .map(Option::unwrap_or_default)
            .collect();
        let columns = mfp_columns(&delta_join_columns(&all, tree), closure);
        let (mut paths, mut works) = (Vec::new(), Vec::new());
        for input in 0..inputs.len() {
            let (start, steps) = steps_from(input, tree, &sides);
            let met: Vec<&Side<'_, '_, L, S, LOOPS>> = std::iter::once(start)
                .chain(steps.iter().map(|step| step.to))
                .map(|side| &sides[side])
                .collect();
            works.push(work_of(&met, tree, closure, &columns));
            let hop = |step: &Step<'_>| Hop {
                arrangement: step.to,
                from: step.from,
                key: key_of(met[step.from], step.key, &sides[step.to]),
                is_before: sides[step.to].input < input,
            };
            paths.push(Path { start, hops: steps.iter().map(hop).collect() });
        }
        let errs = sides.iter().fold(Errs::default(), |errs, s| errs.union(&s.arranged.rows.errs));
        let rows = sides.iter().filter_map(|side| side.arranged.rows.rows.in_memory().cloned());
        let (scope, as_of) = (self.context.scope, self.context.as_of);
        let guard = self.context.guard.clone();
        let results = follow(scope, rows.collect(), paths, as_of, move |path, met| {
            guard.proceed(1);
            let views = views::<L>(met);
            match &works[path] {
                RowWork::Move(moves) => Some(Ok(L::Row::project(moves, &views))),
                RowWork::Map(closure) => closure.apply(&views),
            }
        });
        let (oks, more) = split_results(results);
        Bundle { oks, errs: errs.union(&self.context.raise(more)), columns }
    }

    fn delta_sides<'p>(
        &mut self,
        inputs: &[Plan],
        tree: &'p JoinTree,
    ) -> Vec<Side<'p, 's, L, S, LOOPS>> {
        let mut sides = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            let mut rendered = None;
            for key in tree.keys(number) {
                let arranged = self.import(input, key).unwrap_or_else(|| {
                    let rows = match ArrangementKey::of(input, key) {
                        Some(_) => self.arrange_plan(input, key),
                        // However often it is arranged, it is computed once.
                        None => {
                            let rows = rendered.get_or_insert_with(|| self.render(input)).clone();
                            self.arrange_rows(rows, key)
                        }
                    };
                    Arranged { rows, key: key.to_vec(), made: None }
                });
                sides.push(Side::new(number, key, arranged, tree.arities[number]));
            }
        }
        sides
    }
}

fn views<'a, L: Layout>(met: &Met<'a, L::Key, L::Val>) -> SmallVec<[L::View<'a>; 16]> {
    met.iter().flat_map(|(key, val)| [key.view(), val.view()]).collect()
}

/// Where the path of an input starts, and how it goes on: from each input that it has met to those that are tied to it.
fn steps_from<'p, L: Layout, S: Storage, const LOOPS: usize>(
    input: usize,
    tree: &'p JoinTree,
    sides: &[Side<'p, '_, L, S, LOOPS>],
) -> (usize, Vec<Step<'p>>) {
    let side = |input: usize, key: &[Expr]| {
        let found = sides.iter().position(|side| side.input == input && side.key == key);
        found.expect("an input is arranged by all of its keys")
    };
    // By place on the path, the inputs that were met.
    let (mut met, mut steps, mut next) = (vec![input], Vec::new(), VecDeque::from([0]));
    while let Some(from) = next.pop_front() {
        for (number, link) in (1..).zip(&tree.links) {
            let (other, key, other_key) = if number == met[from] {
                (link.earlier, &link.own_key, &link.earlier_key)
            } else if link.earlier == met[from] {
                (number, &link.earlier_key, &link.own_key)
            } else {
                continue;
            };
            if !met.contains(&other) {
                next.push_back(met.len());
                met.push(other);
                steps.push(Step { from, key, to: side(other, other_key) });
            }
        }
    }
    // In the order of the first look-up, so that that goes forward only.
    let first: &[Expr] = steps.first().map_or(&[], |step| step.key);
    (side(input, first), steps)
}

/// The closure over what a path has met.
fn work_of<L: Layout, S: Storage, const LOOPS: usize>(
    met: &[&Side<'_, '_, L, S, LOOPS>],
    tree: &JoinTree,
    closure: &Mfp,
    columns: &[ColumnType],
) -> RowWork<L, L::Row> {
    let works = met.iter().map(|side| side.work.clone());
    let all = works.reduce(|all, next| all.beside(&next)).unwrap_or_default();
    let mut places = Vec::with_capacity(closure.input_arity);
    for input in 0..tree.arities.len() {
        let before = met.iter().take_while(|side| side.input != input);
        let start: usize = before.map(|side| tree.arities[side.input]).sum();
        places.extend((start..start + tree.arities[input]).map(Expr::Column));
    }
    let mut made = MfpBuilder::new(all.input_arity);
    made.then(&all);
    made.map(&places);
    made.then(closure);
    let from: Vec<&[ColumnType]> =
        met.iter().flat_map(|side| [&*side.split.key, &*side.split.val]).collect();
    RowWork::new(made.finish(), &from, columns)
}

/// The key of a side that a row of another one has; none, if a part of it is NULL or cannot be computed, which who arranges
/// that side says.
fn key_of<L: Layout, S: Storage, const LOOPS: usize>(
    side: &Side<'_, '_, L, S, LOOPS>,
    key: &[Expr],
    other: &Side<'_, '_, L, S, LOOPS>,
) -> KeyOf<L::Key, L::Val> {
    let mut made = MfpBuilder::new(side.work.input_arity);
    made.then(&side.work);
    made.map(key);
    let is_moved = made.clone().finish().only_projects();
    if !is_moved {
        let not_null = |column| Expr::Not(Box::new(Expr::IsNull(Box::new(Expr::Column(column)))));
        (0..key.len()).for_each(|column| made.filter(&not_null(column)));
    }
    let from: [&[ColumnType]; 2] = [&side.split.key, &side.split.val];
    match RowWork::<L, L::Key>::new(made.finish(), &from, &other.split.key) {
        RowWork::Move(moves) => {
            Box::new(move |key, val| L::Key::project_not_null(&moves, &[key.view(), val.view()]))
        }
        RowWork::Map(mapper) => {
            Box::new(move |key, val| mapper.apply(&[key.view(), val.view()])?.ok())
        }
    }
}
