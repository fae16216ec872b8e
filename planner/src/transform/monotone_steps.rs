//! Whether a relation has no fewer rows, duplicates aside, when relations that it is made of have more.

use super::choose_recursion::depends;
use crate::ir::{Node, Preserved, Rel};
use plan::{LocalId, Recursion};

/// What of a relation may lose rows when the locals `grown`, or what is made of them, get more; `None` if nothing does.
pub(super) fn obstacle(rel: &Rel, grown: &mut Vec<LocalId>) -> Option<&'static str> {
    if !depends(rel, grown) {
        return None;
    }
    match &rel.node {
        Node::Let { id, value, body } => {
            let found = obstacle(value, grown);
            if depends(value, grown) {
                grown.push(*id);
            }
            found.or_else(|| obstacle(body, grown))
        }
        Node::LetRec { id, form, base, step, body, .. } => {
            let in_loop = depends(base, grown) || depends(step, grown);
            let is_set =
                matches!(form, Some(Recursion::FixpointDistinct | Recursion::LeastFixpoint));
            if in_loop && !is_set {
                return Some("another recursion, which does not keep all of its rows as a set,");
            }
            if in_loop {
                grown.push(*id);
            }
            [base, step, body].into_iter().find_map(|part| obstacle(part, grown))
        }
        Node::OuterJoin { preserved, left, right, .. } => {
            if depends(right, grown) || *preserved == Preserved::Both {
                return Some("the other side of an outer join");
            }
            obstacle(left, grown)
        }
        Node::AntiJoin { left, right, .. } => match depends(right, grown) {
            true => Some("NOT EXISTS or the like"),
            false => obstacle(left, grown),
        },
        Node::Reduce { .. } => Some("GROUP BY, an aggregate, EXCEPT or INTERSECT"),
        Node::Partition { .. } => Some("LIMIT, DISTINCT ON or a window function"),
        Node::Repeat { .. } => Some("EXCEPT ALL or INTERSECT ALL"),
        Node::Temporal { .. } => Some("a condition on the present time"),
        // Which of equal values stands for all may change when there are more.
        Node::Distinct { .. } if !rel.is_canonical() => {
            Some("DISTINCT or UNION, of values that may be equal and written differently,")
        }
        Node::Apply(_) => Some("a correlated subquery"),
        Node::Constant { .. }
        | Node::Source(_)
        | Node::Get(_)
        | Node::Map { .. }
        | Node::Filter { .. }
        | Node::TableFunction { .. }
        | Node::Join { .. }
        | Node::Distinct { .. }
        | Node::Union { .. }
        | Node::Fence { .. } => rel.children().into_iter().find_map(|child| obstacle(child, grown)),
    }
}
