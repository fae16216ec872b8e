//! The nodes of a plan, from the text that EXPLAIN prints.

use anyhow::{bail, Result};

use super::feature::Feature::{self, *};

/// Beginnings of the lines that are no nodes: of the header, and of the two inputs of a recursion.
const NO_NODES: [&str; 4] = ["View (", "Key (", "base", "step"];

const PLAIN: [(&str, Feature); 15] = [
    ("Constant ", ConstantNode),
    ("Source ", SourceNode),
    ("Get ", GetNode),
    ("Let ", LetNode),
    ("Mfp ", MfpNode),
    ("Table function ", TableFunctionNode),
    ("Temporal ", TemporalNode),
    ("Join on ", JoinNode),
    ("Cross join ", CrossJoinNode),
    ("Range join on ", RangeJoinNode),
    ("Delta join on ", DeltaJoinNode),
    ("Distinct", DistinctNode),
    ("Union", UnionNode),
    ("Negate", NegateNode),
    ("Repeat by ", RepeatNode),
];

const LOOPS: [(&str, Feature); 7] = [
    (" UNION as fixpoint", FixpointDistinct),
    (" UNION ALL as fixpoint", FixpointAll),
    (" UNION by working table", WorkingTableDistinct),
    (" UNION ALL by working table", WorkingTableAll),
    (" as fixpoint of the least ", FixpointLeast),
    (" as fixpoint of the greatest ", FixpointGreatest),
    (", then the ", FixpointThen),
];

const REDUCES: [(&str, Feature); 18] = [
    ("min", ReduceExtremes),
    ("max", ReduceExtremes),
    ("any", ReduceAny),
    ("array_agg", ReduceCollections),
    ("string_agg", ReduceCollections),
    ("mode", ReduceCollections),
    ("percentile_disc", ReduceCollections),
    ("percentile_cont", ReduceCollections),
    ("regr_count", ReduceSums),
    ("count", ReduceSums),
    ("sum", ReduceSums),
    ("avg", ReduceSums),
    ("bool_and", ReduceSums),
    ("bool_or", ReduceSums),
    ("bit_and", ReduceSums),
    ("bit_or", ReduceSums),
    ("bit_xor", ReduceSums),
    ("var_pop", ReduceSums),
];

const PARTITIONS: [(&str, Feature); 8] = [
    (" limit ", PartitionLimit),
    (" offset ", PartitionOffset),
    (" with ties", PartitionTies),
    (") to (", PartitionWindow),
    (" among peers", PartitionPeers),
    (" rows between ", PartitionRows),
    (" groups between ", PartitionGroups),
    (" range between ", PartitionRange),
];

/// The nodes of a plan and their forms. A line that is neither known nor known to be none is an error, so that
/// new nodes find their way into the list.
pub fn of_plan(text: &str) -> Result<Vec<Feature>> {
    let mut nodes = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let forms = of_line(line);
        if forms.is_empty() && !NO_NODES.iter().any(|beginning| line.starts_with(beginning)) {
            bail!("the oracle does not know this node of a plan: {line}");
        }
        nodes.extend(forms);
    }
    Ok(nodes)
}

fn of_line(line: &str) -> Vec<Feature> {
    let by = |all, by_key| if line.contains(" by () ") { all } else { by_key };
    match line.split(' ').next() {
        Some("LetRec") => contained(&LOOPS, line, |pattern| pattern.to_owned()),
        Some("Reduce") => {
            let mut forms = contained(&REDUCES, line, |name| format!("({name}("));
            forms.extend(contained(&REDUCES, line, |name| format!(", {name}(")));
            forms.sort();
            forms.dedup();
            [vec![by(ReduceAll, ReduceByKey)], forms].concat()
        }
        Some("Partition") => {
            let forms = contained(&PARTITIONS, line, |pattern| pattern.to_owned());
            [vec![by(PartitionOfAll, PartitionByKey)], forms].concat()
        }
        _ => PLAIN.iter().filter(|(start, _)| line.starts_with(start)).map(|(_, f)| *f).collect(),
    }
}

fn contained<'a>(
    forms: &[(&'a str, Feature)],
    line: &str,
    pattern: impl Fn(&'a str) -> String,
) -> Vec<Feature> {
    forms.iter().filter(|(form, _)| line.contains(&pattern(form))).map(|(_, node)| *node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_their_forms_are_told_apart() {
        let plan = "\
View (a integer, n bigint not null)
Key (a)
LetRec r (n, d) UNION by working table: not linear
  base
    Source edge (a)
  step
    Join on (n) = (a) output (b)
      Get r (n, d)
      Source edge (a, b)
Partition by () order by (a DESC, b among peers) offset 1 limit 2 with ties
  Partition by (a) to (sum(b) rows between 1 preceding and current row)
    Reduce by (a) to (count(*), min(b))
      Distinct
        Get r (n, d)
";
        let expected = [
            vec![WorkingTableDistinct, SourceNode, JoinNode, GetNode, SourceNode],
            vec![PartitionOfAll, PartitionLimit, PartitionOffset, PartitionTies, PartitionPeers],
            vec![PartitionByKey, PartitionWindow, PartitionRows],
            vec![ReduceByKey, ReduceSums, ReduceExtremes, DistinctNode, GetNode],
        ];
        assert_eq!(of_plan(plan).unwrap(), expected.concat());
        assert!(of_plan("Shuffle by (a)").is_err());
    }
}
