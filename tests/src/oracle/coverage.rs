//! Counts of what a run has exercised, and what it should have.

use std::collections::BTreeMap;
use std::fmt;

use super::feature::{Feature, Group};

/// Runs at least this long miss none of the features by chance, but for rare ones.
const COVERS_COMMON: usize = 500;
/// Runs at least this long miss none.
const COVERS_RARE: usize = 10_000;

#[derive(Default)]
pub struct Coverage {
    counts: BTreeMap<Feature, usize>,
}

impl Coverage {
    /// A view was created; the rules are those of its query, the nodes those of its plan.
    pub fn count_view(&mut self, features: impl IntoIterator<Item = Feature>) {
        self.count(features, |group| !is_of_data(group));
    }

    /// A statement on base tables succeeded.
    pub fn count_statement(&mut self, features: impl IntoIterator<Item = Feature>) {
        self.count(features, is_of_data);
    }

    fn count(&mut self, features: impl IntoIterator<Item = Feature>, fits: impl Fn(Group) -> bool) {
        for feature in features.into_iter().filter(|feature| fits(feature.group())) {
            *self.counts.entry(feature).or_default() += 1;
        }
    }

    fn of(&self, feature: Feature) -> usize {
        self.counts.get(&feature).copied().unwrap_or(0)
    }

    /// What a run of this many transactions should have had.
    pub fn missing(&self, transactions: usize) -> Vec<Feature> {
        let is_due = |feature: Feature| {
            transactions >= if feature.is_rare() { COVERS_RARE } else { COVERS_COMMON }
        };
        let all = Feature::ALL.iter().copied();
        all.filter(|&feature| is_due(feature) && self.of(feature) == 0).collect()
    }
}

/// Whether features of the group are counted of statements on base tables. The same expressions and
/// literals occur in conditions and in views.
fn is_of_data(group: Group) -> bool {
    matches!(group, Group::Changes | Group::Commands | Group::Values)
}

/// A paragraph for each group.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        const WIDTH: usize = 110;
        const INDENT: usize = 26;
        for &group in Group::ALL {
            let mut line = format!("  {:1$}", group.title(), INDENT - 2);
            let features = Feature::ALL.iter().filter(|feature| feature.group() == group);
            for (position, &feature) in features.enumerate() {
                let item = format!("{} {}", feature.name(), self.of(feature));
                line.push_str(if position == 0 { "" } else { ", " });
                if line.chars().count() + item.chars().count() > WIDTH {
                    writeln!(f, "{}", line.trim_end())?;
                    line = " ".repeat(INDENT);
                }
                line.push_str(&item);
            }
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_missing_from_a_long_run_without_views() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.missing(COVERS_RARE), Feature::ALL);
        assert!(coverage.missing(COVERS_COMMON - 1).is_empty());
        coverage.count_view([Feature::Select, Feature::Null]);
        coverage.count_statement([Feature::Coalesce, Feature::Insert]);
        let missing = coverage.missing(COVERS_RARE);
        assert!(!missing.contains(&Feature::Select) && !missing.contains(&Feature::Insert));
        assert!(missing.contains(&Feature::Null), "a literal of a view is no data");
        assert!(missing.contains(&Feature::Coalesce), "a condition is no view");
        assert!(coverage.to_string().contains("select 1, grouped 0"));
    }
}
