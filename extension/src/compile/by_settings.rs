//! PostgreSQL's own functions that are stable, but for settings only: those of the view decide what they answer.

use crate::pg::catalog;
use crate::rewrite::conversions;
use pgrx::pg_sys::{self, Oid};

/// Their names, as far as all functions of that name that are not immutable are such; without those that search texts.
const FUNCTIONS: [&str; 66] = [
    // Time zones.
    "date",
    "date_add",
    "date_part",
    "date_subtract",
    "date_trunc",
    "extract",
    "generate_series",
    "in_range",
    "interval_pl_timestamptz",
    "jsonb_path_exists_tz",
    "jsonb_path_match_tz",
    "jsonb_path_query_array_tz",
    "jsonb_path_query_first_tz",
    "jsonb_path_query_tz",
    "make_timestamptz",
    "overlaps",
    "time",
    "timestamp",
    "timestamptz",
    "timestamptz_mi_interval",
    "timestamptz_pl_interval",
    "timetz",
    "timezone",
    // Comparisons of one with and one without.
    "date_cmp_timestamptz",
    "date_eq_timestamptz",
    "date_ge_timestamptz",
    "date_gt_timestamptz",
    "date_le_timestamptz",
    "date_lt_timestamptz",
    "date_ne_timestamptz",
    "timestamp_cmp_timestamptz",
    "timestamp_eq_timestamptz",
    "timestamp_ge_timestamptz",
    "timestamp_gt_timestamptz",
    "timestamp_le_timestamptz",
    "timestamp_lt_timestamptz",
    "timestamp_ne_timestamptz",
    "timestamptz_cmp_date",
    "timestamptz_cmp_timestamp",
    "timestamptz_eq_date",
    "timestamptz_eq_timestamp",
    "timestamptz_ge_date",
    "timestamptz_ge_timestamp",
    "timestamptz_gt_date",
    "timestamptz_gt_timestamp",
    "timestamptz_le_date",
    "timestamptz_le_timestamp",
    "timestamptz_lt_date",
    "timestamptz_lt_timestamp",
    "timestamptz_ne_date",
    "timestamptz_ne_timestamp",
    // Locales and formats.
    "money",
    "numeric",
    "to_char",
    "to_date",
    "to_number",
    "to_timestamp",
    // Whether documents or pieces of them.
    "xml",
    // Names of collations, by which a view is told of changes.
    "pg_collation_for",
    // Encodings: that of the database stays.
    "convert",
    "convert_from",
    "convert_to",
    // The types of expressions stay.
    "pg_typeof",
    // Labels of enums, by which a view is told of changes.
    "enum_first",
    "enum_last",
    "enum_range",
];

/// Whether the results of a stable function depend on its arguments and on the settings of a view, and on nothing else.
pub fn decide(function: Oid) -> bool {
    let (name, is_builtin) = catalog::function_name(function);
    let is_listed = is_builtin && FUNCTIONS.contains(&name.as_str());
    is_listed && !reads_present(function) || conversions::is_search(function)
}

/// What the time zone of a time without a date is depends on the day.
fn reads_present(function: Oid) -> bool {
    let args = catalog::argument_types(function);
    args.contains(&pg_sys::TIMETZOID)
        || args == [pg_sys::TIMEOID] && catalog::function_name(function).0 == "timetz"
}
