//! Text forms of arrays.

use super::input::is_space;
use super::literal::{format_datum, parse_literal};
use crate::error::DataError;
use crate::sqlstate;
use crate::types::{Scalar, Type};
use crate::value::{check_depth, Array, Datum, Dimension};
use std::fmt::Write;

pub(crate) fn parse_array(text: &str, element: Scalar, typmod: i32) -> Result<Datum, DataError> {
    let wrong = || malformed_array(text);
    let (bounds, body) = array_bounds(text.trim_matches(is_space)).ok_or_else(wrong)?;
    if bounds.iter().any(|(lower, upper)| upper < lower) {
        return Err(DataError::new(
            sqlstate::ARRAY_SUBSCRIPT_ERROR,
            "upper bound cannot be less than lower bound",
        ));
    }
    let mut parser = ArrayParser::new(text, element, typmod);
    let body = body.strip_prefix('{').ok_or_else(wrong)?;
    if !parser.level(body, 0)?.is_empty() {
        return Err(wrong());
    }
    let lengths = parser.lengths.into_iter().flatten();
    let mut dimensions: Vec<Dimension> =
        lengths.map(|length| Dimension { length, lower_bound: 1 }).collect();
    if !bounds.is_empty() {
        if bounds.len() != dimensions.len() || parser.elements.is_empty() {
            return Err(wrong());
        }
        for (dimension, (lower, upper)) in dimensions.iter_mut().zip(bounds) {
            dimension.lower_bound = lower;
            if dimension.upper_bound() != i64::from(upper) {
                return Err(wrong());
            }
        }
    }
    Array::of(&dimensions, parser.elements).checked().map(Datum::from)
}

fn malformed_array(text: &str) -> DataError {
    DataError::new(
        sqlstate::INVALID_TEXT_REPRESENTATION,
        &format!("malformed array literal: \"{text}\""),
    )
}

/// The bounds in front of an array literal, as in `[0:1][1:3]={{1,2,3},{4,5,6}}`, and what follows them.
fn array_bounds(text: &str) -> Option<(Vec<(i32, i32)>, &str)> {
    let mut bounds = Vec::new();
    let mut rest = text;
    while let Some(inner) = rest.strip_prefix('[') {
        let (bound, tail) = inner.split_once(']')?;
        let (lower, upper) = bound.split_once(':').unwrap_or(("1", bound));
        bounds.push((lower.trim().parse().ok()?, upper.trim().parse().ok()?));
        rest = tail.trim_start_matches(is_space);
    }
    if !bounds.is_empty() {
        rest = rest.strip_prefix('=')?.trim_start_matches(is_space);
    }
    Some((bounds, rest))
}

/// The braces of an array literal.
struct ArrayParser<'t> {
    /// All of the literal.
    text: &'t str,
    ty: Type,
    typmod: i32,
    /// How many items there are on each level, once one is complete.
    lengths: Vec<Option<i32>>,
    /// The level that has the elements.
    leaf: Option<usize>,
    elements: Vec<Datum>,
}

impl<'t> ArrayParser<'t> {
    fn new(text: &'t str, element: Scalar, typmod: i32) -> ArrayParser<'t> {
        let ty = Type::Scalar(element);
        ArrayParser { text, ty, typmod, lengths: vec![], leaf: None, elements: vec![] }
    }

    fn wrong(&self) -> DataError {
        malformed_array(self.text)
    }

    /// Parses a level behind its opening brace; answers what follows the closing one.
    fn level(&mut self, rest: &'t str, level: usize) -> Result<&'t str, DataError> {
        check_depth(level + 1)?;
        if self.lengths.len() == level {
            self.lengths.push(None);
        }
        let mut count = 0;
        let mut rest = rest.trim_start_matches(is_space);
        let mut is_complete = rest.starts_with('}');
        while !is_complete {
            rest = match rest.strip_prefix('{') {
                Some(inner) => self.level(inner, level + 1)?,
                None => self.item(rest, level)?,
            };
            count += 1;
            rest = rest.trim_start_matches(is_space);
            is_complete = rest.starts_with('}');
            if !is_complete {
                rest = rest.strip_prefix(',').ok_or_else(|| self.wrong())?;
                rest = rest.trim_start_matches(is_space);
            }
        }
        let is_empty_item = level > 0 && count == 0;
        if is_empty_item || *self.lengths[level].get_or_insert(count) != count {
            return Err(self.wrong());
        }
        Ok(&rest[1..])
    }

    /// Parses an element; answers what follows it.
    fn item(&mut self, rest: &'t str, level: usize) -> Result<&'t str, DataError> {
        let (item, tail) = array_item(rest).ok_or_else(|| self.wrong())?;
        if *self.leaf.get_or_insert(level) != level {
            return Err(self.wrong());
        }
        self.elements.push(match item {
            None => Datum::Null,
            Some(item) => parse_literal(&item, self.ty, self.typmod)?,
        });
        Ok(tail)
    }
}

/// The first item of an array literal's list (`None` for NULL) and what follows it.
fn array_item(text: &str) -> Option<(Option<String>, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (item, rest) = quoted_item(quoted)?;
        return Some((Some(item), rest));
    }
    let mut item = String::new();
    // Length up to which blanks count: they were escaped.
    let mut kept = 0;
    let mut chars = text.char_indices();
    let mut end = None;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                item.push(chars.next()?.1);
                kept = item.len();
            }
            ',' | '}' => {
                end = Some(at);
                break;
            }
            '{' | '"' => return None,
            _ => item.push(c),
        }
    }
    item.truncate(item.trim_end_matches(is_space).len().max(kept));
    if item.is_empty() {
        return None;
    }
    let null = kept == 0 && item.eq_ignore_ascii_case("null");
    Some(((!null).then_some(item), &text[end?..]))
}

/// An item after its opening quote, and what follows the closing one.
fn quoted_item(text: &str) -> Option<(String, &str)> {
    let mut item = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => item.push(chars.next()?),
            c => item.push(c),
        }
    }
    let rest = chars.as_str().trim_start_matches(is_space);
    rest.starts_with([',', '}']).then_some((item, rest))
}

pub(crate) fn format_array(array: &Array, element: Scalar) -> String {
    let items = array.elements.iter().map(|value| format_element(value, element));
    let dimensions = array.dimensions();
    let braced = |items: &[String]| format!("{{{}}}", items.join(","));
    let mut items: Vec<String> = items.collect();
    // The last dimension first.
    for dimension in dimensions.iter().skip(1).rev() {
        items = items.chunks(dimension.length as usize).map(braced).collect();
    }
    let mut bounds = String::new();
    if dimensions.iter().any(|dimension| dimension.lower_bound != 1) {
        for dimension in &dimensions {
            // Writing to a String does not fail.
            let _ = write!(bounds, "[{}:{}]", dimension.lower_bound, dimension.upper_bound());
        }
        bounds.push('=');
    }
    bounds + &braced(&items)
}

fn format_element(value: &Datum, element: Scalar) -> String {
    let text = format_datum(value, Type::Scalar(element));
    let special = |c: char| is_space(c) || matches!(c, '{' | '}' | ',' | '"' | '\\');
    let plain = value.is_null()
        || !(text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special));
    if plain {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 answers.
    #[test]
    fn literals_of_several_dimensions_are_postgresqls() {
        let read = |text: &str| {
            let ty = Type::Array(Scalar::Int4);
            parse_literal(text, ty, -1).map(|value| format_datum(&value, ty))
        };
        for (text, shown) in [
            ("[1:2][1:2]={{1,2},{3,4}}", "{{1,2},{3,4}}"),
            (" [1:1] [1:2] = { { 1 , 2 } } ", "{{1,2}}"),
            ("[0:1][2:3]={{1,2},{3,NULL}}", "[0:1][2:3]={{1,2},{3,NULL}}"),
            ("{{1,\"2\"},{ \"3\",4}}", "{{1,2},{3,4}}"),
            ("[3]={1,2,3}", "{1,2,3}"),
            ("{{{{{{1}}}}}}", "{{{{{{1}}}}}}"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(shown));
        }
        let malformed = [
            "{{1,2},{3}}",
            "{{1},2}",
            "{1,{2}}",
            "{{},{}}",
            "{{}}",
            "[1:2]={1}",
            "[1:2][1:1]={{1,2},{3,4}}",
            "[1:1]={}",
            "[0:0]={{1}}",
            "{{1},{}}",
            "{{1,2},{3,4}",
            "{{1,2}}}",
            "{{1,2}{3,4}}",
            "{1}{2}",
            "{{1,2},}",
            "{,}",
        ];
        for text in malformed {
            assert_eq!(
                read(text).map_err(|error| error.sqlstate),
                Err("22P02".to_owned()),
                "{text}"
            );
        }
        assert_eq!(read("[2:1]={}").map_err(|error| error.sqlstate), Err("2202E".to_owned()));
        assert_eq!(
            read("{{{{{{{1}}}}}}}").map_err(|error| error.sqlstate),
            Err("54000".to_owned())
        );
    }
}
