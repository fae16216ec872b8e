//! GROUP BY and aggregates: one `Reduce` below the select list.
//!
//! While the select list and HAVING are bound, an aggregate call becomes a reference to a column
//! behind those of the FROM clause. Afterwards expressions equal to a grouping key become references
//! to it, the virtual columns become references to the aggregates.

use super::super::refuse::invalid;
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::virtual_columns::{Call, Grouping, AGGREGATES, GROUPINGS, SUBQUERIES};
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Rel, Typed};
use plan::expr::{self, Expr};
use plan::types::{self, Column, Type};
use plan::value::Datum;
use plan::{Aggregate, LocalId};
use std::collections::BTreeSet;

const INT4: Type = Type::Scalar(types::Scalar::Int4);

impl Grouping {
    pub(super) fn finish(
        self,
        binder: &mut Binder<'_>,
        input: Rel,
        (mut keys, mut sets): (Vec<BoundExpr>, Vec<Vec<usize>>),
        having: Vec<Predicate>,
        outputs: Vec<Expr>,
    ) -> Result<(Rel, Vec<Predicate>, Vec<Expr>), PlanError> {
        if keys.len() + self.calls.len() >= GROUPINGS - AGGREGATES || input.arity() >= AGGREGATES {
            return Err(invalid("too many columns"));
        }
        // Behind the aggregates.
        let calls = self.calls.len();
        let place = |expr: &Expr| {
            expr::renumber(expr, &|column| match column.checked_sub(GROUPINGS) {
                Some(number) if column < SUBQUERIES => AGGREGATES + calls + number,
                _ => column,
            })
        };
        let outputs: Vec<Expr> = outputs.iter().map(place).collect();
        let having: Vec<Predicate> = having.iter().map(|p| p.map_exprs(&place)).collect();
        // A column that depends functionally on the keys may be used without being one: as one more
        // key it changes no group.
        let mut used = BTreeSet::new();
        let having_exprs: Vec<Expr> = having.iter().map(Predicate::to_expr).collect();
        for expr in outputs.iter().chain(&having_exprs) {
            ungrouped(expr, &keys, &mut used);
        }
        for column in used.into_iter().filter(|column| *column < AGGREGATES) {
            sets.iter_mut().for_each(|set| set.push(keys.len()));
            keys.push(BoundExpr::of_column(column, &input.columns[column]));
        }
        let rewrite = |expr: &Expr| regroup(expr, &keys);
        let outputs: Vec<Expr> = outputs.iter().map(rewrite).collect();
        let having = having.iter().map(|predicate| regroup_predicate(predicate, &keys)).collect();
        Ok((self.reduce_sets(binder, input, &keys, &sets), having, outputs))
    }

    /// Groups by each set of keys; where a key is not in the set it is NULL.
    fn reduce_sets(
        self,
        binder: &mut Binder<'_>,
        input: Rel,
        keys: &[BoundExpr],
        sets: &[Vec<usize>],
    ) -> Rel {
        if let ([_], true) = (sets, self.indicators.is_empty()) {
            return self.reduce(binder, input, keys);
        }
        let (input, shared) = binder.share("rows", input);
        let mut union = Vec::new();
        for set in sets {
            let own: Vec<BoundExpr> = set.iter().map(|&key| keys[key].clone()).collect();
            let reduced = self.clone().reduce(binder, input.clone(), &own);
            let place =
                |(key, scalar): (usize, &BoundExpr)| match set.iter().position(|k| *k == key) {
                    Some(position) => Expr::Column(position),
                    None => Expr::Literal(Datum::Null, scalar.ty),
                };
            let mut outputs: Vec<Expr> = keys.iter().enumerate().map(place).collect();
            outputs.extend((own.len()..reduced.arity()).map(Expr::Column));
            outputs.extend(self.indicators.iter().map(|keys| indicator(keys, set)));
            let name = |key: usize, scalar: &BoundExpr| name_of(&input, &scalar.expr, "key", key);
            let key_columns = keys.iter().enumerate();
            let mut columns: Vec<Column> = key_columns
                .map(|(i, key)| Column { nullable: true, ..key.column(&name(i, key)) })
                .collect();
            columns.extend_from_slice(&reduced.columns[own.len()..]);
            columns.extend(self.indicators.iter().map(|_| Column {
                name: "grouping".to_owned(),
                ty: INT4,
                typmod: -1,
                nullable: false,
            }));
            union.push(reduced.map(outputs, columns));
        }
        let columns = union.first().map_or_else(Vec::new, |rel| rel.columns.clone());
        let_shared(shared, Rel::union(union, columns))
    }

    fn reduce(self, binder: &mut Binder<'_>, input: Rel, keys: &[BoundExpr]) -> Rel {
        let is_shared = self.calls.iter().any(|call| call.distinct);
        let mut grouped = Grouped { keys: keys.len(), plain: keys.to_vec(), distinct: vec![] };
        let mut places = Vec::new();
        for Call { arg, distinct, .. } in &self.calls {
            places.push(match arg {
                Some(arg) if *distinct => {
                    Some(Place::Distinct(position(&mut grouped.distinct, arg)))
                }
                // Rows added for DISTINCT arguments are not to be seen: they have the keys, but no arguments.
                Some(arg) if is_shared => Some(Place::Plain(grouped.argument(arg))),
                None if is_shared => Some(Place::Plain(grouped.argument(&present()))),
                Some(arg) => Some(Place::Plain(position(&mut grouped.plain, arg))),
                None => None,
            });
        }
        let mut columns = grouped.names(&input)[..keys.len()].to_vec();
        columns.extend(self.results);
        let plain = grouped.plain.len();
        let argument = |place: Option<Place>| {
            place.map(|place| match place {
                Place::Plain(column) => Expr::Column(column),
                Place::Distinct(column) => Expr::Column(plain + column),
            })
        };
        let calls = self.calls.iter().zip(places);
        let aggregates = calls
            .map(|(call, place)| Aggregate { func: call.func, arg: argument(place) })
            .collect();
        let (input, shared) = grouped.rows(binder, input);
        let key = (0..keys.len()).collect();
        let reduced =
            Rel { columns, node: Node::Reduce { input: Box::new(input), key, aggregates } };
        let_shared(shared, reduced)
    }
}

/// A relation that may refer to a shared one.
fn let_shared(shared: Option<(LocalId, Rel)>, body: Rel) -> Rel {
    match shared {
        None => body,
        Some((id, value)) => Rel {
            columns: body.columns.clone(),
            node: Node::Let { id, value: Box::new(value), body: Box::new(body) },
        },
    }
}

/// The value of GROUPING of some keys in a set: the last key is the lowest bit.
fn indicator(keys: &[usize], set: &[usize]) -> Expr {
    let bits = keys.iter().fold(0, |bits, key| 2 * bits + i32::from(!set.contains(key)));
    Expr::Literal(Datum::Int4(bits), INT4)
}

/// What is grouped: the keys and arguments, without repetition.
struct Grouped {
    keys: usize,
    /// The keys and the arguments of aggregates of all rows.
    plain: Vec<BoundExpr>,
    /// The arguments of aggregates with DISTINCT.
    distinct: Vec<BoundExpr>,
}

enum Place {
    Plain(usize),
    Distinct(usize),
}

impl Grouped {
    /// Where an argument is, even if it is a key as well.
    fn argument(&mut self, arg: &BoundExpr) -> usize {
        let mut arguments = self.plain.split_off(self.keys);
        let place = self.keys + position(&mut arguments, arg);
        self.plain.extend(arguments);
        place
    }

    fn names(&self, input: &Rel) -> Vec<Column> {
        let all = self.plain.iter().chain(&self.distinct).enumerate();
        all.map(|(i, scalar)| {
            let kind = if i < self.keys { "key" } else { "arg" };
            scalar.column(&name_of(input, &scalar.expr, kind, i))
        })
        .collect()
    }

    /// The rows to be grouped, and what they refer to. Each distinct value of an argument with DISTINCT is a row
    /// of its own, which has NULL for the other arguments: no aggregate sees it there.
    fn rows(self, binder: &mut Binder<'_>, input: Rel) -> (Rel, Option<(LocalId, Rel)>) {
        let exprs =
            |scalars: &[BoundExpr]| scalars.iter().map(|s| s.expr.clone()).collect::<Vec<_>>();
        let mut columns = self.names(&input);
        if self.distinct.is_empty() {
            return (input.map(exprs(&self.plain), columns), None);
        }
        columns[self.keys..].iter_mut().for_each(|column| column.nullable = true);
        let nulls = |columns: &[Column]| {
            let null = |column: &Column| Expr::Literal(Datum::Null, column.ty);
            columns.iter().map(null).collect::<Vec<_>>()
        };
        let (get, shared) = binder.share("rows", input);
        let plain = self.plain.len();
        let outputs = [exprs(&self.plain), nulls(&columns[plain..])].concat();
        let mut inputs = vec![get.clone().map(outputs, columns.clone())];
        for (i, argument) in self.distinct.iter().enumerate() {
            let column = plain + i;
            let own: Vec<Column> =
                columns[..self.keys].iter().chain([&columns[column]]).cloned().collect();
            let is_null = Expr::IsNull(Box::new(argument.expr.clone()));
            let values = [exprs(&self.plain[..self.keys]), vec![argument.expr.clone()]].concat();
            let present = vec![Predicate::Test(Expr::Not(Box::new(is_null)))];
            let values = get.clone().filter(present).map(values, own).distinct();
            let mut outputs: Vec<Expr> = (0..self.keys).map(Expr::Column).collect();
            outputs.extend(nulls(&columns[self.keys..]));
            outputs[column] = Expr::Column(self.keys);
            inputs.push(values.map(outputs, columns.clone()));
        }
        (Rel::union(inputs, columns), shared)
    }
}

/// Where an expression is among others; behind them if it is new.
fn position(known: &mut Vec<BoundExpr>, scalar: &BoundExpr) -> usize {
    let found = known.iter().position(|other| other.expr == scalar.expr);
    found.unwrap_or_else(|| {
        known.push(scalar.clone());
        known.len() - 1
    })
}

fn present() -> BoundExpr {
    BoundExpr { nullable: false, ..BoundExpr::boolean(Expr::true_literal()) }
}

/// The name of the column the expression is, else a made-up one.
fn name_of(input: &Rel, expr: &Expr, kind: &str, position: usize) -> String {
    match expr.as_column() {
        Some(column) => input.columns[column].name.clone(),
        None => format!("{kind}{}", position + 1),
    }
}

fn key_of(expr: &Expr, keys: &[BoundExpr]) -> Option<usize> {
    keys.iter().position(|key| key.expr == *expr)
}

/// Collects the columns used outside of grouping keys.
fn ungrouped(expr: &Expr, keys: &[BoundExpr], used: &mut BTreeSet<usize>) {
    if key_of(expr, keys).is_some() {
        return;
    }
    if let Expr::Column(column) = expr {
        used.insert(*column);
    }
    for child in expr.children() {
        ungrouped(child, keys, used);
    }
}

/// An output over the groups.
fn regroup(expr: &Expr, keys: &[BoundExpr]) -> Expr {
    match key_of(expr, keys) {
        Some(key) => Expr::Column(key),
        None => regroup_within(expr, keys),
    }
}

/// A part of an output or a condition: a constant in it is no key, and stays what it is where a key is NULL.
fn regroup_within(expr: &Expr, keys: &[BoundExpr]) -> Expr {
    match expr {
        Expr::Literal(..) => expr.clone(),
        _ if key_of(expr, keys).is_some() => regroup(expr, keys),
        Expr::Column(column) if *column >= SUBQUERIES => expr.clone(),
        Expr::Column(column) => Expr::Column(keys.len() + column.saturating_sub(AGGREGATES)),
        other => expr::map_children(other, &mut |child| regroup_within(child, keys)),
    }
}

fn regroup_predicate(predicate: &Predicate, keys: &[BoundExpr]) -> Predicate {
    let side = |side: &Typed| Typed { expr: regroup_within(&side.expr, keys), ty: side.ty };
    match predicate {
        // The whole comparison may itself be a grouping key.
        Predicate::Equal { .. } if key_of(&predicate.to_expr(), keys).is_some() => {
            Predicate::Test(regroup(&predicate.to_expr(), keys))
        }
        Predicate::Equal { left, right, func } => {
            Predicate::Equal { left: side(left), right: side(right), func: *func }
        }
        Predicate::Test(expr) => Predicate::Test(regroup_within(expr, keys)),
    }
}
