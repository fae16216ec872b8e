//! What views depend on beside relations: the functions that their queries call.

use super::{inval, quiet};
use crate::pg::ids::RelationId;
use pgrx::pg_sys::Oid;
use std::collections::{BTreeMap, BTreeSet};

/// The functions of users that queries of views call by way of whatever PostgreSQL knows of: directly, as operators, within
/// aggregates and in bodies that it has parsed. Each with what tells one definition of it from the next.
pub fn functions_called(views: impl Iterator<Item = RelationId>) -> BTreeMap<u32, String> {
    let views: Vec<String> = views.map(|view| view.to_string()).collect();
    let query = format!(
        "WITH RECURSIVE called(class, object) AS (
             SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid, r.oid
             FROM pg_catalog.pg_rewrite r
             WHERE r.ev_class OPERATOR(pg_catalog.=) ANY ('{{{}}}'::pg_catalog.oid[])
             UNION
             SELECT d.refclassid, d.refobjid FROM called c, pg_catalog.pg_depend d
             WHERE d.classid OPERATOR(pg_catalog.=) c.class
             AND d.objid OPERATOR(pg_catalog.=) c.object
             AND (d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
                 OR d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_operator'::pg_catalog.regclass)
         )
         SELECT p.oid, p.xmin::pg_catalog.text OPERATOR(pg_catalog.||) p.ctid::pg_catalog.text
         FROM called c, pg_catalog.pg_proc p
         WHERE c.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
         AND p.oid OPERATOR(pg_catalog.=) c.object",
        views.join(",")
    );
    let found = quiet::look_up(|| {
        pgrx::Spi::connect(|client| {
            let rows = client.select(&query, None, &[])?;
            rows.map(|row| Ok((row.get::<Oid>(1)?, row.get::<String>(2)?)))
                .collect::<Result<Vec<_>, pgrx::spi::Error>>()
        })
    });
    let complete =
        |(function, version): (Option<Oid>, Option<String>)| Some((function?.to_u32(), version?));
    found.unwrap_or_default().into_iter().filter_map(complete).collect()
}

/// Whatever a change of may concern a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Relations: itself, its base tables, views in between, composite types.
    pub relations: BTreeSet<RelationId>,
    /// Functions, as the messages about changes tell of them.
    functions: BTreeSet<u32>,
}

impl Dependencies {
    /// On a relation alone.
    pub fn on(relation: RelationId) -> Dependencies {
        Dependencies { relations: BTreeSet::from([relation]), functions: BTreeSet::new() }
    }

    /// On relations and functions.
    pub fn new(
        relations: BTreeSet<RelationId>,
        functions: impl Iterator<Item = u32>,
    ) -> Dependencies {
        Dependencies { relations, functions: functions.map(inval::hash_of_function).collect() }
    }

    /// All but a relation.
    pub fn without(&self, relation: RelationId) -> Dependencies {
        let mut others = self.clone();
        others.relations.remove(&relation);
        others
    }

    /// Whether one of them is among these relations and functions.
    pub fn are_among(&self, relations: &BTreeSet<RelationId>, functions: &BTreeSet<u32>) -> bool {
        !self.relations.is_disjoint(relations) || !self.functions.is_disjoint(functions)
    }
}
