//! The relational IR between SQL text and physical plan: what binding produces and transforms rewrite.
//!
//! It knows nothing of arrangements or key forms; joins have any number of inputs, DISTINCT and
//! GROUP BY compare as SQL does. Each node carries the columns of its output, which a transform keeps.

mod apply;
mod depth;
mod show;
mod table_function;
mod temporal;

pub use apply::{Apply, ApplyKind, Binding};
pub use depth::MAX_DEPTH;
pub use show::show;
pub use temporal::TimeBound;

use crate::catalog::Statistics;
use plan::expr::{self, Expr};
use plan::func::{Blanks, Comparison, Func};
use plan::partition::{SortKey, Work};
use plan::row::Row;
use plan::table_function::TableFunction;
use plan::types::{Column, Type};
use plan::{Aggregate, Diff, Local, LocalId, Recursion, Source, SourceId};
use serde::Serialize;
use std::collections::BTreeSet;

/// A bound query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Query {
    /// The base tables, each once, and the clock if something depends on it.
    pub inputs: Vec<Input>,
    /// Names of the locals, by id; new ones are added at the end.
    pub locals: Vec<Local>,
    /// The query itself.
    pub root: Rel,
}

/// A base table as read by the query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Input {
    /// What the plan will say about it.
    pub source: Source,
    /// Unique, not null sets of columns, by position in the table's definition.
    pub unique: Vec<Vec<usize>>,
    /// What is known of its rows, with columns by that position.
    pub statistics: Option<Statistics>,
}

/// A relational expression and the columns it yields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rel {
    pub columns: Vec<Column>,
    pub node: Node,
}

/// A relational operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Node {
    /// Fixed rows.
    Constant { rows: Vec<(Row, Diff)> },
    /// A base table.
    Source(SourceId),
    /// A value bound by an enclosing `Let` or `LetRec`.
    Get(LocalId),
    /// `body` with `id` standing for `value`.
    Let { id: LocalId, value: Box<Rel>, body: Box<Rel> },
    /// `body` with `id` standing for `base UNION [ALL] step`, where `step` refers to `id`.
    /// `form` is `None` until `choose_recursion` has decided.
    LetRec {
        id: LocalId,
        all: bool,
        form: Option<Recursion>,
        base: Box<Rel>,
        step: Box<Rel>,
        body: Box<Rel>,
    },
    /// One output column per expression over the input's columns.
    Map { input: Box<Rel>, outputs: Vec<Expr> },
    /// The rows for which all predicates, tried in order, are true.
    Filter { input: Box<Rel>, predicates: Vec<Predicate> },
    /// The rows for which all bounds hold at the present time. Then the clock is among the query's inputs.
    Temporal { input: Box<Rel>, bounds: Vec<TimeBound> },
    /// What set-returning functions make of each row; yields its columns, then those of the functions.
    TableFunction { input: Box<Rel>, table_function: TableFunction },
    /// The combinations of rows, one of each input, for which all predicates are true.
    Join { inputs: Vec<Rel>, predicates: Vec<Predicate> },
    /// The combinations of a row of each side for which all predicates are true, and each row of a
    /// preserved side that is in none, with NULL for the columns of the other side.
    OuterJoin { preserved: Preserved, left: Box<Rel>, right: Box<Rel>, predicates: Vec<Predicate> },
    /// The rows of the left side for which no row of the right side makes all predicates true.
    AntiJoin { left: Box<Rel>, right: Box<Rel>, predicates: Vec<Predicate> },
    /// A subquery for each row of a relation. `bind` makes it, `decorrelate` replaces it.
    Apply(Box<Apply>),
    /// Groups by columns of the input (NULLs equal) and aggregates; yields the key, then the aggregates.
    Reduce { input: Box<Rel>, key: Vec<usize>, aggregates: Vec<Aggregate> },
    /// One of each set of rows that are equal in SQL (NULLs equal).
    Distinct { input: Box<Rel> },
    /// The rows with equal values of the columns `key` (NULLs equal), sorted, and what is made of them.
    Partition { input: Box<Rel>, key: Vec<usize>, order: Vec<SortKey>, work: Work },
    /// All rows of all inputs.
    Union { inputs: Vec<Rel> },
    /// The rows of a relation of which others are not to be seen: what is above and may fail, as every call of the host
    /// may, is computed of these rows alone. If it is sealed, not even of rows that come and go at the same time.
    Fence { input: Box<Rel>, is_sealed: bool },
    /// Each row as often as its last column says, a bigint that is not left in the output.
    Repeat { input: Box<Rel> },
}

/// The sides of an outer join of which every row is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Preserved {
    /// `LEFT JOIN`; a `RIGHT JOIN` is one with its sides exchanged.
    Left,
    /// `FULL JOIN`
    Both,
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Typed {
    pub expr: Expr,
    pub ty: Type,
}

/// A conjunct of a condition; equalities keep their sides apart because they can be join keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Predicate {
    /// `left = right`, by the operator `func`.
    Equal { left: Typed, right: Typed, func: Func },
    /// Any other boolean expression.
    Test(Expr),
}

impl Predicate {
    /// The predicate as one expression.
    pub fn to_expr(&self) -> Expr {
        match self {
            Predicate::Equal { left, right, func } => {
                let comparable = |side: &Typed| match side.ty.is_host() {
                    true => side.expr.clone().key_form(side.ty),
                    false => side.expr.clone(),
                };
                Expr::Call { func: *func, args: vec![comparable(left), comparable(right)] }
            }
            Predicate::Test(expr) => expr.clone(),
        }
    }

    /// The predicate with each column reference replaced.
    pub fn substitute(&self, f: &dyn Fn(usize) -> Expr) -> Predicate {
        self.map_exprs(&|expr| expr::substitute(expr, f))
    }

    /// The predicate with its expressions rewritten. The rewrite must keep their types.
    pub fn map_exprs(&self, f: &dyn Fn(&Expr) -> Expr) -> Predicate {
        let typed = |side: &Typed| Typed { expr: f(&side.expr), ty: side.ty };
        match self {
            Predicate::Equal { left, right, func } => {
                Predicate::Equal { left: typed(left), right: typed(right), func: *func }
            }
            Predicate::Test(expr) => Predicate::Test(f(expr)),
        }
    }

    /// `left = right` of one type.
    pub fn equal(left: Expr, right: Expr, ty: Type) -> Predicate {
        let func = Func::Compare(Comparison::Eq, Blanks::of(ty));
        let typed = |expr| Typed { expr, ty };
        Predicate::Equal { left: typed(left), right: typed(right), func }
    }

    /// The predicate reading other columns.
    pub fn renumber(&self, f: &dyn Fn(usize) -> usize) -> Predicate {
        self.substitute(&|column| Expr::Column(f(column)))
    }

    /// The columns it reads.
    pub fn columns(&self) -> BTreeSet<usize> {
        expr::columns_of(&self.to_expr())
    }

    /// The sides of an equality of the two inputs of a join, the first input's first, and the type in which they are
    /// compared as keys. `split` is the number of columns of the first input.
    pub fn links(&self, split: usize) -> Option<(&Typed, &Typed, Type)> {
        let Predicate::Equal { left, right, .. } = self else { return None };
        let is_first = |side: &Typed| Some(*expr::columns_of(&side.expr).last()? < split);
        let is_second = |side: &Typed| Some(*expr::columns_of(&side.expr).first()? >= split);
        let (l, r) = match (is_first(left)?, is_second(right)?, is_first(right)?, is_second(left)?)
        {
            (true, true, ..) => (left, right),
            (.., true, true) => (right, left),
            _ => return None,
        };
        Some((l, r, expr::key_type(l.ty, r.ty)?))
    }
}

impl Rel {
    /// The single row without columns, from which a SELECT without FROM computes.
    pub fn unit() -> Rel {
        let row = Row::pack(std::iter::empty());
        Rel { columns: vec![], node: Node::Constant { rows: vec![(row, 1)] } }
    }

    /// Number of output columns.
    pub fn arity(&self) -> usize {
        self.columns.len()
    }

    /// Whether rows that are equal in SQL are written in the same way.
    pub fn is_canonical(&self) -> bool {
        self.columns.iter().all(|column| column.ty.is_canonical())
    }

    /// A filter above, or the relation itself if there is nothing to test.
    pub fn filter(self, predicates: Vec<Predicate>) -> Rel {
        if predicates.is_empty() {
            return self;
        }
        let columns = self.columns.clone();
        Rel { columns, node: Node::Filter { input: Box::new(self), predicates } }
    }

    /// A projection of expressions above, or the relation itself if nothing but names changes.
    pub fn map(self, outputs: Vec<Expr>, columns: Vec<Column>) -> Rel {
        let identity = outputs.len() == self.arity()
            && outputs.iter().enumerate().all(|(i, output)| *output == Expr::Column(i));
        if identity {
            return Rel { columns, node: self.node };
        }
        Rel { columns, node: Node::Map { input: Box::new(self), outputs } }
    }

    /// A projection of columns above.
    pub fn project(self, positions: &[usize]) -> Rel {
        let columns = positions.iter().map(|&p| self.columns[p].clone()).collect();
        self.map(positions.iter().map(|&p| Expr::Column(p)).collect(), columns)
    }

    /// The combinations of rows for which all predicates are true.
    pub fn join(inputs: Vec<Rel>, predicates: Vec<Predicate>) -> Rel {
        let columns = inputs.iter().flat_map(|input| input.columns.iter().cloned()).collect();
        Rel { columns, node: Node::Join { inputs, predicates } }
    }

    /// The rows of `left` without partner.
    pub fn anti_join(left: Rel, right: Rel, predicates: Vec<Predicate>) -> Rel {
        let columns = left.columns.clone();
        let (left, right) = (Box::new(left), Box::new(right));
        Rel { columns, node: Node::AntiJoin { left, right, predicates } }
    }

    /// The outer join, whose columns may be NULL on a side that the other one is preserved without.
    pub fn outer_join(
        preserved: Preserved,
        left: Rel,
        right: Rel,
        predicates: Vec<Predicate>,
    ) -> Rel {
        let mut columns = [left.columns.clone(), right.columns.clone()].concat();
        let padded = match preserved {
            Preserved::Left => left.arity()..columns.len(),
            Preserved::Both => 0..columns.len(),
        };
        columns[padded].iter_mut().for_each(|column| column.nullable = true);
        let (left, right) = (Box::new(left), Box::new(right));
        Rel { columns, node: Node::OuterJoin { preserved, left, right, predicates } }
    }

    /// Bag union; nested unions become one.
    pub fn union(inputs: Vec<Rel>, columns: Vec<Column>) -> Rel {
        let mut flat = Vec::with_capacity(inputs.len());
        for input in inputs {
            match input.node {
                Node::Union { inputs } => flat.extend(inputs),
                _ => flat.push(input),
            }
        }
        Rel { columns, node: Node::Union { inputs: flat } }
    }

    /// Duplicates removed.
    pub fn distinct(self) -> Rel {
        let columns = self.columns.clone();
        Rel { columns, node: Node::Distinct { input: Box::new(self) } }
    }

    /// Nothing that may fail moves into it from above.
    pub fn fenced(self) -> Rel {
        let columns = self.columns.clone();
        Rel { columns, node: Node::Fence { input: Box::new(self), is_sealed: false } }
    }

    /// Whether it is made of all rows of a table, or of constants: there is nothing that a fence could hide.
    pub fn has_all_rows(&self) -> bool {
        match &self.node {
            Node::Source(_) | Node::Constant { .. } => true,
            Node::Map { input, .. } | Node::Fence { input, .. } => input.has_all_rows(),
            _ => false,
        }
    }

    /// The direct inputs, in order.
    pub fn children(&self) -> Vec<&Rel> {
        match &self.node {
            Node::Constant { .. } | Node::Source(_) | Node::Get(_) => vec![],
            Node::Let { value, body, .. } => vec![value, body],
            Node::LetRec { base, step, body, .. } => vec![base, step, body],
            Node::Map { input, .. }
            | Node::TableFunction { input, .. }
            | Node::Filter { input, .. }
            | Node::Temporal { input, .. }
            | Node::Reduce { input, .. }
            | Node::Distinct { input }
            | Node::Partition { input, .. }
            | Node::Fence { input, .. }
            | Node::Repeat { input } => vec![input],
            Node::Join { inputs, .. } | Node::Union { inputs } => inputs.iter().collect(),
            Node::OuterJoin { left, right, .. } | Node::AntiJoin { left, right, .. } => {
                vec![left, right]
            }
            Node::Apply(apply) => vec![&apply.outer, &apply.inner],
        }
    }

    /// The same operator with each direct input rewritten. The rewrite must keep arity and types.
    pub fn map_children(self, f: &mut dyn FnMut(Rel) -> Rel) -> Rel {
        let mut boxed = |rel: Box<Rel>| Box::new(f(*rel));
        let node = match self.node {
            node @ (Node::Constant { .. } | Node::Source(_) | Node::Get(_)) => node,
            Node::Let { id, value, body } => {
                Node::Let { id, value: boxed(value), body: boxed(body) }
            }
            Node::LetRec { id, all, form, base, step, body } => {
                let (base, step, body) = (boxed(base), boxed(step), boxed(body));
                Node::LetRec { id, all, form, base, step, body }
            }
            Node::Map { input, outputs } => Node::Map { input: boxed(input), outputs },
            Node::Filter { input, predicates } => Node::Filter { input: boxed(input), predicates },
            Node::Temporal { input, bounds } => Node::Temporal { input: boxed(input), bounds },
            Node::TableFunction { input, table_function } => {
                Node::TableFunction { input: boxed(input), table_function }
            }
            Node::Reduce { input, key, aggregates } => {
                Node::Reduce { input: boxed(input), key, aggregates }
            }
            Node::Distinct { input } => Node::Distinct { input: boxed(input) },
            Node::Fence { input, is_sealed } => Node::Fence { input: boxed(input), is_sealed },
            Node::Repeat { input } => Node::Repeat { input: boxed(input) },
            Node::Partition { input, key, order, work } => {
                Node::Partition { input: boxed(input), key, order, work }
            }
            Node::Join { inputs, predicates } => {
                Node::Join { inputs: inputs.into_iter().map(f).collect(), predicates }
            }
            Node::OuterJoin { preserved, left, right, predicates } => {
                let (left, right) = (boxed(left), boxed(right));
                Node::OuterJoin { preserved, left, right, predicates }
            }
            Node::AntiJoin { left, right, predicates } => {
                let (left, right) = (boxed(left), boxed(right));
                Node::AntiJoin { left, right, predicates }
            }
            Node::Apply(apply) => {
                let Apply { kind, bindings, outer, inner } = *apply;
                let (outer, inner) = (f(outer), f(inner));
                Node::Apply(Box::new(Apply { kind, bindings, outer, inner }))
            }
            Node::Union { inputs } => Node::Union { inputs: inputs.into_iter().map(f).collect() },
        };
        Rel { columns: self.columns, node }
    }

    /// Whether evaluating the relation may raise an error, or not end.
    pub fn may_fail(&self) -> bool {
        let own = match &self.node {
            Node::LetRec { .. } => true,
            Node::TableFunction { table_function, .. } => table_function.may_fail(),
            _ => false,
        };
        own || self.exprs().iter().any(expr::may_fail)
            || self.children().into_iter().any(Rel::may_fail)
    }

    /// The expressions of this operator, without those of its inputs.
    pub fn exprs(&self) -> Vec<Expr> {
        match &self.node {
            Node::Map { outputs, .. } => outputs.clone(),
            Node::TableFunction { table_function, .. } => table_function.args().cloned().collect(),
            Node::Filter { predicates, .. }
            | Node::Join { predicates, .. }
            | Node::OuterJoin { predicates, .. }
            | Node::AntiJoin { predicates, .. } => {
                predicates.iter().map(Predicate::to_expr).collect()
            }
            Node::Temporal { bounds, .. } => bounds.iter().map(|bound| bound.at.clone()).collect(),
            Node::Reduce { aggregates, .. } => {
                aggregates.iter().filter_map(|aggregate| aggregate.arg.clone()).collect()
            }
            Node::Apply(apply) => apply.bindings.iter().map(|b| b.value.clone()).collect(),
            _ => vec![],
        }
    }

    /// How often a local is referred to.
    pub fn count_gets(&self, id: LocalId) -> usize {
        let own = usize::from(matches!(self.node, Node::Get(other) if other == id));
        own + self.children().into_iter().map(|child| child.count_gets(id)).sum::<usize>()
    }
}
