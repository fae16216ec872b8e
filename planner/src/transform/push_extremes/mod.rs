//! Pushes min or max over a recursion into its loop: shortest distances, without all the longer ones.
//!
//! ```sql
//! WITH RECURSIVE d(node, dist) AS (
//!     SELECT 0, 0 UNION SELECT e.dst, d.dist + 1 FROM d JOIN edges e ON e.src = d.node)
//! SELECT node, min(dist) FROM d GROUP BY node
//! ```
//!
//! becomes a loop that keeps, of each node, the least dist found so far. It ends on cyclic graphs, where
//! d itself has no end. What follows is written for min; max is the same with the order reversed.
//!
//! Let X be the recursion, v one of its columns and K all others, columns that serve nothing but
//! themselves left out. `d ⊑ c`: the value c is at least d, NULL being the greatest. The transform applies if
//!
//! 1. X is used outside of its step only below `Reduce`s that ask for `min` of an expression that does not
//!    fall as v rises, or for min, max, bool_and or bool_or of expressions of K, by keys of K; or below a
//!    DISTINCT of K. In between are projections, unions, joins with anything but X, and conditions that
//!    are *closed*: what holds for v holds for lesser values;
//! 2. the step is made of projections, joins with anything but X, unions, and closed conditions;
//! 3. the step's columns K do not depend on v, and its v is a function f of v that does not fall as v
//!    rises (`monotone` says which functions are known to be such);
//! 4. equal values of K have one form, those of v too, or they are numeric.
//!
//! Let R be all rows that PostgreSQL would derive, and M the least fixpoint of M = least by K of
//! (base ∪ step(M)).
//!
//! *Every row (k, c) of R is dominated: M has (k, m) with m ⊑ c.* By induction over the derivation of
//! (k, c). A row of the base is a candidate for M. Otherwise it was made by the step from a row (j, b) of R
//! and rows t of other things (at most one row of X: the step is linear). M has (j, a), a ⊑ b. With the same
//! t, (j, a) passes the same conditions: those on K do not see the difference, the others are closed.
//! It yields (k, f(a)) with the same k, and f(a) ⊑ f(b) = c. That is a candidate for M.
//! *Every row of M is in R*: all candidates are derived as in R. So M is the least of R by K. By the same argument
//! every row that a use (1) makes from R is dominated by one it makes from M, and what is asked for there
//! neither sees how many rows there are nor any but the least. Nor does it matter how often a row is derived:
//! UNION and UNION ALL are alike, and rows that the step adds independently of X are like those of the base.
//!
//! *The loop ends if PostgreSQL does*: after i rounds it has the least by K of what is derived in i steps, so
//! once R is complete nothing changes. It often ends although R is infinite; PostgreSQL would not, so
//! there is nothing to differ from. It does not end on a cycle along which v falls for ever, where there is no
//! least value. If the step only ever adds to v (`adds`), that is noticed: a value that becomes better in round
//! i was made from one that became better in round i - 1, and so on; if two of these have the same key, the later
//! is the earlier plus something negative, and the same steps can be taken from it again, for ever. So there are
//! no more such rounds than keys.
//!
//! Numerics may be equal without being identical (1.0 and 1.00). Of these the loop keeps the one of
//! least scale. Additions, casts and roundings keep the order by value and then by scale, so the argument above
//! holds for it as well, and the loop does not alternate between equal values. Which of them min() is
//! in PostgreSQL depends on the order of rows.
//!
//! What differs: an expression that fails only for values that are dominated (an overflow, say) is not evaluated
//! and raises no error. Idempotent.

mod monotone;
mod uses;

use crate::error::PlanError;
use crate::ir::{Input, Node, Query, Rel};
use monotone::Trend;
use plan::expr::Expr;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{Local, LocalId, Preference, Recursion};
use std::collections::{BTreeMap, BTreeSet};
use uses::{column_is_never_null, demanded, origins, Flow, Place, Uses};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    let mut pusher = Pusher { inputs: &query.inputs, locals: query.locals };
    let root = pusher.push(query.root);
    let locals = pusher.locals;
    Ok(Query { inputs: query.inputs, locals, root })
}

struct Pusher<'q> {
    inputs: &'q [Input],
    locals: Vec<Local>,
}

/// A recursion `base UNION [ALL] step`, and the query over it.
struct Parts<'r> {
    id: LocalId,
    base: &'r Rel,
    step: &'r Rel,
    body: &'r Rel,
}

/// What is to be kept of a recursion.
#[derive(Clone)]
struct Aim {
    value: usize,
    least: bool,
    /// Whether the step does nothing but add to it.
    adds: bool,
    /// The columns that serve more than themselves.
    live: BTreeSet<usize>,
}

impl Pusher<'_> {
    fn push(&mut self, rel: Rel) -> Rel {
        let rel = rel.map_children(&mut |child| self.push(child));
        let Node::LetRec { id, all, form: None, base, step, body } = rel.node else { return rel };
        let columns = rel.columns;
        match self.find_aim(&Parts { id, base: &base, step: &step, body: &body }) {
            Ok(Some(aim)) => self.keep_best(id, all, (*base, *step, *body), &aim),
            found => {
                if let (Err(note), Some(local)) = (found, self.locals.get_mut(id.0)) {
                    local.note = Some(note);
                }
                Rel { columns, node: Node::LetRec { id, all, form: None, base, step, body } }
            }
        }
    }

    /// The value of which only the best is needed, or, if an aggregate asks for one but more is needed, why.
    fn find_aim(&self, parts: &Parts) -> Result<Option<Aim>, String> {
        let mut note = None;
        for value in 0..parts.base.arity() {
            for least in [true, false] {
                match self.try_aim(parts, value, least) {
                    Ok(aim) => return Ok(Some(aim)),
                    Err(None) => {}
                    Err(Some(why)) => {
                        let name = &parts.base.columns[value].name;
                        let func = if least { "min" } else { "max" };
                        note.get_or_insert(format!(
                            "{func}({name}) stays outside of the loop, because {why}"
                        ));
                    }
                }
            }
        }
        note.map_or(Ok(None), Err)
    }

    /// Whether the best of one column is all that is needed; if not, but it is asked for, why.
    fn try_aim(&self, parts: &Parts, value: usize, least: bool) -> Result<Aim, Option<String>> {
        let arity = parts.base.arity();
        let trends = (0..arity).map(|c| if c == value { Trend::Shifts } else { Trend::Free });
        let known = Flow::Rows(trends.collect());
        let mut uses = Uses {
            place: Place::Body,
            least,
            is_never_null: self.is_never_null(parts, value),
            locals: BTreeMap::from([(parts.id, known.clone())]),
            is_asked_for: false,
            refusal: None,
        };
        let in_body = uses.flow(parts.body);
        if !uses.is_asked_for {
            return Err(None);
        }
        let refuse = |why: &str| Err(Some(why.to_owned()));
        if let Some(why) = uses.refusal {
            return refuse(why);
        }
        if in_body != Flow::Free {
            return refuse("other uses need all rows");
        }
        let live = live_columns(parts, value);
        if let Some(column) = live.iter().find(|column| !self.has_one_form(parts, **column, value))
        {
            let name = &parts.base.columns[*column].name;
            return Err(Some(format!("equal values of column {name} may differ in form")));
        }
        uses.place = Place::Step;
        uses.locals = BTreeMap::from([(parts.id, known)]);
        let in_step = uses.flow(parts.step);
        if let Some(why) = uses.refusal {
            return refuse(why);
        }
        let Flow::Rows(trends) = in_step else {
            return Ok(Aim { value, least, adds: false, live });
        };
        match trends[value] {
            Trend::Free | Trend::Shifts | Trend::Rises => {}
            Trend::Falls => return refuse("the step may turn better values into worse ones"),
            Trend::Unknown(why) => return refuse(why),
        }
        if live.iter().any(|&column| column != value && trends[column] != Trend::Free) {
            return refuse("other columns of the step depend on it");
        }
        // Adding to NaN changes nothing, and it is the greatest numeric.
        let may_be_lost = !least && !parts.base.columns[value].ty.is_canonical();
        let adds = trends[value] == Trend::Shifts && !may_be_lost;
        Ok(Aim { value, least, adds, live })
    }

    fn is_never_null(&self, parts: &Parts, value: usize) -> bool {
        let assumed = (parts.id, value);
        [parts.base, parts.step]
            .into_iter()
            .all(|part| column_is_never_null(part, value, assumed, self.inputs))
    }

    fn has_one_form(&self, parts: &Parts, column: usize, value: usize) -> bool {
        let ty = parts.base.columns[column].ty;
        ty.is_canonical() || (column == value && ty == Type::Scalar(Scalar::Numeric))
    }

    /// The recursion in its new form, without the columns that serve nothing.
    fn keep_best(
        &mut self,
        id: LocalId,
        all: bool,
        (base, step, body): (Rel, Rel, Rel),
        aim: &Aim,
    ) -> Rel {
        let live: Vec<usize> = aim.live.iter().copied().collect();
        let rank = |column: usize| aim.live.range(..column).count();
        let ty = base.columns[aim.value].ty;
        let preference = if aim.least { Preference::Least(ty) } else { Preference::Greatest(ty) };
        let value = rank(aim.value);
        let key: Vec<usize> = (0..live.len()).filter(|column| *column != value).collect();
        let note = "nothing else is asked for, and the step is monotone".to_owned();
        if let Some(local) = self.locals.get_mut(id.0) {
            local.columns = live.iter().filter_map(|&c| local.columns.get(c).cloned()).collect();
            local.note = Some(note);
        }
        let body = drop_reduces(narrow(body, id, &live), id, &key);
        let step = narrow(step, id, &live).project(&live);
        let columns = body.columns.clone();
        let form = Some(Recursion::FixpointExtreme { key, value, preference, adds: aim.adds });
        let (base, step, body) = (Box::new(base.project(&live)), Box::new(step), Box::new(body));
        Rel { columns, node: Node::LetRec { id, all, form, base, step, body } }
    }
}

/// The columns that the query needs, directly or for columns that it needs.
fn live_columns(parts: &Parts, value: usize) -> BTreeSet<usize> {
    let all = (0..parts.body.arity()).collect();
    let mut live = demanded(parts.body, &all, parts.id);
    live.insert(value);
    loop {
        let more = &live | &demanded(parts.step, &live, parts.id);
        if more == live {
            return live;
        }
        live = more;
    }
}

/// References to a local that has lost columns; in place of those nobody reads there are NULLs.
fn narrow(rel: Rel, id: LocalId, live: &[usize]) -> Rel {
    if !matches!(rel.node, Node::Get(other) if other == id) || live.len() == rel.arity() {
        return rel.map_children(&mut |child| narrow(child, id, live));
    }
    let output = |(column, description): (usize, &Column)| {
        let position = live.iter().position(|known| *known == column);
        position.map_or(Expr::Literal(Datum::Null, description.ty), Expr::Column)
    };
    let outputs = rel.columns.iter().enumerate().map(output).collect();
    let columns = live.iter().map(|&column| rel.columns[column].clone()).collect();
    Rel { columns, node: Node::Get(id) }.map(outputs, rel.columns)
}

/// Puts projections in place of groupings by a key of which there is one row each.
fn drop_reduces(rel: Rel, id: LocalId, unique: &[usize]) -> Rel {
    let rel = rel.map_children(&mut |child| drop_reduces(child, id, unique));
    let columns = rel.columns;
    match rel.node {
        Node::Reduce { input, key, aggregates } if has_all(&input, &key, id, unique) => {
            let outputs = key.into_iter().map(Expr::Column);
            // What is asked for are aggregates of which one row's is its own value.
            let outputs = outputs.chain(aggregates.into_iter().filter_map(|a| a.arg)).collect();
            input.map(outputs, columns)
        }
        node => Rel { columns, node },
    }
}

/// Whether a grouping by `key` has one row of the local in each group.
fn has_all(input: &Rel, key: &[usize], id: LocalId, unique: &[usize]) -> bool {
    let Some(origins) = origins(input, id) else { return false };
    // Without a key there is a group even if there are no rows.
    !key.is_empty() && unique.iter().all(|column| key.iter().any(|&k| origins[k] == Some(*column)))
}
