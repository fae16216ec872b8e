//! The constructs that are refused: for each a name, why, and what to write in its place. The corpus says so beside the first
//! query of each construct, and the reference has it as a table.

use anyhow::{bail, ensure, Result};

use super::case::{Case, Expected};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Construct {
    pub name: String,
    pub why: String,
    pub instead: String,
}

/// In the order in which the corpus introduces them.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    constructs: Vec<Construct>,
}

impl Refusals {
    pub fn introduce(&mut self, construct: Construct) -> Result<()> {
        ensure!(self.find(&construct.name).is_none(), "\"{}\" is introduced twice", construct.name);
        self.constructs.push(construct);
        Ok(())
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

    /// As the reference has it.
    pub fn table(&self) -> String {
        let rows = self.constructs.iter().map(|construct| {
            let Construct { name, why, instead } = construct;
            format!("| {name} | {why} | {instead} |\n")
        });
        format!("| refused | why | instead |\n|---|---|---|\n{}", rows.collect::<String>())
    }
}
