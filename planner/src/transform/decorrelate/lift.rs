//! Lifting: a relation that depends on parameters, rewritten to yield its rows for all their values at once.
//!
//! The lifted relation has a column for the value of each parameter in front; for a type of which equal values
//! may differ in form also one for the value's representation, behind those. A value of a type of the host is its own
//! representation: there its column has the type as one whose values are equal only if their bytes are, so that the
//! host is not asked what is equal where no query asks. For any values of the
//! parameters that are asked for, its rows that begin with them are the rows of the relation as it was.

use crate::error::PlanError;
use crate::ir::{Binding, Node, Predicate, Preserved, Rel, TimeBound};
use crate::sql::unsupported;
use plan::expr::{self, Expr, ParameterId};
use plan::func::Func;
use plan::partition::{SortKey, Work};
use plan::table_function::TableFunction;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, LocalId};
use std::collections::BTreeSet;

const BYTEA: Type = Type::Scalar(Scalar::Bytea);

pub(super) struct Lift<'b> {
    bindings: &'b [Binding],
    /// The values asked for, each once; if there are none, equalities have to provide them.
    given: Option<Rel>,
    /// Locals that have the values in front now.
    pub(super) locals: BTreeSet<LocalId>,
    /// Recursions in whose step we are.
    recursions: Vec<LocalId>,
    pub(super) error: Option<PlanError>,
}

/// The distinct values of the parameters in the rows of `outer`.
pub(super) fn distinct_values(bindings: &[Binding], outer: &Rel) -> Rel {
    let lift = Lift::given(bindings, Rel::unit());
    let mut outputs: Vec<Expr> = bindings.iter().map(|b| b.value.clone()).collect();
    let shaped = bindings.iter().filter(|b| has_image(b.column.ty));
    outputs.extend(shaped.map(|b| image(b.value.clone())));
    outer.clone().map(outputs, lift.columns()).distinct()
}

impl<'b> Lift<'b> {
    /// With values from the relation's own equalities, if the types allow it.
    pub(super) fn by_equalities(bindings: &'b [Binding]) -> Option<Lift<'b>> {
        let canonical = bindings.iter().all(|binding| binding.column.ty.is_canonical());
        canonical.then(|| Lift { given: None, ..Lift::given(bindings, Rel::unit()) })
    }

    /// With values that are given, as made by [`distinct_values`].
    pub(super) fn given(bindings: &'b [Binding], values: Rel) -> Lift<'b> {
        let (locals, recursions) = (BTreeSet::new(), Vec::new());
        Lift { bindings, given: Some(values), locals, recursions, error: None }
    }

    /// The columns for the parameters.
    pub(super) fn columns(&self) -> Vec<Column> {
        let value = |b: &Binding| Column { ty: b.column.ty.by_image(), ..b.column.clone() };
        let mut columns: Vec<Column> = self.bindings.iter().map(value).collect();
        for binding in self.bindings.iter().filter(|b| has_image(b.column.ty)) {
            let name = format!("image of {}", binding.column.name);
            columns.push(Column { name, ty: BYTEA, typmod: -1, nullable: false });
        }
        columns
    }

    /// How many these are.
    pub(super) fn width(&self) -> usize {
        let shaped = self.bindings.iter().filter(|b| has_image(b.column.ty));
        self.bindings.len() + shaped.count()
    }

    /// That an outer row, of `arity` columns, has the values that begin a row of the lifted relation behind it.
    pub(super) fn ties(&self, arity: usize) -> Vec<Predicate> {
        let values: Vec<Expr> = self.bindings.iter().map(|b| b.value.clone()).collect();
        let images: Vec<Expr> = values.iter().cloned().map(image).collect();
        let columns =
            (0..self.width()).map(|column| Expr::Column(arity + column)).collect::<Vec<_>>();
        self.identical(&values, &images, &columns)
    }

    /// That values, given with their images, are those of columns.
    fn identical(&self, values: &[Expr], images: &[Expr], columns: &[Expr]) -> Vec<Predicate> {
        let mut next_image = self.bindings.len();
        let mut ties = Vec::new();
        for (i, Binding { column, .. }) in self.bindings.iter().enumerate() {
            ties.push(if has_image(column.ty) {
                next_image += 1;
                Predicate::equal(images[i].clone(), columns[next_image - 1].clone(), BYTEA)
            } else if column.nullable && self.given.is_some() {
                Predicate::equal(images[i].clone(), image(columns[i].clone()), BYTEA)
            } else {
                // An equality that provides a value is never true of NULL.
                Predicate::equal(values[i].clone(), columns[i].clone(), column.ty.by_image())
            });
        }
        ties
    }

    /// That the columns for the parameters are the same in two places.
    fn same(&self, a: usize, b: usize) -> Vec<Predicate> {
        let at = |start| (0..self.width()).map(|i| Expr::Column(start + i)).collect::<Vec<Expr>>();
        let mut next_image = self.bindings.len();
        let images = self.bindings.iter().enumerate().map(|(i, binding)| {
            if !has_image(binding.column.ty) {
                return image(Expr::Column(a + i));
            }
            next_image += 1;
            Expr::Column(a + next_image - 1)
        });
        let images: Vec<Expr> = images.collect();
        self.identical(&at(a), &images, &at(b))
    }

    /// Whether a relation is the same for all values.
    fn is_free(&self, rel: &Rel) -> bool {
        let parameters = rel.parameters();
        self.bindings.iter().all(|binding| !parameters.contains(&binding.id))
            && self.locals.iter().all(|id| rel.count_gets(*id) == 0)
    }

    fn position(&self, id: ParameterId) -> Option<usize> {
        self.bindings.iter().position(|binding| binding.id == id)
    }

    /// An expression over a relation's columns, over those of the lifted one.
    fn shift(&self, expr: &Expr) -> Expr {
        let width = self.width();
        self.place(expr, 0, &|column| column + width)
    }

    fn shift_bounds(&self, bounds: &[TimeBound]) -> Vec<TimeBound> {
        bounds.iter().map(|bound| bound.map_expr(&|at| self.shift(at))).collect()
    }

    fn shift_all(&self, predicates: &[Predicate]) -> Vec<Predicate> {
        predicates.iter().map(|p| p.map_exprs(&|expr| self.shift(expr))).collect()
    }

    /// An expression with columns renumbered and parameters read from the columns that begin at `given`.
    fn place(&self, expr: &Expr, given: usize, column: &dyn Fn(usize) -> usize) -> Expr {
        let value = |id| self.position(id).map(|position| Expr::Column(given + position));
        expr::with_parameters(&expr::renumber(expr, column), &value)
    }

    fn with_values(&self, columns: &[Column]) -> Vec<Column> {
        [self.columns(), columns.to_vec()].concat()
    }

    /// The lifted relation; `None` if there are not enough equalities.
    pub(super) fn lift(&mut self, rel: &Rel) -> Option<Rel> {
        if self.is_free(rel) {
            return self.cross(rel);
        }
        let columns = self.with_values(&rel.columns);
        match &rel.node {
            // Both are free.
            Node::Constant { .. } | Node::Source(_) => self.cross(rel),
            Node::Get(id) => Some(Rel { columns, node: Node::Get(*id) }),
            Node::Map { input, outputs } => {
                self.trust(outputs)?;
                Some(self.lift(input)?.map(self.shift_behind_values(outputs), columns))
            }
            Node::TableFunction { input, table_function } => {
                let node = self.table_function(input, table_function)?;
                Some(Rel { columns, node })
            }
            Node::Filter { input, predicates } => self.lift_filter(input, predicates),
            Node::Temporal { input, bounds } => {
                self.trust(&rel.exprs())?;
                let bounds = self.shift_bounds(bounds);
                Some(self.lift(input)?.temporal(bounds))
            }
            Node::Join { inputs, predicates } => self.join(inputs, predicates),
            Node::OuterJoin { preserved, left, right, predicates } => match preserved {
                Preserved::Left => self.left_join(left, right, predicates),
                Preserved::Both => self.full_join(left, right, predicates, columns),
            },
            Node::AntiJoin { left, right, predicates } => {
                let (left, right, predicates, _) = self.sides(left, right, predicates)?;
                Some(Rel::anti_join(left, right, predicates))
            }
            // The innermost subqueries are decorrelated first.
            Node::Apply(_) => None,
            Node::Reduce { input, key, aggregates } => match key.as_slice() {
                [] => self.reduce_to_one(input, aggregates, &rel.columns),
                key => self.reduce(input, key, aggregates, &rel.columns),
            },
            Node::Distinct { input } => Some(self.lift(input)?.distinct()),
            Node::Partition { input, key, order, work } => {
                let node = self.partition(input, key, order.clone(), work.clone())?;
                Some(Rel { columns, node })
            }
            Node::Fence { input, .. } => Some(self.lift(input)?.fenced()),
            Node::Repeat { input } => {
                let input = Box::new(self.lift(input)?);
                Some(Rel { columns, node: Node::Repeat { input } })
            }
            Node::Union { inputs } => {
                let inputs = inputs.iter().map(|input| self.lift(input));
                Some(Rel::union(inputs.collect::<Option<_>>()?, columns))
            }
            Node::Let { id, value, body } => self.lift_let(*id, value, body, columns),
            Node::LetRec { .. } => self.recursion(rel, columns),
        }
    }

    fn lift_filter(&mut self, input: &Rel, predicates: &[Predicate]) -> Option<Rel> {
        if self.is_free(input) {
            return self.join(std::slice::from_ref(input), predicates);
        }
        self.trust_all(predicates)?;
        Some(self.lift(input)?.filter(self.shift_all(predicates)))
    }

    /// The values, and expressions over the lifted input.
    fn shift_behind_values(&self, exprs: &[Expr]) -> Vec<Expr> {
        let values = (0..self.width()).map(Expr::Column);
        values.chain(exprs.iter().map(|expr| self.shift(expr))).collect()
    }

    fn table_function(&mut self, input: &Rel, table_function: &TableFunction) -> Option<Node> {
        let is_safe = self.given.is_some() || !table_function.may_fail();
        let input = Box::new(is_safe.then(|| self.lift(input)).flatten()?);
        let table_function = table_function.map_args(&|arg| self.shift(arg));
        Some(Node::TableFunction { input, table_function })
    }

    fn left_join(&mut self, left: &Rel, right: &Rel, predicates: &[Predicate]) -> Option<Rel> {
        let (left, right, predicates, skipped) = self.sides(left, right, predicates)?;
        let arity = left.arity();
        let joined = Rel::outer_join(Preserved::Left, left, right, predicates);
        let right = arity + skipped..joined.arity();
        Some(joined.project(&(0..arity).chain(right).collect::<Vec<_>>()))
    }

    /// The rows for different values are partitions of their own.
    fn partition(
        &mut self,
        input: &Rel,
        key: &[usize],
        mut order: Vec<SortKey>,
        mut work: Work,
    ) -> Option<Node> {
        if let Work::Window(_) = work {
            // It may fail for values nobody asks for.
            self.given.as_ref()?;
        }
        let input = Box::new(self.lift(input)?);
        let width = self.width();
        let key = (0..width).chain(key.iter().map(|column| column + width)).collect();
        order.iter_mut().for_each(|sort| sort.column += width);
        work.columns_mut(&mut |column| *column += width);
        Some(Node::Partition { input, key, order, work })
    }

    /// The relation for each of the values.
    fn cross(&self, rel: &Rel) -> Option<Rel> {
        if self.bindings.is_empty() {
            return Some(rel.clone());
        }
        let given = self.given.clone()?;
        Some(Rel::join(vec![given, rel.clone()], vec![]))
    }

    /// Without given values expressions are computed for values nobody asks for, too: none may fail then.
    fn trust(&self, exprs: &[Expr]) -> Option<()> {
        (self.given.is_some() || !exprs.iter().any(expr::may_fail)).then_some(())
    }

    fn trust_all(&self, predicates: &[Predicate]) -> Option<()> {
        self.trust(&predicates.iter().map(Predicate::to_expr).collect::<Vec<_>>())
    }

    fn join<R: std::borrow::Borrow<Rel>>(
        &mut self,
        inputs: &[R],
        predicates: &[Predicate],
    ) -> Option<Rel> {
        let is_free = |lift: &Self, input: &R| lift.is_free(input.borrow());
        let mut parts = Vec::new();
        let mut arity = 0;
        // Where the columns for the parameters are, and where the others have gone.
        let mut given = None;
        let (mut places, mut ties) = (Vec::new(), Vec::new());
        if inputs.iter().all(|input| is_free(self, input)) {
            match &self.given {
                None => return self.bind(inputs, predicates),
                Some(values) => parts.push(values.clone()),
            }
            (given, arity) = (Some(0), self.width());
        }
        self.trust_all(predicates)?;
        for input in inputs {
            let skipped = if is_free(self, input) {
                parts.push(input.borrow().clone());
                0
            } else {
                parts.push(self.lift(input.borrow())?);
                match given {
                    None => given = Some(arity),
                    Some(given) => ties.extend(self.same(given, arity)),
                }
                self.width()
            };
            let columns = parts.last().map_or(0, Rel::arity);
            places.extend(arity + skipped..arity + columns);
            arity += columns;
        }
        let given = given.unwrap_or(0);
        let place = |expr: &Expr| self.place(expr, given, &|column| places[column]);
        ties.extend(predicates.iter().map(|predicate| predicate.map_exprs(&place)));
        let positions: Vec<usize> = (given..given + self.width()).chain(places.clone()).collect();
        Some(Rel::join(parts, ties).project(&positions))
    }

    /// A join whose own equalities say what the values of the parameters are.
    fn bind<R: std::borrow::Borrow<Rel>>(
        &self,
        inputs: &[R],
        predicates: &[Predicate],
    ) -> Option<Rel> {
        let mut rest = predicates.to_vec();
        let mut values = Vec::new();
        for binding in self.bindings {
            let found = rest
                .iter()
                .enumerate()
                .find_map(|(i, predicate)| Some((i, self.bound_value(binding, predicate)?)));
            let (position, value) = found?;
            rest.remove(position);
            values.push(value);
        }
        let value = |id| self.position(id).map(|position| values[position].clone());
        let place = |expr: &Expr| expr::with_parameters(expr, &value);
        let rest: Vec<Predicate> = rest.iter().map(|p| p.map_exprs(&place)).collect();
        self.trust(&values)?;
        self.trust_all(&rest)?;
        let mut inputs: Vec<Rel> = inputs.iter().map(|input| input.borrow().clone()).collect();
        let joined = match inputs.len() {
            1 => inputs.remove(0).filter(rest),
            _ => Rel::join(inputs, rest),
        };
        let columns = self.with_values(&joined.columns);
        let own = (0..joined.arity()).map(Expr::Column);
        let outputs = values.iter().cloned().chain(own).collect();
        Some(joined.map(outputs, columns))
    }

    /// What a parameter equals, if the predicate says so.
    fn bound_value(&self, binding: &Binding, predicate: &Predicate) -> Option<Expr> {
        let Predicate::Equal { left, right, .. } = predicate else { return None };
        let is_parameter =
            |expr: &Expr| matches!(expr, Expr::Parameter(id, _) if *id == binding.id);
        let other = match (is_parameter(&left.expr), is_parameter(&right.expr)) {
            (true, false) => right,
            (false, true) => left,
            _ => return None,
        };
        let mut parameters = BTreeSet::new();
        expr::collect_parameters(&other.expr, &mut parameters);
        let is_free = self.bindings.iter().all(|binding| !parameters.contains(&binding.id));
        (is_free && left.ty == right.ty).then(|| other.expr.clone())
    }

    /// The sides of a join that keeps or drops rows of the left one, and its condition: the left side
    /// lifted, the right one if it depends on parameters, and then how many columns it has for them.
    fn sides(
        &mut self,
        left: &Rel,
        right: &Rel,
        predicates: &[Predicate],
    ) -> Option<(Rel, Rel, Vec<Predicate>, usize)> {
        self.trust_all(predicates)?;
        let (split, width) = (left.arity(), self.width());
        let left = self.lift(left)?;
        let (right, skipped, mut ties) = if self.is_free(right) {
            (right.clone(), 0, vec![])
        } else {
            (self.lift(right)?, width, self.same(0, left.arity()))
        };
        let place = |column| if column < split { column + width } else { column + width + skipped };
        let placed = |expr: &Expr| self.place(expr, 0, &place);
        ties.extend(predicates.iter().map(|predicate| predicate.map_exprs(&placed)));
        Some((left, right, ties, skipped))
    }

    /// A row of either side may be alone: the values are those of the side that is there.
    fn full_join(
        &mut self,
        left: &Rel,
        right: &Rel,
        predicates: &[Predicate],
        columns: Vec<Column>,
    ) -> Option<Rel> {
        self.trust_all(predicates)?;
        let (split, width) = (left.arity(), self.width());
        let (left, right) = (self.lift(left)?, self.lift(right)?);
        let start = left.arity();
        let place = |column| if column < split { column + width } else { column + 2 * width };
        let mut ties = self.same(0, start);
        let placed = |expr: &Expr| self.place(expr, 0, &place);
        ties.extend(predicates.iter().map(|predicate| predicate.map_exprs(&placed)));
        let joined = Rel::outer_join(Preserved::Both, left, right, ties);
        let either = |i| Expr::Coalesce(vec![Expr::Column(i), Expr::Column(start + i)]);
        let others = (width..start).chain(start + width..joined.arity()).map(Expr::Column);
        let outputs = (0..width).map(either).chain(others).collect();
        Some(joined.map(outputs, columns))
    }

    /// Groups by the values and the key. Values without a row in the input have no group.
    pub(super) fn reduce(
        &mut self,
        input: &Rel,
        key: &[usize],
        aggregates: &[Aggregate],
        columns: &[Column],
    ) -> Option<Rel> {
        let args: Vec<Expr> = aggregates.iter().filter_map(|a| a.arg.clone()).collect();
        self.trust(&args)?;
        use AggregateFunc::{AvgFloat, Regression, SpreadFloat, SumFloat4, SumFloat8};
        let overflows = |a: &Aggregate| {
            matches!(a.func, AvgFloat | Regression(_) | SpreadFloat(_) | SumFloat4 | SumFloat8)
        };
        if self.given.is_none() && aggregates.iter().any(overflows) {
            return None;
        }
        let input = Box::new(self.lift(input)?);
        let width = self.width();
        let key = (0..width).chain(key.iter().map(|column| column + width)).collect();
        let shifted = |aggregate: &Aggregate| Aggregate {
            func: aggregate.func,
            arg: aggregate.arg.as_ref().map(|arg| self.shift(arg)),
        };
        let aggregates = aggregates.iter().map(shifted).collect();
        let columns = self.with_values(columns);
        Some(Rel { columns, node: Node::Reduce { input, key, aggregates } })
    }

    /// An aggregate without GROUP BY: all values have a group, which an empty input leaves empty. A row
    /// of NULLs for each, which no aggregate but `count(*)` sees, makes it be there.
    fn reduce_to_one(
        &mut self,
        input: &Rel,
        aggregates: &[Aggregate],
        columns: &[Column],
    ) -> Option<Rel> {
        let given = self.given.clone()?;
        if self.recursions.iter().any(|id| input.count_gets(*id) > 0) {
            let what = "an aggregate without GROUP BY over the recursive reference is";
            self.error.get_or_insert(unsupported(what));
            return None;
        }
        let input = self.lift(input)?;
        let width = self.width();
        let arg = |aggregate: &Aggregate| match &aggregate.arg {
            Some(arg) => self.shift(arg),
            None => Expr::true_literal(),
        };
        let args: Vec<Expr> = aggregates.iter().map(arg).collect();
        let types: Vec<Type> = input.columns.iter().map(|column| column.ty).collect();
        let mut below = self.columns();
        for (arg, column) in args.iter().zip(columns) {
            let (name, ty) = (column.name.clone(), arg.ty(&types));
            below.push(Column { name, ty, typmod: -1, nullable: true });
        }
        let values = || (0..width).map(Expr::Column);
        let nulls = below[width..].iter().map(|column| Expr::Literal(Datum::Null, column.ty));
        let padding = given.map(values().chain(nulls).collect(), below.clone());
        let rows = input.map(values().chain(args).collect(), below.clone());
        let aggregates = aggregates.iter().enumerate().map(|(i, aggregate)| Aggregate {
            func: aggregate.func,
            arg: Some(Expr::Column(width + i)),
        });
        let node = Node::Reduce {
            input: Box::new(Rel::union(vec![rows, padding], below)),
            key: (0..width).collect(),
            aggregates: aggregates.collect(),
        };
        Some(Rel { columns: self.with_values(columns), node })
    }

    fn lift_let(
        &mut self,
        id: LocalId,
        value: &Rel,
        body: &Rel,
        columns: Vec<Column>,
    ) -> Option<Rel> {
        let value = Box::new(self.lift_local(id, value)?);
        let body = Box::new(self.lift(body)?);
        Some(Rel { columns, node: Node::Let { id, value, body } })
    }

    /// The value of a local, lifted if it depends on the parameters.
    fn lift_local(&mut self, id: LocalId, value: &Rel) -> Option<Rel> {
        if self.is_free(value) {
            return Some(value.clone());
        }
        let lifted = self.lift(value)?;
        self.locals.insert(id);
        Some(lifted)
    }

    fn recursion(&mut self, rel: &Rel, columns: Vec<Column>) -> Option<Rel> {
        let Node::LetRec { id, all, form, base, step, body } = &rel.node else { return None };
        let (mut base, mut step) = (base.clone(), step.clone());
        if !(self.is_free(&base) && self.is_free(&step)) {
            // For values nobody asks for it might not even end.
            self.given.as_ref()?;
            *base = self.lift(&base)?;
            self.locals.insert(*id);
            self.recursions.push(*id);
            *step = self.lift(&step)?;
            self.recursions.pop();
        }
        let body = Box::new(self.lift(body)?);
        let (id, all, form) = (*id, *all, form.clone());
        Some(Rel { columns, node: Node::LetRec { id, all, form, base, step, body } })
    }
}

fn image(value: Expr) -> Expr {
    Expr::Call { func: Func::Image, args: vec![value] }
}

/// Whether values of parameters of a type go with their representations.
fn has_image(ty: Type) -> bool {
    !ty.by_image().is_canonical()
}
