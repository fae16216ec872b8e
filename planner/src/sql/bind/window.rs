//! Window functions.
//!
//! While the select list is bound, a call becomes a reference to a virtual column. Windows are computed
//! after grouping and HAVING and before DISTINCT; then the virtual columns become columns behind the others.

use super::super::frames;
use super::super::refuse::{invalid, too_deep, unsupported, unsupported_hint};
use super::order::Sort;
use super::resolve;
use super::row_order::{Consumer, RowOrder};
use super::scalar::{Scalar, ScalarBinder};
use crate::error::PlanError;
use crate::ir::{Node, Rel};
use plan::aggregate::COLLECTING;
use plan::expr::{self, Expr};
use plan::partition::{Bound, Exclusion, Frame, SortKey, Units, WindowCall, WindowFunc, Work};
use plan::types::{self, Column, Type};
use plan::value::Datum;
use plan::AggregateFunc;
use sqlparser::ast::{
    self, NamedWindowDefinition, NamedWindowExpr, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};
use std::collections::BTreeMap;

/// Each is a level of the tree that transforms walk down.
const MAX_WINDOWS: usize = 200;

const INT8: Type = Type::Scalar(types::Scalar::Int8);

/// First of the virtual columns that stand for window functions, behind those for subqueries.
pub(super) const VIRTUAL: usize = 1 << 22;

/// The windows of a SELECT.
#[derive(Default)]
pub(super) struct Windows {
    /// Those of its WINDOW clause.
    named: BTreeMap<String, Window>,
    calls: Vec<Call>,
    /// Number of different pairs of PARTITION BY and ORDER BY.
    different: usize,
    /// In which order the rows come, if a call looks at it.
    rows: RowOrder,
}

/// A window as it is written, with what it takes from the one it names.
#[derive(Clone)]
struct Window {
    spec: WindowSpec,
    exclusion: Exclusion,
}

/// The call of a window function.
#[derive(Clone, PartialEq)]
struct Call {
    func: WindowFunc,
    args: Vec<Scalar>,
    partition: Vec<Scalar>,
    order: Vec<Sort>,
    frame: Frame,
    column: Column,
}

impl Call {
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
    fn window(&self) -> (&[Scalar], &[Sort]) {
        (&self.partition, &self.order)
    }

    /// What it reads.
    fn scalars(&self) -> impl Iterator<Item = &Scalar> {
        let order = self.order.iter().map(|sort| &sort.scalar);
        self.args.iter().chain(&self.partition).chain(order)
    }
}

/// A call with its expressions in columns.
struct Placed {
    key: Vec<usize>,
    order: Vec<SortKey>,
    call: WindowCall,
    column: Column,
}

impl Windows {
    pub(super) fn of(definitions: &[NamedWindowDefinition]) -> Result<Windows, PlanError> {
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

    fn window(&self, over: &WindowType) -> Result<Window, PlanError> {
        match over {
            WindowType::NamedWindow(name) => self.find(&name.value).cloned(),
            WindowType::WindowSpec(spec) => self.completed(spec),
        }
    }

    /// A reference to the result; equal calls are computed once. Refuses more different windows than can be computed
    /// one above the other.
    fn add(&mut self, call: Call) -> Result<Scalar, PlanError> {
        let known = self.calls.iter().position(|other| *other == call);
        let number = known.unwrap_or(self.calls.len());
        let result = Scalar::of_column(VIRTUAL + number, &call.column);
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

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Forgets the calls beyond a number: nothing reads them.
    pub(super) fn truncate(&mut self, len: usize) {
        self.calls.truncate(len);
    }

    /// Whether the rows that come in some order leave in another.
    pub(super) fn sort_rows(&self) -> bool {
        self.calls.iter().any(|call| !call.partition.is_empty() || !call.order.is_empty())
    }

    /// Notes in which order the rows come, which decides where windows say none.
    pub(super) fn take_rows(&mut self, order: &RowOrder) -> Result<(), PlanError> {
        for call in self.calls.iter().filter(|call| call.looks_at_order()) {
            if call.order.is_empty() {
                order.check(Consumer::Window)?;
            }
            self.rows = order.clone();
        }
        Ok(())
    }

    /// What is to be computed before.
    pub(super) fn exprs(&self) -> Vec<Expr> {
        self.calls.iter().flat_map(Call::scalars).map(|scalar| scalar.expr.clone()).collect()
    }

    /// The relation with the results behind its columns, and where they are. `exprs` are those of
    /// [`Windows::exprs`] over the relation.
    pub(super) fn attach(self, rel: Rel, exprs: &[Expr]) -> (Rel, BTreeMap<usize, usize>) {
        if self.calls.is_empty() {
            return (rel, BTreeMap::new());
        }
        let mut computed = Computed::all_of(&rel);
        let mut exprs = exprs.iter();
        let looks_at_order = |call: &Call| {
            let is_same = |other: &&Call| other.window() == call.window();
            self.calls.iter().filter(is_same).any(Call::looks_at_order)
        };
        let place = |call| {
            let mut placed = computed.place(call, &mut exprs);
            if looks_at_order(call) {
                placed.order = self.rows.among_peers(placed.order);
            }
            placed
        };
        let calls: Vec<Placed> = self.calls.iter().map(place).collect();
        let mut rel = rel.map(computed.outputs, computed.columns);
        let mut places = BTreeMap::new();
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
                places.insert(VIRTUAL + number, columns.len());
                columns.push(column);
                calls.push(call);
            }
            let (input, work) = (Box::new(rel), Work::Window(calls));
            rel = Rel { columns, node: Node::Partition { input, key, order, work } };
        }
        (rel, places)
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
    fn column(&mut self, expr: &Expr, scalar: &Scalar) -> usize {
        let known = self.outputs.iter().position(|other| other == expr);
        known.unwrap_or_else(|| {
            let name = format!("window{}", self.outputs.len() + 1);
            self.columns.push(Column { nullable: true, ..scalar.column(&name) });
            self.outputs.push(expr.clone());
            self.outputs.len() - 1
        })
    }

    fn place<'e>(&mut self, call: &Call, exprs: &mut impl Iterator<Item = &'e Expr>) -> Placed {
        let columns: Vec<usize> =
            call.scalars().zip(exprs).map(|(scalar, expr)| self.column(expr, scalar)).collect();
        let (args, rest) = columns.split_at(call.args.len());
        let (key, order) = rest.split_at(call.partition.len());
        let order: Vec<SortKey> =
            call.order.iter().zip(order).map(|(sort, &column)| sort.by(column)).collect();
        let mut frame = call.frame.clone();
        if let Units::Range(Some(sort)) = &mut frame.units {
            *sort = order[0];
        }
        Placed {
            key: key.to_vec(),
            order,
            call: WindowCall { func: call.func, args: args.to_vec(), frame },
            column: call.column.clone(),
        }
    }
}

impl ScalarBinder<'_, '_> {
    /// `name(args) FILTER (…) OVER (…)`
    pub(super) fn bind_window(
        &mut self,
        name: &str,
        (args, star): (&[&ast::Expr], bool),
        filter: Option<&ast::Expr>,
        over: &WindowType,
    ) -> Result<Scalar, PlanError> {
        let Some(windows) = self.windows.take() else {
            return Err(unsupported("a window function here is"));
        };
        // Without the windows a window function within another is an error, as it must be. Windows are computed
        // before anything around them is.
        let guards = std::mem::take(&mut self.guards);
        let call = windows
            .window(over)
            .and_then(|window| self.bind_call(name, (args, star), filter, &window));
        self.guards = guards;
        let bound = call.and_then(|call| windows.add(call));
        self.windows = Some(windows);
        bound
    }

    fn bind_call(
        &mut self,
        name: &str,
        (args, star): (&[&ast::Expr], bool),
        filter: Option<&ast::Expr>,
        window: &Window,
    ) -> Result<Call, PlanError> {
        let Window { spec, exclusion } = window;
        let mut args = self.bind_all(args.iter().copied())?;
        let (func, ty) = match WindowFunc::named(name) {
            Some(func) => {
                let ty = func.result_type(args.first().map(|arg| arg.ty));
                (func, ty.ok_or_else(|| invalid(format!("{name} without arguments")))?)
            }
            None if name == "array_agg" => {
                let value = args.first().map(|arg| arg.ty);
                let ty = WindowFunc::ArrayAgg.result_type(value);
                let ty = ty.ok_or_else(|| unsupported("array_agg of arrays is"))?;
                args.extend(filter.map(|filter| self.bind(filter)).transpose()?);
                (WindowFunc::ArrayAgg, ty)
            }
            None if COLLECTING.contains(&name) => {
                return Err(unsupported(format!("{name} as a window function is")));
            }
            None => {
                let filter = filter.map(|filter| self.bind(filter)).transpose()?;
                let (func, arg, ty) = resolve::aggregate_call(name, &args, star, filter)?;
                args = arg.into_iter().collect();
                (WindowFunc::Aggregate(func), ty)
            }
        };
        let partition = self.bind_all(&spec.partition_by)?;
        let order = spec.order_by.iter().map(|item| Sort::bind(self, item));
        let order = order.collect::<Result<Vec<_>, _>>()?;
        let frame = Frame { exclusion: *exclusion, ..self.bind_frame(spec, &order)? };
        let is_count = func == WindowFunc::Aggregate(AggregateFunc::Count);
        let nullable = !(is_count || args.is_empty());
        let column = Column { name: name.to_owned(), ty, typmod: -1, nullable };
        Ok(Call { func, args, partition, order, frame, column })
    }

    fn bind_frame(&mut self, spec: &WindowSpec, order: &[Sort]) -> Result<Frame, PlanError> {
        let Some(frame) = &spec.window_frame else { return Ok(Frame::default()) };
        let (units, offset) = match (frame.units, order) {
            (WindowFrameUnits::Rows, _) => (Units::Rows, Some(INT8)),
            (WindowFrameUnits::Groups, _) => (Units::Groups, Some(INT8)),
            (WindowFrameUnits::Range, [sort]) if has_offset(frame) => {
                (Units::Range(Some(sort.by(0))), distance_type(sort.value.ty))
            }
            (WindowFrameUnits::Range, _) => (Units::Range(None), None),
        };
        let Some(offset) = offset.or_else(|| (!has_offset(frame)).then_some(INT8)) else {
            let ty = order.first().map_or_else(String::new, |sort| sort.value.ty.to_string());
            let what = format!("RANGE with an offset over type {ty} is");
            return Err(unsupported_hint(what, "Order by a number, or use ROWS or GROUPS."));
        };
        let start = self.bind_bound(&frame.start_bound, offset)?;
        let end = match &frame.end_bound {
            None => Bound::Current,
            Some(end) => self.bind_bound(end, offset)?,
        };
        Ok(Frame { units, start, end, exclusion: Exclusion::None })
    }

    /// A bound whose offset is of a type.
    fn bind_bound(&mut self, bound: &WindowFrameBound, ty: Type) -> Result<Bound, PlanError> {
        let refuse = || unsupported("this frame offset is");
        let mut offset = |value: &ast::Expr| -> Result<Datum, PlanError> {
            let scalar = self.binder.bind_constant(value).map_err(|_| refuse())?;
            let expr = expr::cast(&scalar.expr, scalar.ty, ty).ok_or_else(refuse)?;
            expr.eval(&[]).map_err(|_| refuse())
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => Bound::Current,
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => {
                Bound::Unbounded
            }
            WindowFrameBound::Preceding(Some(value)) => Bound::Preceding(offset(value)?),
            WindowFrameBound::Following(Some(value)) => Bound::Following(offset(value)?),
        })
    }
}

fn has_offset(frame: &ast::WindowFrame) -> bool {
    let is_offset = |bound: &WindowFrameBound| {
        matches!(bound, WindowFrameBound::Preceding(Some(_)) | WindowFrameBound::Following(Some(_)))
    };
    is_offset(&frame.start_bound) || frame.end_bound.as_ref().is_some_and(is_offset)
}

/// The type of offsets from values of a type, if they can be added.
fn distance_type(ty: Type) -> Option<Type> {
    let scalar = ty.scalar()?;
    match scalar {
        _ if scalar.is_integer() => Some(INT8),
        _ if scalar.is_float() => Some(types::Scalar::Float8.into()),
        types::Scalar::Numeric => Some(ty),
        // Microseconds.
        types::Scalar::Date | types::Scalar::Timestamp | types::Scalar::Timestamptz => Some(INT8),
        _ => None,
    }
}

/// Whether an expression reads the result of a window function.
pub(super) fn reads_window(expr: &Expr) -> bool {
    expr::columns_of(expr).range(VIRTUAL..2 * VIRTUAL).next().is_some()
}
