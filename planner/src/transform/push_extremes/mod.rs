//! Pushes min, max or the first row over a recursion into its loop: shortest distances, and trees of shortest paths,
//! without all the longer ones.
//!
//! ```sql
//! WITH RECURSIVE d(node, dist) AS (
//!     SELECT 0, 0 UNION SELECT e.dst, d.dist + 1 FROM d JOIN edges e ON e.src = d.node)
//! SELECT node, min(dist) FROM d GROUP BY node
//! ```
//!
//! becomes a loop that keeps, of each node, the least dist found so far. It ends on cyclic graphs, where
//! d itself has no end. So does
//!
//! ```sql
//! WITH RECURSIVE d(node, dist, pred) AS (
//!     SELECT 0, 0, NULL::int UNION SELECT e.dst, d.dist + 1, d.node FROM d JOIN edges e ON e.src = d.node)
//! SELECT DISTINCT ON (node) node, dist, pred FROM d ORDER BY node, dist, pred
//! ```
//!
//! of which it keeps the least dist, and among equal ones the least pred. What follows is written for the least; the
//! greatest is the same with the order reversed.
//!
//! Let X be the recursion, v one of its columns, W = w₁ … wₙ others (often none) and K all that remain, columns that
//! serve nothing but themselves left out. `d ⊑ c`: the value c is at least d, NULL being the greatest. `(d, y) ⊑ (c, z)`,
//! the order that the query asks for: d before c, or d = c and y at or before z, each wᵢ in a direction of its own. The
//! transform applies if
//!
//! 1. X is used outside of its step only below `Reduce`s that ask for `min` of an expression that does not
//!    fall as v rises, or for min, max, bool_and or bool_or of expressions of K, by keys of K; or below a
//!    DISTINCT of K; or for the first row of each partition by expressions of K, in an order in which v comes first,
//!    then W as far as the rows have it, and expressions of K anywhere, where no column depends on v or W that does not
//!    follow from the order. In between are projections, unions, joins with anything but X, and conditions
//!    that are *closed*: what holds for v holds for lesser values, and W is not asked about;
//! 2. the step is made of projections, joins with anything but X, unions, and closed conditions;
//! 3. the step's columns K do not depend on v and W, and its v is a function f of v alone that does not fall as v
//!    rises (`monotone` says which functions are known to be such);
//! 4. the step's columns W do not depend on v and W; or w₁ … wⱼ are each made of that of X alone, the others do not
//!    depend on v and W, and all of f and these *rise*: they take their column as it is, or add to it, and then it is an
//!    integer or a date and never NULL;
//! 5. equal values of K and W have one form, those of v too, or v is numeric and there is no W.
//!
//! W is what a query sorts by behind v, as far as 1 and 4 allow; the other columns are K. So there may be none, and
//! then K alone says which rows are kept apart: that is right as well, they are only more.
//!
//! Let R be all rows that PostgreSQL would derive, and M the least fixpoint of M = least by K of
//! (base ∪ step(M)).
//!
//! *Every row (k, c, z) of R is dominated: M has (k, m, y) with (m, y) ⊑ (c, z).* By induction over the derivation of
//! (k, c, z). A row of the base is a candidate for M. Otherwise it was made by the step from a row (j, b, x') of R
//! and rows t of other things (at most one row of X: the step is linear). M has (j, a, x), (a, x) ⊑ (b, x'), so a ⊑ b.
//! With the same t, (j, a, x) passes the same conditions: those on K do not see the difference, the others are closed.
//! It yields (k, f(a), y) with the same k, and f(a) ⊑ f(b) = c. If W does not depend on v and W, y = z. Nothing more is
//! asked of f: that it may map different values to one (what is rounded, what is NULL) does no harm, as then y = z decides nothing.
//! If w₁ … wⱼ go along, f rises: where a is before b, f(a) is before c. Otherwise a = b and x is at or before x';
//! so w₁ … wⱼ of y are at or before those of z, as these rise, too, and behind them both are alike. Each time (f(a), y) ⊑ (c, z), and that
//! is a candidate for M.
//! *Every row of M is in R*: all candidates are derived as in R. So M is the least of R by K. By the same argument
//! every row that a use (1) makes from R is dominated by one it makes from M. Aggregates neither see how many rows
//! there are nor any but the least. A first row of R's is made from (k, c, z) and rows t, and the one made from M's
//! (k, m, y) and the same t is not behind it in the partition's order: what of that depends on v and W is the beginning of ⊑,
//! the rest is equal. So both are at one place. Then they are the same, as all that depends on v and W follows from
//! the order; and a partition whose order leaves columns of K open has, of the rows in front, the same to choose from.
//! Nor does it matter how often a row is derived: UNION and UNION ALL are alike, and rows that the step adds
//! independently of X are like those of the base.
//!
//! If the query wants NULL for the first of v's values, that is the least. f keeps this order, too: of the functions
//! known here NULL makes NULL, and whether another value does is up to t. But no condition is closed then, nor does min
//! ask for it. Where v is never NULL, it does not matter.
//!
//! *The loop ends if PostgreSQL does*: after i rounds it has the least by K of what is derived in i steps, so
//! once R is complete nothing changes. It often ends although R is infinite; PostgreSQL would not, so
//! there is nothing to differ from. It does not end on a cycle along which v falls for ever, where there is no
//! least value. If the step only ever adds to v (`adds`), that is noticed: a row that becomes better in round
//! i was made from one that became better in round i - 1, in v or in what goes along of W, for nothing else is seen
//! in what is made of it; and so on. If two of these have the same key, the later
//! is the earlier plus something negative (if NULL is not the best, and adding to it therefore no end), and the same steps can be taken from it again, for ever. So there are
//! no more such rounds than keys, and one.
//!
//! Numerics may be equal without being identical (1.0 and 1.00). Of these the loop keeps the one of
//! least scale. Additions, casts and roundings keep the order by value and then by scale, so the argument above
//! holds for it as well, and the loop does not alternate between equal values. Which of them min() is
//! in PostgreSQL depends on the order of rows. With W it might alternate: on a cycle of length 0 two rows may each be made
//! of the other for the sake of W, and hand on two scales for ever.
//!
//! What differs: an expression that fails only for values that are dominated (an overflow, say) is not evaluated
//! and raises no error. Idempotent.

mod monotone;
mod uses;

use crate::error::PlanError;
use crate::ir::{Input, Node, Query, Rel};
use monotone::Trend;
use plan::expr::Expr;
use plan::partition::SortKey;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{Local, LocalId, Recursion};
use std::collections::{BTreeMap, BTreeSet};
use uses::{column_is_never_null, demanded, is_first_row, orders, origins};
use uses::{Asker, Flow, Place, Uses};

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
    /// Which rows are the best: by value, then by what decides among equal values.
    order: Vec<SortKey>,
    /// Whether the step makes the value of the value.
    is_fed_back: bool,
    /// Whether it does nothing but add to it.
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

    /// The rows of which only the best are needed, or, if something asks for these but more is needed, why.
    fn find_aim(&self, parts: &Parts) -> Result<Option<Aim>, String> {
        let mut note = None;
        for (first, before, behind) in self.candidates(parts) {
            match self.try_aim(parts, &[first]) {
                // A value that does not follow from itself is for deciding among others.
                Ok(aim) if !aim.is_fed_back && before + behind.len() > 0 => {}
                Ok(aim) => return Ok(Some(self.decide_ties(parts, aim, &behind))),
                Err(None) => {}
                Err(Some(why)) => {
                    note.get_or_insert(why);
                }
            }
        }
        note.map_or(Ok(None), Err)
    }

    /// Each column as value, in both directions, with what first rows are sorted by: how many columns before it, and
    /// which ones behind.
    fn candidates(&self, parts: &Parts) -> Vec<(SortKey, usize, Vec<SortKey>)> {
        let asked = orders(parts.body, parts.id);
        let pairs = (0..parts.base.arity()).flat_map(|value| [(value, false), (value, true)]);
        let mut candidates: Vec<_> = pairs
            .map(|(value, descending)| {
                let ty = parts.base.columns[value].ty;
                let first = SortKey { descending, ..SortKey::ascending(value, ty) };
                let is_it = |sort: &SortKey| sort.column == value && sort.descending == descending;
                let found = asked.iter().find_map(|order| {
                    let place = order.iter().position(is_it)?;
                    Some((place, order[place].nulls_first, order[place + 1..].to_vec()))
                });
                let Some((before, nulls_first, behind)) = found else { return (first, 0, vec![]) };
                let nulls_first = nulls_first && !self.is_never_null(parts, value);
                (SortKey { nulls_first, ..first }, before, behind)
            })
            .collect();
        candidates.sort_by_key(|(_, before, _)| *before);
        candidates
    }

    /// The same with as many as can be of the columns by which first rows are asked for: those are no keys, then.
    fn decide_ties(&self, parts: &Parts, mut aim: Aim, asked: &[SortKey]) -> Aim {
        for sort in asked {
            if aim.order.iter().all(|known| known.column != sort.column) {
                let order = [aim.order.as_slice(), &[*sort]].concat();
                aim = self.try_aim(parts, &order).unwrap_or(aim);
            }
        }
        aim
    }

    /// Whether the best rows in an order are all that is needed; if not, but they are asked for, why.
    fn try_aim(&self, parts: &Parts, order: &[SortKey]) -> Result<Aim, Option<String>> {
        let value = order[0].column;
        let known = Flow::Rows((0..parts.base.arity()).map(|c| trend_at_first(order, c)).collect());
        let mut uses = Uses {
            place: Place::Body,
            order,
            is_never_null: self.is_never_null(parts, value),
            locals: BTreeMap::from([(parts.id, known.clone())]),
            asker: None,
            refusal: None,
        };
        let in_body = uses.flow(parts.body);
        let Some(asker) = uses.asker else { return Err(None) };
        let refuse = |why: &str| Err(Some(outside(parts, &order[0], asker, why)));
        if let Some(why) = uses.refusal {
            return refuse(why);
        }
        if in_body != Flow::Free {
            return refuse("other uses need all rows");
        }
        let mut live = live_columns(parts, value);
        live.extend(order.iter().map(|sort| sort.column));
        if let Some(column) = live.iter().find(|column| !has_one_form(parts, **column, order)) {
            let name = &parts.base.columns[*column].name;
            return refuse(&format!("equal values of column {name} may differ in form"));
        }
        uses.place = Place::Step;
        uses.locals = BTreeMap::from([(parts.id, known)]);
        let in_step = uses.flow(parts.step);
        if let Some(why) = uses.refusal {
            return refuse(why);
        }
        let order = order.to_vec();
        let Flow::Rows(trends) = in_step else {
            return Ok(Aim { order, is_fed_back: false, adds: false, live });
        };
        let is_strict = |sort: &SortKey| adds_up(sort.ty) && self.is_never_null(parts, sort.column);
        if let Some(why) = step_refusal(&trends, &order, &live, &is_strict) {
            return refuse(why);
        }
        // Adding to NaN changes nothing, and it is the greatest numeric. Nor does adding to NULL.
        let is_nan_best = order[0].descending && !order[0].ty.is_canonical();
        let may_be_lost = is_nan_best || order[0].nulls_first;
        let adds = trends[value].is_sum(0) && !may_be_lost;
        Ok(Aim { order, is_fed_back: trends[value] != Trend::Free, adds, live })
    }

    fn is_never_null(&self, parts: &Parts, value: usize) -> bool {
        let assumed = (parts.id, value);
        [parts.base, parts.step]
            .into_iter()
            .all(|part| column_is_never_null(part, value, assumed, self.inputs))
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
        let ranked = |sort: &SortKey| SortKey { column: rank(sort.column), ..*sort };
        let order: Vec<SortKey> = aim.order.iter().map(ranked).collect();
        let is_key = |column: &usize| order.iter().all(|sort| sort.column != *column);
        let key: Vec<usize> = (0..live.len()).filter(is_key).collect();
        let note = "nothing else is asked for, and the step is monotone".to_owned();
        if let Some(local) = self.locals.get_mut(id.0) {
            local.columns = live.iter().filter_map(|&c| local.columns.get(c).cloned()).collect();
            local.note = Some(note);
        }
        let body = drop_groups(narrow(body, id, &live), id, &key);
        let step = narrow(step, id, &live).project(&live);
        let columns = body.columns.clone();
        let form = Some(Recursion::FixpointExtreme { key, order, adds: aim.adds });
        let (base, step, body) = (Box::new(base.project(&live)), Box::new(step), Box::new(body));
        Rel { columns, node: Node::LetRec { id, all, form, base, step, body } }
    }
}

/// That of a column of the recursion itself.
fn trend_at_first(order: &[SortKey], column: usize) -> Trend {
    let place = order.iter().position(|sort| sort.column == column);
    place.map_or(Trend::Free, Trend::Same)
}

/// What is said of a value that is asked for.
fn outside(parts: &Parts, sort: &SortKey, asker: Asker, why: &str) -> String {
    let name = &parts.base.columns[sort.column].name;
    let what = match asker {
        Asker::Aggregate if sort.descending => format!("max({name})"),
        Asker::Aggregate => format!("min({name})"),
        Asker::FirstRow => format!("the first row by {name}"),
    };
    format!("{what} stays outside of the loop, because {why}")
}

fn has_one_form(parts: &Parts, column: usize, order: &[SortKey]) -> bool {
    let ty = parts.base.columns[column].ty;
    let is_only_value = order.len() == 1 && order[0].column == column;
    ty.is_canonical() || (is_only_value && ty == Type::Scalar(Scalar::Numeric))
}

/// Why a step with the trends does not keep the order of rows, if it may not. `is_strict`: different values are different
/// once the same has been added to them.
fn step_refusal(
    trends: &[Trend],
    order: &[SortKey],
    live: &BTreeSet<usize>,
    is_strict: &dyn Fn(&SortKey) -> bool,
) -> Option<&'static str> {
    match trends[order[0].column].coarse() {
        Trend::Falls => return Some("the step may turn better values into worse ones"),
        Trend::Unknown(why) => return Some(why),
        _ => {}
    }
    let in_order = |column: usize| order.iter().any(|sort| sort.column == column);
    if live.iter().any(|&column| !in_order(column) && trends[column] != Trend::Free) {
        return Some("other columns of the step depend on it");
    }
    // As long as what is better stays better, what decides among equals may be made of itself.
    let mut goes_along = true;
    for (place, sort) in order.iter().enumerate() {
        let trend = trends[sort.column];
        goes_along &= match trend {
            Trend::Same(other) => other == place,
            _ => trend.is_sum(place) && is_strict(sort),
        };
        if place > 0 && trend != Trend::Free && !goes_along {
            return Some("the step needs what decides among equal values");
        }
    }
    None
}

/// Whether what is different is still different when the same is added, NULL aside.
fn adds_up(ty: Type) -> bool {
    matches!(ty, Type::Scalar(ty) if ty.is_integer() || ty == Scalar::Date)
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
fn drop_groups(rel: Rel, id: LocalId, unique: &[usize]) -> Rel {
    let rel = rel.map_children(&mut |child| drop_groups(child, id, unique));
    let columns = rel.columns;
    match rel.node {
        // Without a key there is a group even if there are no rows.
        Node::Reduce { input, key, aggregates }
            if !key.is_empty() && has_all(&input, &key, id, unique) =>
        {
            let outputs = key.into_iter().map(Expr::Column);
            // What is asked for are aggregates of which one row's is its own value.
            let outputs = outputs.chain(aggregates.into_iter().filter_map(|a| a.arg)).collect();
            input.map(outputs, columns)
        }
        Node::Partition { input, key, work, .. }
            if is_first_row(&work) && has_all(&input, &key, id, unique) =>
        {
            Rel { columns, node: input.node }
        }
        node => Rel { columns, node },
    }
}

/// Whether a grouping by `key` has one row of the local in each group.
fn has_all(input: &Rel, key: &[usize], id: LocalId, unique: &[usize]) -> bool {
    let Some(origins) = origins(input, id) else { return false };
    unique.iter().all(|column| key.iter().any(|&k| origins[k] == Some(*column)))
}
