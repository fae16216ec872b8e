//! The windows of a SELECT and the functions called over them, until they are computed: after grouping and HAVING and
//! before DISTINCT.

use super::{Places, WINDOWS};
use crate::error::PlanError;
use crate::ir::{Node, Rel};
use crate::sql::bind::bound_expr::BoundExpr;
use crate::sql::bind::row_order::{Consumer, RowOrder};
use crate::sql::bind::sort::Sort;
use crate::sql::frames;
use crate::sql::refuse::{invalid, too_deep};
use plan::expr::{self, Expr};
use plan::partition::{Bound, Exclusion, Frame, SortKey, Units, WindowCall, WindowFunc, Work};
use plan::types::{Column, Scalar, Type};
use sqlparser::ast::{NamedWindowDefinition, NamedWindowExpr, WindowSpec, WindowType};
use std::collections::BTreeMap;

/// Each is a level of the tree that transforms walk down.
const MAX_WINDOWS: usize = 200;

/// The windows of a SELECT.
#[derive(Default)]
pub(crate) struct Windows {
    /// Those of its WINDOW clause.
    named: BTreeMap<String, Window>,
    calls: Vec<WindowFunction>,
    /// Number of different pairs of PARTITION BY and ORDER BY.
    different: usize,
    /// In which order the rows come, if a call looks at it.
    rows: RowOrder,
}

/// A window as it is written, with what it takes from the one it names.
#[derive(Clone)]
pub(crate) struct Window {
    pub(crate) spec: WindowSpec,
    pub(crate) exclusion: Exclusion,
}

/// The call of a window function.
#[derive(Clone, PartialEq)]
pub(crate) struct WindowFunction {
    pub(crate) func: WindowFunc,
    pub(crate) args: Vec<BoundExpr>,
    pub(crate) partition: Vec<BoundExpr>,
    pub(crate) order: Vec<Sort>,
    /// To where the frame reaches, or how far, as its bounds name them.
    pub(crate) reach: Vec<BoundExpr>,
    pub(crate) frame: Frame,
    pub(crate) column: Column,
}

impl WindowFunction {
    /// Whether its results depend on which of two peers comes first.
    fn looks_at_order(&self) -> bool {
        match self.func {
            WindowFunc::Rank
            | WindowFunc::DenseRank
            | WindowFunc::PercentRank
            | WindowFunc::CumeDist => false,
            WindowFunc::Aggregate(_) => self.frame.parts_peers(),
            _ => true,
        }
    }

    /// Calls over equal ones are computed in one pass.
    fn window(&self) -> (&[BoundExpr], &[Sort]) {
        (&self.partition, &self.order)
    }

    /// What it reads: arguments, then what it is partitioned and sorted by, then to where frames reach.
    fn scalars(&self) -> impl Iterator<Item = &BoundExpr> {
        let order = self.order.iter().map(|sort| &sort.scalar);
        self.args.iter().chain(&self.partition).chain(order).chain(&self.reach)
    }
}

/// A call with its expressions in columns.
struct Placed {
    key: Vec<usize>,
    order: Vec<SortKey>,
    call: WindowCall,
    column: Column,
}

impl Placed {
    /// Calls over equal ones are computed in one pass.
    fn window(&self) -> (&[usize], &[SortKey]) {
        (&self.key, &self.order)
    }
}

impl Windows {
    pub(crate) fn of(definitions: &[NamedWindowDefinition]) -> Result<Windows, PlanError> {
        let mut windows = Windows::default();
        for NamedWindowDefinition(name, definition) in definitions {
            let window = match definition {
                NamedWindowExpr::WindowSpec(spec) => windows.completed(spec)?,
                NamedWindowExpr::NamedWindow(other) => windows.find(&other.value)?.clone(),
            };
            windows.named.insert(name.value.clone(), window);
        }
        Ok(windows)
    }

    fn find(&self, name: &str) -> Result<&Window, PlanError> {
        let found = self.named.get(name);
        found.ok_or_else(|| invalid(format!("window \"{name}\" does not exist")))
    }

    /// The window with what it takes from another one that it names.
    fn completed(&self, spec: &WindowSpec) -> Result<Window, PlanError> {
        let name = spec.window_name.as_ref().map(|name| name.value.as_str());
        let (exclusion, name) = name.map_or((Exclusion::None, None), frames::unfold);
        let Some(name) = name else { return Ok(Window { spec: spec.clone(), exclusion }) };
        let base = &self.find(name)?.spec;
        let order_by = match spec.order_by.as_slice() {
            [] => base.order_by.clone(),
            own => own.to_vec(),
        };
        let spec = WindowSpec {
            window_name: None,
            partition_by: base.partition_by.clone(),
            order_by,
            window_frame: spec.window_frame.clone(),
        };
        Ok(Window { spec, exclusion })
    }

    pub(crate) fn window(&self, over: &WindowType) -> Result<Window, PlanError> {
        match over {
            WindowType::NamedWindow(name) => self.find(&name.value).cloned(),
            WindowType::WindowSpec(spec) => self.completed(spec),
        }
    }

    /// A reference to the result; equal calls are computed once. Refuses more different windows than can be computed
    /// one above the other.
    pub(crate) fn add(&mut self, call: WindowFunction) -> Result<BoundExpr, PlanError> {
        let known = self.calls.iter().position(|other| *other == call);
        let number = known.unwrap_or(self.calls.len());
        let result = BoundExpr::of_column(WINDOWS + number, &call.column);
        if known.is_none() {
            self.different +=
                usize::from(!self.calls.iter().any(|other| other.window() == call.window()));
            if self.different > MAX_WINDOWS {
                return Err(too_deep("different windows", MAX_WINDOWS));
            }
            self.calls.push(call);
        }
        Ok(result)
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Forgets the calls beyond a number: nothing reads them.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.calls.truncate(len);
    }

    /// Whether the rows that come in some order leave in another.
    pub(crate) fn sort_rows(&self) -> bool {
        self.calls.iter().any(|call| !call.partition.is_empty() || !call.order.is_empty())
    }

    /// Notes in which order the rows come, which decides where windows say none.
    pub(crate) fn take_rows(&mut self, order: &RowOrder) -> Result<(), PlanError> {
        for call in self.calls.iter().filter(|call| call.looks_at_order()) {
            if call.order.is_empty() {
                order.check(Consumer::Window)?;
            }
            self.rows = order.clone();
        }
        Ok(())
    }

    /// What is to be computed before.
    pub(crate) fn exprs(&self) -> Vec<Expr> {
        self.calls
            .iter()
            .flat_map(WindowFunction::scalars)
            .map(|scalar| scalar.expr.clone())
            .collect()
    }

    /// The relation with the results behind its columns, and where they are. `exprs` are those of
    /// [`Windows::exprs`] over the relation.
    pub(crate) fn attach(self, rel: Rel, exprs: &[Expr]) -> (Rel, Places) {
        if self.calls.is_empty() {
            return (rel, Places::default());
        }
        let mut computed = Computed::all_of(&rel);
        let mut exprs = exprs.iter();
        let looks_at_order = |call: &WindowFunction| {
            let is_same = |other: &&WindowFunction| other.window() == call.window();
            self.calls.iter().filter(is_same).any(WindowFunction::looks_at_order)
        };
        let place = |call| {
            let mut placed = computed.place(call, &mut exprs);
            let looks_at_order = looks_at_order(call);
            if looks_at_order {
                placed.order = self.rows.among_peers(placed.order);
            }
            (placed, looks_at_order)
        };
        let calls: Vec<(Placed, bool)> = self.calls.iter().map(place).collect();
        let rel = rel.map(computed.outputs, computed.columns);
        let (mut rel, calls) = self.tell_copies_apart(rel, calls);
        let mut places = Places::default();
        // Calls over the same order of the same partitions are computed together.
        let mut left: Vec<(usize, Placed)> = calls.into_iter().enumerate().collect();
        while let Some((_, Placed { key, order, .. })) = left.first() {
            let (key, order) = (key.clone(), order.clone());
            let (same, others): (Vec<_>, _) = left
                .into_iter()
                .partition(|(_, other)| (&other.key, &other.order) == (&key, &order));
            left = others;
            let mut columns = rel.columns.clone();
            let mut calls = Vec::new();
            for (number, Placed { call, column, .. }) in same {
                places.extend([(WINDOWS + number, columns.len())]);
                columns.push(column);
                calls.push(call);
            }
            let (input, work) = (Box::new(rel), Work::Window(calls));
            rel = Rel { columns, node: Node::Partition { input, key, order, work } };
        }
        (rel, places)
    }

    /// Has windows that look at the order of the rows agree which of equal rows comes first: each has a number then. Rows that
    /// are in no order may come to each window in another.
    fn tell_copies_apart(&self, rel: Rel, calls: Vec<(Placed, bool)>) -> (Rel, Vec<Placed>) {
        let is_other = |(index, (placed, looks)): &(usize, &(Placed, bool))| {
            let is_same =
                |(other, looks): &(Placed, bool)| *looks && other.window() == placed.window();
            *looks && !calls[..*index].iter().any(is_same)
        };
        let several = calls.iter().enumerate().filter(is_other).count() > 1;
        if self.rows.keys().is_empty() || !several {
            return (rel, calls.into_iter().map(|(placed, _)| placed).collect());
        }
        let number = rel.arity();
        let mut columns = rel.columns.clone();
        columns.push(Column {
            name: "copy".to_owned(),
            ty: Type::Scalar(Scalar::Int8),
            typmod: -1,
            nullable: false,
        });
        let (key, input) = ((0..number).collect(), Box::new(rel));
        let (start, end) = (Bound::Unbounded, Bound::Unbounded);
        let frame = Frame { units: Units::Rows, start, end, exclusion: Exclusion::None };
        let call = WindowCall { func: WindowFunc::RowNumber, args: Vec::new(), frame };
        let work = Work::Window(vec![call]);
        let rel = Rel { columns, node: Node::Partition { input, key, order: Vec::new(), work } };
        let by_copy =
            SortKey { among_peers: true, ..SortKey::ascending(number, Type::Scalar(Scalar::Int8)) };
        let sort = |(mut placed, looks): (Placed, bool)| {
            if looks {
                placed.order.push(by_copy);
            }
            placed
        };
        (rel, calls.into_iter().map(sort).collect())
    }
}

/// A projection that grows.
struct Computed {
    outputs: Vec<Expr>,
    columns: Vec<Column>,
}

impl Computed {
    fn all_of(rel: &Rel) -> Computed {
        let outputs = (0..rel.arity()).map(Expr::Column).collect();
        Computed { outputs, columns: rel.columns.clone() }
    }

    /// The column that holds an expression's values.
    fn column(&mut self, expr: &Expr, scalar: &BoundExpr) -> usize {
        let known = self.outputs.iter().position(|other| other == expr);
        known.unwrap_or_else(|| {
            let name = format!("window{}", self.outputs.len() + 1);
            self.columns.push(Column { nullable: true, ..scalar.column(&name) });
            self.outputs.push(expr.clone());
            self.outputs.len() - 1
        })
    }

    fn place<'e>(
        &mut self,
        call: &WindowFunction,
        exprs: &mut impl Iterator<Item = &'e Expr>,
    ) -> Placed {
        let columns: Vec<usize> =
            call.scalars().zip(exprs).map(|(scalar, expr)| self.column(expr, scalar)).collect();
        let (args, rest) = columns.split_at(call.args.len());
        let (key, rest) = rest.split_at(call.partition.len());
        let (order, reach) = rest.split_at(call.order.len());
        let order: Vec<SortKey> =
            call.order.iter().zip(order).map(|(sort, &column)| sort.by(column)).collect();
        let mut frame = call.frame.clone();
        if let Units::Range(Some(sort)) = &mut frame.units {
            *sort = order[0];
        }
        for bound in [&mut frame.start, &mut frame.end] {
            if let Some(number) = bound.column_mut() {
                *number = reach[*number];
            }
        }
        Placed {
            key: key.to_vec(),
            order,
            call: WindowCall { func: call.func, args: args.to_vec(), frame },
            column: call.column.clone(),
        }
    }
}

/// Whether an expression reads the result of a window function.
pub(crate) fn reads_window(expr: &Expr) -> bool {
    expr::columns_of(expr).range(WINDOWS..2 * WINDOWS).next().is_some()
}
