//! What rows are sorted by.

use super::super::refuse::unsupported;
use super::bound_expr::BoundExpr;
use crate::error::PlanError;
use plan::partition::SortKey;
use plan::types::{self, Type};
use sqlparser::ast::{OrderByOptions, OrderBySort};

pub(super) const BYTEA: Type = Type::Scalar(types::Scalar::Bytea);

/// An item of an ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sort {
    /// What is sorted by, as written.
    pub(super) value: BoundExpr,
    /// The same as the planner can sort it.
    pub(super) scalar: BoundExpr,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

impl Sort {
    /// `collation`: where values are not sorted as their type is.
    pub(super) fn new(
        value: BoundExpr,
        collation: Option<u32>,
        options: &OrderByOptions,
    ) -> Result<Sort, PlanError> {
        let descending = match &options.sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(OrderBySort::Using(_)) => return Err(unsupported("ORDER BY … USING is")),
        };
        let nulls_first = options.nulls_first.unwrap_or(descending);
        let scalar = sortable(&value, collation);
        Ok(Sort { value, scalar, descending, nulls_first })
    }

    /// By a value, in the order of its type.
    pub(super) fn ascending(value: &BoundExpr) -> Sort {
        Sort {
            value: value.clone(),
            scalar: sortable(value, None),
            descending: false,
            nulls_first: false,
        }
    }

    /// By a value, in any order in which identical values follow one another.
    pub(super) fn in_any_order(value: &BoundExpr) -> Sort {
        match value.ty {
            Type::Scalar(types::Scalar::Host(_)) => {
                let bytes = BoundExpr { ty: BYTEA, typmod: -1, ..value.clone() };
                Sort { value: value.clone(), ..Sort::ascending(&bytes) }
            }
            _ => Sort::ascending(value),
        }
    }

    /// The same by a column that holds the value.
    pub(super) fn by(&self, column: usize) -> SortKey {
        let Sort { descending, nulls_first, .. } = *self;
        SortKey { descending, nulls_first, ..SortKey::ascending(column, self.scalar.ty) }
    }
}

/// What is sorted in place of a value: what the host says of it, if its order is the host's.
pub(super) fn sortable(value: &BoundExpr, collation: Option<u32>) -> BoundExpr {
    if collation.is_none() && !value.ty.is_host() {
        return value.clone();
    }
    let expr = value.expr.clone().sort_key(value.ty, collation.unwrap_or(0));
    BoundExpr { expr, ty: BYTEA, typmod: -1, nullable: value.nullable }
}
