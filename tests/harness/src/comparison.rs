//! A view against its query, in one statement and therefore at one snapshot.

/// SQL that returns the numbers of missing rows, of surplus rows, and of rows whose text differs.
pub fn comparison(view: &str, query: &str) -> String {
    format!(
        "WITH q AS MATERIALIZED ({query}), v AS MATERIALIZED (SELECT * FROM {view}) \
         SELECT (SELECT count(*) FROM (TABLE q EXCEPT ALL TABLE v) d), \
         (SELECT count(*) FROM (TABLE v EXCEPT ALL TABLE q) d), \
         (SELECT count(*) FROM (SELECT q::text FROM q EXCEPT ALL SELECT v::text FROM v) d)"
    )
}

/// Less than that is left where sums of floats cancel out, in an order or in another.
const NOTHING: f64 = 1e-12;

/// The rows with the numbers in them rounded to nine digits.
pub fn rounded(rows: &[String]) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let round = |word: &str| match word.parse::<f64>() {
        Ok(number) if word.contains(['.', 'e']) && number.abs() < NOTHING => "0".to_owned(),
        Ok(number) if word.contains(['.', 'e']) => format!("{number:.8e}"),
        _ => word.to_owned(),
    };
    let mut rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let end = |(at, c): (usize, char)| (!is_part(c)).then_some(at);
            let mut result = String::new();
            let mut rest = row.as_str();
            while let Some(at) = rest.char_indices().find_map(end) {
                let after = at + rest[at..].chars().next().map_or(0, char::len_utf8);
                result.push_str(&round(&rest[..at]));
                result.push_str(&rest[at..after]);
                rest = &rest[after..];
            }
            result + &round(rest)
        })
        .collect();
    rows.sort();
    rows
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn only_last_digits_of_floats_are_rounded_away() {
        let row = |text: &str| rounded(&[text.to_owned()]);
        assert_eq!(row("(0.30000000000000004,a)"), row("(0.3,a)"));
        assert_ne!(row("(0.31,a)"), row("(0.3,a)"));
        assert_eq!(row("(1.2325951644078308e-33,a)"), row("(0,a)"));
        assert_ne!(row("(1234567891)"), row("(1234567892)"));
        assert_eq!(row("(ß,\"2024-02-29 12:00:00\")"), ["(ß,\"2024-02-29 12:00:00\")"]);
    }
}
