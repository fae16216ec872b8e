//! Which edges to cut so that no forbidden circle is left: greedy, so a good plan and not the best.

use std::collections::BTreeSet;

use crate::graph::{circles, Edge, Graph};
use crate::tree::FileId;

/// Edges within `circle` in the order to cut them: always the one that makes the circles most smaller per
/// line that has to change.
pub fn cuts(graph: &Graph, circle: &[FileId]) -> Vec<Edge> {
    let within = |edge: &&Edge| circle.contains(&edge.0) && circle.contains(&edge.1);
    let mut edges: BTreeSet<Edge> = graph.edges.keys().filter(within).copied().collect();
    let mut cuts = Vec::new();
    loop {
        let left = forbidden(graph, &edges);
        if left.is_empty() {
            return necessary(graph, edges, cuts);
        }
        let weight = weight_of(&left);
        let candidates = edges.iter().filter(|edge| {
            left.iter().any(|circle| circle.contains(&edge.0) && circle.contains(&edge.1))
        });
        let best = candidates.copied().max_by_key(|edge| {
            let mut without = edges.clone();
            without.remove(edge);
            let gain = weight - weight_of(&forbidden(graph, &without));
            (gain * 1000 / lines(graph, *edge), std::cmp::Reverse(lines(graph, *edge)))
        });
        let best = best.expect("a circle has edges");
        edges.remove(&best);
        cuts.push(best);
    }
}

/// Leaves out the cuts that later ones made superfluous.
fn necessary(graph: &Graph, mut edges: BTreeSet<Edge>, cuts: Vec<Edge>) -> Vec<Edge> {
    let mut kept = Vec::new();
    for cut in cuts {
        edges.insert(cut);
        if !forbidden(graph, &edges).is_empty() {
            edges.remove(&cut);
            kept.push(cut);
        }
    }
    kept
}

fn forbidden(graph: &Graph, edges: &BTreeSet<Edge>) -> Vec<Vec<FileId>> {
    let mut all = circles(graph.files.len(), edges);
    all.retain(|circle| graph.is_forbidden(circle));
    all
}

fn weight_of(circles: &[Vec<FileId>]) -> usize {
    circles.iter().map(|circle| circle.len() * circle.len()).sum()
}

fn lines(graph: &Graph, edge: Edge) -> usize {
    graph.edges[&edge].len()
}
