//! Text to syntax tree.

use super::nesting::{self, MAX_LEVELS};
use super::refuse::{invalid, too_deep, unsupported};
use super::tokens::{is_space, keyword};
use super::{frames, grouping_elements};
use crate::error::PlanError;
use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

/// Parses statements, refusing what the parser does not know.
pub(super) fn parse_statements(sql: &str) -> Result<Vec<Statement>, PlanError> {
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, sql).tokenize_with_location();
    let tokens = tokens.map_err(|error| unknown_syntax(&[], &error.to_string()))?;
    nesting::check(&tokens)?;
    let tokens = plain_operators(rows_from_as_call(without_trim_from(tokens)));
    let tokens = name_nothing(only_into_names(tokens));
    let tokens = frames::fold_exclusions(frames::wrap_offsets(plain_fetch(tokens)));
    let tokens = grouping_elements::distinct_as_call(grouping_elements::wrap(tokens));
    let parser = Parser::new(&dialect).with_recursion_limit(MAX_LEVELS);
    let parsed = parser.with_tokens_with_locations(tokens.clone()).parse_statements();
    parsed.map_err(|error| match error {
        ParserError::RecursionLimitExceeded => {
            too_deep("levels of nested expressions and queries", MAX_LEVELS)
        }
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

/// The function as which a computed number of rows WITH TIES is parsed; no function of PostgreSQL has the name.
pub(super) const WITH_TIES: &str = "with ties";

/// `FETCH FIRST (2)::bigint ROWS`, of which the parser knows nothing but the number, as `FETCH FIRST 2 ROWS`, and
/// `FETCH FIRST (SELECT …) ROWS WITH TIES` as `LIMIT "with ties"((SELECT …))`.
fn plain_fetch(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter();
    while let Some(token) = rest.next() {
        let before = kept.iter().rposition(|token| !is_space(token));
        let fetch = before.filter(|&position| keyword(&kept[position]) == Keyword::FETCH);
        let (Some(fetch), Keyword::FIRST) = (fetch, keyword(&token)) else {
            kept.push(token);
            continue;
        };
        let (quantity, rows) = quantity(&mut rest);
        let is_empty = quantity.iter().all(is_space);
        match plain_value(&quantity) {
            Some(value) => {
                let space = || TokenWithSpan::wrap(Token::Whitespace(Whitespace::Space));
                kept.extend([token, space(), value.clone(), space()]);
                kept.extend(rows);
            }
            None if is_empty || rows.is_none() => {
                kept.push(token);
                kept.extend(quantity.into_iter().chain(rows));
            }
            None => {
                kept.truncate(fetch);
                let wrap = |tokens: [Token; 4]| tokens.map(TokenWithSpan::wrap);
                let call = Token::make_word(WITH_TIES, Some('"'));
                let [limit, space] =
                    [Token::make_keyword("LIMIT"), Token::Whitespace(Whitespace::Space)];
                kept.extend(wrap([limit, space, call, Token::LParen]));
                kept.push(TokenWithSpan::wrap(Token::LParen));
                // There may be others within.
                kept.extend(plain_fetch(quantity));
                kept.extend([Token::RParen, Token::RParen].map(TokenWithSpan::wrap));
                skip_ties(&mut rest);
            }
        }
    }
    kept
}

/// The tokens up to ROWS, and that.
fn quantity(
    rest: &mut std::vec::IntoIter<TokenWithSpan>,
) -> (Vec<TokenWithSpan>, Option<TokenWithSpan>) {
    let mut depth = 0;
    let mut quantity = Vec::new();
    for token in rest {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth == 0 && matches!(keyword(&token), Keyword::ROW | Keyword::ROWS) => {
                return (quantity, Some(token));
            }
            _ => {}
        }
        quantity.push(token);
    }
    (quantity, None)
}

/// Leaves out `WITH TIES`, or `ONLY`.
fn skip_ties(rest: &mut std::vec::IntoIter<TokenWithSpan>) {
    const WORDS: [Keyword; 3] = [Keyword::WITH, Keyword::TIES, Keyword::ONLY];
    let is_skipped = |token: &TokenWithSpan| is_space(token) || WORDS.contains(&keyword(token));
    while rest.as_slice().first().is_some_and(is_skipped) {
        rest.next();
    }
}

/// The literal that is all there is beside parentheses and casts.
fn plain_value(tokens: &[TokenWithSpan]) -> Option<&TokenWithSpan> {
    let mut value = None;
    let mut is_type = false;
    for token in tokens.iter().filter(|token| !is_space(token)) {
        match &token.token {
            Token::LParen | Token::RParen => {}
            Token::DoubleColon => is_type = true,
            Token::Word(_) if is_type => {}
            Token::Number(..) | Token::SingleQuotedString(_) if value.is_none() => {
                value = Some(token);
            }
            _ if keyword(token) == Keyword::NULL && value.is_none() => value = Some(token),
            _ => return None,
        }
    }
    value
}

/// The function as which `ROWS FROM` is parsed; no function of PostgreSQL has the name.
pub(super) const ROWS_FROM: &str = "rows from";

/// `ROWS FROM (f(x), g(y))`, which the parser does not know, as a call of a function.
fn rows_from_as_call(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut token in tokens {
        let before = kept.iter().rposition(|token| !is_space(token));
        let before = before.filter(|&position| keyword(&kept[position]) == Keyword::ROWS);
        if let (Some(rows), Keyword::FROM) = (before, keyword(&token)) {
            kept.truncate(rows);
            token.token = Token::make_word(ROWS_FROM, Some('"'));
        }
        kept.push(token);
    }
    kept
}

/// What is selected where nothing is; no identifier of PostgreSQL is such.
pub(super) const NOTHING: &str = "\0nothing\0";

/// `SELECT FROM a`, and `SELECT` alone, which the parser does not know everywhere, as `SELECT "<NOTHING>" FROM a`.
fn name_nothing(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const BEHIND: [Keyword; 10] = [
        Keyword::UNION,
        Keyword::INTERSECT,
        Keyword::EXCEPT,
        Keyword::FROM,
        Keyword::WHERE,
        Keyword::GROUP,
        Keyword::HAVING,
        Keyword::ORDER,
        Keyword::OFFSET,
        Keyword::LIMIT,
    ];
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let is_select = keyword(&token) == Keyword::SELECT;
        kept.push(token);
        let next = tokens.as_slice().iter().find(|next| !is_space(next));
        let is_empty =
            next.is_none_or(|next| next.token == Token::RParen || BEHIND.contains(&keyword(next)));
        if is_select && is_empty {
            let space = Token::Whitespace(Whitespace::Space);
            let name = Token::make_word(NOTHING, Some('"'));
            kept.extend([space, name].map(TokenWithSpan::wrap));
        }
    }
    kept
}

/// What begins the names of tables that are read without their children; no identifier of PostgreSQL holds it.
pub(super) const ONLY: &str = "\0only\0";

/// `FROM ONLY a.b`, which the parser does not know, as `FROM a."<ONLY>b"`.
fn only_into_names(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let before = kept.iter().rev().find(|token| !is_space(token));
        let begins_item = before.is_some_and(|before| {
            matches!(before.token, Token::Comma | Token::LParen)
                || matches!(keyword(before), Keyword::FROM | Keyword::JOIN)
        });
        if !begins_item || keyword(&token) != Keyword::ONLY {
            kept.push(token);
            continue;
        }
        let is_name = |next: &Token| matches!(next, Token::Word(_) | Token::Period);
        let spaces = tokens.as_slice().iter().take_while(|next| is_space(next)).count();
        let behind = tokens.as_slice()[spaces..].iter();
        let length = behind.take_while(|next| is_name(&next.token)).count();
        let mut name: Vec<TokenWithSpan> = tokens.by_ref().take(spaces + length).collect();
        if let Some(TokenWithSpan { token, .. }) = name.last_mut() {
            if let Token::Word(word) = &token {
                *token = Token::make_word(&format!("{ONLY}{}", word.value), Some('"'));
            }
        }
        kept.extend(name);
    }
    kept
}

/// `OPERATOR(schema.=)`, which the parser does not know before ANY, as `=`: the host keeps for itself all operators
/// outside of `pg_catalog` but those that compare values of a type in the order of the type.
fn plain_operators(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let rest: Vec<&Token> = tokens.as_slice().iter().take(5).map(|t| &t.token).collect();
        match (keyword(&token), rest.as_slice()) {
            (
                Keyword::OPERATOR,
                [Token::LParen, Token::Word(_), Token::Period, operator, Token::RParen],
            ) => {
                kept.push(TokenWithSpan { token: (*operator).clone(), ..token });
                tokens.nth(4);
            }
            _ => kept.push(token),
        }
    }
    kept
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
