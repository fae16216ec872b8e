//! What a view would have together with others, for EXPLAIN.

use crate::compile::CompiledQuery;
use crate::pg::index_cells::IndexCell;
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{catalog, process};
use crate::settings;
use crate::shared_indexes;
use engine::{Form, Lookup};

/// A line for each index that is there and that the view would read.
pub fn lines(query: &CompiledQuery) -> Vec<String> {
    if !settings::engine().shares_indexes {
        return Vec::new();
    }
    let form = Form::of(&query.plan).number();
    let indexes = shared_indexes::all(process::database());
    let lookups = engine::lookups(&query.plan);
    let line = |lookup: &Lookup| {
        let found =
            indexes.iter().find(|(index, _)| index.form == form && answers(index, query, lookup));
        found.map(|(index, readers)| {
            let readers: Vec<String> =
                readers.iter().map(|v| catalog::qualified_name(*v)).collect();
            let table = catalog::qualified_name(index.table);
            format!(
                "Index of {table} by ({}), with {}",
                key_of(index).join(", "),
                readers.join(", ")
            )
        })
    };
    lookups.keys().filter_map(line).collect()
}

fn answers(index: &IndexCell, query: &CompiledQuery, (source, key): &Lookup) -> bool {
    let table = &query.sources[source.0];
    index.table == table.table
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
