//! SQLSTATEs of failures of data, by PostgreSQL's names (its `errcodes.txt`).

pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
pub const CARDINALITY_VIOLATION: &str = "21000";
pub const DATA_EXCEPTION: &str = "22000";
pub const STRING_DATA_RIGHT_TRUNCATION: &str = "22001";
pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
pub const NULL_VALUE_NOT_ALLOWED: &str = "22004";
pub const INVALID_DATETIME_FORMAT: &str = "22007";
pub const DATETIME_FIELD_OVERFLOW: &str = "22008";
pub const INVALID_TIME_ZONE_DISPLACEMENT_VALUE: &str = "22009";
pub const SUBSTRING_ERROR: &str = "22011";
pub const DIVISION_BY_ZERO: &str = "22012";
pub const INVALID_PRECEDING_OR_FOLLOWING_SIZE: &str = "22013";
pub const INVALID_ARGUMENT_FOR_NTILE: &str = "22014";
pub const INVALID_ARGUMENT_FOR_NTH_VALUE: &str = "22016";
pub const INVALID_ARGUMENT_FOR_POWER_FUNCTION: &str = "2201F";
pub const INVALID_ROW_COUNT_IN_LIMIT_CLAUSE: &str = "2201W";
pub const INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE: &str = "2201X";
pub const INVALID_PARAMETER_VALUE: &str = "22023";
pub const INVALID_ESCAPE_SEQUENCE: &str = "22025";
pub const ARRAY_SUBSCRIPT_ERROR: &str = "2202E";
pub const INVALID_TEXT_REPRESENTATION: &str = "22P02";
pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
pub const ADMIN_SHUTDOWN: &str = "57P01";
pub const INTERNAL_ERROR: &str = "XX000";
