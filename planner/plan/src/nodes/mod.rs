//! The physical plan: what the engine renders. Plain data: printable, comparable, serde.
//!
//! A plan is a tree with `Let`/`LetRec` for sharing and recursion. Every node's output is a collection of rows, a
//! multiset that varies with time, paired with a collection of [`DataError`](crate::error::DataError)s raised by
//! expressions below it. Each node's doc says what it means and what state it keeps in memory.

mod callers;
mod explain;
mod join_tree;

pub use explain::explain;
pub use join_tree::{JoinTree, Link};

use crate::aggregate::AggregateFunc;
use crate::expr::{Expr, Mfp};
use crate::partition::{SortKey, Work};
use crate::row::{Diff, Row};
use crate::table_function::TableFunction;
use crate::types::Column;
use serde::{Deserialize, Serialize};

/// Index into [`ViewPlan::sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceId(pub usize);

/// Name of a value bound by `Let` or `LetRec`; unique within one [`ViewPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LocalId(pub usize);

/// Everything needed to maintain one view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewPlan {
    /// The base tables read, each once, with just the columns the view needs; and, if it depends on the present
    /// time, the clock ([`crate::clock`]).
    pub sources: Vec<Source>,
    /// The dataflow.
    pub root: Plan,
    /// The view's columns, in order.
    pub columns: Vec<Column>,
    /// Columns of the view that together are unique (SQL equality, NULLs equal) at every time, if
    /// known.
    pub key: Option<Vec<usize>>,
    /// What people call the values bound by `Let` and `LetRec`, by [`LocalId`]; for EXPLAIN only,
    /// may be shorter than the number of locals.
    pub locals: Vec<Local>,
}

impl ViewPlan {
    /// The key if it pairs a deletion with an insertion into one update of a row: if it is not all columns.
    pub fn pairing_key(&self) -> Option<&[usize]> {
        self.key.as_deref().filter(|key| key.len() < self.columns.len())
    }
}

/// For EXPLAIN: a name of a local and a remark about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// The name the query gives it.
    pub name: String,
    /// The names the query gives its columns.
    pub columns: Vec<String>,
    /// For a recursion: why it has the form it has.
    pub note: Option<String>,
}

/// A base table as a plan's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The table, as named by the planner's `Catalog`.
    pub table: crate::types::TableName,
    /// The columns the view needs, by position in the table's definition in the catalog (0-based);
    /// rows of this source have exactly these columns in this order.
    pub columns: Vec<usize>,
    /// Their descriptions.
    pub schema: Vec<Column>,
}

/// A node of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Plan {
    /// Fixed rows of so many columns with multiplicities (VALUES; a FROM-less SELECT is one empty row). No state.
    Constant { arity: usize, rows: Vec<(Row, Diff)> },
    /// The rows of a base table. State: the rows, once per source and view, so that TRUNCATE can retract them, unless
    /// an operator that reads them has them or can forget them.
    Source(SourceId),
    /// A value bound by an enclosing `Let` or `LetRec`. No state of its own.
    Get(LocalId),
    /// `body` with `id` standing for `value`, which is computed once. No state.
    Let { id: LocalId, value: Box<Plan>, body: Box<Plan> },
    /// `body` with `id` standing for the recursive query `base UNION [ALL] step`,
    /// where `step` refers to `id`. State: see [`Recursion`].
    LetRec { id: LocalId, recursion: Recursion, base: Box<Plan>, step: Box<Plan>, body: Box<Plan> },
    /// Map, filter, project: stateless row-by-row work.
    Mfp { input: Box<Plan>, mfp: Mfp },
    /// What set-returning functions make of each row. The closure sees the columns of the input followed by those
    /// of the functions. No state: the rows made of one row are made again when it goes.
    TableFunction { input: Box<Plan>, table_function: TableFunction, closure: Mfp },
    /// Inner join on equal keys (none: cross join). Keys are in key form and never match when NULL.
    /// The closure sees the columns of `left` followed by those of `right`.
    /// State: both inputs, arranged by key.
    Join {
        left: Box<Plan>,
        right: Box<Plan>,
        left_key: Vec<Expr>,
        right_key: Vec<Expr>,
        closure: Mfp,
    },
    /// Inner join of several inputs on equal keys, of which no partial results are kept: a changed row of one input looks
    /// up the others one by one. The closure sees the columns of all inputs side by side. Never in the step of a recursion.
    /// State: each input, arranged by each of the keys by which it is looked up ([`JoinTree::keys`]).
    DeltaJoin { inputs: Vec<Plan>, tree: JoinTree, closure: Mfp },
    /// Groups by `key` (in key form; NULLs are equal) and aggregates. Output: the key columns, then one
    /// column per aggregate. With an empty key the output is exactly one row, for empty input too.
    /// State: per group one accumulator for each aggregate that adds up, and the input arranged in a tree for
    /// min, max and any.
    Reduce { input: Box<Plan>, key: Vec<Expr>, aggregates: Vec<Aggregate> },
    /// One copy of each distinct row (as bytes; rows that are equal in SQL but not as bytes are
    /// handled by `Reduce` with `AggregateFunc::Any`). State: the input's distinct rows, with counts.
    Distinct { input: Box<Plan> },
    /// Each partition, the rows with equal `key` (in key form; NULLs are equal), sorted and made into other rows:
    /// its first ones, or all with the values of window functions. When a partition changes, its result is computed
    /// again: of LIMIT as many rows as are skipped and taken, of window functions all.
    /// State: the input by partition and order.
    Partition { input: Box<Plan>, key: Vec<Expr>, order: Vec<SortKey>, work: Work },
    /// The rows that are valid at the present time, which the row of `clock` is (see [`crate::clock`]): while it is
    /// not before any of the columns `from` and before all of the columns `until`, none of which is NULL. Of them the
    /// columns `output`. Rows come and go by themselves at the cost of those that do. State: those columns of the
    /// rows that are to come or to go, by when. Never in the step of a recursion.
    Temporal {
        input: Box<Plan>,
        clock: SourceId,
        from: Vec<usize>,
        until: Vec<usize>,
        output: Vec<usize>,
    },
    /// All rows of all inputs (UNION ALL). No state.
    Union { inputs: Vec<Plan> },
    /// The input with multiplicities negated. No state.
    Negate { input: Box<Plan> },
    /// Each row as often as its last column says, without that column: a bigint that is neither NULL nor negative.
    /// No state.
    Repeat { input: Box<Plan> },
}

/// How deep recursive queries may be nested within the recursive terms of others. A dataflow's timestamps
/// have a coordinate for each.
pub const MAX_NESTED_LOOPS: usize = 8;

impl Plan {
    /// The nodes this one refers to directly.
    pub fn children(&self) -> Vec<&Plan> {
        match self {
            Plan::Constant { .. } | Plan::Source(_) | Plan::Get(_) => Vec::new(),
            Plan::Let { value, body, .. } => vec![value, body],
            Plan::LetRec { base, step, body, .. } => vec![base, step, body],
            Plan::Join { left, right, .. } => vec![left, right],
            Plan::DeltaJoin { inputs, .. } | Plan::Union { inputs } => inputs.iter().collect(),
            Plan::Mfp { input, .. }
            | Plan::TableFunction { input, .. }
            | Plan::Reduce { input, .. }
            | Plan::Distinct { input }
            | Plan::Partition { input, .. }
            | Plan::Temporal { input, .. }
            | Plan::Negate { input }
            | Plan::Repeat { input } => vec![input],
        }
    }

    /// The same, to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Plan> {
        match self {
            Plan::Constant { .. } | Plan::Source(_) | Plan::Get(_) => Vec::new(),
            Plan::Let { value, body, .. } => vec![value, body],
            Plan::LetRec { base, step, body, .. } => vec![base, step, body],
            Plan::Join { left, right, .. } => vec![left, right],
            Plan::DeltaJoin { inputs, .. } | Plan::Union { inputs } => inputs.iter_mut().collect(),
            Plan::Mfp { input, .. }
            | Plan::TableFunction { input, .. }
            | Plan::Reduce { input, .. }
            | Plan::Distinct { input }
            | Plan::Partition { input, .. }
            | Plan::Temporal { input, .. }
            | Plan::Negate { input }
            | Plan::Repeat { input } => vec![input],
        }
    }

    /// Whether a recursion keeps the best rows only, or is one that SQL does not have. It may end where the query as
    /// written does not, or cannot be run at all, so nobody should run that to learn what the plan yields.
    pub fn is_beyond_sql(&self) -> bool {
        use Recursion::{FixpointExtreme, LeastFixpoint};
        let own = match self {
            Plan::LetRec { recursion, .. } => {
                matches!(recursion, FixpointExtreme { .. } | LeastFixpoint)
            }
            _ => false,
        };
        own || self.children().into_iter().any(Plan::is_beyond_sql)
    }

    /// How many loops enclose the innermost of its nodes.
    pub fn nested_loops(&self) -> usize {
        let children = self.children().into_iter().map(Plan::nested_loops).max().unwrap_or(0);
        match self {
            Plan::LetRec { step, .. } => children.max(1 + step.nested_loops()),
            _ => children,
        }
    }
}

/// How a recursive query is evaluated. The planner's transform `choose_recursion` decides, and says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Recursion {
    /// `X = distinct(base ∪ step(X))`: for a step that is linear in X. Rows as bytes.
    /// State: X with counts, the step's arrangements at every iteration.
    FixpointDistinct,
    /// The same for any monotone step, which may refer to X several times: the least set of rows that has those of the
    /// base and all that the step makes of it. What relations that are defined by one another are together.
    LeastFixpoint,
    /// `X = base + step(X)`: for a linear step under UNION ALL.
    FixpointAll,
    /// `W₀ = base, Wᵢ₊₁ = step(Wᵢ)`, result `Σ Wᵢ`: PostgreSQL's working table under UNION ALL.
    /// The step is applied at least once; `step` of an empty W with i ≥ 1 is empty (the planner
    /// refuses steps for which it might not be), so the iteration ends with the first such W.
    WorkingTableAll,
    /// The same under UNION: each W holds one row for each key that no earlier W had.
    /// `key` maps a row to its key form; of equal rows of one round the least (as bytes) represents.
    WorkingTableDistinct { key: Vec<Expr> },
    /// X = of each `key` the first row of `base ∪ step(X)` in an order: for a query of which only the least (or
    /// greatest) value is asked for, or the first row. The order's first column is the value; those behind it decide
    /// among equal values. `key` and the columns of `order` are all columns; keys compare as bytes.
    /// `adds`: all the step does to a value is to add what does not depend on it, so a key whose value
    /// comes back better than it set out has no best one.
    /// State: base and step(X) by key at every iteration, X, the step's arrangements.
    FixpointExtreme { key: Vec<usize>, order: Vec<SortKey>, adds: bool },
}

/// One aggregate of a `Reduce`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    pub func: AggregateFunc,
    /// Its argument over the input's columns; `None` for `count(*)`.
    pub arg: Option<Expr>,
}
