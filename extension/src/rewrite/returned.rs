//! What functions in FROM return, and what XMLTABLE and JSON_TABLE make of documents: sets of single values, or rows and
//! their columns.

use crate::pg::lists;
use crate::pg::strings::owned;
use crate::pg::types;
use crate::pg::versions::tuple;
use crate::rewrite::parts;
use crate::rewrite::tree::{self, Place};
use pgrx::pg_sys::{self, Oid};

/// What an array holds.
pub(super) struct Rows {
    /// The call, or what is made of a document, over `$1`, `$2` …
    pub(super) call: *mut pg_sys::Node,
    /// The column, of these, whose values are wanted; `None` for whole rows.
    pub(super) column: Option<(usize, Vec<Column>)>,
    pub(super) element: Oid,
    pub(super) collation: Oid,
}

/// A column of what a function returns.
#[derive(Clone)]
pub(super) struct Column {
    /// As SQL spells it.
    pub(super) name: String,
    pub(super) ty: Oid,
    pub(super) typmod: i32,
    pub(super) collation: Oid,
    /// Whether the query defines it, not the function.
    is_defined: bool,
    /// Whether the type of the rows has lost it: its place is there, and no value.
    is_dropped: bool,
}

impl Column {
    /// A column that a query defines.
    pub(super) fn new(name: String, ty: Oid, collation: Oid) -> Column {
        Column { name, ty, typmod: -1, collation, is_defined: true, is_dropped: false }
    }

    /// Whether the type of the rows has lost it.
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped
    }

    /// Whether the query defines it, not the function.
    pub(super) fn is_defined(&self) -> bool {
        self.is_defined
    }
}

impl Rows {
    /// Which column's values are wanted, and all columns; `None` for whole rows.
    pub(super) fn column(&self) -> Option<&(usize, Vec<Column>)> {
        self.column.as_ref()
    }

    /// The type of the array; of arrays, that is one of more dimensions. That there is one has been checked.
    pub(super) fn array_type(&self) -> Oid {
        match types::is_array(self.element) {
            true => self.element,
            false => types::array_of(self.element).unwrap_or(Oid::INVALID),
        }
    }

    pub(super) fn collation(&self) -> Oid {
        self.collation
    }

    /// The types of all columns that there are; none for single values.
    pub(super) fn types(&self) -> Vec<Oid> {
        self.column.as_ref().map_or(Vec::new(), |(_, columns)| types_of(columns))
    }

    /// The call, or what is made of a document, over `$1`, `$2` …
    pub(super) fn call(&self) -> *mut pg_sys::Node {
        self.call
    }

    /// For people: the query that makes the array, of the call's text.
    pub(super) fn text(&self, deparse: impl Fn(*mut pg_sys::Node) -> String) -> String {
        let call = deparse(self.call);
        let Some((wanted, columns)) = &self.column else {
            return format!("SELECT pg_catalog.array_agg(t.v) FROM (SELECT {call} AS v) AS t");
        };
        let column = |column: &Column| match column.is_defined {
            true => {
                format!("{} {}", column.name, types::qualified_type(column.ty, column.typmod))
            }
            false => column.name.clone(),
        };
        let wanted = &columns[*wanted].name;
        let columns: Vec<String> = columns.iter().filter(|c| !c.is_dropped).map(column).collect();
        let columns = columns.join(", ");
        format!("SELECT pg_catalog.array_agg(t.{wanted}) FROM {call} AS t({columns})")
    }
}

/// The types of those of the columns that there are.
fn types_of(columns: &[Column]) -> Vec<Oid> {
    columns.iter().filter(|column| !column.is_dropped).map(|column| column.ty).collect()
}

/// The functions of an item of FROM: each call, and the types of its columns if it returns rows.
pub fn functions(entry: &pg_sys::RangeTblEntry) -> Vec<(Place<'_>, Vec<Oid>)> {
    // SAFETY: such an entry has a list of functions.
    unsafe {
        let functions = lists::pointers::<pg_sys::RangeTblFunction>(entry.functions);
        let call = |function: *mut pg_sys::RangeTblFunction| {
            let types = types_of(&columns_of(function));
            Some((tree::place((*function).funcexpr)?, types))
        };
        functions.into_iter().filter_map(call).collect()
    }
}

/// Whether columns that functions in FROM return have other collations than their types have.
pub fn has_own_collations(entry: &pg_sys::RangeTblEntry) -> bool {
    // SAFETY: such an entry has a list of functions.
    unsafe {
        let functions = lists::pointers::<pg_sys::RangeTblFunction>(entry.functions);
        let mut columns = functions.into_iter().flat_map(|function| columns_of(function));
        columns.any(|column| column.collation != pg_sys::get_typcollation(column.ty))
    }
}

/// What makes rows of a document in FROM, and the types of their columns.
pub fn document(entry: &pg_sys::RangeTblEntry) -> Option<(Place<'_>, Vec<Oid>)> {
    let place = parts::document(entry)?;
    // SAFETY: of an analysed query's FROM.
    let columns = unsafe { columns_of_document(entry.tablefunc) };
    Some((place, columns.into_iter().map(|column| column.ty).collect()))
}

/// The columns that are made of a document.
///
/// # Safety
/// An XMLTABLE or JSON_TABLE of an analysed query's FROM.
pub(super) unsafe fn columns_of_document(document: *mut pg_sys::TableFunc) -> Vec<Column> {
    // SAFETY: lists of equal length.
    unsafe {
        let names = lists::pointers::<pg_sys::String>((*document).colnames);
        let types = lists::oids((*document).coltypes).into_iter();
        let details = types.zip(lists::oids((*document).colcollations));
        let column = |(name, (ty, collation)): (*mut pg_sys::String, _)| Column {
            name: owned(pg_sys::quote_identifier((*name).sval).cast_mut()),
            ty,
            typmod: -1,
            collation,
            is_defined: false,
            is_dropped: false,
        };
        names.into_iter().zip(details).map(column).collect()
    }
}

/// The columns of a function in FROM; none if it returns single values.
///
/// # Safety
/// A function of an analysed query's FROM.
pub(super) unsafe fn columns_of(function: *mut pg_sys::RangeTblFunction) -> Vec<Column> {
    // SAFETY: an analysed call; a description of its result lives as long as the tree.
    unsafe {
        if !(*function).funccoltypes.is_null() {
            let names = lists::pointers::<pg_sys::String>((*function).funccolnames);
            let types = lists::oids((*function).funccoltypes);
            let typmods = lists::integers((*function).funccoltypmods);
            let collations = lists::oids((*function).funccolcollations);
            let details = types.into_iter().zip(typmods).zip(collations);
            let column = |(name, ((ty, typmod), collation)): (*mut pg_sys::String, _)| {
                let name = owned(pg_sys::quote_identifier((*name).sval).cast_mut());
                Column { name, ty, typmod, collation, is_defined: true, is_dropped: false }
            };
            return names.into_iter().zip(details).map(column).collect();
        }
        let (class, attributes) = columns_of_result((*function).funcexpr);
        if class != pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE {
            return Vec::new();
        }
        let column = |(number, attribute): (usize, &pg_sys::FormData_pg_attribute)| Column {
            name: format!("c{number}"),
            ty: attribute.atttypid,
            typmod: -1,
            collation: attribute.attcollation,
            is_defined: false,
            is_dropped: attribute.attisdropped,
        };
        // Those that the type has got since the query was analysed are not the item's.
        let known = usize::try_from((*function).funccolcount).unwrap_or(0);
        attributes.iter().take(known).enumerate().map(column).collect()
    }
}

/// Whether an expression in FROM makes a row.
pub(super) fn is_row(call: Place<'_>) -> bool {
    // SAFETY: an analysed call.
    let (class, _) = unsafe { columns_of_result(call.0) };
    class != pg_sys::TypeFuncClass::TYPEFUNC_SCALAR
}

/// Whether a function in FROM returns rows of a type that has lost all its columns.
pub fn has_lost_all_columns(call: Place<'_>) -> bool {
    // SAFETY: an analysed call.
    let (_, attributes) = unsafe { columns_of_result(call.0) };
    !attributes.is_empty() && attributes.iter().all(|attribute| attribute.attisdropped)
}

/// What a call returns, and the columns of its rows, dropped ones among them; none if it returns single values.
///
/// # Safety
/// An analysed call; the result must not outlive its tree.
unsafe fn columns_of_result<'a>(
    call: *mut pg_sys::Node,
) -> (pg_sys::TypeFuncClass::Type, &'a [pg_sys::FormData_pg_attribute]) {
    let mut ty = Oid::INVALID;
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: an analysed call; a description of its result lives as long as the tree.
    unsafe {
        let class = pg_sys::get_expr_result_type(call, &mut ty, &mut descriptor);
        if descriptor.is_null() {
            return (class, &[]);
        }
        (class, tuple::columns(descriptor))
    }
}
