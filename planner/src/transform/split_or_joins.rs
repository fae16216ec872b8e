//! Splits a join of two inputs whose condition is an OR, without an equality that all its arms demand, into the union
//! of one join for each arm. Each of these finds its pairs by keys of its own; the join as written would look at all
//! pairs.
//!
//! No pair comes twice, because an arm leaves out the pairs that meet an earlier one: `a OR b` becomes `a`, and `b
//! AND NOT coalesce(a, false)`. Copies of a row make as many pairs as before. It is done if every arm has an equality
//! of both sides, or one with a constant.
//!
//! Errors: those parts of an arm that cannot fail may become keys or conditions on one side. An arm that may fail is
//! tested once more as a whole, for pairs of rows only and after the earlier arms, so for no pair for which
//! PostgreSQL does not test it. An arm that may fail and reads one side alone would be tested for rows that have no
//! partner: then nothing is done.
//!
//! An input that keeps state is shared by the arms. The sum over the arms is linear in each input where the join
//! was, so it is right inside a recursion. Idempotent.
//!
//! ```text
//! Join [a.x = b.x OR a.y = b.y]   becomes   Union
//!   Get a                                     Join [a.x = b.x]
//!   Get b                                       Get a
//!                                               Get b
//!                                             Join [NOT COALESCE(a.x = b.x, false)] AND [a.y = b.y]
//!                                               Get a
//!                                               Get b
//! ```

use super::factor_conditions::{as_predicate, conjuncts};
use super::inline_lets::is_stateless;
use super::push_filters;
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel};
use plan::expr::{self, Expr};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{Local, LocalId};

/// Each arm tests that no earlier one is met, so the text grows with the square.
const MAX_ARMS: usize = 32;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    let Query { inputs, locals, root } = query;
    let mut splitter = Splitter { locals };
    let root = splitter.split(root);
    Ok(Query { inputs, locals: splitter.locals, root })
}

struct Splitter {
    locals: Vec<Local>,
}

impl Splitter {
    fn split(&mut self, rel: Rel) -> Rel {
        let rel = rel.map_children(&mut |child| self.split(child));
        match rel.node {
            Node::Join { inputs, predicates } if inputs.len() == 2 => {
                self.split_join(rel.columns, inputs, predicates)
            }
            node => Rel { node, ..rel },
        }
    }

    fn split_join(
        &mut self,
        columns: Vec<plan::types::Column>,
        inputs: Vec<Rel>,
        predicates: Vec<Predicate>,
    ) -> Rel {
        let types: Vec<Type> = columns.iter().map(|column| column.ty).collect();
        let Some(arms) = arms(&predicates, &types, inputs[0].arity()) else {
            return Rel { columns, node: Node::Join { inputs, predicates } };
        };
        let mut lets = Vec::new();
        let inputs: Vec<Rel> =
            inputs.into_iter().map(|input| self.share(input, &mut lets)).collect();
        let mut branches = Vec::new();
        for predicates in arms {
            // There may be another OR.
            let join = self.split_join(columns.clone(), inputs.clone(), predicates);
            branches.push(push_filters::push_all(join));
        }
        let union = Rel::union(branches, columns);
        lets.into_iter().rev().fold(union, |body, (id, value)| {
            let columns = body.columns.clone();
            let node = Node::Let { id, value: Box::new(value), body: Box::new(body) };
            Rel { columns, node }
        })
    }

    /// A relation to be used several times.
    fn share(&mut self, rel: Rel, lets: &mut Vec<(LocalId, Rel)>) -> Rel {
        if is_stateless(&rel) {
            return rel;
        }
        let id = LocalId(self.locals.len());
        let columns = rel.columns.clone();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        self.locals.push(Local { name: "joined".to_owned(), columns: names, note: None });
        lets.push((id, rel));
        Rel { columns, node: Node::Get(id) }
    }
}

/// The conditions of a join of two inputs, the first of which has `split` columns, as those of several joins that
/// have no pair in common and all pairs together. `None` if nothing is gained.
pub(crate) fn arms(
    predicates: &[Predicate],
    types: &[Type],
    split: usize,
) -> Option<Vec<Vec<Predicate>>> {
    if predicates.iter().any(|predicate| predicate.links(split).is_some()) {
        return None;
    }
    predicates.iter().enumerate().find_map(|(position, predicate)| {
        let Predicate::Test(Expr::Or(arms)) = predicate else { return None };
        let is_worth = (2..=MAX_ARMS).contains(&arms.len())
            && arms.iter().all(|arm| is_narrow(arm, types, split) && is_safe(arm, split));
        is_worth.then(|| {
            let of_arm = |number: usize| {
                let mut own = predicates[..position].to_vec();
                // A pair that meets an earlier arm is not tested for what may fail in this one.
                own.extend(arms[..number].iter().map(missed));
                own.extend(conditions(&arms[number], types));
                own.extend_from_slice(&predicates[position + 1..]);
                own
            };
            (0..arms.len()).map(of_arm).collect()
        })
    })
}

/// What an arm asks of a pair, apart where it cannot fail.
fn conditions(arm: &Expr, types: &[Type]) -> Vec<Predicate> {
    let parts = conjuncts(arm).into_iter().filter(|part| !expr::may_fail(part));
    let mut own: Vec<Predicate> = parts.map(|part| as_predicate(part, types)).collect();
    if expr::may_fail(arm) {
        own.push(Predicate::Test(arm.clone()));
    }
    own
}

/// The condition is false or NULL.
fn missed(arm: &Expr) -> Predicate {
    let no = Expr::Literal(Datum::Bool(false), Scalar::Bool.into());
    Predicate::Test(Expr::Not(Box::new(Expr::Coalesce(vec![arm.clone(), no]))))
}

/// Whether few of all pairs are looked at for the arm: those equal in something, or those of a side's rows that have
/// some value.
fn is_narrow(arm: &Expr, types: &[Type], split: usize) -> bool {
    conditions(arm, types).iter().any(|predicate| {
        let Predicate::Equal { left, right, .. } = predicate else { return false };
        let is_constant = |side: &Expr| expr::columns_of(side).is_empty();
        predicate.links(split).is_some() || is_constant(&left.expr) != is_constant(&right.expr)
    })
}

/// Whether the arm is tested of pairs alone, or cannot fail.
fn is_safe(arm: &Expr, split: usize) -> bool {
    let columns = expr::columns_of(arm);
    !expr::may_fail(arm)
        || columns.range(..split).next().is_some() && columns.range(split..).next().is_some()
}
