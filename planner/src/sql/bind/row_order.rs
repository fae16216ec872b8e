//! The order in which the rows of a query come to the query around it.
//!
//! Relations have none. What the rows are sorted by is carried in columns, behind those that the query selects, up to
//! whoever looks at the order of its rows without saying one: LIMIT, DISTINCT ON, a window, an aggregate such as
//! array_agg. There they become its own order, or, where it says one, decide among peers. An order that PostgreSQL
//! would keep and columns do not tell is lost: whoever looks at it is refused. What PostgreSQL sorts or hashes itself
//! (groups, DISTINCT, UNION) comes in no order. Neither do the rows of incremental views.

use super::super::refuse::unsupported_hint;
use crate::error::PlanError;
use crate::ir::Rel;
use plan::aggregate::COLLECTING;
use plan::partition::SortKey;

/// In which order rows come, as far as queries say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum RowOrder {
    /// None was said, so any will do.
    #[default]
    Any,
    /// That of these columns.
    By(Vec<SortKey>),
    /// One that columns do not tell.
    Lost(Loss),
}

/// An order that is lost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Loss {
    /// What was in order, if it has a name.
    pub(super) relation: Option<String>,
    /// What is above it.
    pub(super) above: &'static str,
}

/// Who looks at the order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consumer {
    Aggregate,
    OuterAggregate,
    Window,
    Limit,
    DistinctOn,
    Array,
}

/// Rows with what they are sorted by.
pub(super) struct Sorted {
    pub(super) rel: Rel,
    /// How many columns the query has; those behind them are there to be sorted by.
    pub(super) arity: usize,
    pub(super) order: RowOrder,
}

impl Sorted {
    /// Rows in no order.
    pub(super) fn unordered(rel: Rel) -> Sorted {
        Sorted { arity: rel.arity(), rel, order: RowOrder::Any }
    }

    /// The rows without their order.
    pub(super) fn into_rel(self) -> Rel {
        if self.rel.arity() == self.arity {
            return self.rel;
        }
        self.rel.project(&(0..self.arity).collect::<Vec<_>>())
    }
}

impl RowOrder {
    pub(super) fn is_any(&self) -> bool {
        *self == RowOrder::Any
    }

    /// The columns that tell it.
    pub(super) fn keys(&self) -> &[SortKey] {
        match self {
            RowOrder::By(keys) => keys,
            RowOrder::Any | RowOrder::Lost(_) => &[],
        }
    }

    /// The order of the rows of a named relation once they have gone through something that keeps them in one.
    pub(super) fn lost(self, relation: Option<&str>, above: &'static str) -> RowOrder {
        match self {
            RowOrder::By(_) => {
                RowOrder::Lost(Loss { relation: relation.map(str::to_owned), above })
            }
            order => order,
        }
    }

    /// The same of rows that have its columns in other places.
    pub(super) fn in_columns(self, columns: &[usize]) -> RowOrder {
        match self {
            RowOrder::By(keys) => {
                let moved = keys.into_iter().zip(columns);
                RowOrder::By(moved.map(|(key, &column)| SortKey { column, ..key }).collect())
            }
            order => order,
        }
    }

    /// That of rows that are sorted by some columns, which then decides among peers.
    pub(super) fn sorted_by(self, own: Vec<SortKey>) -> RowOrder {
        if own.is_empty() {
            return self;
        }
        let mut keys = own;
        keys.extend(self.keys());
        RowOrder::By(keys)
    }

    /// Refuses who looks at an order that is lost.
    pub(super) fn check(&self, consumer: Consumer) -> Result<(), PlanError> {
        match self {
            RowOrder::Lost(loss) => Err(loss.refusal(consumer)),
            RowOrder::Any | RowOrder::By(_) => Ok(()),
        }
    }

    /// What is sorted by where somebody wants some of the rows, in an order of his own or else in theirs.
    pub(super) fn behind(
        &self,
        own: Vec<SortKey>,
        consumer: Consumer,
    ) -> Result<Vec<SortKey>, PlanError> {
        if !own.is_empty() {
            return Ok(self.among_peers(own));
        }
        self.check(consumer)?;
        Ok(self.keys().to_vec())
    }

    /// What is sorted by where peers are those that are equal in an order of somebody's own: they come in that of the
    /// rows.
    pub(super) fn among_peers(&self, own: Vec<SortKey>) -> Vec<SortKey> {
        let mut keys = own;
        for key in self.keys() {
            if !keys.iter().any(|known| known.column == key.column) {
                keys.push(SortKey { among_peers: true, ..*key });
            }
        }
        keys
    }
}

impl Loss {
    fn refusal(&self, consumer: Consumer) -> PlanError {
        let relation = match &self.relation {
            Some(name) => format!("\"{name}\""),
            None => "a subquery".to_owned(),
        };
        let (name, place) = match consumer {
            Consumer::Aggregate => ("an aggregate", "the aggregate"),
            Consumer::OuterAggregate => ("an aggregate of an outer query", "the aggregate"),
            Consumer::Window => ("a window function", "the window"),
            Consumer::Limit => ("LIMIT", "the query that has the LIMIT"),
            Consumer::DistinctOn => ("DISTINCT ON", "the query that has the DISTINCT ON"),
            Consumer::Array => ("ARRAY", "the query within ARRAY"),
        };
        let construct = format!("{name} in the order of {relation} across {} is", self.above);
        let error = unsupported_hint(construct, &format!("Add ORDER BY to {place}."));
        PlanError { relation: self.relation.clone(), ..error }
    }
}

/// Whether a text has aggregates or windows that may look at the order of rows. That it may find more than there is
/// does no harm.
pub(super) fn has_consumers(sql: &str) -> bool {
    sql.contains(" OVER ") || COLLECTING.iter().any(|name| sql.contains(name))
}
