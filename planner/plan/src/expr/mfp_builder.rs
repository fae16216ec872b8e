//! Composes projections and filters, from the bottom up, into one [`Mfp`].

use crate::expr::{self, Expr, Mfp};

/// An Mfp under construction.
#[derive(Clone)]
pub struct MfpBuilder {
    input_arity: usize,
    maps: Vec<Expr>,
    filter: Vec<Expr>,
    /// The current output columns, by index into input columns and maps.
    outputs: Vec<usize>,
}

impl MfpBuilder {
    /// Passes rows of that many columns through.
    pub fn new(input_arity: usize) -> MfpBuilder {
        let outputs = (0..input_arity).collect();
        MfpBuilder { input_arity, maps: vec![], filter: vec![], outputs }
    }

    /// Keeps rows for which a condition over the current output columns is true.
    pub fn filter(&mut self, condition: &Expr) {
        let outputs = &self.outputs;
        let condition = expr::renumber(condition, &|column| outputs[column]);
        if condition != Expr::true_literal() && !self.filter.contains(&condition) {
            self.filter.push(condition);
        }
    }

    /// Replaces the output columns by expressions over them.
    pub fn map(&mut self, outputs: &[Expr]) {
        let old = std::mem::take(&mut self.outputs);
        for output in outputs {
            let expr = expr::renumber(output, &|column| old[column]);
            let position = expr.as_column().unwrap_or_else(|| self.computed(expr));
            self.outputs.push(position);
        }
    }

    /// Does to the current output columns what an Mfp does to its input.
    pub fn then(&mut self, mfp: &Mfp) {
        debug_assert_eq!(self.outputs.len(), mfp.input_arity);
        for map in &mfp.maps {
            let expr = expr::renumber(map, &|column| self.outputs[column]);
            let position = expr.as_column().unwrap_or_else(|| self.computed(expr));
            self.outputs.push(position);
        }
        mfp.filter.iter().for_each(|conjunct| self.filter(conjunct));
        self.outputs = mfp.project.iter().map(|column| self.outputs[*column]).collect();
    }

    /// The column that holds the expression.
    fn computed(&mut self, expr: Expr) -> usize {
        let known = self.maps.iter().position(|map| *map == expr);
        self.input_arity
            + known.unwrap_or_else(|| {
                self.maps.push(expr);
                self.maps.len() - 1
            })
    }

    /// The finished Mfp, without maps nobody needs.
    pub fn finish(self) -> Mfp {
        let first = self.input_arity;
        let mut needed = vec![false; self.maps.len()];
        let mut pending: Vec<usize> = self.outputs.clone();
        pending.extend(self.filter.iter().flat_map(expr::columns_of));
        while let Some(column) = pending.pop() {
            if column >= first && !needed[column - first] {
                needed[column - first] = true;
                pending.extend(expr::columns_of(&self.maps[column - first]));
            }
        }
        let renumber = |column: usize| match column.checked_sub(first) {
            None => column,
            Some(map) => first + needed[..map].iter().filter(|needed| **needed).count(),
        };
        let kept = self.maps.iter().zip(&needed).filter(|(_, needed)| **needed);
        Mfp {
            input_arity: first,
            maps: kept.map(|(map, _)| expr::renumber(map, &renumber)).collect(),
            filter: self.filter.iter().map(|f| expr::renumber(f, &renumber)).collect(),
            project: self.outputs.iter().map(|&column| renumber(column)).collect(),
        }
    }
}
