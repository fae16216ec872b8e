//! Sub-plans of views, as the worker and other processes know them.

use crate::compile::CompiledQuery;
use crate::pg::index_cells::Kind;
use engine::SubPlan;
use plan::{Plan, SourceId, ViewPlan};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Whether a source of a plan that a query computes is a table, or a view.
pub fn is_table(query: &CompiledQuery, source: SourceId) -> bool {
    query.sources.get(source.0).is_some_and(|table| !table.is_clock())
}

/// The sub-plans of a plan that a query computes and others may compute, too, each before those that are part of it.
pub fn sub_plans_of(query: &CompiledQuery, plan: &ViewPlan) -> Vec<SubPlan> {
    let is_of_tables =
        |part: &SubPlan| part.sources.iter().all(|(source, _)| is_table(query, *source));
    engine::sub_plans(plan).into_iter().filter(is_of_tables).collect()
}

/// Tells sub-plans apart in all processes of a server.
pub fn fingerprint(query: &CompiledQuery, part: &SubPlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", part.plan).hash(&mut hasher);
    for (source, columns) in &part.sources {
        let table = &query.sources[source.0];
        let numbers = columns.iter().map(|column| table.attnums[*column]);
        (table.table.to_u32(), table.only, numbers.collect::<Vec<i16>>()).hash(&mut hasher);
    }
    hasher.finish()
}

/// What a sub-plan does.
pub fn kind_of(part: &SubPlan) -> Kind {
    kind_of_node(&part.plan.root)
}

fn kind_of_node(node: &Plan) -> Kind {
    match node {
        Plan::LetRec { body, .. } if matches!(**body, Plan::Get(_)) => Kind::Recursion,
        Plan::Let { body, .. } | Plan::LetRec { body, .. } => kind_of_node(body),
        Plan::Reduce { .. } => Kind::Groups,
        Plan::Partition { .. } => Kind::Partitions,
        _ => Kind::Distinct,
    }
}
