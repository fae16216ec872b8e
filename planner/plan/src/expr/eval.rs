//! Evaluation of expressions.

use super::Expr;
use crate::error::DataError;
use crate::func::Func;
use crate::host;
use crate::sqlstate;
use crate::value::Datum;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Where the values of columns come from: a row, or a row with columns computed on demand.
pub(super) trait Columns {
    /// Value of a column.
    fn column(&self, index: usize) -> Result<&Datum, DataError>;
}

impl Columns for [Datum] {
    fn column(&self, index: usize) -> Result<&Datum, DataError> {
        Ok(&self[index])
    }
}

impl Expr {
    /// Value of the expression for a row given as its columns.
    pub fn eval(&self, columns: &[Datum]) -> Result<Datum, DataError> {
        self.value(columns).map(Cow::into_owned)
    }

    /// Whether the expression is true (not false, not NULL).
    pub fn is_true(&self, columns: &[Datum]) -> Result<bool, DataError> {
        self.holds(columns)
    }

    pub(super) fn holds<C: Columns + ?Sized>(&self, columns: &C) -> Result<bool, DataError> {
        Ok(self.value(columns)?.is_true())
    }

    /// The value, borrowed where it exists already.
    pub(super) fn value<'a, C: Columns + ?Sized>(
        &'a self,
        columns: &'a C,
    ) -> Result<Cow<'a, Datum>, DataError> {
        let value = match self {
            Expr::Column(index) => return columns.column(*index).map(Cow::Borrowed),
            Expr::Literal(value, _) => return Ok(Cow::Borrowed(value)),
            Expr::Call { func, args } => call(*func, args, columns)?,
            Expr::And(args) => connective(args, columns, false)?,
            Expr::Or(args) => connective(args, columns, true)?,
            Expr::Not(arg) => match arg.value(columns)?.as_ref() {
                Datum::Bool(value) => Datum::Bool(!value),
                _ => Datum::Null,
            },
            Expr::IsNull(arg) => Datum::Bool(arg.value(columns)?.is_null()),
            Expr::Case { branches, otherwise } => {
                for (when, then) in branches {
                    if when.holds(columns)? {
                        return then.value(columns);
                    }
                }
                return otherwise.value(columns);
            }
            Expr::Coalesce(args) => {
                for arg in args {
                    let value = arg.value(columns)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Datum::Null
            }
            Expr::Array(elements) => {
                let elements = values(elements, columns)?;
                Datum::array(elements.into_iter().map(Cow::into_owned).collect())
            }
            Expr::Parameter(..) => {
                return Err(DataError::new(
                    sqlstate::INTERNAL_ERROR,
                    "a subquery was not decorrelated",
                ))
            }
            Expr::Host { call, args } => {
                let args = values(args, columns)?;
                let args: SmallVec<[&Datum; 3]> = args.iter().map(AsRef::as_ref).collect();
                host::evaluate(call, &args)?
            }
        };
        Ok(Cow::Owned(value))
    }
}

fn call<C: Columns + ?Sized>(func: Func, args: &[Expr], columns: &C) -> Result<Datum, DataError> {
    // The usual numbers of arguments need no list.
    match args {
        [a] => func.call(&[a.value(columns)?.as_ref()]),
        [a, b] => {
            let (a, b) = (a.value(columns)?, b.value(columns)?);
            func.call(&[a.as_ref(), b.as_ref()])
        }
        _ => {
            let args = values(args, columns)?;
            let args: SmallVec<[&Datum; 3]> = args.iter().map(AsRef::as_ref).collect();
            func.call(&args)
        }
    }
}

type Values<'a> = SmallVec<[Cow<'a, Datum>; 3]>;

fn values<'a, C: Columns + ?Sized>(
    args: &'a [Expr],
    columns: &'a C,
) -> Result<Values<'a>, DataError> {
    args.iter().map(|arg| arg.value(columns)).collect()
}

/// AND (decided by false) and OR (decided by true).
fn connective<C: Columns + ?Sized>(
    args: &[Expr],
    columns: &C,
    decisive: bool,
) -> Result<Datum, DataError> {
    let mut result = Datum::Bool(!decisive);
    for arg in args {
        match arg.value(columns)?.as_ref() {
            Datum::Bool(value) if *value == decisive => return Ok(Datum::Bool(decisive)),
            Datum::Null => result = Datum::Null,
            _ => {}
        }
    }
    Ok(result)
}
