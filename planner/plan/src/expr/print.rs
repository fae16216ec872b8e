//! Expressions as EXPLAIN shows them.

use super::Expr;
use crate::func::{Func, Zoned, ZonedWork};
use crate::text::format_datum;
use crate::types::{Scalar, Type};
use crate::value::Datum;
use std::fmt;

impl fmt::Display for Expr {
    /// Columns are shown as `#0`, `#1`, …
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_names(&[]).fmt(f)
    }
}

impl Expr {
    /// The expression with column names; columns beyond the names are shown by number.
    pub fn with_names<'a>(&'a self, names: &'a [String]) -> impl fmt::Display + 'a {
        Named { expr: self, names, nested: false }
    }
}

struct Named<'a> {
    expr: &'a Expr,
    names: &'a [String],
    /// Inside an operator: operators need parentheses.
    nested: bool,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expr {
            Expr::Column(index) => match self.names.get(*index) {
                Some(name) => f.write_str(name),
                None => write!(f, "#{index}"),
            },
            Expr::Literal(value, ty) => literal(value, *ty, f),
            Expr::Parameter(id, _) => write!(f, "${}", id.0),
            Expr::Call { func, args } => self.call(*func, args, f),
            Expr::And(args) => self.connective("AND", args, f),
            Expr::Or(args) => self.connective("OR", args, f),
            Expr::Not(arg) => match &**arg {
                Expr::IsNull(arg) => {
                    self.parenthesised(f, |f| write!(f, "{} IS NOT NULL", self.operand(arg)))
                }
                arg => self.parenthesised(f, |f| write!(f, "NOT {}", self.operand(arg))),
            },
            Expr::IsNull(arg) => {
                self.parenthesised(f, |f| write!(f, "{} IS NULL", self.operand(arg)))
            }
            Expr::Case { branches, otherwise } => {
                f.write_str("CASE")?;
                for (when, then) in branches {
                    write!(f, " WHEN {} THEN {}", self.outer(when), self.outer(then))?;
                }
                write!(f, " ELSE {} END", self.outer(otherwise))
            }
            Expr::Coalesce(args) => self.list("COALESCE(", args, ")", f),
            Expr::Array(elements) => self.list("ARRAY[", elements, "]", f),
            Expr::Host { call, args } => {
                self.list(&format!("host[{}](", call.text()), args, ")", f)
            }
        }
    }
}

impl<'a> Named<'a> {
    fn outer(&self, expr: &'a Expr) -> Named<'a> {
        Named { expr, names: self.names, nested: false }
    }

    fn operand(&self, expr: &'a Expr) -> Named<'a> {
        Named { expr, names: self.names, nested: true }
    }

    fn parenthesised(
        &self,
        f: &mut fmt::Formatter<'_>,
        write: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> fmt::Result {
        if !self.nested {
            return write(f);
        }
        f.write_str("(")?;
        write(f)?;
        f.write_str(")")
    }

    fn list(
        &self,
        open: &str,
        args: &'a [Expr],
        close: &str,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        f.write_str(open)?;
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}", self.outer(arg))?;
        }
        f.write_str(close)
    }

    fn connective(&self, word: &str, args: &'a [Expr], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parenthesised(f, |f| {
            for (i, arg) in args.iter().enumerate() {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                write!(f, "{}", self.operand(arg))?;
            }
            Ok(())
        })
    }

    fn call(&self, func: Func, args: &'a [Expr], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (func, args) {
            (Func::Cast(_, to), [arg]) => {
                write!(f, "{}::{}", self.operand(arg), Type::Scalar(to))
            }
            (Func::CastElements(_, to), [arg]) => {
                write!(f, "{}::{}", self.operand(arg), Type::Array(to))
            }
            (Func::Typmod { ty, typmod, .. }, [arg]) => {
                write!(f, "{}::{}", self.operand(arg), modified(ty, typmod))
            }
            (Func::Quantified(quantifier, predicate), [value, array]) => {
                self.parenthesised(f, |f| {
                    let (symbol, word) = (predicate.symbol(), quantifier.name());
                    write!(f, "{} {symbol} {word} ({})", self.operand(value), self.outer(array))
                })
            }
            (Func::Subscript, [array, index]) => {
                write!(f, "{}[{}]", self.operand(array), self.outer(index))
            }
            (Func::OrderKey(sort), [arg]) => {
                write!(f, "{}{}", self.outer(arg), sort.direction())
            }
            (Func::Entry { keys }, _) if keys <= args.len() => {
                let list = |exprs: &[Expr]| {
                    let texts: Vec<String> =
                        exprs.iter().map(|e| self.outer(e).to_string()).collect();
                    texts.join(", ")
                };
                let (order, values) = args.split_at(keys);
                write!(f, "{} ORDER BY {}", list(values), list(order))
            }
            (Func::IsTrue, [arg]) => {
                self.parenthesised(f, |f| write!(f, "{} IS TRUE", self.operand(arg)))
            }
            (Func::IsFalse, [arg]) => {
                self.parenthesised(f, |f| write!(f, "{} IS FALSE", self.operand(arg)))
            }
            (Func::Negate(_) | Func::BitwiseNot(_), [arg]) => {
                self.parenthesised(f, |f| write!(f, "{func} {}", self.operand(arg)))
            }
            (_, [left, right]) if func.infix().is_some() => self.parenthesised(f, |f| {
                write!(
                    f,
                    "{} {} {}",
                    self.operand(left),
                    func.infix().unwrap_or_default(),
                    self.operand(right)
                )
            }),
            (Func::PlusInterval(interval), [at]) => self
                .parenthesised(f, |f| write!(f, "{} + '{interval}'::interval", self.operand(at))),
            (Func::Zoned(zoned), _) => self.zoned(zoned, args, f),
            _ => self.list(&format!("{func}("), args, ")", f),
        }
    }
}

impl<'a> Named<'a> {
    /// What depends on a time zone, with its name.
    fn zoned(&self, zoned: Zoned, args: &'a [Expr], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zone = format!("'{}'", zoned.zone.name().replace('\'', "''"));
        match (zoned.work, args) {
            (ZonedWork::Local | ZonedWork::Moment, [arg]) => {
                self.parenthesised(f, |f| write!(f, "{} AT TIME ZONE {zone}", self.operand(arg)))
            }
            (ZonedWork::Date, [arg]) => {
                write!(f, "({} AT TIME ZONE {zone})::date", self.operand(arg))
            }
            (ZonedWork::Midnight, [arg]) => self.parenthesised(f, |f| {
                write!(f, "{}::{} AT TIME ZONE {zone}", self.operand(arg), Scalar::Timestamp.name())
            }),
            (ZonedWork::Plus(interval), [arg]) => {
                write!(f, "date_add({}, '{interval}'::interval, {zone})", self.outer(arg))
            }
            (ZonedWork::Compare { comparison, moment_is_left }, [left, right]) => {
                let side = |side, is_moment| match is_moment {
                    true => format!("{}", self.operand(side)),
                    false => format!("({} AT TIME ZONE {zone})", self.operand(side)),
                };
                self.parenthesised(f, |f| {
                    let (left, right) = (side(left, moment_is_left), side(right, !moment_is_left));
                    write!(f, "{left} {} {right}", comparison.symbol())
                })
            }
            _ => self.list(&format!("{}(", zoned.work.name()), args, &format!(", {zone})"), f),
        }
    }
}

/// A type with its modifier, as `format_type` gives it.
fn modified(ty: Type, typmod: i32) -> String {
    let modifier = match ty.base() {
        Scalar::Numeric => {
            let scale = (((typmod - 4) & 0x7ff) ^ 1024) - 1024;
            format!("({},{scale})", (typmod - 4) >> 16 & 0xffff)
        }
        Scalar::Varchar | Scalar::Char => format!("({})", typmod - 4),
        _ => format!("({typmod})"),
    };
    let name = ty.base().name();
    let base = match name.split_once(' ') {
        Some((first, rest)) if name.starts_with("timestamp") => {
            format!("{first}{modifier} {rest}")
        }
        _ => format!("{name}{modifier}"),
    };
    if ty.element().is_some() {
        base + "[]"
    } else {
        base
    }
}

fn literal(value: &Datum, ty: Type, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = format_datum(value, ty);
    match (value, ty) {
        (Datum::Null, _) => f.write_str("NULL"),
        (Datum::Bool(value), _) => write!(f, "{value}"),
        (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_), _) => f.write_str(&text),
        (Datum::Numeric(number), _) if number.finite().is_some() => f.write_str(&text),
        (Datum::Text(_), Type::Scalar(Scalar::Text)) => {
            write!(f, "'{}'", text.replace('\'', "''"))
        }
        _ => write!(f, "'{}'::{ty}", text.replace('\'', "''")),
    }
}
