//! Text to syntax tree.

use super::refuse::{invalid, unsupported};
use crate::error::PlanError;
use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Nesting the parser follows, two for each pair of parentheses; the binder recurses as deep.
const MAX_DEPTH: usize = 800;

/// Parses statements, refusing what the parser does not know.
pub(super) fn parse_statements(sql: &str) -> Result<Vec<Statement>, PlanError> {
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location();
    let tokens = tokens.map_err(|error| unknown_syntax(&[], &error.to_string()))?;
    let tokens = without_trim_from(tokens);
    let parser = Parser::new(&dialect).with_recursion_limit(MAX_DEPTH);
    let parsed = parser.with_tokens_with_locations(tokens.clone()).parse_statements();
    parsed.map_err(|error| match error {
        ParserError::RecursionLimitExceeded => unsupported("queries nested this deeply are"),
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            unknown_syntax(&tokens, &message)
        }
    })
}

/// `TRIM(BOTH FROM x)`, which the parser does not know, as `TRIM(BOTH x)`, which it does.
fn without_trim_from(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const SIDES: [Keyword; 3] = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let before = kept.iter().rev().filter(|token| !is_space(token)).map(keyword);
        let before: Vec<Keyword> = before.take(3).collect();
        let is_trim = matches!(before.as_slice(), [side, Keyword::NoKeyword, Keyword::TRIM]
            if SIDES.contains(side));
        if !(is_trim && keyword(&token) == Keyword::FROM) {
            kept.push(token);
        }
    }
    kept
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The keyword a token is; quoted names are none.
fn keyword(token: &TokenWithSpan) -> Keyword {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Names the construct that the parser is known not to understand, if it occurs.
fn unknown_syntax(tokens: &[TokenWithSpan], message: &str) -> PlanError {
    let solid: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !is_space(token)).collect();
    let follow = |pair: &[&TokenWithSpan], first: &Token, second: &Token| {
        pair[0].token == *first && pair[1].token == *second
    };
    let words = |pair: &[&TokenWithSpan]| (keyword(pair[0]), keyword(pair[1]));
    for pair in solid.windows(2) {
        if follow(pair, &Token::Mul, &Token::DoubleColon) {
            return unsupported("a whole-row reference is");
        }
        match words(pair) {
            (Keyword::SEARCH, _) | (Keyword::CYCLE, _) => {
                return unsupported("SEARCH and CYCLE are");
            }
            (Keyword::ROWS, Keyword::FROM) => return unsupported("functions in FROM are"),
            (Keyword::FROM, Keyword::ONLY) => return unsupported("FROM ONLY is"),
            _ => {}
        }
    }
    let hint = format!("The parser stopped with: {message}.");
    PlanError { hint: Some(hint), ..unsupported("this syntax is") }
}

/// Parses exactly one query.
pub(super) fn parse_query(sql: &str) -> Result<Query, PlanError> {
    let mut statements = parse_statements(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true) => Ok(*query),
        _ => Err(invalid("exactly one query expected")),
    }
}
