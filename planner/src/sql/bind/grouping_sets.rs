//! GROUP BY as a list of keys and the sets of them that are grouped by: several with GROUPING SETS, ROLLUP and
//! CUBE, whose combinations are what `GROUP BY` multiplies out.

use super::super::grouping_elements::DISTINCT_SETS;
use super::super::refuse::unsupported;
use super::function::function_name;
use super::syntax::strip;
use crate::error::PlanError;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, GroupByExpr};
use std::collections::BTreeSet;

/// As many as PostgreSQL allows.
const MAX_SETS: usize = 4096;

/// Whether it stands for the DISTINCT of GROUP BY.
fn is_mark(call: &ast::Function) -> bool {
    function_name(&call.name).is_ok_and(|name| name == DISTINCT_SETS)
}

/// What a SELECT groups by.
pub(super) struct Keys {
    /// The expressions, each once.
    pub(super) keys: Vec<ast::Expr>,
    /// Positions in `keys`. A plain GROUP BY is one set of all keys.
    pub(super) sets: Vec<Vec<usize>>,
    /// Whether there is a GROUP BY at all: `GROUP BY ()` has no key.
    pub(super) is_there: bool,
}

impl Keys {
    pub(super) fn of(group_by: &GroupByExpr) -> Result<Keys, PlanError> {
        let GroupByExpr::Expressions(elements, modifiers) = group_by else {
            return Err(unsupported("this form of GROUP BY is"));
        };
        if !modifiers.is_empty() {
            return Err(unsupported("this form of GROUP BY is"));
        }
        let (is_distinct, elements) = match elements.as_slice() {
            [ast::Expr::Function(call), elements @ ..] if is_mark(call) => (true, elements),
            elements => (false, elements),
        };
        let mut keys = Keys { keys: vec![], sets: vec![vec![]], is_there: !elements.is_empty() };
        for element in elements {
            let alternatives = keys.alternatives(element)?;
            if keys.sets.len() * alternatives.len() > MAX_SETS {
                return Err(unsupported(format!("more than {MAX_SETS} grouping sets are")));
            }
            let with = |set: &Vec<usize>, more: &Vec<usize>| {
                let new = more.iter().filter(|key| !set.contains(key));
                set.iter().chain(new).copied().collect()
            };
            let sets = keys.sets.iter();
            keys.sets =
                sets.flat_map(|set| alternatives.iter().map(move |a| with(set, a))).collect();
        }
        if is_distinct {
            let mut seen = BTreeSet::new();
            keys.sets.retain(|set| seen.insert(set.iter().copied().collect::<BTreeSet<usize>>()));
        }
        Ok(keys)
    }

    /// The sets that one element of GROUP BY stands for.
    fn alternatives(&mut self, element: &ast::Expr) -> Result<Vec<Vec<usize>>, PlanError> {
        match strip(element) {
            ast::Expr::GroupingSets(sets) => {
                let mut all = Vec::new();
                for set in sets {
                    match set.as_slice() {
                        // ROLLUP or CUBE as one of the sets, which is a call to the parser.
                        [ast::Expr::Function(call)] => all.extend(self.nested(call)?),
                        set => all.push(self.positions(set)),
                    }
                }
                Ok(all)
            }
            ast::Expr::Rollup(steps) => Ok(self.rollup(steps)),
            ast::Expr::Cube(parts) => self.cube(parts),
            ast::Expr::Tuple(row) => Ok(vec![self.positions(row)]),
            key => Ok(vec![self.positions(std::slice::from_ref(key))]),
        }
    }

    /// The sets that a set of GROUPING SETS stands for which looks like a call.
    fn nested(&mut self, call: &ast::Function) -> Result<Vec<Vec<usize>>, PlanError> {
        let name = call.name.to_string().to_lowercase();
        let args = match &call.args {
            ast::FunctionArguments::List(list) if matches!(name.as_str(), "rollup" | "cube") => {
                &list.args
            }
            _ => return Ok(vec![self.positions(&[ast::Expr::Function(call.clone())])]),
        };
        let element = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Tuple(row))) => Some(row.clone()),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(vec![expr.clone()]),
            _ => None,
        };
        let elements: Option<Vec<Vec<ast::Expr>>> = args.iter().map(element).collect();
        let elements = elements.ok_or_else(|| unsupported("this form of GROUP BY is"))?;
        match name.as_str() {
            "rollup" => Ok(self.rollup(&elements)),
            _ => self.cube(&elements),
        }
    }

    fn rollup(&mut self, steps: &[Vec<ast::Expr>]) -> Vec<Vec<usize>> {
        let steps: Vec<Vec<usize>> = steps.iter().map(|step| self.positions(step)).collect();
        (0..=steps.len()).rev().map(|length| steps[..length].concat()).collect()
    }

    fn cube(&mut self, parts: &[Vec<ast::Expr>]) -> Result<Vec<Vec<usize>>, PlanError> {
        let parts: Vec<Vec<usize>> = parts.iter().map(|part| self.positions(part)).collect();
        if parts.len() > 12 {
            return Err(unsupported("CUBE of more than 12 elements is"));
        }
        let chosen = |subset: usize| {
            let parts = parts.iter().enumerate();
            parts
                .filter(|(i, _)| subset & (1 << i) != 0)
                .flat_map(|(_, part)| part.clone())
                .collect()
        };
        Ok((0..1 << parts.len()).rev().map(chosen).collect())
    }

    fn positions(&mut self, exprs: &[ast::Expr]) -> Vec<usize> {
        let mut positions = Vec::new();
        for expr in exprs.iter().map(strip) {
            let known = self.keys.iter().position(|key| key == expr);
            positions.push(known.unwrap_or_else(|| {
                self.keys.push(expr.clone());
                self.keys.len() - 1
            }));
        }
        positions
    }
}
