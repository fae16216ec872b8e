//! Random choices that remember which rules of the grammar they took.

use harness::dice::Dice;

use super::feature::{Feature, Group};

pub struct Draws {
    dice: Dice,
    drawn: Vec<Feature>,
}

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws { dice: Dice::new(seed), drawn: Vec::new() }
    }

    /// One of several rules by their weights.
    pub fn rule(&mut self, rules: &[(i64, Feature)]) -> Feature {
        let rules: Vec<_> = rules.iter().map(|&(weight, rule)| (weight, rule, rule)).collect();
        self.form(&rules)
    }

    /// What one of several rules stands for, chosen by their weights.
    pub fn form<T: Copy>(&mut self, rules: &[(i64, Feature, T)]) -> T {
        let sum: i64 = rules.iter().map(|(weight, ..)| weight).sum();
        let mut left = self.range(1, sum);
        for &(weight, rule, form) in rules {
            left -= weight;
            if left <= 0 {
                self.record(rule);
                return form;
            }
        }
        unreachable!("the weights add up to {sum}")
    }

    /// True in `percent` of 100 throws; then the rule is taken.
    pub fn takes(&mut self, percent: u32, rule: Feature) -> bool {
        let is_taken = self.chance(percent);
        self.record_if(is_taken, rule);
        is_taken
    }

    pub fn record(&mut self, rule: Feature) {
        self.drawn.push(rule);
    }

    pub fn record_if(&mut self, is_taken: bool, rule: Feature) {
        if is_taken {
            self.record(rule);
        }
    }

    /// The rules taken since the last call.
    pub fn take(&mut self) -> Vec<Feature> {
        std::mem::take(&mut self.drawn)
    }

    /// Values drawn so far are for conditions, not for tables.
    pub fn forget_values(&mut self) {
        self.drawn.retain(|rule| rule.group() != Group::Values);
    }

    /// True in `percent` of 100 throws.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.dice.chance(percent)
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        self.dice.range(low, high)
    }

    pub fn index(&mut self, length: usize) -> usize {
        self.dice.index(length)
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        self.dice.pick(choices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Feature::{Cube, Having, Rollup};

    #[test]
    fn rules_are_recorded_and_weights_are_kept() {
        let mut draws = Draws::new(1);
        let rules = [(3, Rollup, "three"), (0, Having, "none"), (1, Cube, "one")];
        let forms: Vec<&str> = (0..400).map(|_| draws.form(&rules)).collect();
        let drawn = draws.take();
        let count = |rule| drawn.iter().filter(|drawn| **drawn == rule).count();
        assert_eq!(count(Rollup), forms.iter().filter(|form| **form == "three").count());
        assert_eq!((count(Rollup) + count(Cube), count(Having)), (400, 0));
        assert!((250..350).contains(&count(Rollup)));
        assert!(draws.take().is_empty());
    }
}
