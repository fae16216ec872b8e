//! Reproducible random choices.

use rand::Rng;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[derive(Clone)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    /// True in `percent` of 100 throws.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    pub fn index(&mut self, length: usize) -> usize {
        self.0.random_range(0..length)
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}
