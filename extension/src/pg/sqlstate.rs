//! SQLSTATEs, by PostgreSQL's names.
//!
//! PostgreSQL packs the five characters of one into a number. pgrx knows PostgreSQL's own; users may raise any other.

use pgrx::PgSqlErrorCode;
use std::fmt;

/// An SQLSTATE: five digits or upper-case letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SqlState([u8; LEN]);

const LEN: usize = 5;

/// The first two characters of SQLSTATEs: what kind of error it is.
pub mod class {
    pub const TRANSACTION_ROLLBACK: &str = "40";
    pub const INSUFFICIENT_RESOURCES: &str = "53";
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55";
    pub const OPERATOR_INTERVENTION: &str = "57";
    pub const SYSTEM_ERROR: &str = "58";
    pub const SNAPSHOT_FAILURE: &str = "72";
}

impl SqlState {
    pub const CHARACTER_NOT_IN_REPERTOIRE: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE);
    pub const CONFIGURATION_LIMIT_EXCEEDED: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED);
    pub const CRASH_SHUTDOWN: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_CRASH_SHUTDOWN);
    pub const DUPLICATE_COLUMN: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_DUPLICATE_COLUMN);
    pub const FEATURE_NOT_SUPPORTED: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED);
    pub const INDETERMINATE_COLLATION: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_INDETERMINATE_COLLATION);
    pub const INSUFFICIENT_PRIVILEGE: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE);
    pub const INTERNAL_ERROR: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR);
    pub const INVALID_OBJECT_DEFINITION: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_INVALID_OBJECT_DEFINITION);
    pub const INVALID_TABLE_DEFINITION: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_INVALID_TABLE_DEFINITION);
    pub const INVALID_PARAMETER_VALUE: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE);
    pub const IO_ERROR: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_IO_ERROR);
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE);
    pub const OUT_OF_MEMORY: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY);
    pub const QUERY_CANCELED: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_QUERY_CANCELED);
    pub const SNAPSHOT_TOO_OLD: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_SNAPSHOT_TOO_OLD);
    pub const STATEMENT_TOO_COMPLEX: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX);
    pub const SUCCESSFUL_COMPLETION: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION);
    pub const SYNTAX_ERROR: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_SYNTAX_ERROR);
    pub const T_R_DEADLOCK_DETECTED: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_T_R_DEADLOCK_DETECTED);
    pub const T_R_SERIALIZATION_FAILURE: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE);
    pub const INVALID_SCHEMA_NAME: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_INVALID_SCHEMA_NAME);
    pub const UNDEFINED_FUNCTION: SqlState =
        SqlState::of(PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION);
    pub const UNDEFINED_TABLE: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE);
    pub const UNDEFINED_OBJECT: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT);
    pub const DATATYPE_MISMATCH: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH);
    pub const UNIQUE_VIOLATION: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION);
    pub const WARNING: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_WARNING);
    pub const WRONG_OBJECT_TYPE: SqlState = SqlState::of(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE);

    const fn of(code: PgSqlErrorCode) -> SqlState {
        SqlState::from_packed(code as i32)
    }

    /// From PostgreSQL's packed form.
    pub const fn from_packed(packed: i32) -> SqlState {
        let mut characters = [0; LEN];
        let mut index = 0;
        while index < LEN {
            characters[index] = ((packed >> (6 * index)) & 0x3f) as u8 + b'0';
            index += 1;
        }
        SqlState(characters)
    }

    /// PostgreSQL's packed form.
    pub fn packed(self) -> i32 {
        let pack =
            |index: usize| (i32::from(self.0[index].wrapping_sub(b'0')) & 0x3f) << (6 * index);
        (0..LEN).map(pack).sum()
    }

    /// As pgrx wants it; XX000 for one that it does not know.
    pub fn for_pgrx(self) -> PgSqlErrorCode {
        PgSqlErrorCode::from(self.packed())
    }

    /// From its five characters.
    pub fn parse(text: &str) -> Option<SqlState> {
        let characters = <[u8; LEN]>::try_from(text.as_bytes()).ok()?;
        characters.is_ascii().then_some(SqlState(characters))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("an SQLSTATE is made of ASCII characters")
    }

    /// Whether it is one of these classes.
    pub fn is_of(&self, classes: &[&str]) -> bool {
        classes.iter().any(|class| self.as_str().starts_with(class))
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
