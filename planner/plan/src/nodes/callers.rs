//! As whom the host compares the values of a plan: comparison functions of types are code of users, too.

use crate::expr::{Expr, Mfp};
use crate::host::{HostCall, HostWork};
use crate::nodes::{Plan, Recursion, ViewPlan};

impl ViewPlan {
    /// The plan with all sort keys made as that user of the host.
    pub fn compared_as(mut self, user: u32) -> ViewPlan {
        self.root.each_expression(&mut |expr| compare_as(expr, user));
        self
    }
}

fn compare_as(expr: &mut Expr, user: u32) {
    if let Expr::Host { call, .. } = expr {
        if let HostWork::SortKey { of, collation, .. } = call.work {
            *call = HostCall::new(HostWork::SortKey { of, collation, caller: user }, call.ty);
        }
    }
    expr.children_mut().into_iter().for_each(|child| compare_as(child, user));
}

impl Plan {
    /// Hands every expression of a plan to `work`, not those within expressions.
    pub fn each_expression(&mut self, work: &mut dyn FnMut(&mut Expr)) {
        each_expression(self, work);
    }
}

fn each_expression(plan: &mut Plan, work: &mut dyn FnMut(&mut Expr)) {
    match plan {
        Plan::Constant { .. } | Plan::Source(_) | Plan::Get(_) => {}
        Plan::Let { value, body, .. } => {
            [value, body].into_iter().for_each(|plan| each_expression(plan, work));
        }
        Plan::LetRec { recursion, base, step, body, .. } => {
            if let Recursion::WorkingTableDistinct { key } = recursion {
                key.iter_mut().for_each(&mut *work);
            }
            [base, step, body].into_iter().for_each(|plan| each_expression(plan, work));
        }
        Plan::Mfp { input, mfp } => {
            each_of_mfp(mfp, work);
            each_expression(input, work);
        }
        Plan::TableFunction { input, table_function, closure } => {
            table_function.args_mut().for_each(&mut *work);
            each_of_mfp(closure, work);
            each_expression(input, work);
        }
        Plan::Join { left, right, left_key, right_key, closure } => {
            left_key.iter_mut().chain(right_key).for_each(&mut *work);
            each_of_mfp(closure, work);
            [left, right].into_iter().for_each(|plan| each_expression(plan, work));
        }
        Plan::DeltaJoin { inputs, tree, closure } => {
            let inputs_of_tree = 0..tree.arities.len();
            inputs_of_tree.for_each(|input| tree.keys_mut(input).into_iter().for_each(&mut *work));
            each_of_mfp(closure, work);
            inputs.iter_mut().for_each(|plan| each_expression(plan, work));
        }
        Plan::Reduce { input, key, aggregates } => {
            let args = aggregates.iter_mut().filter_map(|aggregate| aggregate.arg.as_mut());
            key.iter_mut().chain(args).for_each(&mut *work);
            each_expression(input, work);
        }
        Plan::Partition { input, key, .. } => {
            key.iter_mut().for_each(&mut *work);
            each_expression(input, work);
        }
        Plan::Distinct { input }
        | Plan::Temporal { input, .. }
        | Plan::Negate { input }
        | Plan::Repeat { input } => each_expression(input, work),
        Plan::Union { inputs } => inputs.iter_mut().for_each(|plan| each_expression(plan, work)),
    }
}

fn each_of_mfp(mfp: &mut Mfp, work: &mut dyn FnMut(&mut Expr)) {
    mfp.maps.iter_mut().chain(&mut mfp.filter).for_each(work);
}
