//! What the parser does not know of window frames.
//!
//! An offset that is a string with a cast is put into parentheses. EXCLUDE is folded, before parsing, into the name
//! of the window that a frame's own is based on, `(w ROWS … EXCLUDE TIES)` into `("TIES w" ROWS …)`, and taken
//! out of there again by the binder. No name of a window in canonical SQL begins that way without quotes, and
//! one that does is told apart by the prefix that every folded name gets.

use super::tokens::{is_space, keyword};
use plan::partition::Exclusion;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A byte that no identifier of PostgreSQL holds begins every folded name.
const MARK: char = '\0';

/// `('1.5'::double precision) PRECEDING` for the same without parentheses.
pub(super) fn wrap_offsets(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const BEFORE: [Keyword; 5] =
        [Keyword::BETWEEN, Keyword::AND, Keyword::ROWS, Keyword::RANGE, Keyword::GROUPS];
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if matches!(keyword(&token), Keyword::PRECEDING | Keyword::FOLLOWING) {
            let before = kept.iter().rposition(|token| BEFORE.contains(&keyword(token)));
            let start = before.map_or(0, |before| before + 1);
            let first = kept[start..].iter().position(|token| !is_space(token));
            let first = first.map(|first| start + first);
            let is_string = |at: &usize| matches!(kept[*at].token, Token::SingleQuotedString(_));
            if let Some(first) = first.filter(is_string) {
                kept.insert(first, TokenWithSpan::wrap(Token::LParen));
                kept.push(TokenWithSpan::wrap(Token::RParen));
            }
        }
        kept.push(token);
    }
    kept
}

/// The tokens without EXCLUDE.
pub(super) fn fold_exclusions(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // For each open parenthesis, where what it encloses begins.
    let mut open = Vec::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        match &token.token {
            Token::LParen => {
                kept.push(token);
                open.push(kept.len());
            }
            Token::RParen => {
                open.pop();
                kept.push(token);
            }
            _ if keyword(&token) == Keyword::EXCLUDE && ends_frame(&kept) => {
                let words = std::iter::from_fn(|| rest.next_if(|next| next.token != Token::RParen));
                let words: Vec<String> =
                    words.filter(|word| !is_space(word)).map(|word| word.to_string()).collect();
                let exclusion = words.join(" ");
                if let Some(start) = open.last() {
                    name(&mut kept, *start, &exclusion);
                }
            }
            _ => kept.push(token),
        }
    }
    kept
}

/// Whether the tokens end with the bound of a frame.
fn ends_frame(tokens: &[TokenWithSpan]) -> bool {
    let last = tokens.iter().rev().find(|token| !is_space(token)).map(keyword);
    matches!(last, Some(Keyword::ROW | Keyword::PRECEDING | Keyword::FOLLOWING))
}

/// Folds an exclusion into the name of a window that may be the first of the tokens from `start` on.
fn name(tokens: &mut Vec<TokenWithSpan>, start: usize, exclusion: &str) {
    const NO_NAMES: [Keyword; 5] =
        [Keyword::PARTITION, Keyword::ORDER, Keyword::ROWS, Keyword::RANGE, Keyword::GROUPS];
    let base = tokens.get(start).and_then(|token| match &token.token {
        Token::Word(word) if !NO_NAMES.contains(&keyword(token)) => Some(word.value.clone()),
        _ => None,
    });
    let has_base = base.is_some();
    let folded = format!("{MARK}{exclusion}{MARK}{}", base.unwrap_or_default());
    let word = Token::make_word(&folded, Some('"'));
    if has_base {
        tokens[start].token = word;
    } else {
        let space = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        tokens.splice(start..start, [TokenWithSpan::wrap(word), TokenWithSpan::wrap(space)]);
    }
}

/// The exclusion and the name that were folded into a name, or the name alone.
pub(super) fn unfold(name: &str) -> (Exclusion, Option<&str>) {
    let mut parts = name.splitn(3, MARK);
    let (Some(""), Some(exclusion), Some(base)) = (parts.next(), parts.next(), parts.next()) else {
        return (Exclusion::None, Some(name));
    };
    let exclusion = match exclusion {
        "CURRENT ROW" => Exclusion::CurrentRow,
        "GROUP" => Exclusion::Group,
        "TIES" => Exclusion::Ties,
        _ => Exclusion::None,
    };
    (exclusion, Some(base).filter(|base| !base.is_empty()))
}
