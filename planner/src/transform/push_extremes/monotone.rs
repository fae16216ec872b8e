//! How expressions depend on the value of which only the least or greatest is kept, all else being fixed.
//!
//! NULL counts as worse than any value, for min and for max. A function that is strict in the value takes it to
//! NULL, which is in order; greatest and least ignore NULL, which is not, unless the value cannot be NULL.
//!
//! Functions of numerics are in order by value; among equal values by scale; and where they map different
//! values to one (rounding), its scale is fixed. See the header of `push_extremes` for what that is good for.
//!
//! Of the columns that decide among equal values nothing is known but where they are copied to.

use crate::ir::Predicate;
use plan::expr::{self, Expr};
use plan::func::{Arithmetic, Comparison, Func, Number};
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;

/// What becomes of an expression as the value rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    /// It does not depend on the value, nor on what decides among equal ones.
    Free,
    /// It is the column that is in this place of the order: the value is at 0, behind it is what decides.
    Same(usize),
    /// It is that column and something added to it that does not depend on any of these.
    Shifts(usize),
    /// It rises, or stays.
    Rises,
    /// It falls, or stays.
    Falls,
    /// Nothing is known, and why.
    Unknown(&'static str),
}

use Trend::{Falls, Free, Rises, Same, Shifts, Unknown};

/// How other things than sums depend on what decides.
const OTHERWISE: Trend = Unknown("what decides among equal values is used for something else");

impl Trend {
    /// Whether it is the column of that place, or that and something added to it.
    pub(super) fn is_sum(self, place: usize) -> bool {
        self.in_expression() == Shifts(place)
    }

    /// That of an expression of it.
    fn in_expression(self) -> Trend {
        match self {
            Same(place) => Shifts(place),
            other => other,
        }
    }

    fn reversed(self) -> Trend {
        match self.coarse() {
            Rises => Falls,
            Falls => Rises,
            other => other,
        }
    }

    /// The same without saying that it shifts.
    pub(super) fn coarse(self) -> Trend {
        match self.in_expression() {
            Shifts(0) => Rises,
            Shifts(_) => OTHERWISE,
            other => other,
        }
    }

    /// The trend of a sum.
    fn plus(self, other: Trend) -> Trend {
        match (self, other) {
            (Free, trend) | (trend, Free) => trend.in_expression(),
            (a, b) => match (a.coarse(), b.coarse()) {
                (Unknown(why), _) | (_, Unknown(why)) => Unknown(why),
                (a, b) if a == b => a,
                _ => Unknown("the step may turn better values into worse ones"),
            },
        }
    }

    /// The trend of what is sometimes the one and sometimes the other.
    pub(super) fn or(self, other: Trend) -> Trend {
        if self == other {
            return self;
        }
        match (self.in_expression(), other.in_expression()) {
            (a, b) if a == b => a,
            (a, b) => a.coarse().plus(b.coarse()),
        }
    }
}

const NOT_MONOTONE: Trend = Unknown("it is used in an expression that is not known to be monotone");

/// What is known of the columns that expressions read.
pub(super) struct Known<'a> {
    pub(super) trends: &'a [Trend],
    pub(super) columns: &'a [Column],
    /// Whether the value is never NULL.
    pub(super) is_never_null: bool,
}

impl Known<'_> {
    /// The trend of an expression.
    pub(super) fn trend(&self, expr: &Expr) -> Trend {
        if let Expr::Column(column) = expr {
            return self.trends[*column];
        }
        if !self.depends(expr) {
            return Free;
        }
        match expr {
            Expr::Call { func, args } => self.call(*func, args),
            _ => NOT_MONOTONE,
        }
    }

    /// Whether the expression reads the value, or what decides among equal ones.
    fn depends(&self, expr: &Expr) -> bool {
        expr::columns_of(expr).into_iter().any(|column| self.trends[column] != Free)
    }

    fn call(&self, func: Func, args: &[Expr]) -> Trend {
        let sum = || args.iter().map(|arg| self.trend(arg)).fold(Free, Trend::plus);
        let difference = || self.difference(args);
        match func {
            Func::Identity => sum(),
            Func::Cast(from, to) if from.is_integer() && is_exact(to) => sum(),
            // What is rounded need not shift.
            Func::Cast(Scalar::Numeric, to) if is_exact(to) => sum().coarse(),
            Func::Typmod { ty: Type::Scalar(Scalar::Numeric), .. } => sum().coarse(),
            Func::Arithmetic(Arithmetic::Add, number) if number.is_integer() => sum(),
            Func::Arithmetic(Arithmetic::Subtract, number) if number.is_integer() => difference(),
            Func::Arithmetic(Arithmetic::Add, Number::Numeric) => self.of_finite(args, sum()),
            Func::Arithmetic(Arithmetic::Subtract, Number::Numeric) => {
                self.of_finite(args, difference())
            }
            Func::Negate(number) if number.is_integer() || number == Number::Numeric => {
                sum().reversed()
            }
            // Added to an infinite date the value would be lost.
            Func::DatePlus if !self.is_date_that_depends(args) => sum().coarse(),
            Func::DatePlus => sum(),
            Func::DateMinus | Func::DateDifference => difference(),
            Func::Greatest(_) | Func::Least(_) => self.pick(args, sum()),
            _ => NOT_MONOTONE,
        }
    }

    /// The trend of the first argument minus the second.
    fn difference(&self, args: &[Expr]) -> Trend {
        match args {
            [left, right] => self.trend(left).plus(self.trend(right).reversed()),
            _ => NOT_MONOTONE,
        }
    }

    fn is_date_that_depends(&self, args: &[Expr]) -> bool {
        let types: Vec<Type> = self.columns.iter().map(|column| column.ty).collect();
        args.iter().any(|arg| self.depends(arg) && arg.ty(&types).base() == Scalar::Date)
    }

    /// Infinity and minus infinity make NaN, which is beyond infinity: only what is finite may be added.
    fn of_finite(&self, args: &[Expr], trend: Trend) -> Trend {
        let mut others = args.iter().filter(|arg| !self.depends(arg));
        match others.next() {
            None => NOT_MONOTONE,
            Some(other) if self.is_finite(other) => trend,
            Some(_) => Unknown("a numeric that may be infinite is added (numeric(p, s) may not)"),
        }
    }

    /// Whether a numeric is never infinite.
    fn is_finite(&self, expr: &Expr) -> bool {
        let all = |args: &[Expr]| args.iter().all(|arg| self.is_finite(arg));
        match expr {
            // A precision admits NaN, but no infinity.
            Expr::Column(column) => self.columns[*column].typmod >= 0,
            Expr::Literal(Datum::Numeric(number), _) => {
                number.is_nan() || number.finite().is_some()
            }
            Expr::Literal(value, _) => value.is_null(),
            Expr::Call { func: Func::Typmod { typmod, .. }, .. } => *typmod >= 0,
            Expr::Call { func: Func::Cast(from, Scalar::Numeric), .. } => from.is_integer(),
            Expr::Call { func, args } => match func {
                // What overflows is an error.
                Func::Arithmetic(_, Number::Numeric) | Func::Negate(_) | Func::Abs(_) => all(args),
                Func::Greatest(_) | Func::Least(_) => all(args),
                _ => false,
            },
            Expr::Coalesce(args) => all(args),
            Expr::Case { branches, otherwise } => {
                self.is_finite(otherwise) && branches.iter().all(|(_, then)| self.is_finite(then))
            }
            _ => false,
        }
    }

    /// `greatest` and `least` keep a trend that all their arguments have.
    fn pick(&self, args: &[Expr], trend: Trend) -> Trend {
        let types: Vec<Type> = self.columns.iter().map(|column| column.ty).collect();
        if !args.iter().all(|arg| arg.ty(&types).is_canonical()) {
            // Of equal values of different form the first is taken.
            return NOT_MONOTONE;
        }
        if !self.is_never_null {
            return Unknown("it may be NULL, which greatest and least ignore");
        }
        trend.coarse()
    }

    /// Whether a condition that holds holds for lesser values, too (if `least`, else for greater ones).
    pub(super) fn is_closed(&self, predicate: &Predicate, least: bool) -> bool {
        self.is_closed_test(&predicate.to_expr(), least)
    }

    fn is_closed_test(&self, test: &Expr, least: bool) -> bool {
        if !self.depends(test) {
            return true;
        }
        match test {
            Expr::And(tests) | Expr::Or(tests) => {
                tests.iter().all(|test| self.is_closed_test(test, least))
            }
            // What is strict in the value is NULL for NULL and otherwise NULL or not whatever the value is.
            Expr::Not(test) => match &**test {
                Expr::IsNull(arg) => !matches!(self.trend(arg).coarse(), Unknown(_)),
                _ => false,
            },
            Expr::Call { func: Func::IsTrue, args } => {
                args.iter().all(|test| self.is_closed_test(test, least))
            }
            Expr::Call { func: Func::Compare(comparison, _), args } => {
                // It holds as long as left minus right is low (or high) enough.
                let low = match comparison {
                    Comparison::Lt | Comparison::Le => true,
                    Comparison::Gt | Comparison::Ge => false,
                    Comparison::Eq | Comparison::Ne => return false,
                };
                self.difference(args).coarse() == if low == least { Rises } else { Falls }
            }
            _ => false,
        }
    }
}

/// Casts between these keep the order of values.
fn is_exact(scalar: Scalar) -> bool {
    scalar.is_integer() || scalar == Scalar::Numeric
}

/// Whether an expression is never NULL, given which columns are not.
pub(super) fn is_never_null(expr: &Expr, column: &dyn Fn(usize) -> bool) -> bool {
    let not_null = |arg: &Expr| is_never_null(arg, column);
    match expr {
        Expr::Column(position) => column(*position),
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Coalesce(args) => args.iter().any(not_null),
        Expr::Call { func, args } => match func {
            Func::Greatest(_) | Func::Least(_) => args.iter().any(not_null),
            Func::Identity
            | Func::Negate(_)
            | Func::Arithmetic(..)
            | Func::Cast(..)
            | Func::Typmod { .. }
            | Func::DatePlus
            | Func::DateMinus
            | Func::DateDifference => args.iter().all(not_null),
            _ => false,
        },
        _ => false,
    }
}
