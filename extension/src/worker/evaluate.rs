//! Answers the engine's questions: what an expression is worth, and where a value is among others of its type.

use crate::pg::evaluate::{self, Answer, Code};
use crate::pg::sort_keys::SortKeys;
use crate::pg::xact;
use engine::{Evaluation, Question};
use planner::error::DataError;
use planner::host::HostWork;
use planner::row::Row;
use planner::types::Type;
use planner::value::Datum;
use std::cell::RefCell;

thread_local! {
    /// Given to dataflows, so they hold as long as the process.
    static SORT_KEYS: RefCell<SortKeys> = RefCell::default();
}

/// Answers what a thread of the engine waits for.
pub fn answer(evaluation: Evaluation) {
    let questions = &evaluation.questions;
    let answers = evaluate::in_transaction(|| questions.iter().map(answer_one).collect());
    let answers = answers.unwrap_or_else(|caught| {
        // The transaction itself failed: so did every row in it.
        let error = DataError::from(caught);
        questions.iter().map(|question| vec![Err(error.clone()); question.rows.len()]).collect()
    });
    evaluation.answer(answers);
}

fn answer_one(question: &Question) -> Vec<Answer> {
    match &question.call.work {
        HostWork::Expression { code, caller, args, .. } => {
            let code = Code { code, caller: *caller, args, ty: question.call.ty };
            evaluate::evaluate(&code, &question.rows)
        }
        HostWork::SortKey { of, collation, caller } => {
            sort_keys(*caller, (*of, *collation), &question.rows)
        }
    }
}

/// The sort keys of the values of rows of one column, compared as that user.
fn sort_keys(caller: u32, (ty, collation): (Type, u32), rows: &[Row]) -> Vec<Answer> {
    evaluate::answer_each(rows, |rows, answers| {
        xact::as_user(caller.into(), || {
            SORT_KEYS.with_borrow_mut(|keys| {
                for row in rows {
                    let label = keys.label(caller, (ty, collation), &row.column(0));
                    answers.push(Ok(Datum::Bytea(label)));
                }
            });
        });
    })
}
