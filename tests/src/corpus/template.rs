//! Queries that differ in a few words are written once: `-- for {x}: a | b` stands for a query with `a` and one with `b` where
//! the text has `{x}`. Several loops are a product; `-- for {x} {y}: a ; 1 | b ; 2` goes through pairs.

use anyhow::{ensure, Context, Result};

/// Names, and the values that they have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Loop {
    /// Reads `{x} {y}: a ; 1 | b ; 2`.
    pub fn parse(text: &str) -> Result<Loop> {
        let (names, rows) = text.split_once(':').context("a loop is written {name}: a | b")?;
        let names = names.split_whitespace().map(|name| {
            let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            name.map(str::to_owned).context("the name in a loop has braces: {name}")
        });
        let names = names.collect::<Result<Vec<_>>>()?;
        let mut found = Vec::new();
        for row in rows.split(" | ") {
            let row: Vec<String> = match names.as_slice() {
                [_] => vec![row.trim().to_owned()],
                _ => row.split(" ; ").map(|value| value.trim().to_owned()).collect(),
            };
            ensure!(
                row.len() == names.len(),
                "\"{}\" are not {} values",
                row.join(" ; "),
                names.len()
            );
            ensure!(row.iter().all(|value| !value.is_empty()), "a value of a loop is empty");
            found.push(row);
        }
        Ok(Loop { names, rows: found })
    }

    /// Whether a text depends on it.
    pub fn is_used_in(&self, text: &str) -> bool {
        self.names.iter().any(|name| text.contains(&format!("{{{name}}}")))
    }
}

/// What the loops make of some texts that belong together. As with loops in a program, the values of one may have names of those
/// before it.
pub fn expand<const N: usize>(texts: [String; N], loops: &[Loop]) -> Vec<[String; N]> {
    let Some((last, before)) = loops.split_last() else { return vec![texts] };
    let with = |row: &Vec<String>| texts.clone().map(|text| filled_in(&text, &last.names, row));
    last.rows.iter().flat_map(|row| expand(with(row), before)).collect()
}

/// A text with the values in place of their names. Other braces stay.
fn filled_in(text: &str, names: &[String], values: &[String]) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let after = &rest[at + 1..];
        let found = names.iter().zip(values).find_map(|(name, value)| {
            Some((value, after.strip_prefix(name.as_str())?.strip_prefix('}')?))
        });
        let (value, after) = found.map_or(("{", after), |(value, after)| (value.as_str(), after));
        result.push_str(&rest[..at]);
        result.push_str(value);
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::{expand, Loop};

    fn expanded(text: &str, loops: &[&str]) -> Vec<String> {
        let loops: Vec<Loop> = loops.iter().map(|text| Loop::parse(text).unwrap()).collect();
        expand([text.to_owned()], &loops).into_iter().map(|[text]| text).collect()
    }

    #[test]
    fn loops_are_a_product() {
        let found = expanded("SELECT {f}({c})", &["{f}: min | max", "{c}: a | b || c"]);
        let expected = ["min(a)", "max(a)", "min(b || c)", "max(b || c)"];
        assert_eq!(found, expected.map(|call| format!("SELECT {call}")));
    }

    #[test]
    fn pairs_go_together() {
        assert_eq!(expanded("{t}.{c}", &["{c} {t}: n ; num | d ; moment"]), ["num.n", "moment.d"]);
        assert!(Loop::parse("{c} {t}: n ; num | d").is_err());
    }

    #[test]
    fn other_braces_stay() {
        assert_eq!(expanded("'{1,2}' {x}", &["{x}: '{x}'"]), ["'{1,2}' '{x}'"]);
    }

    #[test]
    fn values_may_have_names_of_loops_before() {
        let found = expanded("{x}", &["{c}: a | b", "{x}: f({c}) | 1"]);
        assert_eq!(found, ["f(a)", "f(b)", "1", "1"]);
    }
}
