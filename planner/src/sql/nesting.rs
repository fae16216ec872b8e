//! How deeply a text nests, told from its tokens: before there is a tree that is too deep to be walked or dropped.
//!
//! The parser counts how deeply it recurses, but a chain of operators it reads in a loop, and makes of it a tree that
//! is as deep as the chain is long. So every pair of parentheses, every CASE and every operator of a chain counts. A
//! tree is no deeper than what is counted here: operators that stand beside each other count as if each held the one
//! before.

use super::refuse::too_deep;
use super::tokens::keyword;
use crate::error::PlanError;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Levels that the parser, the binder and whoever else walks down a syntax tree recurse into: two for an operator in
/// parentheses.
pub const MAX_LEVELS: usize = 600;

/// Conditions in a chain of AND or OR, and queries in one of UNION, INTERSECT and EXCEPT. The binder goes along them
/// without recursion, but not what copies or drops the tree.
pub const MAX_CHAIN: usize = 5000;

/// Refuses texts that nest too deeply.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), PlanError> {
    let mut open = vec![Enclosed::default()];
    for token in tokens {
        match read(token) {
            Mark::Open { is_operator } => {
                if let Some(group) = open.last_mut() {
                    group.own.levels += usize::from(is_operator);
                }
                open.push(Enclosed { is_case: false, ..Enclosed::default() });
            }
            Mark::Case => open.push(Enclosed { is_case: true, ..Enclosed::default() }),
            Mark::Close => close(&mut open, false)?,
            Mark::End => close(&mut open, true)?,
            Mark::Other => {}
            mark => open.last_mut().map_or(Ok(()), |group| group.add(mark))?,
        }
    }
    while open.len() > 1 {
        let is_case = open.last().is_some_and(|group| group.is_case);
        close(&mut open, is_case)?;
    }
    open.pop().map_or(Ok(()), |outermost| outermost.depth().map(|_| ()))
}

/// A chain is longer than [`MAX_CHAIN`].
pub fn chain_too_long() -> PlanError {
    too_deep("conditions or queries in a chain", MAX_CHAIN)
}

/// What a token means for the depth of the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open {
        is_operator: bool,
    },
    Close,
    Case,
    End,
    /// An operator whose left operand may be another one.
    Operator,
    Between,
    And,
    Or,
    SetOperation,
    /// What follows stands beside what was before.
    Separator,
    Other,
}

fn read(token: &TokenWithSpan) -> Mark {
    match &token.token {
        Token::LParen | Token::LBrace => Mark::Open { is_operator: false },
        // `x[1][2]` nests to the left.
        Token::LBracket => Mark::Open { is_operator: true },
        Token::RParen | Token::RBrace | Token::RBracket => Mark::Close,
        Token::Comma | Token::SemiColon => Mark::Separator,
        Token::Word(_) => read_word(keyword(token)),
        Token::Whitespace(_) | Token::EOF | Token::Period | Token::Number(..) | Token::Char(_) => {
            Mark::Other
        }
        token if is_literal(token) => Mark::Other,
        _ => Mark::Operator,
    }
}

fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::Placeholder(_)
    )
}

fn read_word(word: Keyword) -> Mark {
    use Keyword as K;
    match word {
        K::CASE => Mark::Case,
        K::END => Mark::End,
        K::AND => Mark::And,
        K::OR => Mark::Or,
        K::BETWEEN => Mark::Between,
        K::UNION | K::INTERSECT | K::EXCEPT | K::MINUS => Mark::SetOperation,
        K::WHEN | K::THEN | K::ELSE | K::SELECT | K::WHERE | K::HAVING | K::ON | K::JOIN => {
            Mark::Separator
        }
        K::NOT | K::IS | K::IN | K::LIKE | K::ILIKE | K::RLIKE | K::REGEXP | K::MATCH | K::GLOB => {
            Mark::Operator
        }
        K::SIMILAR
        | K::MEMBER
        | K::XOR
        | K::AT
        | K::OVERLAPS
        | K::OPERATOR
        | K::DIV
        | K::COLLATE => Mark::Operator,
        K::NOTNULL | K::CONNECT_BY_ROOT | K::INTERVAL => Mark::Operator,
        _ => Mark::Other,
    }
}

/// How deep a part of the tree is.
#[derive(Clone, Copy, Default)]
struct Depth {
    /// What is walked by recursion.
    levels: usize,
    /// What only makes it deeper.
    chain: usize,
}

impl Depth {
    fn most(self, other: Depth) -> Depth {
        Depth { levels: self.levels.max(other.levels), chain: self.chain.max(other.chain) }
    }

    fn plus(self, other: Depth) -> Depth {
        Depth { levels: self.levels + other.levels, chain: self.chain + other.chain }
    }

    fn check(self) -> Result<Depth, PlanError> {
        if self.levels > MAX_LEVELS {
            return Err(too_deep("levels of nested expressions and queries", MAX_LEVELS));
        }
        if self.chain > MAX_CHAIN {
            return Err(chain_too_long());
        }
        Ok(self)
    }
}

/// What stands between a pair of parentheses, or in a CASE.
#[derive(Default)]
struct Enclosed {
    is_case: bool,
    /// BETWEENs that wait for their AND.
    betweens: usize,
    /// The operators since the last AND, OR or separator.
    own: Depth,
    /// The deepest group since then.
    held: Depth,
    /// The deepest operand of the chain of AND and OR since the last separator, and how long the chain is.
    operand: Depth,
    links: usize,
    /// The deepest part so far.
    deepest: Depth,
    set_operations: usize,
}

impl Enclosed {
    fn add(&mut self, mark: Mark) -> Result<(), PlanError> {
        match mark {
            Mark::Operator => self.own.levels += 1,
            Mark::Between => {
                self.own.levels += 1;
                self.betweens += 1;
            }
            Mark::And if self.betweens > 0 => self.betweens -= 1,
            Mark::And | Mark::Or => {
                self.end_operand();
                self.links += 1;
            }
            Mark::SetOperation => {
                self.end_part()?;
                self.set_operations += 1;
            }
            Mark::Separator => self.end_part()?,
            Mark::Open { .. } | Mark::Close | Mark::Case | Mark::End | Mark::Other => {}
        }
        Ok(())
    }

    fn end_operand(&mut self) {
        let operand = std::mem::take(&mut self.own).plus(std::mem::take(&mut self.held));
        self.operand = self.operand.most(operand);
    }

    fn end_part(&mut self) -> Result<(), PlanError> {
        self.end_operand();
        let links = Depth { levels: 0, chain: std::mem::take(&mut self.links) };
        let part = std::mem::take(&mut self.operand).plus(links).check()?;
        self.deepest = self.deepest.most(part);
        self.betweens = 0;
        Ok(())
    }

    /// Its depth at its end.
    fn depth(mut self) -> Result<Depth, PlanError> {
        self.end_part()?;
        self.deepest.plus(Depth { levels: 1, chain: self.set_operations }).check()
    }
}

/// Ends the innermost group, unless what ends it does not belong to it.
fn close(open: &mut Vec<Enclosed>, is_case: bool) -> Result<(), PlanError> {
    if open.len() < 2 || open.last().is_some_and(|group| group.is_case != is_case) {
        return Ok(());
    }
    let Some(group) = open.pop() else { return Ok(()) };
    let depth = group.depth()?;
    if let Some(around) = open.last_mut() {
        around.held = around.held.most(depth);
    }
    Ok(())
}
