//! Text to syntax tree.

use super::refuse::{invalid, unsupported};
use crate::error::PlanError;
use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};

/// Nesting of parentheses the parser follows; the binder recurses as deep.
const MAX_DEPTH: usize = 250;

/// Parses statements, refusing what the parser does not know.
pub(super) fn parse_statements(sql: &str) -> Result<Vec<Statement>, PlanError> {
    let parsed = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(MAX_DEPTH)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements());
    parsed.map_err(|error| match error {
        ParserError::RecursionLimitExceeded => unsupported("queries nested this deeply are"),
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => PlanError {
            hint: Some(format!("The parser stopped with: {message}.")),
            ..unsupported("this syntax is")
        },
    })
}

/// Parses exactly one query.
pub(super) fn parse_query(sql: &str) -> Result<Query, PlanError> {
    let mut statements = parse_statements(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true) => Ok(*query),
        _ => Err(invalid("exactly one query expected")),
    }
}
