//! Failures of data: what cannot be computed, as rows that travel beside the results.

use serde::{Deserialize, Serialize};

/// Bytes that are kept of each text of a [`DataError`]: users' functions say what they like, and errors are rows of
/// collections.
pub const TEXT_LIMIT: usize = 1024;

/// A failure of data inside a dataflow: what PostgreSQL would have raised for the same row.
///
/// Failures are rows of the `errs` collection; they retract when the offending row goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataError {
    /// Five-character SQLSTATE, e.g. `22012`.
    pub sqlstate: String,
    /// PostgreSQL's primary message, e.g. `division by zero`.
    pub message: String,
    /// What else it says, which few errors do.
    pub more: Option<Box<More>>,
}

/// What an error says beyond its message: sentences of its author.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct More {
    /// About what happened.
    pub detail: Option<String>,
    /// What can be done.
    pub hint: Option<String>,
}

impl DataError {
    /// An error with a SQLSTATE and PostgreSQL's primary message.
    pub fn new(sqlstate: &str, message: &str) -> DataError {
        DataError { sqlstate: sqlstate.to_owned(), message: message.to_owned(), more: None }
    }

    /// Adds a detail and a hint.
    pub fn with(mut self, detail: Option<String>, hint: Option<String>) -> DataError {
        let is_any = detail.is_some() || hint.is_some();
        self.more = is_any.then(|| Box::new(More { detail, hint }));
        self
    }

    /// The error with each of its texts cut to [`TEXT_LIMIT`].
    pub fn limited(mut self) -> DataError {
        cut(&mut self.message);
        if let Some(more) = &mut self.more {
            [&mut more.detail, &mut more.hint].into_iter().flatten().for_each(cut);
        }
        self
    }

    /// Bytes of its texts.
    pub fn text_bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let more = self.more.as_ref().map_or(0, |more| of(&more.detail) + of(&more.hint));
        self.sqlstate.len() + self.message.len() + more
    }
}

/// Cuts a text that is too long, and says so.
fn cut(text: &mut String) {
    const MARK: &str = "...";
    if text.len() > TEXT_LIMIT {
        let mut len = TEXT_LIMIT - MARK.len();
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        text.truncate(len);
        text.push_str(MARK);
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_say_so() {
        let long = "\u{20ac}".repeat(TEXT_LIMIT);
        let error = DataError::new("ZZ005", &long).with(Some("d".into()), Some(long)).limited();
        let more = error.more.as_ref().expect("it has a detail and a hint");
        assert_eq!(more.detail.as_deref(), Some("d"));
        for text in [&error.message, more.hint.as_ref().expect("it has a hint")] {
            assert!(text.len() <= TEXT_LIMIT && text.len() > TEXT_LIMIT - 8, "{}", text.len());
            assert!(text.ends_with("\u{20ac}..."));
        }
        assert!(error.text_bytes() < 3 * TEXT_LIMIT);
        let short = DataError::new("22012", "division by zero").with(None, None);
        assert_eq!(short.clone().limited(), short);
    }
}
