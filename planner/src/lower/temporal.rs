//! Conditions on the present time: their bounds become columns below, which go with the rows that come or go.

use super::Lowerer;
use crate::error::PlanError;
use crate::ir::{Rel, TimeBound};
use crate::sql::invalid;
use plan::clock;
use plan::clock::End;
use plan::expr::{self, Expr};
use plan::types::Column;
use plan::{Mfp, Plan};
use std::collections::BTreeSet;

impl Lowerer<'_> {
    /// The valid rows of a relation, with just the columns that the Mfp above needs, which is renumbered.
    pub(super) fn lower_temporal(
        &mut self,
        input: &Rel,
        bounds: &[TimeBound],
        above: &mut Mfp,
    ) -> Result<Plan, PlanError> {
        let clock =
            self.clock.ok_or_else(|| invalid("a condition on the present without clock"))?;
        let kept: Vec<usize> = read_by(above).into_iter().collect();
        let ends = |end: End| bounds.iter().filter(move |b| b.end == end).map(|b| &b.at);
        if let (Some(from), Some(until)) = (columns(ends(End::From)), columns(ends(End::Until))) {
            let output = narrow(above, &kept).into_iter().map(|column| kept[column]).collect();
            let input = Box::new(self.lower_rel(input)?);
            return Ok(Plan::Temporal { input, clock, from, until, output });
        }
        let mut outputs: Vec<Expr> = kept.iter().map(|&column| Expr::Column(column)).collect();
        let mut place = |at: &Expr| {
            let known = outputs.iter().position(|output| output == at);
            known.unwrap_or_else(|| {
                outputs.push(at.clone());
                outputs.len() - 1
            })
        };
        let from = ends(End::From).map(&mut place).collect();
        let until = ends(End::Until).map(&mut place).collect();
        let mut columns: Vec<Column> = kept.iter().map(|&c| input.columns[c].clone()).collect();
        let bound = Column { name: String::new(), ty: clock::TIME, typmod: -1, nullable: true };
        columns.resize(outputs.len(), bound);
        let below = Rel { columns: input.columns.clone(), node: input.node.clone() };
        let input = Box::new(self.lower_rel(&below.map(outputs, columns))?);
        Ok(Plan::Temporal { input, clock, from, until, output: narrow(above, &kept) })
    }
}

/// The columns that expressions are, if they are nothing else.
fn columns<'e>(exprs: impl Iterator<Item = &'e Expr>) -> Option<Vec<usize>> {
    exprs.map(Expr::as_column).collect()
}

/// The columns of its input that an Mfp reads.
fn read_by(mfp: &Mfp) -> BTreeSet<usize> {
    let mut read: BTreeSet<usize> = mfp.project.iter().copied().collect();
    mfp.maps.iter().chain(&mfp.filter).for_each(|expr| expr::collect_columns(expr, &mut read));
    read.split_off(&mfp.input_arity);
    read
}

/// Makes an Mfp read just the columns that are kept, or if it only moves columns nothing but pass them on; answers
/// which of those that are kept it is to be given.
fn narrow(mfp: &mut Mfp, kept: &[usize]) -> Vec<usize> {
    let arity = mfp.input_arity;
    let place = |column: usize| match column < arity {
        true => rank(kept, column),
        false => column - arity + kept.len(),
    };
    mfp.input_arity = kept.len();
    if mfp.only_projects() {
        let moved: Vec<usize> = mfp.project.iter().map(|&column| place(column)).collect();
        mfp.input_arity = moved.len();
        mfp.project = (0..moved.len()).collect();
        return moved;
    }
    mfp.maps.iter_mut().chain(&mut mfp.filter).for_each(|e| e.map_columns(&mut |c| place(c)));
    mfp.project.iter_mut().for_each(|column| *column = place(*column));
    (0..kept.len()).collect()
}

fn rank(kept: &[usize], column: usize) -> usize {
    kept.partition_point(|known| *known < column)
}
