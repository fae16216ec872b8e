//! Decides for each recursion between the fixpoint and the working table.
//!
//! PostgreSQL gives the recursive term only the rows of the previous round. A fixpoint over all rows
//! found so far yields the same if the step is linear in its self-reference: made of projections,
//! filters, joins with other things, and unions. A step that also adds rows independent of the
//! self-reference adds them again in every round, which changes nothing under UNION, but is not what
//! a fixpoint does under UNION ALL. When in doubt the working table, which is the definition. A recursion
//! that has a form already keeps it; of one that is not PostgreSQL's, but a least fixpoint, the step has to be monotone
//! (see `sql/bind/mutual.rs`). Idempotent.
//!
//! ```text
//! LetRec r UNION           becomes   LetRec r UNION FixpointDistinct
//!   base                               base
//!     Map (src AS x)                     Map (src AS x)
//!   step                               step
//!     Join [x = src]                     Join [x = src]
//!       Get r (x)                          Get r (x)
//!       Source edges                       Source edges
//! ```

use super::monotone_steps;
use crate::error::PlanError;
use crate::ir::{Node, Preserved, Query, Rel};
use crate::sql::{unsupported, unsupported_hint};
use plan::expr::Expr;
use plan::{Local, LocalId, Recursion};
use std::collections::BTreeMap;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    let mut chooser = Chooser { locals: query.locals, error: None };
    let root = chooser.choose(query.root);
    match chooser.error {
        None => Ok(Query { inputs: query.inputs, locals: chooser.locals, root }),
        Some(error) => Err(error),
    }
}

/// How a relation depends on the self-reference.
#[derive(Clone, Debug, PartialEq)]
enum Dependence {
    /// Not at all.
    Free,
    /// It is the sum of what it is for each row alone.
    Linear,
    /// Linear, plus rows that do not depend on it.
    Affine,
    /// In another way, named.
    Other(&'static str),
}

use Dependence::{Affine, Free, Linear, Other};

struct Chooser {
    locals: Vec<Local>,
    error: Option<PlanError>,
}

impl Chooser {
    fn choose(&mut self, rel: Rel) -> Rel {
        let rel = rel.map_children(&mut |child| self.choose(child));
        if let Node::LetRec { id, form: Some(Recursion::LeastFixpoint), base, step, .. } = &rel.node
        {
            let known = &mut vec![*id];
            if let Some(why) =
                monotone_steps::obstacle(base, known).or(monotone_steps::obstacle(step, known))
            {
                self.refuse_circle(*id, why);
            }
        }
        let Node::LetRec { id, all, form: None, base, step, body } = rel.node else { return rel };
        let dependence = dependence(&step, &mut BTreeMap::from([(id, Linear)]));
        let (form, note) = form(all, &dependence, &base);
        if matches!(form, Recursion::WorkingTableAll | Recursion::WorkingTableDistinct { .. })
            && aggregates_to_one_row(&step, &mut vec![id])
        {
            let what = "an aggregate without GROUP BY over the recursive reference is";
            self.error.get_or_insert(unsupported(what));
        }
        if let Some(local) = self.locals.get_mut(id.0) {
            // An earlier transform may have said why it did nothing.
            local.note = Some(match local.note.take() {
                Some(before) => format!("{note}; {before}"),
                None => note,
            });
        }
        let node = Node::LetRec { id, all, form: Some(form), base, step, body };
        Rel { columns: rel.columns, node }
    }

    fn refuse_circle(&mut self, id: LocalId, why: &str) {
        let name = self.locals.get(id.0).map_or("", |local| &local.name);
        let what = format!("{why} over a recursive reference to {name} is");
        self.error.get_or_insert(unsupported_hint(
            what,
            "What is defined by itself may only grow when rows are added: compute this in another query, over the recursion.",
        ));
    }
}

fn form(all: bool, dependence: &Dependence, base: &Rel) -> (Recursion, String) {
    let working_table = || {
        if all {
            return Recursion::WorkingTableAll;
        }
        let key = base.columns.iter().enumerate();
        let key = key.map(|(i, column)| Expr::Column(i).key_form(column.ty)).collect();
        Recursion::WorkingTableDistinct { key }
    };
    let (form, why) = match dependence {
        Other(why) => (working_table(), *why),
        Affine if all => (working_table(), "the step adds rows independent of the self-reference"),
        _ if all => (Recursion::FixpointAll, "the step is linear"),
        _ if !base.is_canonical() => {
            (working_table(), "equal values of a column may differ in form")
        }
        _ => (Recursion::FixpointDistinct, "the step is linear"),
    };
    (form, why.to_owned())
}

/// How `rel` depends on the locals known to depend on the self-reference.
fn dependence(rel: &Rel, known: &mut BTreeMap<LocalId, Dependence>) -> Dependence {
    match &rel.node {
        Node::Constant { .. } | Node::Source(_) => Free,
        Node::Get(id) => known.get(id).cloned().unwrap_or(Free),
        Node::Map { input, .. }
        | Node::Filter { input, .. }
        | Node::TableFunction { input, .. }
        | Node::Fence { input, .. }
        | Node::Repeat { input } => dependence(input, known),
        Node::Distinct { input } => nonlinear(input, known, "DISTINCT over the self-reference"),
        Node::Reduce { input, .. } => nonlinear(input, known, "GROUP BY over the self-reference"),
        // The binder refuses it.
        Node::Temporal { input, .. } => {
            nonlinear(input, known, "a condition on the present time over the self-reference")
        }
        Node::Partition { input, .. } => {
            nonlinear(input, known, "LIMIT or a window function over the self-reference")
        }
        Node::Join { inputs, .. } => joined(inputs, known),
        Node::OuterJoin { preserved, left, right, .. } => {
            match (preserved, dependence(left, known), dependence(right, known)) {
                (_, Free, Free) => Free,
                // What becomes of a row does not depend on the others.
                (Preserved::Left, left, Free) => left,
                _ => Other("the self-reference decides which rows have no partner"),
            }
        }
        Node::AntiJoin { left, right, .. } => {
            match (dependence(left, known), dependence(right, known)) {
                (left, Free) => left,
                _ => Other("the self-reference decides which rows have no partner"),
            }
        }
        Node::Apply(_) => Other("a subquery over the self-reference"),
        Node::Union { inputs } => {
            let parts = inputs.iter().map(|input| dependence(input, known));
            parts.reduce(add).unwrap_or(Free)
        }
        Node::Let { id, value, body } => {
            let value = dependence(value, known);
            known.insert(*id, value);
            dependence(body, known)
        }
        Node::LetRec { base, step, body, .. } => {
            let nested = [base, step].into_iter().any(|part| dependence(part, known) != Free);
            match (nested, dependence(body, known)) {
                (true, _) => Other("another recursion over the self-reference"),
                (false, body) => body,
            }
        }
    }
}

fn joined(inputs: &[Rel], known: &mut BTreeMap<LocalId, Dependence>) -> Dependence {
    let parts: Vec<Dependence> = inputs.iter().map(|input| dependence(input, known)).collect();
    let mut dependent = parts.into_iter().filter(|part| *part != Free);
    match (dependent.next(), dependent.next()) {
        (None, _) => Free,
        (Some(one), None) => one,
        (Some(_), Some(_)) => Other("the self-reference is joined with itself"),
    }
}

fn nonlinear(
    input: &Rel,
    known: &mut BTreeMap<LocalId, Dependence>,
    why: &'static str,
) -> Dependence {
    match dependence(input, known) {
        Free => Free,
        Linear | Affine => Other(why),
        other => other,
    }
}

fn add(a: Dependence, b: Dependence) -> Dependence {
    match (a, b) {
        (Other(why), _) | (_, Other(why)) => Other(why),
        (Free, Free) => Free,
        (Linear, Linear) => Linear,
        _ => Affine,
    }
}

/// Whether some aggregate without key depends on the self-reference. It yields a row even when the
/// working table is empty, where PostgreSQL has already stopped.
fn aggregates_to_one_row(rel: &Rel, dependent: &mut Vec<LocalId>) -> bool {
    if let Node::Let { id, value, .. } = &rel.node {
        if depends(value, dependent) {
            dependent.push(*id);
        }
    }
    if let Node::LetRec { id, base, step, .. } = &rel.node {
        if depends(base, dependent) || depends(step, dependent) {
            dependent.push(*id);
        }
    }
    let own = match &rel.node {
        Node::Reduce { input, key, .. } => key.is_empty() && depends(input, dependent),
        _ => false,
    };
    own || rel.children().into_iter().any(|child| aggregates_to_one_row(child, dependent))
}

pub(super) fn depends(rel: &Rel, dependent: &[LocalId]) -> bool {
    dependent.iter().any(|id| rel.count_gets(*id) > 0)
}
