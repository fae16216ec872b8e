//! The constructs that are refused: for each a name, the errors, why, and what to write in its place. The corpus says so beside
//! the queries of each construct, and the reference has it as tables.

use anyhow::{bail, ensure, Result};

use super::case::{Case, Expected};

/// The SQLSTATE of nearly all refusals.
const NOT_SUPPORTED: &str = "0A000";
/// What stands in the corpus for one of the ends of messages.
const END: &str = " …";
const ENDS: [&str; 2] =
    [" is not supported in an incremental view", " are not supported in an incremental view"];

/// The error of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub state: String,
    /// As the corpus has it: most end in [`END`].
    pub message: String,
}

impl Refused {
    /// `state` is `None` if the corpus does not say it.
    pub fn new(state: Option<&str>, message: &str) -> Refused {
        let state = state.unwrap_or(NOT_SUPPORTED).to_owned();
        Refused { state, message: message.to_owned() }
    }

    /// Whether PostgreSQL has raised it.
    pub fn is(&self, state: &str, message: &str) -> bool {
        let is_said = match self.message.strip_suffix(END) {
            None => message == self.message,
            Some(construct) => {
                message.strip_prefix(construct).is_some_and(|end| ENDS.contains(&end))
            }
        };
        state == self.state && is_said
    }

    /// As the reference has it.
    fn shown(&self) -> String {
        match self.state.as_str() {
            NOT_SUPPORTED => format!("`{}`", self.message),
            state => format!("`{}` ({state})", self.message),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Construct {
    /// Under which heading the reference has it.
    pub section: String,
    pub name: String,
    pub why: String,
    pub instead: String,
}

/// The error of a query, or the first one of those that loops make of it.
#[derive(Clone, Debug)]
struct Example {
    construct: String,
    /// The message before the loops fill it in.
    template: String,
    error: Refused,
}

/// In the order in which the corpus introduces them.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    constructs: Vec<Construct>,
    examples: Vec<Example>,
}

impl Refusals {
    pub fn introduce(&mut self, construct: Construct) -> Result<()> {
        ensure!(self.find(&construct.name).is_none(), "\"{}\" is introduced twice", construct.name);
        self.constructs.push(construct);
        Ok(())
    }

    /// Another error of a construct, unless it or one of the same template is known.
    pub fn add_example(&mut self, construct: &str, template: &str, error: &Refused) {
        let mut known = self.examples.iter().filter(|known| known.construct == construct);
        if !known.any(|known| known.template == template || known.error == *error) {
            let (construct, template) = (construct.to_owned(), template.to_owned());
            self.examples.push(Example { construct, template, error: error.clone() });
        }
    }

    fn find(&self, name: &str) -> Option<&Construct> {
        self.constructs.iter().find(|construct| construct.name == name)
    }

    /// Each query that is refused has a construct that is introduced somewhere.
    pub fn check(&self, cases: &[Case]) -> Result<()> {
        for case in cases {
            if let Expected::Refusal { construct, .. } = &case.expected {
                if self.find(construct).is_none() {
                    bail!(
                        "{}: \"{construct}\" is not introduced by a why and an instead",
                        case.place
                    );
                }
            }
        }
        Ok(())
    }

    /// As the reference has them: a table for each section.
    pub fn tables(&self) -> String {
        let sections = self.constructs.chunk_by(|one, next| one.section == next.section);
        let tables = sections.map(|constructs| {
            let rows: String = constructs.iter().map(|construct| self.row(construct)).collect();
            let head = "| refused | error | why | instead |\n|---|---|---|---|\n";
            format!("## {}\n\n{head}{rows}", constructs[0].section)
        });
        tables.collect::<Vec<_>>().join("\n")
    }

    fn row(&self, construct: &Construct) -> String {
        let Construct { name, why, instead, .. } = construct;
        let examples = self.examples.iter().filter(|example| example.construct == *name);
        let errors: Vec<String> = examples.map(|example| example.error.shown()).collect();
        format!("| {name} | {} | {why} | {instead} |\n", errors.join("<br>"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Construct, Refusals, Refused};

    #[test]
    fn three_dots_stand_for_how_messages_end() {
        let error = Refused::new(None, "x …");
        assert!(error.is("0A000", "x is not supported in an incremental view"));
        assert!(error.is("0A000", "x are not supported in an incremental view"));
        assert!(!error.is("42601", "x is not supported in an incremental view"));
        assert!(!error.is("0A000", "x"));
        let whole = Refused::new(Some("54001"), "too much of x");
        assert!(whole.is("54001", "too much of x"));
        assert!(!whole.is("54001", "too much of x is not supported in an incremental view"));
    }

    #[test]
    fn a_section_has_a_table_and_a_construct_its_different_errors() {
        let mut refusals = Refusals::default();
        for (section, name) in [("A", "x"), ("A", "y"), ("B", "z")] {
            let [section, name, why, instead] = [section, name, "w", "i"].map(str::to_owned);
            refusals.introduce(Construct { section, name, why, instead }).unwrap();
        }
        for (construct, template, message) in [
            ("x", "{f} …", "f …"),
            ("z", "f …", "f …"),
            ("x", "{f} …", "g …"),
            ("x", "f …", "f …"),
            ("x", "h", "h"),
        ] {
            refusals.add_example(construct, template, &Refused::new(None, message));
        }
        let head = "| refused | error | why | instead |\n|---|---|---|---|\n";
        let [a, b] =
            ["| x | `f …`<br>`h` | w | i |\n| y |  | w | i |\n", "| z | `f …` | w | i |\n"];
        assert_eq!(refusals.tables(), format!("## A\n\n{head}{a}\n## B\n\n{head}{b}"));
    }
}
