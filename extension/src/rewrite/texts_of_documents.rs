//! Arrays that XMLTABLE makes of texts in a document, as casts of these texts.
//!
//! ```sql
//! … FROM XMLTABLE('/r' PASSING t.x COLUMNS a int[], b text) AS r …
//! … FROM LATERAL (SELECT r.a::int[] AS a, r.b FROM XMLTABLE('/r' PASSING t.x COLUMNS a text, b text) AS r) AS r …
//! ```

use crate::pg::lists;
use crate::pg::types;
use crate::pg::versions;
use crate::rewrite::nodes;
use crate::rewrite::tree::Tree;
use crate::rewrite::wrapped;
use pgrx::pg_sys::{self, NodeTag, Oid, RTEKind};
use std::ffi::c_int;

impl Tree {
    /// Has XMLTABLE make texts where arrays are wanted, and casts make arrays of them. The tree must be a copy of our own.
    pub fn with_texts_of_documents(self) -> Tree {
        for query in self.queries() {
            let query = std::ptr::from_ref(query).cast_mut();
            // SAFETY: a query of our own copy, and the entries of its range table.
            unsafe {
                let entries = lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable);
                for (entry, number) in entries.into_iter().zip(1..) {
                    let is_document = (*entry).rtekind == RTEKind::RTE_TABLEFUNC;
                    if is_document && versions::tree::is_xml_table(&*(*entry).tablefunc) {
                        cast_arrays(query, entry, number);
                    }
                }
            }
        }
        self
    }
}

/// # Safety
/// A query of a copy that nobody else looks at, and an XMLTABLE that is the entry of that number of its range table.
unsafe fn cast_arrays(query: *mut pg_sys::Query, entry: *mut pg_sys::RangeTblEntry, number: c_int) {
    // SAFETY: per contract; lists of equal length; new nodes and lists.
    unsafe {
        let document = (*entry).tablefunc;
        let wanted = lists::oids((*document).coltypes);
        let typmods = lists::integers((*document).coltypmods);
        let defaults = lists::pointers::<pg_sys::Node>((*document).coldefexprs);
        let is_cast = |column: usize| {
            let ty = wanted[column];
            types::is_array(ty)
                && types::base_type(ty) == ty
                && typmods[column] < 0
                && defaults.get(column).is_none_or(|default| default.is_null())
        };
        let cast: Vec<usize> = (0..wanted.len()).filter(|column| is_cast(*column)).collect();
        if cast.is_empty() {
            return;
        }
        let collations = lists::oids((*document).colcollations);
        let with = |all: &[Oid], text: Oid| {
            let each = all.iter().enumerate();
            let of = each.map(|(column, own)| if cast.contains(&column) { text } else { *own });
            of.fold(std::ptr::null_mut(), |list, oid| pg_sys::lappend_oid(list, oid))
        };
        (*document).coltypes = with(&wanted, pg_sys::TEXTOID);
        (*document).colcollations = with(&collations, pg_sys::DEFAULT_COLLATION_OID);
        (*entry).coltypes = (*document).coltypes;
        (*entry).colcollations = (*document).colcollations;
        let entry = wrapped::wrap(query, number, None);
        let targets = lists::pointers::<pg_sys::TargetEntry>((*(*entry).subquery).targetList);
        for column in cast {
            let target = targets[column];
            (*target).expr = array_of((*target).expr, wanted[column]);
        }
    }
}

/// `text::ty`
///
/// # Safety
/// An expression, which becomes part of the result.
unsafe fn array_of(text: *mut pg_sys::Expr, ty: Oid) -> *mut pg_sys::Expr {
    // SAFETY: a new node.
    unsafe {
        let cast: *mut pg_sys::CoerceViaIO = nodes::new(NodeTag::T_CoerceViaIO);
        (*cast).arg = text;
        (*cast).resulttype = ty;
        (*cast).resultcollid = pg_sys::get_typcollation(ty);
        (*cast).coerceformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CAST;
        (*cast).location = -1;
        cast.cast()
    }
}
