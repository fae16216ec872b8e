//! Code that PostgreSQL evaluates for plans, in the form in which it travels: a letter that says what it is, then the text
//! of a node tree.

/// What code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Expression,
    Query,
    /// A condition over the present time, `$1`: the value is the instant at which it becomes true.
    From,
    /// The same; the value is the instant at which it ceases to be true.
    Until,
}

const KINDS: [Kind; 4] = [Kind::Expression, Kind::Query, Kind::From, Kind::Until];

impl Kind {
    fn letter(self) -> char {
        match self {
            Kind::Expression => 'E',
            Kind::Query => 'Q',
            Kind::From => 'F',
            Kind::Until => 'U',
        }
    }
}

/// The code of a node tree.
pub fn write(kind: Kind, tree: &str) -> String {
    format!("{}{tree}", kind.letter())
}

/// What [`write()`] has written; `None` for anything else.
pub fn read(code: &str) -> Option<(Kind, &str)> {
    KINDS.into_iter().find_map(|kind| Some((kind, code.strip_prefix(kind.letter())?)))
}
