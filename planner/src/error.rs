//! Why a query cannot be planned.

/// Why a query is refused. Becomes an SQL error of the creating statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// What went wrong, by which the caller chooses an SQLSTATE.
    pub kind: PlanErrorKind,
    /// Primary message in PostgreSQL's style: lower case, no full stop; names the construct.
    pub message: String,
    /// What the user can do, as a full sentence.
    pub hint: Option<String>,
    /// The name under which the query reads the relation that it is about, if it is about one.
    pub relation: Option<String>,
}

/// The kinds of [`PlanError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanErrorKind {
    /// Valid SQL that is not supported (0A000).
    Unsupported,
    /// A limit on how deeply a query may nest was passed (54001).
    TooComplex,
    /// The text does not parse or refers to unknown things; with canonical text this is our bug (XX000).
    Invalid,
}
