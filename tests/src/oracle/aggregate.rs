//! Random calls of aggregates.

use super::draws::Draws;
use super::expression::{expression, predicate, Field};
use super::feature::Feature;
use super::types::Type;

/// A call that FILTER or OVER may follow.
pub struct Call {
    pub text: String,
    kind: Type,
    is_fraction: bool,
}

impl Call {
    pub fn new(text: String, kind: Type) -> Call {
        Call { text, kind, is_fraction: false }
    }

    /// One whose result is a float with a fraction that binary digits do not end.
    pub fn fraction(text: String) -> Call {
        Call { text, kind: Type::Float8, is_fraction: true }
    }

    /// The call as an expression, and its type. Fractions are rounded to decimal digits: sums of them in other
    /// queries would depend on the order of addition.
    pub fn finish(self) -> (String, Type) {
        match self.is_fraction {
            true => (format!("round(({})::numeric, 6)", self.text), Type::Numeric),
            false => (self.text, self.kind),
        }
    }
}

/// An aggregate, now and then with DISTINCT or FILTER.
pub fn aggregate(dice: &mut Draws, scope: &[Field]) -> (String, Type) {
    let mut call = random_call(dice, scope);
    if !call.text.contains("(*)") && dice.takes(20, Feature::AggregateDistinct) {
        call.text = call.text.replacen('(', "(DISTINCT ", 1);
    }
    if dice.takes(15, Feature::AggregateFilter) {
        call.text.push_str(&format!(" FILTER (WHERE {})", predicate(dice, scope, 1)));
    }
    call.finish()
}

pub fn random_call(dice: &mut Draws, scope: &[Field]) -> Call {
    use Feature::*;
    let kind = scope[dice.index(scope.len())].kind;
    let is_integer = matches!(kind, Type::Int2 | Type::Int4 | Type::Int8);
    let is_float = matches!(kind, Type::Float4 | Type::Float8);
    // Of floats PostgreSQL's own last digits depend on the order of the rows.
    let spreads = i64::from(is_integer || kind == Type::Numeric);
    let (adds, bits) = (i64::from(kind.is_number()), i64::from(is_integer));
    let orders = i64::from(kind.has_min());
    let rule = dice.rule(&[
        (8, CountRows),
        (8, Count),
        (4, BoolAnd),
        (4, BoolOr),
        (12 * adds, Sum),
        (8 * adds, Avg),
        (4 * bits, BitAnd),
        (4 * bits, BitOr),
        (4 * bits, BitXor),
        (4 * spreads, VarPop),
        (4 * spreads, Variance),
        (4 * spreads, StddevPop),
        (4 * spreads, Stddev),
        (8 * orders, Min),
        (8 * orders, Max),
        (2, RegrCount),
        (2, RegrAvgx),
    ]);
    let result = match rule {
        CountRows => return Call::new("count(*)".into(), Type::Int8),
        BoolAnd | BoolOr => {
            let text = format!("{}({})", rule.name(), predicate(dice, scope, 1));
            return Call::new(text, Type::Bool);
        }
        RegrCount => return Call::new(of_two(dice, scope, rule), Type::Int8),
        RegrAvgx => return Call::fraction(of_two(dice, scope, rule)),
        Avg if is_float => {
            return Call::fraction(format!("avg({})", expression(dice, scope, kind, 1)))
        }
        Count => Type::Int8,
        Sum => type_of_sum(kind),
        Avg | VarPop | Variance | StddevPop | Stddev => Type::Numeric,
        // min(varchar) is text.
        Min | Max if kind == Type::Varchar => Type::Text,
        _ => kind,
    };
    Call::new(format!("{}({})", rule.name(), expression(dice, scope, kind, 1)), result)
}

/// An aggregate of two arguments, of which PostgreSQL's sums are exact.
fn of_two(dice: &mut Draws, scope: &[Field], rule: Feature) -> String {
    let [y, x] =
        [(); 2].map(|()| format!("({})::double precision", expression(dice, scope, Type::Int4, 1)));
    format!("{}({y}, {x})", rule.name())
}

fn type_of_sum(kind: Type) -> Type {
    match kind {
        Type::Int2 | Type::Int4 => Type::Int8,
        Type::Int8 => Type::Numeric,
        other => other,
    }
}
