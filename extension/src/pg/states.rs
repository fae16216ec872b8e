//! `eddy.view_states`: a row for each view that is not simply live together with the others.
//!
//! The worker writes the row in the transaction that changes the state, so whoever sees a view's rows, under
//! whatever snapshot and on whatever server, sees how they are meant.

use super::own_rows::{self, Field};
use super::progress;
use crate::pg::ids::ViewId;
use crate::pg::sqlstate::SqlState;
use std::ffi::CStr;

const TABLE: &CStr = c"view_states";

/// Set aside: its rows are of an earlier point than those of the others.
pub const BEHIND: &str = "behind";

/// Reads raise an error.
pub const ERROR: &str = "error";

/// The state of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateRow {
    pub relation: ViewId,
    /// What it is in, in one word.
    pub state: String,
    /// Everything committed before this position is in its rows; unknown if `None`.
    pub applied_lsn: Option<u64>,
    /// Since when (PostgreSQL timestamp).
    pub since: i64,
    /// SQLSTATE of the error.
    pub sqlstate: Option<SqlState>,
    /// Message of the error.
    pub message: Option<String>,
    /// Detail of the error.
    pub detail: Option<String>,
    /// Hint of the error.
    pub hint: Option<String>,
}

/// Puts the row in the place of the view's former one, or adds it. Needs a transaction, which sees it at once.
pub fn write(row: &StateRow) {
    let text = |text: &Option<String>| text.clone().map_or(Field::Null, Field::Text);
    own_rows::put(
        TABLE,
        &[
            Field::Oid(row.relation.to_u32()),
            Field::Text(row.state.clone()),
            row.applied_lsn.map_or(Field::Null, Field::Lsn),
            Field::Time(row.since),
            row.sqlstate.map_or(Field::Null, |code| Field::Text(code.to_string())),
            text(&row.message),
            text(&row.detail),
            text(&row.hint),
        ],
    );
}

/// Removes the row of a view; says whether there was one. Needs a transaction.
pub fn remove(view: ViewId) -> bool {
    own_rows::remove(TABLE, view.to_u32())
}

/// Everything committed before this position is in the rows of a view that the active snapshot sees; unknown if `None`.
pub fn position_of(view: ViewId) -> Option<u64> {
    match read_one(view) {
        Some(state) => state.applied_lsn,
        None => progress::read(),
    }
}

/// All rows that the active snapshot sees.
pub fn read_all() -> Vec<StateRow> {
    own_rows::read(TABLE, None).into_iter().filter_map(parse).collect()
}

/// The row of a view that the active snapshot sees.
pub fn read_one(view: ViewId) -> Option<StateRow> {
    own_rows::read(TABLE, Some(view.to_u32())).into_iter().find_map(parse)
}

fn parse(row: Vec<Field>) -> Option<StateRow> {
    let text = |field: Field| match field {
        Field::Text(text) => Some(text),
        _ => None,
    };
    let [Field::Oid(relation), Field::Text(state), applied, Field::Time(since), sqlstate, message, detail, hint] =
        <[Field; 8]>::try_from(row).ok()?
    else {
        return None;
    };
    Some(StateRow {
        relation: ViewId::new(relation),
        state,
        applied_lsn: match applied {
            Field::Lsn(lsn) => Some(lsn),
            _ => None,
        },
        since,
        sqlstate: text(sqlstate).and_then(|code| SqlState::parse(&code)),
        message: text(message),
        detail: text(detail),
        hint: text(hint),
    })
}
