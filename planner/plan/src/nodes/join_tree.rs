//! How the inputs of a delta join hang together.

use crate::expr::{self, columns_of, Expr, Mfp};
use crate::nodes::{Plan, ViewPlan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A tree of inputs, each of which but the first is tied to an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinTree {
    /// The number of columns of each input.
    pub arities: Vec<usize>,
    /// What ties the inputs behind the first, in their order.
    pub links: Vec<Link>,
}

/// What ties an input to an earlier one: keys in key form, which never match when NULL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The number of the earlier input.
    pub earlier: usize,
    /// Over its columns.
    pub earlier_key: Vec<Expr>,
    /// Over those of the input itself.
    pub own_key: Vec<Expr>,
}

impl JoinTree {
    /// The different keys by which an input is looked up.
    pub fn keys(&self, input: usize) -> Vec<&[Expr]> {
        let mut keys: Vec<&[Expr]> = Vec::new();
        for (number, link) in (1..).zip(&self.links) {
            let key = match number == input {
                true => Some(link.own_key.as_slice()),
                false => (link.earlier == input).then_some(link.earlier_key.as_slice()),
            };
            keys.extend(key.filter(|key| !keys.contains(key)));
        }
        keys
    }

    /// All expressions that make keys of an input, to be changed.
    pub fn keys_mut(&mut self, input: usize) -> Vec<&mut Expr> {
        let mut keys = Vec::new();
        for (number, link) in (1..).zip(&mut self.links) {
            if number == input {
                keys.extend(&mut link.own_key);
            } else if link.earlier == input {
                keys.extend(&mut link.earlier_key);
            }
        }
        keys
    }

    /// Where the columns of an input begin if all are side by side.
    pub fn start(&self, input: usize) -> usize {
        self.arities[..input].iter().sum()
    }

    /// The same as joins of two, one input after the other.
    pub fn as_joins(&self, inputs: Vec<Plan>, closure: &Mfp) -> Plan {
        let mut inputs = inputs.into_iter();
        let mut joined = inputs.next().unwrap_or(Plan::Constant { arity: 0, rows: Vec::new() });
        // Of what is joined so far the columns, by their places if all are side by side.
        let mut columns: Vec<usize> = (0..self.arities.first().copied().unwrap_or(0)).collect();
        for ((number, link), right) in (1..).zip(&self.links).zip(inputs) {
            let place = |column: usize| columns.iter().position(|known| *known == column);
            let start = self.start(link.earlier);
            let earlier = |column: usize| place(start + column).unwrap_or(usize::MAX);
            let left_key = link.earlier_key.iter().map(|key| expr::renumber(key, &earlier));
            let left_key = left_key.collect();
            let own = self.start(number)..self.start(number) + self.arities[number];
            columns.extend(own);
            let closure = match number == self.links.len() {
                true => over(closure, &columns),
                false => {
                    let needed = self.needed_behind(number, closure);
                    let project = (0..columns.len()).filter(|at| needed.contains(&columns[*at]));
                    let (project, input_arity): (Vec<usize>, _) =
                        (project.collect(), columns.len());
                    columns = project.iter().map(|at| columns[*at]).collect();
                    Mfp { input_arity, project, ..Mfp::default() }
                }
            };
            joined = Plan::Join {
                left: Box::new(joined),
                right: Box::new(right),
                left_key,
                right_key: link.own_key.clone(),
                closure,
            };
        }
        joined
    }

    /// The columns that the closure reads and those that tie inputs behind one.
    fn needed_behind(&self, input: usize, closure: &Mfp) -> BTreeSet<usize> {
        let exprs = closure.maps.iter().chain(&closure.filter);
        let read = exprs.flat_map(columns_of).chain(closure.project.iter().copied());
        let ties = self.links[input..].iter().flat_map(|link| {
            let start = self.start(link.earlier);
            link.earlier_key.iter().flat_map(columns_of).map(move |column| start + column)
        });
        read.chain(ties).collect()
    }
}

impl ViewPlan {
    /// The plan with joins of two instead of delta joins, for who cannot render those.
    pub fn without_delta_joins(mut self) -> ViewPlan {
        join_by_twos(&mut self.root);
        self
    }
}

fn join_by_twos(plan: &mut Plan) {
    plan.children_mut().into_iter().for_each(join_by_twos);
    if let Plan::DeltaJoin { inputs, tree, closure } = plan {
        *plan = tree.as_joins(std::mem::take(inputs), closure);
    }
}

/// A closure over other columns: those that it reads are among them.
fn over(closure: &Mfp, columns: &[usize]) -> Mfp {
    let place = |column: usize| match column.checked_sub(closure.input_arity) {
        None => columns.iter().position(|known| *known == column).unwrap_or(usize::MAX),
        Some(map) => columns.len() + map,
    };
    let all = |exprs: &[Expr]| exprs.iter().map(|one| expr::renumber(one, &place)).collect();
    Mfp {
        input_arity: columns.len(),
        maps: all(&closure.maps),
        filter: all(&closure.filter),
        project: closure.project.iter().map(|column| place(*column)).collect(),
    }
}
