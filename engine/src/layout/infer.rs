//! The types of a plan's columns, and with them the least layout its rows fit.

use super::tuple::ColumnType;
use super::words::Fields;
use plan::expr::Expr;
use plan::func::Func;
use plan::partition::{WindowCall, WindowFunc, Work};
use plan::row::Row;
use plan::table_function::TableFunction;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{AggregateFunc, JoinTree, LocalId, Mfp, Plan, Recursion, Source, ViewPlan};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The columns of a node.
pub(crate) type Columns = Rc<[ColumnType]>;

/// The most words that a plan's rows, its arrangements' keys and their values take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) row: usize,
    pub(crate) key: usize,
    pub(crate) val: usize,
}

/// The words a plan takes; `None` if it has columns of varying width.
pub(crate) fn widths_of(plan: &ViewPlan) -> Option<Widths> {
    let sources: Vec<Columns> = plan.sources.iter().map(source_columns).collect();
    let (all, locals) = (sources.clone(), BTreeMap::new());
    let mut types = Types { sources, locals, widths: Some(Widths::default()) };
    // Also those that nobody refers to are inputs.
    all.iter().for_each(|columns| types.take(columns, |widths| &mut widths.row));
    types.visit(&plan.root);
    types.widths
}

/// The columns of what a plan puts out.
pub(crate) fn columns_of(plan: &ViewPlan) -> Columns {
    let sources = plan.sources.iter().map(source_columns).collect();
    let mut types = Types { sources, locals: BTreeMap::new(), widths: None };
    types.visit(&plan.root)
}

/// Finds the columns of nodes, given those of the names around them.
pub(crate) struct Types {
    pub(crate) sources: Vec<Columns>,
    pub(crate) locals: BTreeMap<LocalId, Columns>,
    /// What the nodes visited so far take.
    pub(crate) widths: Option<Widths>,
}

impl Types {
    fn visit(&mut self, plan: &Plan) -> Columns {
        let columns = match plan {
            Plan::Constant { arity, rows } => {
                constant_columns(*arity, rows.iter().map(|(row, _)| row))
            }
            Plan::Source(id) => Rc::clone(&self.sources[id.0]),
            Plan::Get(id) => self.locals.get(id).cloned().unwrap_or_default(),
            Plan::Let { id, value, body } => {
                let value = self.visit(value);
                self.locals.insert(*id, value);
                self.visit(body)
            }
            Plan::LetRec { id, base, step, body, recursion } => {
                let base = self.visit(base);
                let columns = self.recursive(*id, recursion, base, step);
                if let Recursion::FixpointExtreme { key, order, .. } = recursion {
                    let key: Vec<ColumnType> = key.iter().map(|column| columns[*column]).collect();
                    let val: Vec<ColumnType> = order.iter().map(|s| columns[s.column]).collect();
                    self.take(&key, |widths| &mut widths.key);
                    self.take(&val, |widths| &mut widths.val);
                }
                self.locals.insert(*id, columns);
                self.visit(body)
            }
            Plan::Mfp { input, mfp } => mfp_columns(&self.visit(input), mfp),
            Plan::TableFunction { input, table_function, closure } => {
                let input = self.visit(input);
                let all = table_function_columns(&input, table_function, closure.input_arity);
                mfp_columns(&all, closure)
            }
            Plan::Join { left, right, left_key, right_key, closure } => {
                let (left, right) = (self.visit(left), self.visit(right));
                let operands = Operands::of((&left, left_key), (&right, right_key), closure);
                self.take(&operands.left.key, |widths| &mut widths.key);
                self.take(&operands.right.key, |widths| &mut widths.key);
                self.take(&operands.left.val, |widths| &mut widths.val);
                self.take(&operands.right.val, |widths| &mut widths.val);
                mfp_columns(&operands.columns(), &operands.closure)
            }
            Plan::DeltaJoin { inputs, tree, closure } => {
                let inputs: Vec<Columns> = inputs.iter().map(|input| self.visit(input)).collect();
                for (number, columns) in inputs.iter().enumerate() {
                    let columns = padded(columns, tree.arities[number]);
                    for key in tree.keys(number) {
                        let split = Split::of(&columns, key);
                        self.take(&split.key, |widths| &mut widths.key);
                        self.take(&split.val, |widths| &mut widths.val);
                    }
                }
                mfp_columns(&delta_join_columns(&inputs, tree), closure)
            }
            Plan::Reduce { input, key, aggregates } => {
                let input = self.visit(input);
                let key = expr_columns(&input, key);
                self.take(&key, |widths| &mut widths.key);
                let funcs = aggregates.iter().map(|a| (a.func, a.arg.as_ref()));
                reduce_columns(&input, &key, funcs)
            }
            Plan::Union { inputs } => {
                let inputs: Vec<Columns> = inputs.iter().map(|input| self.visit(input)).collect();
                union_columns(&inputs)
            }
            Plan::Distinct { input } | Plan::Negate { input } => self.visit(input),
            Plan::Partition { input, work, .. } => partition_columns(&self.visit(input), work),
            Plan::Repeat { input } => repeat_columns(&self.visit(input)),
            Plan::Temporal { input, output, .. } => temporal_columns(&self.visit(input), output),
        };
        self.take(&columns, |widths| &mut widths.row);
        columns
    }

    /// The columns of a recursion: those of its base, with the NULLs that its step adds.
    pub(crate) fn recursive(
        &mut self,
        id: LocalId,
        recursion: &Recursion,
        base: Columns,
        step: &Plan,
    ) -> Columns {
        let mut columns = match recursion {
            Recursion::FixpointExtreme { key, order, .. } => {
                padded(&base, key.len() + order.len()).into()
            }
            _ => base,
        };
        loop {
            self.locals.insert(id, Rc::clone(&columns));
            let next = self.visit(step);
            let wider = union_columns(&[Rc::clone(&columns), next]);
            if wider == columns {
                self.take(&columns, |widths| &mut widths.row);
                return columns;
            }
            columns = wider;
        }
    }

    fn take(&mut self, columns: &[ColumnType], part: impl Fn(&mut Widths) -> &mut usize) {
        let Some(widths) = &mut self.widths else { return };
        match Fields::of(columns) {
            Some(fields) => {
                let part = part(widths);
                *part = (*part).max(fields.words());
            }
            None => self.widths = None,
        }
    }
}

/// A column of a constant without rows.
const UNKNOWN: ColumnType = ColumnType { ty: None, nullable: true };

/// The columns of a base table's rows.
pub(crate) fn source_columns(source: &Source) -> Columns {
    source.schema.iter().map(|c| ColumnType { ty: Some(c.ty), nullable: c.nullable }).collect()
}

/// The columns of fixed rows.
pub(crate) fn constant_columns<'a>(arity: usize, rows: impl Iterator<Item = &'a Row>) -> Columns {
    let rows: Vec<Vec<Datum>> = rows.map(Row::unpack).collect();
    let column = |i: usize| {
        let values = rows.iter().map(|row| &row[i]);
        let ty = values.clone().find_map(type_of);
        ColumnType { ty, nullable: values.clone().any(Datum::is_null) }
    };
    (0..arity).map(column).collect()
}

/// A type that a value is of, exact for types of fixed width; `None` for NULL.
fn type_of(value: &Datum) -> Option<Type> {
    let scalar = match value {
        Datum::Null => return None,
        Datum::Bool(_) => Scalar::Bool,
        Datum::Int2(_) => Scalar::Int2,
        Datum::Int4(_) => Scalar::Int4,
        Datum::Int8(_) => Scalar::Int8,
        Datum::Float4(_) => Scalar::Float4,
        Datum::Float8(_) => Scalar::Float8,
        Datum::Date(_) => Scalar::Date,
        Datum::Timestamp(_) => Scalar::Timestamp,
        Datum::Numeric(_) | Datum::Text(_) | Datum::Bytea(_) | Datum::Uuid(_) | Datum::Array(_) => {
            Scalar::Text
        }
    };
    Some(Type::Scalar(scalar))
}

/// The columns of rows to be repeated, without the number of copies.
pub(crate) fn repeat_columns(input: &[ColumnType]) -> Columns {
    input[..input.len().saturating_sub(1)].into()
}

/// The columns that are kept of rows while they are valid.
pub(crate) fn temporal_columns(input: &[ColumnType], output: &[usize]) -> Columns {
    output.iter().map(|column| input.get(*column).copied().unwrap_or(UNKNOWN)).collect()
}

/// As many columns, at least: a constant without rows does not say how many it has.
pub(crate) fn padded(columns: &[ColumnType], arity: usize) -> Vec<ColumnType> {
    let mut columns = columns.to_vec();
    columns.resize(arity.max(columns.len()), UNKNOWN);
    columns
}

/// The columns that an [`Mfp`] puts out.
pub(crate) fn mfp_columns(input: &[ColumnType], mfp: &Mfp) -> Columns {
    let mut columns = padded(input, mfp.input_arity);
    for map in &mfp.maps {
        columns.push(expr_column(&columns, map));
    }
    mfp.project.iter().map(|index| columns[*index]).collect()
}

/// The columns of a row, of which there are so many with those that set-returning functions append.
pub(crate) fn table_function_columns(
    input: &[ColumnType],
    table_function: &TableFunction,
    arity: usize,
) -> Vec<ColumnType> {
    let mut columns = padded(input, arity - table_function.width());
    let types: Vec<Type> = columns.iter().map(|column| column.some_type()).collect();
    let own = table_function.columns(&types).into_iter();
    columns.extend(own.map(|(ty, nullable)| ColumnType { ty: Some(ty), nullable }));
    columns
}

/// The columns of a delta join's inputs side by side; those that tie them to one another are not NULL.
pub(crate) fn delta_join_columns(inputs: &[Columns], tree: &JoinTree) -> Vec<ColumnType> {
    let of_input = |(number, columns): (usize, &Columns)| {
        let mut columns = padded(columns, tree.arities[number]);
        let keys = tree.keys(number).concat();
        keys.iter().filter_map(Expr::as_column).for_each(|key| columns[key].nullable = false);
        columns
    };
    inputs.iter().enumerate().flat_map(of_input).collect()
}

/// The columns that expressions make.
pub(crate) fn expr_columns(input: &[ColumnType], exprs: &[Expr]) -> Columns {
    exprs.iter().map(|expr| expr_column(input, expr)).collect()
}

fn expr_column(input: &[ColumnType], expr: &Expr) -> ColumnType {
    let mut arity = 0;
    expr.visit_columns(&mut |index| arity = arity.max(index + 1));
    let input = padded(input, arity);
    if let Expr::Column(index) = expr {
        return input[*index];
    }
    let types: Vec<Type> = input.iter().map(|column| column.some_type()).collect();
    ColumnType { ty: Some(expr.ty(&types)), nullable: is_nullable(expr, &input) }
}

/// Whether an expression may be NULL; true when in doubt.
fn is_nullable(expr: &Expr, input: &[ColumnType]) -> bool {
    let any = |args: &[Expr]| args.iter().any(|arg| is_nullable(arg, input));
    match expr {
        Expr::Column(index) => input[*index].nullable,
        Expr::Literal(value, _) => value.is_null(),
        Expr::Call { func, args } => !keeps_values(*func) || any(args),
        Expr::And(args) | Expr::Or(args) => any(args),
        Expr::Not(arg) => is_nullable(arg, input),
        Expr::IsNull(_) | Expr::Array(_) => false,
        Expr::Case { branches, otherwise } => {
            is_nullable(otherwise, input)
                || branches.iter().any(|(_, then)| is_nullable(then, input))
        }
        Expr::Coalesce(args) => args.iter().all(|arg| is_nullable(arg, input)),
        Expr::Parameter(..) | Expr::Host { .. } => true,
    }
}

/// Whether a function makes a value of values.
fn keeps_values(func: Func) -> bool {
    matches!(
        func,
        Func::KeyForm(_)
            | Func::Identity
            | Func::Compare(..)
            | Func::Arithmetic(..)
            | Func::Negate(_)
            | Func::Abs(_)
            | Func::Cast(..)
            | Func::DatePlus
            | Func::DateMinus
            | Func::DateDifference
    )
}

/// The columns of groups: the key, then one per aggregate.
pub(crate) fn reduce_columns<'a>(
    input: &[ColumnType],
    key: &[ColumnType],
    aggregates: impl Iterator<Item = (AggregateFunc, Option<&'a Expr>)>,
) -> Columns {
    let results = aggregates
        .map(|(func, arg)| aggregate_column(func, arg.map(|arg| expr_column(input, arg))));
    key.iter().copied().chain(results).collect()
}

/// The columns of partitions with the values of window functions.
pub(crate) fn partition_columns(input: &[ColumnType], work: &Work) -> Columns {
    let Work::Window(calls) = work else { return input.into() };
    let result = |call: &WindowCall| {
        // A constant without rows does not say what columns it has.
        let column = |column: &usize| input.get(*column).copied().unwrap_or(UNKNOWN);
        let arg = call.args.first().map(column);
        match call.func {
            WindowFunc::Aggregate(func) => aggregate_column(func, arg),
            func => ColumnType {
                ty: func.result_type(arg.map(ColumnType::some_type)),
                nullable: !call.args.is_empty(),
            },
        }
    };
    input.iter().copied().chain(calls.iter().map(result)).collect()
}

/// The column of an aggregate's results, given that of its arguments.
fn aggregate_column(func: AggregateFunc, arg: Option<ColumnType>) -> ColumnType {
    let scalar = match func {
        AggregateFunc::Count | AggregateFunc::SumInt => Scalar::Int8,
        AggregateFunc::SumInt8
        | AggregateFunc::SumNumeric
        | AggregateFunc::AvgInt
        | AggregateFunc::AvgNumeric
        | AggregateFunc::SpreadInt(_)
        | AggregateFunc::SpreadNumeric(_) => Scalar::Numeric,
        AggregateFunc::SumFloat4 => Scalar::Float4,
        AggregateFunc::SumFloat8
        | AggregateFunc::AvgFloat
        | AggregateFunc::SpreadFloat(_)
        | AggregateFunc::Regression(_) => Scalar::Float8,
        AggregateFunc::Min(ty)
        | AggregateFunc::Max(ty)
        | AggregateFunc::Collect(_, ty)
        | AggregateFunc::BitAnd(ty)
        | AggregateFunc::BitOr(ty)
        | AggregateFunc::BitXor(ty) => {
            return ColumnType { ty: Some(ty), nullable: true };
        }
        AggregateFunc::BoolAnd | AggregateFunc::BoolOr => Scalar::Bool,
        AggregateFunc::Any => {
            return ColumnType { nullable: true, ..arg.unwrap_or(UNKNOWN) };
        }
    };
    ColumnType { ty: Some(scalar.into()), nullable: func != AggregateFunc::Count }
}

/// The columns of several inputs together.
pub(crate) fn union_columns(inputs: &[Columns]) -> Columns {
    let mut columns: Option<Vec<ColumnType>> = None;
    // Inputs without columns that are beside inputs with columns are constants without rows.
    let arity = inputs.iter().map(|input| input.len()).max().unwrap_or(0);
    for input in inputs.iter().filter(|input| input.len() == arity) {
        match &mut columns {
            None => columns = Some(input.to_vec()),
            Some(columns) => {
                for (column, other) in columns.iter_mut().zip(input.iter()) {
                    column.nullable |= other.nullable;
                    if column.ty.is_none() || Fields::of(&[*other]).is_none() {
                        column.ty = other.ty;
                    }
                }
            }
        }
    }
    columns.unwrap_or_default().into()
}

/// How rows are split by an arrangement.
#[derive(Clone)]
pub(crate) struct Split {
    /// The key's columns; none of them is NULL.
    pub(crate) key: Vec<ColumnType>,
    /// The row's columns that are not in the key as they are.
    pub(crate) val: Vec<ColumnType>,
    /// The row's columns in `val`.
    pub(crate) rest: Vec<usize>,
}

impl Split {
    pub(crate) fn of(row: &[ColumnType], key: &[Expr]) -> Split {
        let is_in_key = |index: &usize| key.contains(&Expr::Column(*index));
        let rest: Vec<usize> = (0..row.len()).filter(|index| !is_in_key(index)).collect();
        let columns = expr_columns(row, key);
        Split {
            key: columns.iter().map(|c| ColumnType { nullable: false, ..*c }).collect(),
            val: rest.iter().map(|index| row[*index]).collect(),
            rest,
        }
    }

    /// Where the columns of the row are, counted through key and value.
    pub(crate) fn places(&self, key: &[Expr]) -> Vec<usize> {
        let arity = self.rest.iter().copied().chain(key.iter().filter_map(Expr::as_column)).max();
        let columns = 0..arity.map_or(0, |last| last + 1);
        columns.filter_map(|column| self.place(key, column)).collect()
    }

    /// The same work on the row's key and value.
    pub(crate) fn over(&self, key: &[Expr], mfp: &Mfp) -> Mfp {
        let place =
            |column| self.place(key, column).expect("a column is in the key or in the value");
        let places: Vec<usize> = (0..mfp.input_arity).map(place).collect();
        renumbered(mfp, &places, self.key.len() + self.val.len())
    }

    /// Where a column of the row is, counted through key and value.
    fn place(&self, key: &[Expr], column: usize) -> Option<usize> {
        let in_key = key.iter().position(|expr| *expr == Expr::Column(column));
        let in_val = || self.rest.iter().position(|rest| *rest == column);
        in_key.or_else(|| in_val().map(|position| self.key.len() + position))
    }
}

/// What a join's closure works on: the key, then the values of both sides.
pub(crate) struct Operands {
    pub(crate) left: Split,
    pub(crate) right: Split,
    /// The closure over these columns.
    pub(crate) closure: Mfp,
}

impl Operands {
    /// `closure` is over the columns of both rows.
    pub(crate) fn of(
        (left, left_key): (&[ColumnType], &[Expr]),
        (right, right_key): (&[ColumnType], &[Expr]),
        closure: &Mfp,
    ) -> Operands {
        let left_arity =
            if left.is_empty() { closure.input_arity - right.len() } else { left.len() };
        let left = Split::of(&padded(left, left_arity), left_key);
        let right = Split::of(&padded(right, closure.input_arity - left_arity), right_key);
        let keys = left.key.len();
        let place = |column: usize| match column.checked_sub(left_arity) {
            None => left.place(left_key, column),
            Some(column) => right.place(right_key, column).map(|place| match place {
                key if key < keys => key,
                val => val + left.val.len(),
            }),
        };
        let places: Vec<usize> = (0..closure.input_arity)
            .map(|column| place(column).expect("a column is in the key or in the value"))
            .collect();
        let arity = keys + left.val.len() + right.val.len();
        let closure = renumbered(closure, &places, arity);
        Operands { left, right, closure }
    }

    /// The columns the closure sees.
    pub(crate) fn columns(&self) -> Vec<ColumnType> {
        let vals = self.left.val.iter().chain(&self.right.val);
        self.left.key.iter().chain(vals).copied().collect()
    }
}

/// The same work on an input whose columns are elsewhere.
fn renumbered(mfp: &Mfp, places: &[usize], arity: usize) -> Mfp {
    let old_arity = mfp.input_arity;
    let mut place = |column: usize| match column.checked_sub(old_arity) {
        None => places[column],
        Some(map) => arity + map,
    };
    let mut mfp = mfp.clone();
    mfp.input_arity = arity;
    mfp.maps.iter_mut().for_each(|map| map.map_columns(&mut place));
    mfp.filter.iter_mut().for_each(|conjunct| conjunct.map_columns(&mut place));
    mfp.project.iter_mut().for_each(|index| *index = place(*index));
    mfp
}
