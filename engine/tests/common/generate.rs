//! Random plans.

use super::plans::*;
use super::Random;
use plan::expr::Expr;
use plan::func::{Arithmetic, Blanks, CellWork, Comparison, Func, Number, TableFunc};
use plan::partition::{
    Bound, Count, Exclusion, Frame, SortKey, TopK, Units, WindowCall, WindowFunc, Work,
};
use plan::row::Row;
use plan::table_function::{TableCall, TableFunction};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{
    Aggregate, AggregateFunc, Collect, Diff, JoinTree, Link, LocalId, Mfp, Plan, Recursion,
    Regression, Spread, ViewPlan,
};

/// Columns of the sources of random plans.
pub const ARITIES: [usize; 2] = [2, 2];

/// Values go from 0 to this; with NULLs.
const VALUES: u64 = 6;

/// A name and the number of columns it stands for.
type Name = (usize, usize);

/// Makes plans; all columns are bigint.
pub struct Generator<'r> {
    random: &'r mut Random,
    next_local: usize,
    /// Names that may be used anywhere.
    locals: Vec<Name>,
    /// Whether expressions may fail.
    errors: bool,
    /// Recursions in whose base or step we are.
    loops: usize,
}

pub fn random_view(random: &mut Random) -> ViewPlan {
    let errors = random.below(4) == 0;
    let arity = 1 + random.below(2) as usize;
    let depth = 2 + random.below(3);
    let mut generator = Generator { random, next_local: 0, locals: vec![], errors, loops: 0 };
    let root = match generator.random.below(4) {
        0 => generator.any_aggregates(depth),
        _ => generator.plan(arity, depth),
    };
    view(&ARITIES, root, arity)
}

impl Generator<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn fresh(&mut self) -> usize {
        self.next_local += 1;
        self.next_local - 1
    }

    /// A plan without free loop variables.
    fn plan(&mut self, arity: usize, depth: u64) -> Plan {
        if depth == 0 {
            return self.leaf(arity);
        }
        match self.below(16) {
            0 => self.leaf(arity),
            15 if self.loops == 0 => self.delta_join(arity, depth - 1),
            15 => self.leaf(arity),
            12 => {
                let input = self.plan(arity, depth - 1);
                self.top_k(input, arity)
            }
            13 => self.window(arity, depth - 1),
            1 => {
                let input = self.plan(2, depth - 1);
                let mfp = self.mfp(2, arity);
                map(input, mfp)
            }
            2 | 3 => {
                let (left, right) = (self.plan(2, depth - 1), self.plan(1, depth - 1));
                self.join(left, 2, right, 1, arity)
            }
            4 => union(vec![self.plan(arity, depth - 1), self.plan(arity, depth - 1)]),
            5 => distinct(self.plan(arity, depth - 1)),
            6 if self.chance(25) => self.repeat(arity, depth - 1),
            6 => {
                let input = self.plan(2, depth - 1);
                self.reduce(input, 2, arity, true)
            }
            7 => {
                let value = self.plan(2, depth - 1);
                let id = self.fresh();
                self.locals.push((id, 2));
                let body = self.plan(arity, depth - 1);
                self.locals.pop();
                if !refers(&body, id) {
                    return body;
                }
                Plan::Let { id: LocalId(id), value: Box::new(value), body: Box::new(body) }
            }
            8 => {
                let input = self.plan(2, depth - 1);
                self.table_function(input, 2, arity)
            }
            _ => self.letrec(arity, depth),
        }
    }

    /// A few rows for each row.
    fn table_function(&mut self, input: Plan, from: usize, arity: usize) -> Plan {
        let calls = 1 + self.below(2);
        let calls = (0..calls).map(|_| self.table_call(from)).collect();
        let table_function =
            TableFunction { calls, has_ordinality: self.chance(30), keeps_all: self.chance(30) };
        let closure = self.mfp(from + table_function.width(), arity);
        Plan::TableFunction { input: Box::new(input), table_function, closure }
    }

    fn table_call(&mut self, from: usize) -> TableCall {
        let column = |generator: &mut Self| col(generator.below(from));
        let (first, second) = (column(self), column(self));
        let bounded = |func: fn(Blanks) -> Func, arg, bound| {
            call(func(Blanks::Significant), vec![arg, literal(bound)])
        };
        let (start, stop) =
            (bounded(Func::Greatest, first.clone(), 0), bounded(Func::Least, second.clone(), 3));
        let series = TableFunc::Series(Number::Int8);
        match self.below(4) {
            0 => TableCall { func: TableFunc::Once, args: vec![first] },
            1 => {
                TableCall { func: TableFunc::Unnest, args: vec![Expr::Array(vec![first, second])] }
            }
            // The step may be zero.
            2 if self.errors => {
                let step = bounded(Func::Greatest, second, 0);
                TableCall { func: series, args: vec![start, stop, step] }
            }
            2 => TableCall { func: series, args: vec![stop, start, literal(-2)] },
            _ => TableCall { func: series, args: vec![start, stop] },
        }
    }

    /// Some of the rows of another plan, each as often as it is there.
    fn repeat(&mut self, arity: usize, depth: u64) -> Plan {
        let count = Aggregate { func: AggregateFunc::Count, arg: None };
        let input = Box::new(self.plan(arity, depth));
        let key = (0..arity).map(col).collect();
        let counted = Plan::Reduce { input, key, aggregates: vec![count] };
        Plan::Repeat { input: Box::new(counted) }
    }

    /// Key and order of a partition.
    fn order(&mut self, arity: usize) -> (Vec<Expr>, Vec<SortKey>) {
        let key = (0..self.below(2)).map(|_| col(self.below(arity))).collect();
        let sort = |column, descending, nulls_first| SortKey {
            descending,
            nulls_first,
            ..SortKey::ascending(column, BIGINT)
        };
        let mut order: Vec<SortKey> = (0..self.below(3))
            .map(|_| sort(self.below(arity), self.chance(50), self.chance(50)))
            .collect();
        if self.chance(20) {
            order.push(SortKey { among_peers: true, ..sort(self.below(arity), true, false) });
        }
        (key, order)
    }

    /// Some of the rows of a plan's partitions.
    fn top_k(&mut self, input: Plan, arity: usize) -> Plan {
        let (key, order) = self.order(arity);
        let of_key = key.first().and_then(Expr::as_column).filter(|_| self.chance(30));
        let count = |number: usize| of_key.map_or(Count::Fixed(number as u64), Count::Of);
        let limit = self.chance(80).then(|| count(self.below(4)));
        let (offset, with_ties) = (Count::Fixed(self.below(3) as u64), self.chance(30));
        let work = Work::TopK(TopK { offset, limit, with_ties });
        Plan::Partition { input: Box::new(input), key, order, work }
    }

    /// Some of the values of window functions over the rows of another plan.
    fn window(&mut self, arity: usize, depth: u64) -> Plan {
        use WindowFunc as W;
        // Each copy is a row of its own to a window; elsewhere there may be millions.
        let input = match self.chance(30) {
            true => source(self.below(2)),
            false => distinct(self.plan(2, depth)),
        };
        let input = Box::new(input);
        let (key, order) = self.order(2);
        let mut funcs = vec![
            W::RowNumber,
            W::Rank,
            W::DenseRank,
            W::Lag,
            W::Lead,
            W::FirstValue,
            W::LastValue,
            W::Aggregate(AggregateFunc::Count),
            W::Aggregate(AggregateFunc::Max(BIGINT)),
        ];
        if self.errors {
            funcs.push(W::NthValue);
        }
        let calls = (0..2).map(|_| {
            let func = funcs[self.below(funcs.len())];
            let args = match func {
                W::RowNumber | W::Rank | W::DenseRank => vec![],
                W::NthValue => vec![self.below(2), self.below(2)],
                _ => vec![self.below(2)],
            };
            WindowCall { func, args, frame: self.frame() }
        });
        let work = Work::Window(calls.collect());
        let windows = Plan::Partition { input, key, order, work };
        let mfp = self.mfp(4, arity);
        map(windows, mfp)
    }

    fn frame(&mut self) -> Frame {
        let units = if self.chance(50) { Units::Rows } else { Units::Groups };
        let offset = Datum::Int8(self.below(3) as i64);
        let start = match self.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Current,
            _ => Bound::Preceding(offset.clone()),
        };
        let end = match self.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Current,
            _ => Bound::Following(offset),
        };
        let exclusion = [Exclusion::None, Exclusion::Ties][self.below(2)];
        Frame { units, start, end, exclusion }
    }

    fn leaf(&mut self, arity: usize) -> Plan {
        let (input, from) = match self.below(5) {
            0 => (Plan::Constant { arity, rows: self.rows(arity) }, arity),
            1 | 2 if !self.locals.is_empty() => {
                let local = self.below(self.locals.len());
                let (id, from) = self.locals[local];
                (get(id), from)
            }
            other => (source(other % 2), 2),
        };
        if from == arity && self.chance(70) {
            return input;
        }
        let mfp = self.mfp(from, arity);
        map(input, mfp)
    }

    fn rows(&mut self, arity: usize) -> Vec<(Row, Diff)> {
        let count = self.below(4);
        (0..count).map(|_| (random_row(self.random, arity, false), 1)).collect()
    }

    fn letrec(&mut self, arity: usize, depth: u64) -> Plan {
        let id = self.fresh();
        let kind = self.below(6);
        let name = (id, if kind == 3 { 2 + self.below(2) } else { 2 });
        self.loops += 1;
        let base = self.wide(name.1, depth - 1);
        let (recursion, step) = match kind {
            0 => (Recursion::FixpointDistinct, self.linear(name, 2, depth - 1, true)),
            1 => (Recursion::FixpointAll, self.linear(name, 2, depth - 1, false)),
            2 => (Recursion::WorkingTableAll, self.strict(&[name], 2, depth - 1)),
            3 => self.extreme(name, depth - 1),
            4 => (Recursion::LeastFixpoint, self.growing(name, 2, depth - 1)),
            _ => {
                let key = if self.chance(50) { vec![col(0), col(1)] } else { vec![col(0)] };
                let step = self.strict(&[name], 2, depth - 1);
                (Recursion::WorkingTableDistinct { key }, step)
            }
        };
        self.loops -= 1;
        self.locals.push(name);
        let body = self.plan(arity, depth - 1);
        self.locals.pop();
        if !refers(&body, id) {
            return body;
        }
        letrec(id, recursion, base, step, body)
    }

    /// A plan that distributes over the rows of `name`; as sets only, with `sets`.
    fn linear(&mut self, name: Name, arity: usize, depth: u64, sets: bool) -> Plan {
        let choice = if depth == 0 { self.below(3) } else { self.below(7) };
        match choice {
            6 => {
                let input = self.linear(name, 2, depth - 1, sets);
                self.table_function(input, 2, arity)
            }
            0 => {
                let mfp = self.mfp(name.1, arity);
                map(get(name.0), mfp)
            }
            3 => union(vec![
                self.linear(name, arity, depth - 1, sets),
                self.linear(name, arity, depth - 1, sets),
            ]),
            4 if sets => distinct(self.linear(name, arity, depth - 1, sets)),
            5 if sets => {
                let id = self.fresh();
                let base = self.linear(name, 2, depth - 1, sets);
                let step = self.linear((id, 2), 2, depth - 1, sets);
                let body = self.linear((id, 2), arity, depth - 1, sets);
                letrec(id, Recursion::FixpointDistinct, base, step, body)
            }
            _ => {
                let left =
                    if depth == 0 { get(name.0) } else { self.linear(name, 2, depth - 1, sets) };
                let right = self.plan(2, depth.saturating_sub(1));
                self.join(left, 2, right, 2, arity)
            }
        }
    }

    /// A plan that as a set only grows with the rows of `name`, which it may join with themselves.
    fn growing(&mut self, name: Name, arity: usize, depth: u64) -> Plan {
        let below = depth.saturating_sub(1);
        match self.below(5) {
            0 if depth > 0 => self.linear(name, arity, depth, true),
            1 if depth > 0 => {
                union(vec![self.growing(name, arity, below), self.growing(name, arity, below)])
            }
            2 if depth > 0 => {
                union(vec![self.growing(name, arity, below), self.plan(arity, below)])
            }
            3 if depth > 0 => {
                let (left, right) = (self.growing(name, 2, below), self.growing(name, 2, below));
                // Without it copies would be squared in every round.
                distinct(self.join(left, 2, right, 2, arity))
            }
            _ => distinct(self.join(get(name.0), 2, get(name.0), 2, arity)),
        }
    }

    /// Like [`Generator::plan`], of two columns or three.
    fn wide(&mut self, arity: usize, depth: u64) -> Plan {
        let input = self.plan(2, depth);
        if arity == 2 {
            return input;
        }
        let mfp = self.mfp(2, arity);
        map(input, mfp)
    }

    /// Of each value of one column the least or greatest of another, and a step that is monotone in it. If there is a
    /// third column, it decides among equal values.
    fn extreme(&mut self, name: Name, depth: u64) -> (Recursion, Plan) {
        let first = self.below(name.1);
        let [value, key, tie] = [0, 1, 2].map(|offset| (first + offset) % name.1);
        let least = self.chance(60);
        let best = if least { SortKey::least } else { SortKey::greatest };
        let mut order = vec![best(value, BIGINT)];
        if name.1 > 2 {
            let (descending, nulls_first) = (self.chance(50), self.chance(50));
            order.push(SortKey { descending, nulls_first, ..SortKey::ascending(tie, BIGINT) });
        }
        let step = self.monotone(name, (value, key), least, depth);
        // The plans around the self-reference may set values anew.
        (Recursion::FixpointExtreme { key: vec![key], order, adds: false }, step)
    }

    /// A plan whose value column rises with that of `name`, and whose other columns depend on its key at most.
    fn monotone(
        &mut self,
        name: Name,
        (value, key): (usize, usize),
        least: bool,
        depth: u64,
    ) -> Plan {
        if depth > 0 && self.chance(30) {
            let other = self.wide(name.1, depth - 1);
            let one = self.monotone(name, (value, key), least, depth - 1);
            return union(vec![one, if self.chance(50) { other } else { get(name.0) }]);
        }
        let right = self.plan(2, depth);
        let (width, next) = (name.1, name.1 + 2);
        let (added, bound) =
            (col(width + self.below(2)), literal(self.random.below(VALUES) as i64));
        let arithmetic = |op, by| call(Func::Arithmetic(op, Number::Int8), vec![col(value), by]);
        let map = match self.below(5) {
            0 => col(value),
            1 => arithmetic(Arithmetic::Add, literal(1)),
            2 => arithmetic(Arithmetic::Subtract, literal(1)),
            _ => arithmetic(Arithmetic::Add, added.clone()),
        };
        let mut filter = vec![];
        if self.chance(40) {
            let comparison = if least { Comparison::Lt } else { Comparison::Ge };
            let bound = if self.chance(50) { bound } else { added };
            filter.push(call(
                Func::Compare(comparison, Blanks::Significant),
                vec![col(value), bound],
            ));
        }
        let others = [key, width, width + 1];
        let project = (0..width)
            .map(|column| if column == value { next } else { others[self.below(3)] })
            .collect();
        let closure = Mfp { input_arity: next, maps: vec![map], filter, project };
        join((get(name.0), key), (right, self.below(2)), closure)
    }

    /// A plan that is empty when the names (of loops around it) are.
    fn strict(&mut self, names: &[Name], arity: usize, depth: u64) -> Plan {
        let name = names[self.below(names.len())];
        if depth == 0 {
            return self.linear(name, arity, 0, false);
        }
        match self.below(8) {
            7 => {
                let input = self.strict(names, arity, depth - 1);
                self.top_k(input, arity)
            }
            0 => distinct(self.strict(names, arity, depth - 1)),
            1 => {
                let input = self.strict(names, 2, depth - 1);
                self.reduce(input, 2, arity, false)
            }
            2 => {
                let (left, right) =
                    (self.strict(names, 2, depth - 1), self.strict(names, 1, depth - 1));
                // Without it copies would be squared in every round.
                distinct(self.join(left, 2, right, 1, arity))
            }
            3 => union(vec![
                self.strict(names, arity, depth - 1),
                self.strict(names, arity, depth - 1),
            ]),
            4 => {
                let id = self.fresh();
                let base = self.strict(names, 2, depth - 1);
                let inner = [names, &[(id, 2)]].concat();
                let (recursion, step) = match self.below(3) {
                    0 => (Recursion::FixpointDistinct, self.linear((id, 2), 2, depth - 1, true)),
                    1 => {
                        let key = vec![col(0)];
                        let step = self.strict(&inner[names.len()..], 2, depth - 1);
                        (Recursion::WorkingTableDistinct { key }, step)
                    }
                    _ => {
                        // Refers to both loops.
                        let left = self.linear((id, 2), 2, 0, true);
                        let right = self.strict(names, 2, 0);
                        let step = self.join(left, 2, right, 2, 2);
                        (Recursion::WorkingTableDistinct { key: vec![col(0), col(1)] }, step)
                    }
                };
                let body = self.linear((id, 2), arity, 0, true);
                letrec(id, recursion, base, step, body)
            }
            _ => self.linear(name, arity, depth, false),
        }
    }

    fn join(&mut self, left: Plan, l: usize, right: Plan, r: usize, arity: usize) -> Plan {
        if self.chance(15) {
            return self.range_join(left, l, right, r, arity);
        }
        let closure = self.mfp(l + r, arity);
        let keys = usize::from(!self.chance(5));
        Plan::Join {
            left: Box::new(left),
            right: Box::new(right),
            left_key: (0..keys).map(|_| col(self.below(l))).collect(),
            right_key: (0..keys).map(|_| col(self.below(r))).collect(),
            closure,
        }
    }

    /// A join of three inputs or four, in any tree.
    fn delta_join(&mut self, arity: usize, depth: u64) -> Plan {
        let count = 3 + self.below(2);
        let inputs = (0..count).map(|_| self.plan(2, depth.min(1))).collect();
        let links = (1..count).map(|number| Link {
            earlier: self.below(number),
            earlier_key: vec![self.delta_key()],
            own_key: vec![self.delta_key()],
        });
        let links = links.collect();
        let tree = JoinTree { arities: vec![2; count], links };
        Plan::DeltaJoin { inputs, tree, closure: self.mfp(2 * count, arity) }
    }

    /// A column or what cannot fail.
    fn delta_key(&mut self) -> Expr {
        match self.chance(15) {
            true => Expr::Coalesce(vec![col(0), col(1)]),
            false => col(self.below(2)),
        }
    }

    /// Of the rows that have a value of the left side between two of the right side. They meet in cells: of the
    /// intervals' covers, and of the points, which have a copy for each size that covers have.
    fn range_join(&mut self, left: Plan, l: usize, right: Plan, r: usize, arity: usize) -> Plan {
        let cells = |work, args| call(Func::Cells(work), args);
        // So that intervals are of several sizes.
        let spread = [1, 1000][self.below(2)];
        let scaled = |column: usize| {
            let args = vec![col(column), literal(spread)];
            call(Func::Arithmetic(Arithmetic::Multiply, Number::Int8), args)
        };
        let (point, from, to) = (self.below(l), self.below(r), self.below(r));
        let rank = |column: usize| cells(CellWork::Rank, vec![scaled(column)]);
        let cover = TableCall { func: TableFunc::Cells, args: vec![rank(from), rank(to)] };
        let covered = Plan::TableFunction {
            input: Box::new(right),
            table_function: TableFunction::of(vec![cover]),
            closure: project(r + 1, &(0..=r).collect::<Vec<_>>()),
        };
        let id = self.fresh();
        let size = cells(CellWork::Size, vec![col(r)]);
        let sizes =
            Mfp { input_arity: r + 1, maps: vec![size], filter: vec![], project: vec![r + 1] };
        let all = project(l + 1, &(0..=l).collect::<Vec<_>>());
        let points = cross(left, distinct(map(get(id), sizes)), all);
        let mut closure = self.mfp(l + r, arity);
        let between = [(Comparison::Ge, from), (Comparison::Lt, to)].map(|(comparison, bound)| {
            let args = vec![scaled(point), scaled(l + bound)];
            call(Func::Compare(comparison, Blanks::Significant), args)
        });
        closure.filter.splice(..0, between);
        // Behind either side's columns there is one more.
        let place =
            |column: usize| column + usize::from(column >= l) + usize::from(column >= l + r);
        closure.input_arity += 2;
        closure
            .maps
            .iter_mut()
            .chain(&mut closure.filter)
            .for_each(|e| e.map_columns(&mut { place }));
        closure.project.iter_mut().for_each(|column| *column = place(*column));
        let joined = Plan::Join {
            left: Box::new(points),
            right: Box::new(get(id)),
            left_key: vec![cells(CellWork::At, vec![rank(point), col(l)])],
            right_key: vec![col(r)],
            closure,
        };
        Plan::Let { id: LocalId(id), value: Box::new(covered), body: Box::new(joined) }
    }

    /// Aggregates with bigint results.
    fn reduce(&mut self, input: Plan, from: usize, arity: usize, global: bool) -> Plan {
        let fewest = usize::from(!(global && self.chance(20)));
        let keys = fewest + self.below(arity + 1 - fewest);
        let key = (0..keys).map(|_| col(self.below(from))).collect();
        let aggregates = (keys..arity).map(|_| {
            let column = col(self.below(from));
            match self.below(6) {
                0 => Aggregate { func: AggregateFunc::Count, arg: None },
                1 => Aggregate { func: AggregateFunc::Count, arg: Some(column) },
                2 => {
                    Aggregate { func: AggregateFunc::SumInt, arg: Some(cast(column, Scalar::Int4)) }
                }
                3 => Aggregate { func: AggregateFunc::Min(BIGINT), arg: Some(column) },
                4 => Aggregate { func: AggregateFunc::Max(BIGINT), arg: Some(column) },
                _ => Aggregate { func: AggregateFunc::Any, arg: Some(column) },
            }
        });
        Plan::Reduce { aggregates: aggregates.collect(), input: Box::new(input), key }
    }

    /// A group by with some of all aggregates there are.
    fn any_aggregates(&mut self, depth: u64) -> Plan {
        let input = self.plan(2, depth);
        let key = (0..self.below(2)).map(|_| col(self.below(2))).collect();
        let count = 1 + self.below(4);
        let aggregates = (0..count).map(|_| {
            let c = col(self.below(2));
            let positive = call(
                Func::Compare(Comparison::Gt, Blanks::Significant),
                vec![c.clone(), literal(2)],
            );
            use AggregateFunc as A;
            let (func, arg) = match self.below(22) {
                0 => (A::Count, None),
                1 => (A::SumInt, Some(cast(c, Scalar::Int4))),
                2 => (A::SumInt8, Some(c)),
                3 => (A::SumNumeric, Some(cast(c, Scalar::Numeric))),
                4 => (A::SumFloat4, Some(cast(c, Scalar::Float4))),
                5 => (A::SumFloat8, Some(cast(c, Scalar::Float8))),
                6 => (A::AvgInt, Some(c)),
                7 => (A::AvgNumeric, Some(cast(c, Scalar::Numeric))),
                8 => (A::AvgFloat, Some(cast(c, Scalar::Float8))),
                9 => (A::BoolAnd, Some(positive)),
                10 => (A::BoolOr, Some(positive)),
                11 => (A::Min(BIGINT), Some(c)),
                12 => (A::SpreadInt(Spread::VarPop), Some(c)),
                13 => (A::SpreadNumeric(Spread::StddevSamp), Some(cast(c, Scalar::Numeric))),
                14 => (A::SpreadFloat(Spread::StddevPop), Some(cast(c, Scalar::Float8))),
                15 => (A::BitAnd(BIGINT), Some(c)),
                16 => (A::BitOr(BIGINT), Some(c)),
                17 => (A::BitXor(BIGINT), Some(c)),
                18 => {
                    let pair = [col(0), col(1)].map(|c| cast(c, Scalar::Float8)).to_vec();
                    (A::Regression(Regression::Slope), Some(call(Func::Pair, pair)))
                }
                19 | 20 => {
                    let collects = [
                        // Copies may be millions.
                        (Collect::Array { distinct: true }, Type::Array(Scalar::Int8)),
                        (Collect::PercentileDisc(0.3_f64.to_bits()), BIGINT),
                        (Collect::Mode, BIGINT),
                    ];
                    let (collect, ty) = collects[self.below(3)];
                    let sort = SortKey {
                        descending: self.chance(50),
                        nulls_first: self.chance(50),
                        ..SortKey::ascending(0, BIGINT)
                    };
                    let order = call(Func::OrderKey(sort), vec![c.clone()]);
                    let entry = call(Func::Entry { keys: 1 }, vec![order, c]);
                    (A::Collect(collect, ty), Some(entry))
                }
                _ => (A::Any, Some(c)),
            };
            Aggregate { func, arg }
        });
        Plan::Reduce { aggregates: aggregates.collect(), input: Box::new(input), key }
    }

    fn mfp(&mut self, input_arity: usize, arity: usize) -> Mfp {
        let mut maps = vec![];
        if self.chance(15) {
            maps.push(literal(self.random.below(VALUES) as i64));
        }
        if self.errors && self.chance(30) {
            let args = vec![col(self.below(input_arity)), col(self.below(input_arity))];
            maps.push(call(Func::Arithmetic(Arithmetic::Divide, Number::Int8), args));
        }
        let all = input_arity + maps.len();
        let mut filter = vec![];
        if self.chance(25) {
            let comparison =
                [Comparison::Lt, Comparison::Ne, Comparison::Eq, Comparison::Ge][self.below(4)];
            let right = if self.chance(50) {
                literal(self.random.below(VALUES) as i64)
            } else {
                col(self.below(all))
            };
            let args = vec![col(self.below(all)), right];
            filter.push(call(Func::Compare(comparison, Blanks::Significant), args));
        }
        let project = (0..arity).map(|_| self.below(all)).collect();
        Mfp { input_arity, maps, filter, project }
    }
}

/// Whether a plan uses a name. What is not used the engine does not compute, the evaluator does.
fn refers(plan: &Plan, id: usize) -> bool {
    *plan == get(id) || plan.children().into_iter().any(|child| refers(child, id))
}

fn call(func: Func, args: Vec<Expr>) -> Expr {
    Expr::Call { func, args }
}

fn cast(expr: Expr, to: Scalar) -> Expr {
    call(Func::Cast(Scalar::Int8, to), vec![expr])
}

fn literal(value: i64) -> Expr {
    Expr::Literal(Datum::Int8(value), BIGINT)
}

/// A row of small numbers; of a source without cycles they ascend.
pub fn random_row(random: &mut Random, arity: usize, ascending: bool) -> Row {
    let mut value = |from: u64| match random.below(12) {
        0 => Datum::Null,
        _ => Datum::Int8((from + random.below(VALUES - from)) as i64),
    };
    let first = value(0);
    let next = match &first {
        Datum::Int8(n) if ascending => (*n as u64 + 1).min(VALUES - 1),
        _ => 0,
    };
    let mut values = vec![first];
    values.extend((1..arity).map(|_| value(next)));
    Row::pack(&values)
}
