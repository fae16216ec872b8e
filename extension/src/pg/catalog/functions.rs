//! Functions, operators and aggregates: their names, and whose code they are.

use crate::pg::quiet;
use crate::pg::strings::owned;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_int, CStr};

/// The one function of that schema and name.
pub fn find_function(schema: &str, name: &str) -> Option<Oid> {
    let query = format!(
        "SELECT p.oid FROM pg_catalog.pg_proc p \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace \
         WHERE n.nspname OPERATOR(pg_catalog.=) '{schema}' AND p.proname OPERATOR(pg_catalog.=) '{name}'"
    );
    quiet::first_row(&query, |row| row.get_one::<Oid>()).flatten()
}

/// The name of a type, without its schema, and the schema; `None` if it has just been dropped.
fn type_name_and_schema(ty: Oid) -> Option<(String, Oid)> {
    let rest = pg_sys::Datum::from(0);
    // SAFETY: a copy of an entry, of the form that entries have; a name is a C string.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::TYPEOID as c_int;
        let entry = pg_sys::SearchSysCacheCopy(cache, ty.into(), rest, rest, rest);
        if entry.is_null() {
            return None;
        }
        let form = pg_sys::GETSTRUCT(entry).cast::<pg_sys::FormData_pg_type>();
        let name = CStr::from_ptr((*form).typname.data.as_ptr()).to_string_lossy().into_owned();
        let schema = (*form).typnamespace;
        pg_sys::heap_freetuple(entry);
        Some((name, schema))
    }
}

/// The name of a type, without its schema.
pub fn type_name(ty: Oid) -> Option<String> {
    type_name_and_schema(ty).map(|(name, _)| name)
}

/// The function of that name and these arguments that is in the schema of a type.
pub fn function_beside(ty: Oid, name: &CStr, arguments: &[Oid]) -> Option<Oid> {
    let (_, schema) = type_name_and_schema(ty)?;
    let cache = pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as c_int;
    let number = pg_sys::Anum_pg_proc_oid as i16;
    // SAFETY: look-ups in the system caches, of a name and a vector that outlive them.
    let found = unsafe {
        let arguments = pg_sys::buildoidvector(arguments.as_ptr(), arguments.len() as c_int);
        let rest = pg_sys::Datum::from(0);
        let (name, schema) = (name.as_ptr().into(), schema.into());
        pg_sys::GetSysCacheOid(cache, number, name, arguments.into(), schema, rest)
    };
    (found != Oid::INVALID).then_some(found)
}

/// The type of what a function returns.
pub fn result_type(function: Oid) -> Oid {
    // SAFETY: a look-up in the system cache.
    unsafe { pg_sys::get_func_rettype(function) }
}

/// The extension that a function is of.
pub fn extension_of_function(function: Oid) -> Option<String> {
    extension_of(pg_sys::ProcedureRelationId, function)
}

/// The extension that an operator is of.
pub fn extension_of_operator(operator: Oid) -> Option<String> {
    extension_of(pg_sys::OperatorRelationId, operator)
}

/// The extension that a type is of.
pub fn extension_of_type(ty: Oid) -> Option<String> {
    extension_of(pg_sys::TypeRelationId, ty)
}

fn extension_of(catalog: Oid, object: Oid) -> Option<String> {
    // SAFETY: a look-up; a name is a palloc'd string, or null for what has just been dropped.
    unsafe {
        let name = pg_sys::get_extension_name(pg_sys::getExtensionOfObject(catalog, object));
        (!name.is_null()).then(|| owned(name))
    }
}

/// A function's name with its schema, as SQL spells it; its number if it has just been dropped.
pub fn qualified_function(function: Oid) -> String {
    // SAFETY: look-ups returning palloc'd strings, or null for what does not exist.
    unsafe {
        let name = pg_sys::get_func_name(function);
        if name.is_null() {
            return function.to_u32().to_string();
        }
        let schema = pg_sys::get_namespace_name(pg_sys::get_func_namespace(function));
        owned(pg_sys::quote_qualified_identifier(schema, name))
    }
}

/// A function's name, and whether it is one of PostgreSQL's own.
pub fn function_name(function: Oid) -> (String, bool) {
    // SAFETY: look-ups in the system cache.
    unsafe {
        let schema = pg_sys::get_func_namespace(function);
        let is_builtin = schema.to_u32() == pg_sys::PG_CATALOG_NAMESPACE;
        (owned(pg_sys::get_func_name(function)), is_builtin)
    }
}

/// A function's name with argument types.
pub fn function_signature(function: Oid) -> String {
    // SAFETY: returns a palloc'd string for any OID.
    unsafe { owned(pg_sys::format_procedure(function)) }
}

/// The same with its schema, whatever the search path.
pub fn qualified_signature(function: Oid) -> String {
    // SAFETY: returns a palloc'd string for any OID.
    unsafe { owned(pg_sys::format_procedure_qualified(function)) }
}

/// The schema that a function is in, as SQL spells it.
pub fn schema_of_function(function: Oid) -> String {
    // SAFETY: look-ups returning palloc'd strings, or null for what does not exist.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_func_namespace(function));
        match schema.is_null() {
            true => String::new(),
            false => owned(pg_sys::quote_identifier(schema).cast_mut()),
        }
    }
}

/// The types of a function's arguments.
pub fn argument_types(function: Oid) -> Vec<Oid> {
    let mut types: *mut Oid = std::ptr::null_mut();
    let mut count: c_int = 0;
    // SAFETY: a look-up that answers with a palloc'd array of so many; errs for functions that do not exist.
    unsafe {
        pg_sys::get_func_signature(function, &mut types, &mut count);
        (0..count as usize).map(|index| *types.add(index)).collect()
    }
}

/// How a function's result may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

pub fn volatility(function: Oid) -> Volatility {
    // SAFETY: a look-up in the system cache; errs for functions that do not exist.
    match unsafe { pg_sys::func_volatile(function) } as u8 {
        b'i' => Volatility::Immutable,
        b's' => Volatility::Stable,
        _ => Volatility::Volatile,
    }
}

/// The window function of PostgreSQL's own that one of users stands for by another name, with the same types.
pub fn own_window_function(function: Oid) -> Option<Oid> {
    let query = format!(
        "SELECT own.oid FROM pg_catalog.pg_proc p
         JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang
         JOIN pg_catalog.pg_proc own ON own.prosrc OPERATOR(pg_catalog.=) p.prosrc
         WHERE p.oid OPERATOR(pg_catalog.=) {} AND l.lanname OPERATOR(pg_catalog.=) 'internal'
         AND p.prokind OPERATOR(pg_catalog.=) 'w' AND own.prokind OPERATOR(pg_catalog.=) 'w'
         AND own.proargtypes OPERATOR(pg_catalog.=) p.proargtypes
         AND own.prorettype OPERATOR(pg_catalog.=) p.prorettype
         AND own.oid OPERATOR(pg_catalog.<) {}",
        function.to_u32(),
        pg_sys::FirstNormalObjectId
    );
    quiet::first_row(&query, |row| row.get_one::<Oid>()).flatten()
}

/// An operator's name, and the function behind it.
pub fn operator(operator: Oid) -> (String, Oid) {
    // SAFETY: look-ups in the system cache.
    unsafe { (owned(pg_sys::get_opname(operator)), pg_sys::get_opcode(operator)) }
}

/// The functions that an aggregate is computed with.
pub fn aggregate_functions(aggregate: Oid) -> Vec<Oid> {
    let query = format!(
        "SELECT aggtransfn::pg_catalog.oid, aggfinalfn::pg_catalog.oid \
         FROM pg_catalog.pg_aggregate WHERE aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) {}",
        aggregate.to_u32()
    );
    let found = quiet::first_row(&query, |row| row.get_two::<Oid, Oid>());
    let (transition, last) = found.unwrap_or((None, None));
    transition.into_iter().chain(last).filter(|function| *function != Oid::INVALID).collect()
}
