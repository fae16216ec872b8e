//! Joins without equality whose condition is of intervals: a value between two others, intervals that overlap. They
//! become joins by equality, of cells (`plan::func::CellWork`).
//!
//! A side with an interval has a row for each cell of its cover, all of one size. A side with a point has a row for
//! each size that covers have, and its key is the cell of that size. So a point and an interval that it is in meet once:
//! in the one cell of the cover that has the point. What meets without being in it fails the condition, which is tested of
//! all that meet.
//!
//! Two intervals overlap if one begins within the other. That are two joins: of those where the left one's begin has no
//! lower rank than the right one's, and is taken for a point, and of those where it has a lower one. They have no pair in
//! common. Nor has a NULL a partner, whose rank is NULL; but one that means that there is no bound has the rank that is
//! farthest out.
//!
//! Several dimensions are several columns of the key. A size that was not there before costs a look at all points,
//! which happens as often as there are sizes: each is 16 times the next.
//!
//! It is the same relation, whatever the sides are, so it is right in the step of a recursion.
//!
//! ```text
//! Join [i.lo <= p.x AND p.x <= i.hi]  becomes  Let covered
//!   Get p                                        Table function (cells(rank(i.lo), rank(i.hi)))
//!   Get i                                          Get i
//!                                              Range join on cell(rank(p.x), size) = cells filter …
//!                                                Join on share(rank(p.x)) = share
//!                                                  Get p
//!                                                  Table function (shares)
//!                                                    Distinct (cell_size(cells))
//!                                                      Get covered
//!                                                Get covered
//! ```

mod dimensions;
mod host;

use super::host_calls::insert_columns;
use crate::catalog::Extents;
use dimensions::{dimensions, Bound, Dimension, Extent};
use plan::expr::{self, Expr, MfpBuilder};
use plan::func::{Arithmetic, Blanks, CellWork, Comparison, Func, Number, TableFunc};
use plan::table_function::{TableCall, TableFunction};
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{Local, LocalId, Mfp, Plan};

/// A side of a join: its rows and their columns.
pub(super) type Input<'r> = (Plan, &'r [Column]);

/// A join by cells, without its closure.
pub(super) struct CellJoin {
    /// Joins that have no pair in common.
    pairs: Vec<Pair>,
    /// The values of the names in them, each of which may refer to those before.
    pub(super) names: Vec<(LocalId, Plan)>,
    left_arity: usize,
    right_arity: usize,
}

/// One join by equality of cells.
struct Pair {
    left: Keyed,
    right: Keyed,
    /// What is to be true besides, over the columns of both.
    tests: Vec<Expr>,
}

/// Rows with columns behind their own, from which their cells are told.
struct Keyed {
    rows: Plan,
    added: usize,
    key: Vec<Expr>,
}

/// How many shares points of either sign are in. It is prime, so that ranks of whole seconds or hundreds are in all.
const SHARES: i64 = 61;

/// Rows that no more than these are joined as they are: looking at all of them takes no time.
const FEW_CONSTANTS: usize = 16;

/// How a join with that condition is made one by cells; `None` if the condition is not of intervals. `is_shared` says
/// that it will be used more than once.
pub(super) fn by_cells(
    (left, right): (&Input<'_>, &Input<'_>),
    condition: &[Expr],
    is_shared: bool,
    (locals, extents): (&mut Vec<Local>, Extents<'_>),
) -> Option<CellJoin> {
    let is_small =
        |plan: &Plan| matches!(plan, Plan::Constant { rows, .. } if rows.len() <= FEW_CONSTANTS);
    if is_small(&left.0) || is_small(&right.0) {
        return None;
    }
    let types: Vec<Type> = left.1.iter().chain(right.1).map(|column| column.ty).collect();
    let dimensions = dimensions(condition, (&types, left.1.len()), extents);
    if dimensions.is_empty() {
        return None;
    }
    let mut builder = Builder { locals, names: vec![], is_shared };
    let left_side = builder.side(left, dimensions.iter().map(|d| (&d.left, d.overlaps())));
    let right_side = builder.side(right, dimensions.iter().map(|d| (&d.right, d.overlaps())));
    let roles = roles(&dimensions);
    let pairs = roles.iter().map(|roles| builder.pair(&left_side, &right_side, roles)).collect();
    Some(CellJoin {
        pairs,
        names: builder.names,
        left_arity: left.1.len(),
        right_arity: right.1.len(),
    })
}

impl CellJoin {
    /// The join with a closure over the columns of both sides, which tests the condition.
    pub(super) fn with_closure(&self, closure: &Mfp) -> Plan {
        let mut joins: Vec<Plan> = self.pairs.iter().map(|pair| self.join(pair, closure)).collect();
        match joins.pop() {
            Some(only) if joins.is_empty() => only,
            last => Plan::Union { inputs: joins.into_iter().chain(last).collect() },
        }
    }

    fn join(&self, pair: &Pair, closure: &Mfp) -> Plan {
        let mut closure = closure.clone();
        insert_columns(&mut closure, self.left_arity + self.right_arity, pair.right.added);
        insert_columns(&mut closure, self.left_arity, pair.left.added);
        closure.filter.splice(..0, pair.tests.iter().cloned());
        Plan::Join {
            left: Box::new(pair.left.rows.clone()),
            right: Box::new(pair.right.rows.clone()),
            left_key: pair.left.key.clone(),
            right_key: pair.right.key.clone(),
            closure,
        }
    }
}

/// What a side is in a dimension of one of the joins.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Point,
    Interval,
}

impl Role {
    fn other(self) -> Role {
        match self {
            Role::Point => Role::Interval,
            Role::Interval => Role::Point,
        }
    }
}

/// The roles of the left side in each dimension, for each of the joins.
fn roles(dimensions: &[Dimension]) -> Vec<Vec<Role>> {
    let mut all = vec![vec![]];
    for dimension in dimensions {
        let own = match (&dimension.left, &dimension.right) {
            (Extent::Point(_), _) => vec![Role::Point],
            (_, Extent::Point(_)) => vec![Role::Interval],
            _ => vec![Role::Point, Role::Interval],
        };
        let with = |roles: &Vec<Role>, role| roles.iter().copied().chain([role]).collect();
        all = all.iter().flat_map(|roles| own.iter().map(move |role| with(roles, *role))).collect();
    }
    all
}

/// A side of all the joins.
struct Side<'r> {
    /// Its rows, with begins of which one look is not enough.
    rows: Plan,
    columns: &'r [Column],
    /// What to call the columns of these rows.
    names: Vec<String>,
    /// By dimension.
    places: Vec<Place>,
}

/// Ranks, as expressions over the rows of a side.
struct Place {
    /// That of the point, or of the begin.
    begin: Expr,
    /// That of the interval's end; the point has none.
    end: Option<Expr>,
    /// Whether the other side is an interval, too.
    overlaps: bool,
}

struct Builder<'l> {
    locals: &'l mut Vec<Local>,
    names: Vec<(LocalId, Plan)>,
    is_shared: bool,
}

impl Builder<'_> {
    fn side<'r, 'd>(
        &mut self,
        (rows, columns): &Input<'r>,
        extents: impl Iterator<Item = (&'d Extent, bool)>,
    ) -> Side<'r> {
        let arity = columns.len();
        let mut begins = Vec::new();
        let mut place = |(extent, overlaps): (&Extent, bool)| {
            let (mut begin, end) = match extent {
                Extent::Point(value) => (rank(value), None),
                Extent::Interval(from, to) => {
                    (rank_of_bound(from, false), Some(rank_of_bound(to, true)))
                }
            };
            // It is looked at more than once.
            if overlaps || expr::calls_host(&begin) {
                begins.push(std::mem::replace(&mut begin, Expr::Column(arity + begins.len())));
            }
            Place { begin, end, overlaps }
        };
        let places = extents.map(&mut place).collect();
        let (mut rows, added) = (rows.clone(), begins.len());
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let names = with_added(&names, added, "begin");
        if added > 0 {
            let mut ranked = MfpBuilder::new(arity);
            let own = (0..arity).map(Expr::Column);
            ranked.map(&own.chain(begins).collect::<Vec<_>>());
            let input = Box::new(rows);
            let ranked = Plan::Mfp { input, mfp: ranked.finish() };
            rows = self.name(ranked, "begins", names.clone());
        }
        Side { rows, columns, names, places }
    }

    fn pair(&mut self, left: &Side<'_>, right: &Side<'_>, roles: &[Role]) -> Pair {
        let others: Vec<Role> = roles.iter().map(|role| role.other()).collect();
        let (of_left, of_right) = (self.covered(left, roles), self.covered(right, &others));
        let left_rows = self.keyed((left, roles), &of_left, (right, &of_right));
        let right_rows = self.keyed((right, &others), &of_right, (left, &of_left));
        let split = left.columns.len() + left_rows.added;
        let places = left.places.iter().zip(&right.places).zip(roles);
        let overlapping = places.filter(|((place, _), _)| place.overlaps);
        let tests = overlapping
            .map(|((left, right), role)| begins((&left.begin, &right.begin), *role, split));
        Pair { tests: tests.collect(), left: left_rows, right: right_rows }
    }

    /// The rows with a cell in each dimension in which the side is an interval: once for each combination of cells.
    fn covered(&mut self, side: &Side<'_>, roles: &[Role]) -> Plan {
        let mut arity = side.names.len();
        let mut plan = side.rows.clone();
        for (place, role) in side.places.iter().zip(roles) {
            let (Role::Interval, Some(end)) = (role, &place.end) else { continue };
            let args = vec![place.begin.clone(), end.clone()];
            let table_function =
                TableFunction::of(vec![TableCall { func: TableFunc::Cells, args }]);
            arity += 1;
            let closure = MfpBuilder::new(arity).finish();
            plan = Plan::TableFunction { input: Box::new(plan), table_function, closure };
        }
        match arity - side.names.len() {
            0 => plan,
            covers => self.name(plan, "covered", with_added(&side.names, covers, "cell")),
        }
    }

    /// A side's rows with their cells: those of the cover, or those of the points, of the sizes that the other side's
    /// covers have.
    fn keyed(
        &mut self,
        (side, roles): (&Side<'_>, &[Role]),
        own: &Plan,
        (other_side, other): (&Side<'_>, &Plan),
    ) -> Keyed {
        let points = roles.iter().filter(|role| **role == Role::Point).count();
        let covers = roles.len() - points;
        let (mut cover, mut size) = (side.names.len(), side.names.len() + covers);
        let next = |column: &mut usize| {
            *column += 1;
            Expr::Column(*column - 1)
        };
        let key = side.places.iter().zip(roles).map(|(place, role)| match role {
            Role::Interval => next(&mut cover),
            Role::Point => call(CellWork::At, vec![place.begin.clone(), next(&mut size)]),
        });
        let key = key.collect();
        let arity = side.names.len() + roles.len();
        let added = arity - side.columns.len();
        let ranks = side.places.iter().zip(roles).filter(|(_, role)| **role == Role::Point);
        let Some(rank) = ranks.map(|(place, _)| place.begin.clone()).next() else {
            return Keyed { rows: own.clone(), added, key };
        };
        let mut closure = MfpBuilder::new(arity + 1);
        closure.map(&(0..arity).map(Expr::Column).collect::<Vec<_>>());
        let rows = Plan::Join {
            left: Box::new(own.clone()),
            right: Box::new(sizes(other, other_side.names.len(), points)),
            left_key: vec![share(rank)],
            right_key: vec![Expr::Column(points)],
            closure: closure.finish(),
        };
        let rows = match self.is_shared {
            true => {
                let names = with_added(&side.names, covers, "cell");
                self.name(rows, "points", with_added(&names, points, "size"))
            }
            false => rows,
        };
        Keyed { rows, added, key }
    }

    /// A name for rows that are referred to several times, and one for each column.
    fn name(&mut self, rows: Plan, name: &str, columns: Vec<String>) -> Plan {
        let id = LocalId(self.locals.len());
        self.locals.push(Local { name: name.to_owned(), columns, note: None });
        self.names.push((id, rows));
        Plan::Get(id)
    }
}

/// Names, and behind them so many times another.
fn with_added(names: &[String], added: usize, name: &str) -> Vec<String> {
    names.iter().cloned().chain(vec![name.to_owned(); added]).collect()
}

/// The sizes of the cells that a side's covers have in all dimensions in which it has covers, for each share of the
/// points.
fn sizes(covered: &Plan, arity: usize, dimensions: usize) -> Plan {
    let mut sizes = MfpBuilder::new(arity + dimensions);
    let size = |cell| call(CellWork::Size, vec![Expr::Column(cell)]);
    sizes.map(&(arity..arity + dimensions).map(size).collect::<Vec<_>>());
    let sizes = Plan::Mfp { input: Box::new(covered.clone()), mfp: sizes.finish() };
    let input = Box::new(sizes);
    let args = vec![literal(1 - SHARES), literal(SHARES - 1)];
    let func = TableFunc::Series(Number::Int8);
    Plan::TableFunction {
        input: Box::new(Plan::Distinct { input }),
        table_function: TableFunction::of(vec![TableCall { func, args }]),
        closure: MfpBuilder::new(dimensions + 1).finish(),
    }
}

/// The share of a point: all points together, as a join without a key has them, would be on one thread and in memory.
fn share(rank: Expr) -> Expr {
    let func = Func::Arithmetic(Arithmetic::Modulo, Number::Int8);
    Expr::Call { func, args: vec![rank, literal(SHARES)] }
}

fn literal(value: i64) -> Expr {
    Expr::Literal(Datum::Int8(value), Scalar::Int8.into())
}

/// Of two intervals, the one whose begin is a point begins last; the left one, if both begin together.
fn begins((left, right): (&Expr, &Expr), role: Role, split: usize) -> Expr {
    let comparison = if role == Role::Point { Comparison::Ge } else { Comparison::Lt };
    let right = expr::renumber(right, &|column| column + split);
    let func = Func::Compare(comparison, Blanks::Significant);
    Expr::Call { func, args: vec![left.clone(), right] }
}

fn call(work: CellWork, args: Vec<Expr>) -> Expr {
    Expr::Call { func: Func::Cells(work), args }
}

fn rank(value: &Expr) -> Expr {
    call(CellWork::Rank, vec![value.clone()])
}

/// The rank of an interval's begin or end: if there is none, the outermost one.
fn rank_of_bound(bound: &Bound, is_end: bool) -> Expr {
    let rank = rank(&bound.value);
    let outermost = if is_end { i64::MAX } else { i64::MIN };
    match (bound.is_open, bound.slack) {
        (false, _) => rank,
        (true, 0) => Expr::Coalesce(vec![rank, literal(outermost)]),
        (true, slack) => {
            // These leave NULL out.
            let blanks = Blanks::Significant;
            let (func, op, limit) = match is_end {
                false => (Func::Greatest(blanks), Arithmetic::Subtract, outermost + slack),
                true => (Func::Least(blanks), Arithmetic::Add, outermost - slack),
            };
            let within = Expr::Call { func, args: vec![rank, literal(limit)] };
            let func = Func::Arithmetic(op, Number::Int8);
            Expr::Call { func, args: vec![within, literal(slack)] }
        }
    }
}
