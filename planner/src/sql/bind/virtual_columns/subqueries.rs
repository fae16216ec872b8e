//! The subqueries of expressions, until they are put beside the relation whose rows the expressions are evaluated for.

use super::{Places, SUBQUERIES};
use crate::ir::{ApplyKind, Binding, Predicate, Rel};
use plan::expr::{self, Expr, ParameterId};
use std::collections::BTreeSet;

/// The subqueries of some expressions, in the order in which they are to be evaluated.
#[derive(Default)]
pub(crate) struct Subqueries {
    found: Vec<Subquery>,
    /// How many virtual columns stand for them.
    width: usize,
}

struct Subquery {
    kind: ApplyKind,
    bindings: Vec<Binding>,
    rel: Rel,
    /// The first virtual column.
    first: usize,
    /// Whether it is evaluated before rows are grouped.
    is_below: bool,
}

/// What an expression reads, in subqueries too.
#[derive(Default)]
pub(crate) struct Reads {
    /// Columns of the query it is in.
    pub(crate) columns: bool,
    /// Columns of queries around.
    pub(crate) parameters: BTreeSet<ParameterId>,
}

impl Subqueries {
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// Adds what an expression reads.
    pub(crate) fn trace(&self, expr: &Expr, reads: &mut Reads) {
        let mut parameters = BTreeSet::new();
        expr::collect_parameters(expr, &mut parameters);
        reads.parameters.extend(parameters);
        for column in expr::columns_of(expr) {
            let Some(subquery) = self.found.iter().rev().find(|s| s.first <= column) else {
                reads.columns = true;
                continue;
            };
            let own: BTreeSet<_> = subquery.bindings.iter().map(|binding| binding.id).collect();
            reads.parameters.extend(subquery.rel.parameters().difference(&own).copied());
            subquery.bindings.iter().for_each(|binding| self.trace(&binding.value, reads));
        }
    }

    /// The first virtual column of its result.
    pub(crate) fn add(
        &mut self,
        kind: ApplyKind,
        bindings: Vec<Binding>,
        rel: Rel,
        is_below: bool,
    ) -> usize {
        let first = SUBQUERIES + self.width;
        self.width += match kind {
            ApplyKind::Semi | ApplyKind::Anti => 0,
            ApplyKind::Mark => 1,
            ApplyKind::Cross | ApplyKind::Left | ApplyKind::Scalar => rel.arity(),
        };
        self.found.push(Subquery { kind, bindings, rel, first, is_below });
        first
    }

    /// Those to be evaluated before rows are grouped, and those after.
    pub(crate) fn split(self) -> (Subqueries, Subqueries) {
        let width = self.width;
        let (below, above) = self.found.into_iter().partition(|subquery| subquery.is_below);
        (Subqueries { found: below, width }, Subqueries { found: above, width })
    }

    /// What the subqueries take from the rows they are evaluated for.
    pub(crate) fn values(&self) -> Vec<Expr> {
        let bindings = self.found.iter().flat_map(|subquery| &subquery.bindings);
        bindings.map(|binding| binding.value.clone()).collect()
    }

    pub(crate) fn map_bindings(mut self, f: &dyn Fn(&Expr) -> Expr) -> Subqueries {
        let bindings = self.found.iter_mut().flat_map(|subquery| &mut subquery.bindings);
        bindings.for_each(|binding| binding.value = f(&binding.value));
        self
    }

    /// The relation with the results behind its columns.
    pub(crate) fn attach(self, rel: Rel) -> (Rel, Places) {
        let mut places = Places::default();
        let rel = self.attach_to(rel, &mut places);
        (rel, places)
    }

    /// The same after others, whose results are in `places`.
    pub(crate) fn attach_to(self, rel: Rel, places: &mut Places) -> Rel {
        let mut attached = rel;
        for Subquery { kind, mut bindings, rel, first, .. } in self.found {
            let arity = attached.arity();
            for binding in &mut bindings {
                binding.value = places.resolve(&binding.value);
            }
            attached = Rel::apply(kind, bindings, attached, rel);
            places.extend((arity..attached.arity()).enumerate().map(|(i, c)| (first + i, c)));
        }
        attached
    }

    /// Those whose results conditions read, and those that drop rows themselves; and the others.
    pub(crate) fn split_needed(self, tested: &[Predicate]) -> (Subqueries, Subqueries) {
        let mut read: BTreeSet<usize> = tested.iter().flat_map(Predicate::columns).collect();
        // A subquery takes values from those before it.
        for subquery in self.found.iter().rev() {
            if subquery.is_read(&read) {
                let values = subquery.bindings.iter().map(|binding| &binding.value);
                read.extend(values.flat_map(expr::columns_of));
            }
        }
        let width = self.width;
        let (needed, others) = self.found.into_iter().partition(|subquery| subquery.is_read(&read));
        (Subqueries { found: needed, width }, Subqueries { found: others, width })
    }

    /// Whether an expression reads nothing but results of subqueries that depend on nothing around them.
    pub(crate) fn are_constant(&self, expr: &Expr) -> bool {
        let of = |column: usize| self.found.iter().rev().find(|s| s.first <= column);
        is_constant(expr, &|column| of(column).is_some_and(Subquery::is_constant))
    }

    /// Whether there is a subquery of which both read results.
    pub(crate) fn share(&self, some: &BTreeSet<usize>, others: &BTreeSet<usize>) -> bool {
        let with_results = self.found.iter().filter(|subquery| !subquery.is_test());
        with_results.into_iter().any(|subquery| subquery.is_read(some) && subquery.is_read(others))
    }

    /// Takes out those that depend on nothing around them and whose results are among the columns, or that drop rows.
    pub(crate) fn take_constants(&mut self, read: &BTreeSet<usize>) -> Subqueries {
        let is_taken = |subquery: &Subquery| subquery.is_constant() && subquery.is_read(read);
        let (taken, found) = std::mem::take(&mut self.found).into_iter().partition(is_taken);
        self.found = found;
        Subqueries { found: taken, width: self.width }
    }

    /// Rewrites those that depend on nothing around them, and may fail.
    pub(crate) fn map_constants(&mut self, f: &dyn Fn(Rel) -> Rel) {
        for subquery in &mut self.found {
            if subquery.is_constant() && subquery.rel.may_fail() {
                subquery.rel = f(std::mem::replace(&mut subquery.rel, Rel::unit()));
            }
        }
    }

    /// Forgets those beyond a number: nothing reads them.
    pub(crate) fn truncate(&mut self, len: usize) {
        if let Some(first) = self.found.get(len).map(|subquery| subquery.first) {
            self.width = first - SUBQUERIES;
        }
        self.found.truncate(len);
    }
}

impl Subquery {
    /// Whether it only drops rows.
    fn is_test(&self) -> bool {
        matches!(self.kind, ApplyKind::Semi | ApplyKind::Anti)
    }

    /// Whether it depends on nothing around it.
    fn is_constant(&self) -> bool {
        self.bindings.is_empty() && self.rel.parameters().is_empty()
    }

    /// Whether its results are among the columns, or it has none.
    fn is_read(&self, columns: &BTreeSet<usize>) -> bool {
        let width = match self.kind {
            ApplyKind::Mark => 1,
            _ => self.rel.arity(),
        };
        self.is_test() || columns.range(self.first..self.first + width).next().is_some()
    }
}

/// Whether the expression reads nothing: neither columns nor parameters.
pub(crate) fn is_constant(expr: &Expr, is_known: &dyn Fn(usize) -> bool) -> bool {
    let mut parameters = BTreeSet::new();
    expr::collect_parameters(expr, &mut parameters);
    parameters.is_empty() && expr::columns_of(expr).into_iter().all(is_known)
}
