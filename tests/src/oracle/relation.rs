//! What queries are drawn over, and what they return.

use super::draws::Draws;
use super::expression::Field;
use super::feature::Feature;
use super::schema::Table;
use super::types::Type;

/// A query and the columns it returns, named o1, o2, …
#[derive(Clone, Debug)]
pub struct Query {
    pub sql: String,
    pub kinds: Vec<Type>,
}

/// Something that FROM can name: a base table or an earlier view.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<(String, Type)>,
    /// What it is, if that is not recorded elsewhere.
    pub feature: Option<Feature>,
}

impl Relation {
    pub fn of_table(table: &Table) -> Relation {
        let columns = table.columns.iter().map(|c| (c.name.clone(), c.kind));
        let generated = table.has_generated.then(|| ("g".to_owned(), Type::Int4));
        let columns = columns.chain(generated).collect();
        let feature = match table {
            Table { partitioned: true, .. } => Feature::PartitionedTable,
            Table { has_generated: true, .. } => Feature::GeneratedColumn,
            Table { has_child: true, .. } => Feature::InheritanceParent,
            Table { has_key: true, .. } => Feature::KeyedTable,
            _ => Feature::PlainTable,
        };
        Relation { name: table.name.clone(), columns, feature: Some(feature) }
    }

    /// An incremental view, or a plain one.
    pub fn of_view(name: &str, query: &Query, feature: Feature) -> Relation {
        Relation { feature: Some(feature), ..Relation::of_query(name, query) }
    }

    /// The CTE or the subquery in FROM with this name.
    pub fn of_query(name: &str, query: &Query) -> Relation {
        let columns = query.kinds.iter().enumerate();
        let columns = columns.map(|(i, kind)| (format!("o{}", i + 1), *kind)).collect();
        Relation { name: name.into(), columns, feature: None }
    }

    /// One of them for FROM.
    pub fn random<'a>(dice: &mut Draws, relations: &'a [Relation]) -> &'a Relation {
        let relation = dice.pick(relations);
        if let Some(feature) = relation.feature {
            dice.record(feature);
        }
        relation
    }

    pub fn fields(&self, alias: &str) -> Vec<Field> {
        self.columns
            .iter()
            .map(|(name, kind)| Field { reference: format!("{alias}.{name}"), kind: *kind })
            .collect()
    }
}

/// A select list that names its items as [`Query`] says.
pub fn named(items: &[String]) -> String {
    let items: Vec<String> =
        items.iter().enumerate().map(|(i, item)| format!("{item} AS o{}", i + 1)).collect();
    items.join(", ")
}
