//! Random graphs that never end: edge number i is a function of i, so a graph can lose its oldest
//! edge and gain a new one forever without anybody storing what it holds.

use super::checksum::mix;

/// Edges between `nodes` nodes, drawn with replacement. Different seeds give different graphs.
#[derive(Clone, Copy, Debug)]
pub struct RandomGraph {
    pub nodes: u64,
    pub seed: u64,
}

pub type Edge = (u32, u32);

impl RandomGraph {
    pub fn edge(&self, number: u64) -> Edge {
        (self.draw(2 * number), self.draw(2 * number + 1))
    }

    fn draw(&self, number: u64) -> u32 {
        let random = u128::from(mix(self.seed ^ mix(number)));
        // The high half of the product is uniform below `nodes`.
        ((random * u128::from(self.nodes)) >> 64) as u32
    }
}
