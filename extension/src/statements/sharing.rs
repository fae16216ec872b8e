//! What a view would have together with others, for EXPLAIN.

use crate::compile::{CompiledQuery, SourceTable};
use crate::pg::ids::ViewId;
use crate::pg::index_cells::{ColumnSet, IndexCell, Kind};
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{catalog, process};
use crate::settings;
use crate::shared_indexes;
use crate::sub_plans::{fingerprint, sub_plans_of};
use engine::{Form, Lookup, TableJoin};
use plan::ViewPlan;
use std::borrow::Cow;

/// A line for each index, and for what each part of its plan puts out, that is there and that the view would read.
pub fn lines(query: &CompiledQuery) -> Vec<String> {
    if !settings::engine().shares_indexes {
        return Vec::new();
    }
    let plan = as_computed(&query.plan, true);
    let form = Form::of(&plan);
    let indexes = shared_indexes::all(process::database());
    let lookups = engine::lookups(&plan, form);
    let line = |lookup: &Lookup| {
        let found = indexes
            .iter()
            .find(|(index, _)| index.form == form.number() && answers(index, query, lookup));
        found.map(|(index, readers)| line_of(index, readers))
    };
    let joins = engine::table_joins(&plan).into_keys();
    let of_joins = joins.filter_map(|join| {
        let (index, readers) = indexes.iter().find(|(index, _)| is_of(index, query, &join))?;
        Some(line_of(index, readers))
    });
    let of_sub_plans = sub_plans_of(query, &plan).into_iter().filter_map(|part| {
        let print = fingerprint(query, &part);
        let (index, readers) = indexes.iter().find(|(index, _)| index.fingerprint == print)?;
        Some(line_of(index, readers))
    });
    of_sub_plans.chain(of_joins).chain(lookups.keys().filter_map(line)).collect()
}

fn line_of(index: &IndexCell, readers: &[ViewId]) -> String {
    let tables: Vec<String> = index.tables().into_iter().map(catalog::qualified_name).collect();
    let (what, tables) = (index.kind.title(), tables.join(" and "));
    let by = match index.key() {
        [] => String::new(),
        _ => format!(" by ({})", key_of(index).join(", ")),
    };
    format!("{what} of {tables}{by}, with {}", names(readers))
}

/// The plan as the worker computes it.
pub fn as_computed(plan: &ViewPlan, is_in_memory: bool) -> Cow<'_, ViewPlan> {
    engine::as_computed(plan, settings::engine().all_workers(), is_in_memory)
}

fn names(readers: &[ViewId]) -> String {
    let names: Vec<String> = readers.iter().map(|view| catalog::qualified_name(*view)).collect();
    names.join(", ")
}

/// Whether it is what a join of the view puts out, as far as one can tell from outside of the worker.
fn is_of(index: &IndexCell, query: &CompiledQuery, join: &TableJoin) -> bool {
    let table = |side: &Lookup| &query.sources[side.0 .0];
    let (left, right) = (table(&join.left), table(&join.right));
    let has = |columns: &ColumnSet, table: &SourceTable| {
        table.attnums.iter().all(|column| columns.contains(*column))
    };
    index.kind == Kind::Join
        && (index.table, index.joined) == (left.table, right.table)
        && has(&index.columns, left)
        && has(&index.joined_columns, right)
        && index.key().iter().copied().eq(join.left.1.iter().map(|c| left.attnums[*c]))
}

fn answers(index: &IndexCell, query: &CompiledQuery, (source, key): &Lookup) -> bool {
    let table = &query.sources[source.0];
    index.kind == Kind::Table
        && index.table == table.table
        && index.key().iter().copied().eq(key.iter().map(|column| table.attnums[*column]))
        && table.attnums.iter().all(|column| index.columns.contains(*column))
}

/// The names of the columns by which an index is arranged.
fn key_of(index: &IndexCell) -> Vec<String> {
    let attributes = with_relation(index.table, Lock::AccessShare, |table| table.attributes());
    let attributes = attributes.unwrap_or_default();
    let name = |number: &i16| {
        let attribute = attributes.iter().find(|attribute| attribute.number == *number);
        attribute.map_or_else(|| number.to_string(), |attribute| attribute.name.clone())
    };
    index.key().iter().map(name).collect()
}
