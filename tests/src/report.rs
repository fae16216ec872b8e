//! Counts of passed and failed tests, per layer and in total.

use std::fmt;

/// Result of one layer of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    pub fn record(&mut self, success: bool) {
        if success {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// A layer that passed nothing proved nothing.
    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Counts by layer, in the order in which the layers ran.
#[derive(Debug, Default)]
pub struct Report {
    layers: Vec<(String, Counts)>,
}

impl Report {
    pub fn push(&mut self, layer: &str, counts: Counts) {
        self.layers.push((layer.to_string(), counts));
    }

    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, counts) in &self.layers {
            total.add(counts);
        }
        total
    }

    pub fn is_success(&self) -> bool {
        self.layers.iter().all(|(_, counts)| counts.is_success())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (layer, counts) in &self.layers {
            writeln!(f, "{layer:<12} {counts}")?;
        }
        write!(f, "{}", self.total())
    }
}
