//! What of a query PostgreSQL's own executor evaluates, because the planner has no native form of it.

use crate::errors::Error;
use crate::pg::catalog;
use crate::pg::types;
use crate::rewrite::cuts::{Cuts, StandIns, Terms};
use crate::rewrite::tree::Tree;
use planner::catalog::HostExpression;
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
        let unknown = || {
            let name = types::type_name(cut.ty);
            Error::unsupported(format!("type {name} is not supported in an incremental view"))
        };
        let ty = types::planner_type(cut.ty, cut.collation).ok_or_else(unknown)?;
        let caller = terms.caller.to_u32();
        let (text, code, is_builtin, typmod) = (cut.text, cut.code, cut.is_builtin, cut.typmod);
        let expression = HostExpression { text, code, caller, is_builtin, ty, typmod };
        host.insert(cut.number, expression);
    }
    Ok((tree, host))
}
