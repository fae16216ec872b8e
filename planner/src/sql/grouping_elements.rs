//! An element of ROLLUP, CUBE or GROUPING SETS that begins with a parenthesis is a list to the parser, though
//! `(x)::text` is an expression. Before parsing such an element is put into parentheses of its own, which make it
//! a list of one. `GROUP BY DISTINCT` it does not know at all.

use super::tokens::{is_space, keyword};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeMap;

/// The call that stands for the DISTINCT of GROUP BY; no function of PostgreSQL has the name.
pub(super) const DISTINCT_SETS: &str = "distinct sets";

/// `GROUP BY DISTINCT a, b` as `GROUP BY "distinct sets"(), a, b`.
pub(super) fn distinct_as_call(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut before = [Keyword::NoKeyword; 2];
    for token in tokens {
        let word = keyword(&token);
        if before == [Keyword::GROUP, Keyword::BY] && word == Keyword::DISTINCT {
            let call = [Token::make_word(DISTINCT_SETS, Some('"')), Token::LParen, Token::RParen];
            kept.extend(call.into_iter().chain([Token::Comma]).map(TokenWithSpan::wrap));
        } else {
            if !is_space(&token) {
                before = [before[1], word];
            }
            kept.push(token);
        }
    }
    kept
}

/// The tokens with such elements in parentheses.
pub(super) fn wrap(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut added: BTreeMap<usize, Vec<Token>> = BTreeMap::new();
    for (start, end) in lists(&tokens).into_iter().flat_map(|start| elements(&tokens, start)) {
        if is_misread(&tokens[start..end]) {
            added.entry(start).or_default().push(Token::LParen);
            added.entry(end).or_default().insert(0, Token::RParen);
        }
    }
    let mut wrapped = Vec::with_capacity(tokens.len());
    for (position, token) in tokens.into_iter().enumerate() {
        let before = added.remove(&position).unwrap_or_default();
        wrapped.extend(before.into_iter().map(TokenWithSpan::wrap));
        wrapped.push(token);
    }
    wrapped
}

/// Where the elements of each list begin: behind its parenthesis.
fn lists(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut last = Keyword::NoKeyword;
    let mut starts = Vec::new();
    for (position, token) in tokens.iter().enumerate().filter(|(_, token)| !is_space(token)) {
        let is_list = matches!(last, Keyword::ROLLUP | Keyword::CUBE | Keyword::SETS);
        if is_list && token.token == Token::LParen {
            starts.push(position + 1);
        }
        last = keyword(token);
    }
    starts
}

/// The elements of the list that begins at a place.
fn elements(tokens: &[TokenWithSpan], mut start: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut depth = 0;
    for (position, token) in tokens.iter().enumerate().skip(start) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => depth -= 1,
            Token::RParen => {
                found.push((start, position));
                break;
            }
            Token::Comma if depth == 0 => {
                found.push((start, position));
                start = position + 1;
            }
            _ => {}
        }
    }
    found
}

/// Whether an element begins with a parenthesis that does not enclose all of it.
fn is_misread(element: &[TokenWithSpan]) -> bool {
    let mut solid = element.iter().filter(|token| !is_space(token)).peekable();
    let mut depth = 0;
    while let Some(token) = solid.next() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return token.token == Token::RParen && solid.peek().is_some();
        }
    }
    false
}
