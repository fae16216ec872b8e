//! A view against its query, in one statement and therefore at one snapshot.

/// SQL that returns the numbers of missing rows, of surplus rows, and of rows whose text differs.
pub fn comparison(view: &str, query: &str) -> String {
    format!(
        "WITH q AS MATERIALIZED ({query}), v AS MATERIALIZED (SELECT * FROM {view}) \
         SELECT (SELECT count(*) FROM (TABLE q EXCEPT ALL TABLE v) d), \
         (SELECT count(*) FROM (TABLE v EXCEPT ALL TABLE q) d), \
         (SELECT count(*) FROM (SELECT q::text FROM q EXCEPT ALL SELECT v::text FROM v) d)"
    )
}
