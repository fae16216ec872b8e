//! PostgreSQL's types: their names for the planner, how they compare, how they are written.

use crate::pg::catalog::{self, describe_relation, Attribute, CollationClass, Volatility};
use crate::pg::ids::RelationId;
use crate::pg::quiet;
use crate::pg::strings::owned;
use pgrx::pg_sys::{self, Oid};
use plan::types::{HostType, Scalar, Type};
use std::collections::{BTreeMap, BTreeSet};

/// The planner's name of a type, by the type's base type; `None` for those that are none of columns.
/// `collation`: that of the values, or the invalid one.
pub fn planner_type(oid: Oid, collation: Oid) -> Option<Type> {
    // SAFETY: look-ups in the system caches.
    let base = unsafe { pg_sys::getBaseType(oid) };
    let element = element_type(base);
    let distinguishes = collation == Oid::INVALID
        || catalog::collation_class(collation) != CollationClass::Nondeterministic;
    let collation = if distinguishes { Oid::INVALID } else { collation };
    match native_type(base) {
        Some(ty) if distinguishes => Some(ty),
        _ if element != Oid::INVALID => host_type(element, collation).map(Type::Array),
        _ => host_type(base, collation).map(Type::Scalar),
    }
}

/// The planner's name of a type that it has operators and functions for, by the type's base type.
pub fn native_type(oid: Oid) -> Option<Type> {
    // SAFETY: look-ups in the system caches.
    let base = unsafe { pg_sys::getBaseType(oid) };
    if let Some(scalar) = native_scalar(base) {
        return Some(Type::Scalar(scalar));
    }
    native_scalar(element_type(base)).map(Type::Array)
}

/// What an array holds, or the invalid OID for what is no array; vectors are not all arrays can be.
fn element_type(ty: Oid) -> Oid {
    match ty {
        pg_sys::INT2VECTOROID | pg_sys::OIDVECTOROID => Oid::INVALID,
        // SAFETY: a look-up in the system cache.
        _ => unsafe { pg_sys::get_element_type(ty) },
    }
}

/// The domain of which an array consists, if it is one.
pub fn domain_of(array: Oid) -> Option<Oid> {
    let element = element_type(base_type(array));
    (element != Oid::INVALID && base_type(element) != element).then_some(element)
}

/// A type that the planner knows by number only.
fn host_type(oid: Oid, collation: Oid) -> Option<Scalar> {
    // SAFETY: look-ups in the system caches, which answer 0 for what does not exist.
    let (kind, len) =
        unsafe { (pg_sys::get_typtype(oid) as u8, i32::from(pg_sys::get_typlen(oid))) };
    let is_storable = kind != 0 && kind != pg_sys::TYPTYPE_PSEUDO && len >= -1;
    let is_exact = collation == Oid::INVALID && is_equal_by_image(oid);
    let ty = HostType { id: oid.to_u32(), collation: collation.to_u32(), is_exact };
    let is_known = is_storable || oid == pg_sys::RECORDOID;
    is_known.then(|| Scalar::Host(ty.named(&type_name(oid))))
}

fn native_scalar(oid: Oid) -> Option<Scalar> {
    Some(match oid {
        pg_sys::BOOLOID => Scalar::Bool,
        pg_sys::INT2OID => Scalar::Int2,
        pg_sys::INT4OID => Scalar::Int4,
        pg_sys::INT8OID => Scalar::Int8,
        pg_sys::FLOAT4OID => Scalar::Float4,
        pg_sys::FLOAT8OID => Scalar::Float8,
        pg_sys::NUMERICOID => Scalar::Numeric,
        pg_sys::TEXTOID => Scalar::Text,
        pg_sys::VARCHAROID => Scalar::Varchar,
        pg_sys::BPCHAROID => Scalar::Char,
        pg_sys::DATEOID => Scalar::Date,
        pg_sys::TIMESTAMPOID => Scalar::Timestamp,
        pg_sys::TIMESTAMPTZOID => Scalar::Timestamptz,
        pg_sys::UUIDOID => Scalar::Uuid,
        pg_sys::BYTEAOID => Scalar::Bytea,
        _ => return None,
    })
}

/// Whether a type is an enum.
pub fn is_enum(ty: Oid) -> bool {
    // SAFETY: a look-up in the system cache.
    unsafe { pg_sys::get_typtype(ty) as u8 == pg_sys::TYPTYPE_ENUM }
}

/// Whether values of a type are equal if and only if their bytes are. So are, for want of anything else, those of a type
/// without an equality: no query groups or sorts them, and what plans compare by themselves, such as the values that a
/// correlated subquery is computed for, need be told apart only.
fn is_equal_by_image(oid: Oid) -> bool {
    const BTEQUALIMAGE_PROC: i16 = 4;
    if !has_equality(oid) {
        return true;
    }
    let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
    // SAFETY: entries of the type cache live as long as the process; the support function takes the OID of a type.
    unsafe {
        let entry = &*pg_sys::lookup_type_cache(oid, wanted);
        if entry.btree_opf == Oid::INVALID {
            return false;
        }
        let (family, ty) = (entry.btree_opf, entry.btree_opintype);
        let function = pg_sys::get_opfamily_proc(family, ty, ty, BTEQUALIMAGE_PROC);
        // One of users would be run by whoever asks.
        function != Oid::INVALID
            && catalog::is_builtin(function)
            && entry.typcollation == Oid::INVALID
            && pg_sys::OidFunctionCall1Coll(function, Oid::INVALID, ty.into()).value() != 0
    }
}

/// A type without the domains over it.
pub fn base_type(ty: Oid) -> Oid {
    // SAFETY: a look-up in the system cache.
    unsafe { pg_sys::getBaseType(ty) }
}

/// Whether a type is one of arrays.
pub fn is_array(ty: Oid) -> bool {
    element_type(base_type(ty)) != Oid::INVALID
}

/// Whether values of a type have a collation.
pub fn is_collatable(ty: Oid) -> bool {
    // SAFETY: a look-up in the system cache.
    unsafe { pg_sys::get_typcollation(ty) != Oid::INVALID }
}

/// The relation whose rows are of a type.
pub fn relation_of(ty: Oid) -> Option<Oid> {
    // SAFETY: a look-up in the system cache.
    let relation = unsafe { pg_sys::get_typ_typrelid(ty) };
    (relation != Oid::INVALID).then_some(relation)
}

/// Adds the composite types that values of a type consist of, itself included, with their columns.
pub fn collect_composites(ty: Oid, found: &mut BTreeMap<RelationId, Vec<Attribute>>) {
    let ty = base_type(ty);
    let element = element_type(ty);
    if element != Oid::INVALID {
        return collect_composites(element, found);
    }
    let new = relation_of(ty).filter(|relation| !found.contains_key(&RelationId::from(*relation)));
    let Some(relation) = new else { return };
    let columns = describe_relation(relation).map_or(Vec::new(), |row| row.attributes);
    let types: Vec<Oid> = columns.iter().map(|column| column.type_oid).collect();
    found.insert(relation.into(), columns);
    types.into_iter().for_each(|ty| collect_composites(ty, found));
}

/// A type's name as SQL spells it.
pub fn type_name(oid: Oid) -> String {
    // SAFETY: returns a palloc'd string for any OID.
    unsafe { owned(pg_sys::format_type_be(oid)) }
}

/// A type's name with its modifier, for messages.
pub fn spelled_type(ty: Oid, typmod: i32) -> String {
    // SAFETY: returns a palloc'd string for any OID.
    unsafe { owned(pg_sys::format_type_with_typemod(ty, typmod)) }
}

/// A type's name with its schema and modifier, as SQL spells it.
pub fn qualified_type(ty: Oid, typmod: i32) -> String {
    let flags = pg_sys::FORMAT_TYPE_FORCE_QUALIFY | pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN;
    // SAFETY: returns a palloc'd string for any OID.
    unsafe { owned(pg_sys::format_type_extended(ty, typmod, flags as pg_sys::bits16)) }
}

/// The functions that convert a type to text and back.
pub fn io_functions(type_oid: Oid) -> (Oid, Oid) {
    let (mut output, mut input, mut param) = (Oid::INVALID, Oid::INVALID, Oid::INVALID);
    let mut varlena = false;
    // SAFETY: look-ups in the system cache.
    unsafe {
        pg_sys::getTypeOutputInfo(type_oid, &mut output, &mut varlena);
        pg_sys::getTypeInputInfo(type_oid, &mut input, &mut param);
    }
    (output, input)
}

/// The type of the elements of arrays, at any depth and beneath domains; of others the type beneath domains.
pub fn innermost(ty: Oid) -> Oid {
    let base = base_type(ty);
    match element_type(base) {
        Oid::INVALID => base,
        element => innermost(element),
    }
}

/// The types whose values are numbers of objects, and whose text is the object's name, each with the catalogs that decide
/// it: the catalog, and its columns with the name and the schema.
const NAMES: [(Oid, &[Catalog]); 11] = [
    (pg_sys::REGCLASSOID, &[("pg_class", "relname", Some("relnamespace"))]),
    (pg_sys::REGTYPEOID, &[TYPES]),
    (pg_sys::REGPROCOID, &[FUNCTIONS]),
    (pg_sys::REGPROCEDUREOID, &[FUNCTIONS, TYPES]),
    (pg_sys::REGOPEROID, &[OPERATORS]),
    (pg_sys::REGOPERATOROID, &[OPERATORS, TYPES]),
    (pg_sys::REGCOLLATIONOID, &[("pg_collation", "collname", Some("collnamespace"))]),
    (pg_sys::REGCONFIGOID, &[("pg_ts_config", "cfgname", Some("cfgnamespace"))]),
    (pg_sys::REGDICTIONARYOID, &[("pg_ts_dict", "dictname", Some("dictnamespace"))]),
    (pg_sys::REGNAMESPACEOID, &[("pg_namespace", "nspname", None)]),
    (pg_sys::REGROLEOID, &[("pg_roles", "rolname", None)]),
];

type Catalog = (&'static str, &'static str, Option<&'static str>);

const TYPES: Catalog = ("pg_type", "typname", Some("typnamespace"));
const FUNCTIONS: Catalog = ("pg_proc", "proname", Some("pronamespace"));
const OPERATORS: Catalog = ("pg_operator", "oprname", Some("oprnamespace"));

/// PostgreSQL's own conversions of values to text that depend on settings and on the labels of enums, and on nothing else.
const OUTPUT_BY_SETTINGS: [&str; 6] =
    ["cash_out", "date_out", "enum_out", "interval_out", "timestamp_out", "timestamptz_out"];

/// And to values. What is made of words such as `now` is found when it is evaluated.
const INPUT_BY_SETTINGS: [&str; 8] = [
    "cash_in",
    "date_in",
    "enum_in",
    "interval_in",
    "time_in",
    "timestamp_in",
    "timestamptz_in",
    "xml_in",
];

/// Whether the text of values, or their JSON, depends on nothing but the settings of a view.
pub fn is_output_known(ty: Oid, as_json: bool) -> bool {
    let ty = base_type(ty);
    if let Some(cast) = json_cast(ty).filter(|_| as_json) {
        return is_immutable(cast);
    }
    // JSON has the text of a range.
    let as_json = as_json && !is_range(ty);
    match parts_of(ty) {
        Some(parts) => parts.into_iter().all(|part| is_output_known(part, as_json)),
        None if is_name(ty) => true,
        None => ty != pg_sys::RECORDOID && is_known(io_functions(ty).0, &OUTPUT_BY_SETTINGS),
    }
}

/// Whether the text of values is the name of an object, by which a view is told of changes.
fn is_name(ty: Oid) -> bool {
    NAMES.iter().any(|(name, _)| *name == ty)
}

/// Adds the types of names that values of a type consist of.
pub fn collect_names(ty: Oid, found: &mut BTreeSet<u32>) {
    let ty = base_type(ty);
    if is_name(ty) {
        found.insert(ty.to_u32());
    }
    let parts = parts_of(ty).unwrap_or_default();
    parts.into_iter().for_each(|part| collect_names(part, found));
}

/// What tells the names of all objects that values of these types may be from what they were. Those of temporary objects
/// are left out, which come and go all the time.
pub fn version_of_names(types: &BTreeSet<u32>) -> String {
    let is_wanted = |(ty, _): &&(Oid, &'static [Catalog])| types.contains(&ty.to_u32());
    let catalogs: BTreeSet<Catalog> =
        NAMES.iter().filter(is_wanted).flat_map(|(_, catalogs)| *catalogs).copied().collect();
    let versions = catalogs.into_iter().map(|(catalog, name, schema)| {
        let schema = schema.map_or("0::pg_catalog.oid".to_owned(), |schema| format!("c.{schema}"));
        let query = format!(
            "SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.format('%s %s %s', c.oid, n.nspname, c.{name}), ' ' ORDER BY c.oid))
             FROM pg_catalog.{catalog} c LEFT JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) {schema}
             WHERE n.nspname IS NULL OR n.nspname OPERATOR(pg_catalog.!~) '^pg_(toast_)?temp_'"
        );
        quiet::first_row(&query, |row| row.get_one::<String>()).flatten().unwrap_or_default()
    });
    versions.collect::<Vec<_>>().join(" ")
}

/// The names of these relations, as they are written.
pub fn names_of_relations(relations: &[Oid]) -> String {
    let numbers: Vec<String> = relations.iter().map(|oid| oid.to_u32().to_string()).collect();
    let query = format!(
        "SELECT pg_catalog.string_agg(r::pg_catalog.regclass::pg_catalog.text, ' ' ORDER BY r)
         FROM pg_catalog.unnest('{{{}}}'::pg_catalog.oid[]) AS r",
        numbers.join(",")
    );
    quiet::first_row(&query, |row| row.get_one::<String>()).flatten().unwrap_or_default()
}

/// Whether the value that a text stands for depends on nothing but the settings of a view.
pub fn is_input_known(ty: Oid) -> bool {
    match parts_of(ty) {
        Some(parts) => parts.into_iter().all(is_input_known),
        None => ty != pg_sys::RECORDOID && is_known(io_functions(ty).1, &INPUT_BY_SETTINGS),
    }
}

fn is_known(function: Oid, by_settings: &[&str]) -> bool {
    let is_listed = || {
        let (name, is_builtin) = catalog::function_name(function);
        is_builtin && by_settings.contains(&name.as_str())
    };
    is_immutable(function) || is_listed()
}

/// The cast of users to json by which JSON is made of a type of theirs.
fn json_cast(ty: Oid) -> Option<Oid> {
    // SAFETY: look-ups in the system caches.
    unsafe {
        let has_parts =
            element_type(ty) != Oid::INVALID || pg_sys::get_typ_typrelid(ty) != Oid::INVALID;
        if has_parts || catalog::is_builtin(ty) {
            return None;
        }
        let mut cast = Oid::INVALID;
        let explicitly = pg_sys::CoercionContext::COERCION_EXPLICIT;
        let path = pg_sys::find_coercion_pathway(pg_sys::JSONOID, ty, explicitly, &mut cast);
        (path == pg_sys::CoercionPathType::COERCION_PATH_FUNC).then_some(cast)
    }
}

fn is_range(ty: Oid) -> bool {
    // SAFETY: a look-up in the system cache.
    let kind = unsafe { pg_sys::get_typtype(ty) } as u8;
    matches!(kind, pg_sys::TYPTYPE_RANGE | pg_sys::TYPTYPE_MULTIRANGE)
}

fn is_immutable(function: Oid) -> bool {
    catalog::volatility(function) == Volatility::Immutable
}

/// The types of what values of an array, range, multirange or composite type consist of; `None` for any other type.
fn parts_of(ty: Oid) -> Option<Vec<Oid>> {
    // SAFETY: look-ups in the system caches; without result they answer with no type.
    let (range, bound, relation) = unsafe {
        let range = pg_sys::get_multirange_range(ty);
        (range, pg_sys::get_range_subtype(ty), pg_sys::get_typ_typrelid(ty))
    };
    if let Some(part) =
        [element_type(ty), range, bound].into_iter().find(|part| *part != Oid::INVALID)
    {
        return Some(vec![part]);
    }
    (relation != Oid::INVALID).then(|| {
        let fields = describe_relation(relation).map_or(Vec::new(), |row| row.attributes);
        fields.iter().map(|field| field.type_oid).collect()
    })
}

/// Whether a type is one of dates and times, or made of such.
pub fn has_time(ty: Oid) -> bool {
    use pg_sys::{DATEOID, TIMEOID, TIMESTAMPOID, TIMESTAMPTZOID, TIMETZOID};
    let ty = base_type(ty);
    [DATEOID, TIMEOID, TIMETZOID, TIMESTAMPOID, TIMESTAMPTZOID].contains(&ty)
        || parts_of(ty).is_some_and(|parts| parts.into_iter().any(has_time))
}

/// Whether a type is one of texts.
pub fn is_text(ty: Oid) -> bool {
    use pg_sys::{BPCHAROID, NAMEOID, TEXTOID, VARCHAROID};
    [TEXTOID, VARCHAROID, BPCHAROID, NAMEOID].contains(&base_type(ty))
}

/// What decides how values of users' types are written.
#[derive(Debug, Default)]
pub struct Spellings {
    /// Enums, with their labels.
    pub enums: BTreeMap<u32, String>,
    /// The functions of casts to JSON, and what tells one definition of each from the next.
    pub casts: BTreeMap<u32, String>,
}

/// Adds what a type is made of that decides how its values are written.
pub fn collect_spellings(ty: Oid, found: &mut Spellings) {
    let ty = base_type(ty);
    if let Some(cast) = json_cast(ty) {
        found.casts.insert(cast.to_u32(), version_of_function(cast));
    }
    // SAFETY: a look-up in the system cache.
    if unsafe { pg_sys::type_is_enum(ty) } {
        let query = format!(
            "SELECT pg_catalog.string_agg(pg_catalog.quote_literal(enumlabel), ',' ORDER BY enumsortorder)
             FROM pg_catalog.pg_enum WHERE enumtypid OPERATOR(pg_catalog.=) {}",
            ty.to_u32()
        );
        let labels = quiet::first_row(&query, |row| row.get_one::<String>());
        found.enums.insert(ty.to_u32(), labels.flatten().unwrap_or_default());
    }
    let parts = parts_of(ty).unwrap_or_default();
    parts.into_iter().for_each(|part| collect_spellings(part, found));
}

/// What tells one definition of a function from the next.
fn version_of_function(function: Oid) -> String {
    let query = format!(
        "SELECT xmin::pg_catalog.text OPERATOR(pg_catalog.||) ctid::pg_catalog.text
         FROM pg_catalog.pg_proc WHERE oid OPERATOR(pg_catalog.=) {}",
        function.to_u32()
    );
    quiet::first_row(&query, |row| row.get_one::<String>()).flatten().unwrap_or_default()
}

/// What tells how texts are searched now from how they were: the versions of all configurations and dictionaries.
pub fn version_of_searches() -> String {
    let query = "SELECT pg_catalog.md5(pg_catalog.string_agg(v, ' ' ORDER BY v COLLATE \"C\")) FROM (
             SELECT 'c' OPERATOR(pg_catalog.||) xmin::pg_catalog.text OPERATOR(pg_catalog.||) ctid::pg_catalog.text
             FROM pg_catalog.pg_ts_config
             UNION ALL SELECT 'm' OPERATOR(pg_catalog.||) xmin::pg_catalog.text OPERATOR(pg_catalog.||) ctid::pg_catalog.text
             FROM pg_catalog.pg_ts_config_map
             UNION ALL SELECT 'd' OPERATOR(pg_catalog.||) xmin::pg_catalog.text OPERATOR(pg_catalog.||) ctid::pg_catalog.text
             FROM pg_catalog.pg_ts_dict) AS versions(v)";
    quiet::first_row(query, |row| row.get_one::<String>()).flatten().unwrap_or_default()
}

/// Whether a type has an equality by which rows are told apart.
pub fn has_equality(type_oid: Oid) -> bool {
    equality(type_oid) != Oid::INVALID
}

/// Whether an operator is `<` or `>` of a type's own order.
pub fn is_default_order(operator: Oid, type_oid: Oid) -> bool {
    let wanted = pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR;
    // SAFETY: entries of the type cache live as long as the process.
    let (less, greater) = unsafe {
        let entry = pg_sys::lookup_type_cache(type_oid, wanted as i32);
        ((*entry).lt_opr, (*entry).gt_opr)
    };
    operator != Oid::INVALID && (operator == less || operator == greater)
}

/// Whether an operator is `>` of a type's own order.
pub fn is_descending(operator: Oid, type_oid: Oid) -> bool {
    // SAFETY: entries of the type cache live as long as the process.
    let greater =
        unsafe { (*pg_sys::lookup_type_cache(type_oid, pg_sys::TYPECACHE_GT_OPR as i32)).gt_opr };
    operator == greater
}

/// Whether an operator is the equality by which values of a type are grouped unless a query says otherwise.
pub fn is_default_equality(operator: Oid, type_oid: Oid) -> bool {
    operator != Oid::INVALID && operator == equality(type_oid)
}

/// A type's own equality, or the invalid OID.
pub fn equality(type_oid: Oid) -> Oid {
    // SAFETY: entries of the type cache live as long as the process.
    unsafe { (*pg_sys::lookup_type_cache(type_oid, pg_sys::TYPECACHE_EQ_OPR as i32)).eq_opr }
}

/// The type of arrays of a type; `None` if there is none.
pub fn array_of(ty: Oid) -> Option<Oid> {
    // SAFETY: a look-up in the system cache.
    let array = unsafe { pg_sys::get_array_type(ty) };
    (array != Oid::INVALID).then_some(array)
}

/// Whether an operator compares two values of one type in the type's own order, and is named as is usual: `<`, `=` and
/// so on, or `<>`.
pub fn is_own_comparison(operator: Oid, type_oid: Oid) -> bool {
    let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
    // SAFETY: entries of the type cache live as long as the process; the others are look-ups.
    unsafe {
        let entry = &*pg_sys::lookup_type_cache(type_oid, wanted);
        let (family, ty) = (entry.btree_opf, entry.btree_opintype);
        if family == Oid::INVALID {
            return false;
        }
        let (mut left, mut right) = (Oid::INVALID, Oid::INVALID);
        pg_sys::op_input_types(operator, &mut left, &mut right);
        let strategy = |op| pg_sys::get_op_opfamily_strategy(op, family) as u32;
        let negator = pg_sys::get_negator(operator);
        let is_unequal =
            negator != Oid::INVALID && strategy(negator) == pg_sys::BTEqualStrategyNumber;
        let name = match strategy(operator) {
            pg_sys::BTLessStrategyNumber => "<",
            pg_sys::BTLessEqualStrategyNumber => "<=",
            pg_sys::BTEqualStrategyNumber => "=",
            pg_sys::BTGreaterEqualStrategyNumber => ">=",
            pg_sys::BTGreaterStrategyNumber => ">",
            _ if is_unequal => "<>",
            _ => return false,
        };
        (left, right) == (ty, ty) && catalog::operator(operator).0 == name
    }
}
