//! What a collation means for comparisons, and the database's encoding.

use crate::pg::quiet;
use crate::pg::strings::owned;
use crate::pg::versions;
use pgrx::pg_sys::{self, Oid};
use std::ffi::c_int;

/// What a collation means for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollationClass {
    /// C or POSIX: bytes for ordering, ASCII for case.
    C,
    /// Orders by bytes; case follows a locale.
    ByteOrdered,
    /// Equal means equal bytes; the order follows a locale.
    Deterministic,
    /// Different bytes may be equal.
    Nondeterministic,
}

/// Classifies a collation (not the invalid one).
pub fn collation_class(collation: Oid) -> CollationClass {
    // SAFETY: a look-up.
    let is_deterministic = || unsafe { pg_sys::get_collation_isdeterministic(collation) };
    if collation != pg_sys::DEFAULT_COLLATION_OID && !is_deterministic() {
        return CollationClass::Nondeterministic;
    }
    match versions::collation::is_c(collation) {
        (true, true) => return CollationClass::C,
        (true, false) => return CollationClass::ByteOrdered,
        _ => {}
    }
    let (locale, is_libc) = collation_locale(collation);
    if is_libc && matches!(&*locale.to_ascii_lowercase(), "c.utf-8" | "c.utf8") {
        CollationClass::ByteOrdered
    } else {
        CollationClass::Deterministic
    }
}

/// A collation's name, for messages.
pub fn collation_name(collation: Oid) -> String {
    // SAFETY: returns a palloc'd string or null.
    unsafe { owned(pg_sys::get_collation_name(collation)) }
}

/// ` COLLATE "schema"."name"`; nothing for no collation, and for that of the database.
pub fn collate_clause(collation: Oid) -> String {
    if collation == Oid::INVALID || collation == pg_sys::DEFAULT_COLLATION_OID {
        return String::new();
    }
    // SAFETY: look-ups; the text is copied.
    let name = unsafe { owned(pg_sys::generate_collation_name(collation)) };
    format!(" COLLATE {name}")
}

/// `LC_COLLATE` of a collation, and whether the C library provides it.
fn collation_locale(collation: Oid) -> (String, bool) {
    let query = if collation == pg_sys::DEFAULT_COLLATION_OID {
        "SELECT datcollate::pg_catalog.text, datlocprovider OPERATOR(pg_catalog.=) 'c' \
         FROM pg_catalog.pg_database \
         WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"
            .to_string()
    } else {
        format!(
            "SELECT collcollate::pg_catalog.text, collprovider OPERATOR(pg_catalog.=) 'c' \
             FROM pg_catalog.pg_collation WHERE oid OPERATOR(pg_catalog.=) {}",
            collation.to_u32()
        )
    };
    let found = quiet::first_row(&query, |row| row.get_two::<String, bool>());
    let (locale, is_libc) = found.unwrap_or((None, None));
    (locale.unwrap_or_default(), is_libc.unwrap_or(false))
}

/// Whether the database's encoding is UTF-8.
pub fn encoding_is_utf8() -> bool {
    // SAFETY: a look-up of a global.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as c_int }
}

/// The versions of what orders texts: of the database's own collation, and of one of each library. A change of one may change the
/// order of texts that are in it already. Needs a transaction with a snapshot.
pub fn collation_versions() -> Vec<Option<String>> {
    let query = "SELECT pg_catalog.pg_database_collation_actual_version(oid)
            FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
        UNION ALL (SELECT pg_catalog.pg_collation_actual_version(oid) FROM pg_catalog.pg_collation
            WHERE collprovider OPERATOR(pg_catalog.=) 'i'::\"char\" ORDER BY oid LIMIT 1)
        UNION ALL (SELECT pg_catalog.pg_collation_actual_version(oid) FROM pg_catalog.pg_collation
            WHERE collprovider OPERATOR(pg_catalog.=) 'c'::\"char\" AND oid OPERATOR(pg_catalog.>) 10000 ORDER BY oid LIMIT 1)";
    let found = quiet::look_up(|| {
        pgrx::Spi::connect(|client| {
            let rows = client.select(query, None, &[])?;
            rows.map(|row| row.get::<String>(1)).collect::<Result<Vec<_>, _>>()
        })
    });
    found.unwrap_or_default()
}
