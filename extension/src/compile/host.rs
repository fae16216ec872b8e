//! What of a query PostgreSQL's own executor evaluates, because the planner has no native form of it.

use crate::errors::Error;
use crate::pg::catalog;
use crate::pg::types;
use crate::rewrite::cuts::{Cuts, StandIns, Terms};
use crate::rewrite::host_calls::{Cut, CutExtent, CutPart};
use crate::rewrite::tree::Tree;
use pgrx::pg_sys::Oid;
use planner::catalog::{HostExpression, HostExtent, HostPart};
use std::collections::BTreeMap;

/// Expressions that PostgreSQL evaluates, by their numbers in canonical SQL.
pub type HostExpressions = BTreeMap<u64, HostExpression>;

/// A copy of the tree with calls of stand-ins where it is cut, and the expressions behind them.
pub fn separate(
    tree: &Tree,
    cuts: &Cuts<'_>,
    terms: &Terms<'_>,
) -> Result<(Tree, HostExpressions), Error> {
    if cuts.is_empty() {
        return Ok((Tree::copy_of(tree.query()), HostExpressions::new()));
    }
    let stand_in = |name: &str| {
        let missing = || Error::internal(format!("function eddy.{name} is missing"));
        catalog::find_function("eddy", name).ok_or_else(missing)
    };
    let stand_ins = StandIns {
        host_call: stand_in("host_call")?,
        collated: stand_in("collated")?,
        slices: stand_in("slices")?,
        valid_from: stand_in("valid_from")?,
        valid_until: stand_in("valid_until")?,
    };
    let (tree, cut) = tree.with_host_calls(cuts, stand_ins, terms);
    let mut host = HostExpressions::new();
    for cut in cut {
        host.insert(cut.number, expression(cut, terms.caller)?);
    }
    Ok((tree, host))
}

fn expression(cut: Cut, caller: Oid) -> Result<HostExpression, Error> {
    let unknown = || {
        let name = types::type_name(cut.ty);
        Error::unsupported(format!("type {name} is not supported in an incremental view"))
    };
    let part = |CutPart { cut, args }: CutPart| -> Result<HostPart, Error> {
        Ok(HostPart { expression: expression(cut, caller)?, args })
    };
    let extent = |extent| -> Result<HostExtent, Error> {
        Ok(match extent {
            CutExtent::Argument(position) => HostExtent::Argument(position),
            CutExtent::Value(value) => HostExtent::Value(part(value)?),
            CutExtent::Between(from, to) => HostExtent::Between(part(from)?, part(to)?),
        })
    };
    let extents = cut.extents.into_iter().map(|[a, b]| Ok([extent(a)?, extent(b)?]));
    let extents = extents.collect::<Result<_, Error>>()?;
    Ok(HostExpression {
        ty: types::planner_type(cut.ty, cut.collation).ok_or_else(unknown)?,
        text: cut.text,
        code: cut.code,
        caller: caller.to_u32(),
        is_builtin: cut.is_builtin,
        typmod: cut.typmod,
        extents,
    })
}
