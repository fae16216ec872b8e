//! Answers the engine's questions: what an expression is worth, and where a value is among others of its type.
//!
//! The worker has little time for that: what takes longer is left to an assistant, row by row, and so is what follows, until
//! an assistant was quick. Where a value is among others only the worker knows.

use super::main_loop::Worker;
use super::naming::relid_of;
use super::view::Phase;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::evaluate::{self, Answer, Code, Limits};
use crate::pg::markers::{AtWork, Work};
use crate::pg::sort_keys::SortKeys;
use crate::pg::{process, xact};
use engine::{DataflowId, Evaluation, Question};
use pgrx::pg_sys;
use plan::error::DataError;
use plan::host::HostWork;
use plan::row::Row;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How long the worker evaluates one batch of rows, while all views wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// What `pg_stat_activity` says meanwhile.
pub(super) const EVALUATING: &str = "evaluating expressions of";

impl Worker {
    /// Answers what a thread of the engine waits for, or has it answered.
    pub(super) fn evaluate(&mut self, evaluation: Evaluation) {
        // A view that has gone waits for nothing.
        let Some(relid) = self.dataflows.get(&evaluation.dataflow).copied() else { return };
        let Some(view) = self.views.get_mut(&relid) else { return };
        if !self.assistants.are_available() {
            let unanswered = vec![Vec::new(); evaluation.questions.len()];
            let name = view.name.clone();
            return self.answer_rest(&name, evaluation, unanswered);
        }
        let is_suspect = self.suspects.has(relid) || {
            let mut callers = evaluation.questions.iter().map(caller_of);
            callers.any(|caller| self.suspects.mistrusts(caller))
        };
        let is_slow = view.is_slow || is_suspect;
        let time = if is_slow { Duration::ZERO } else { PATIENCE };
        let limits = Limits { end: Some(Instant::now() + time), ..Limits::by_row() };
        let answers = {
            let _at_work = AtWork::begin(relid, Work::Evaluate);
            if !is_slow {
                process::report_view(EVALUATING, &view.name);
                crash_point::reach_for(CrashPoint::Evaluate, &view.name);
            }
            let keys = self.sort_keys.entry(evaluation.dataflow).or_default();
            let of_rows = if is_suspect { limits } else { Limits::by_row() };
            let limits = |question: &Question| if is_of_rows(question) { of_rows } else { limits };
            answer_all(&evaluation.questions, &limits, keys)
        };
        let is_answered =
            |(question, answers): (&Question, &Vec<Answer>)| question.rows.len() == answers.len();
        if evaluation.questions.iter().zip(&answers).all(is_answered) {
            return evaluation.answer(answers);
        }
        view.is_slow = true;
        self.evaluate_by_assistant(relid, evaluation, answers);
    }

    /// Answers the rows of each question that have no answer yet, for a view with a name.
    pub(super) fn answer_rest(
        &mut self,
        view: &str,
        evaluation: Evaluation,
        mut answers: Vec<Vec<Answer>>,
    ) {
        let _at_work = AtWork::begin(relid_of(evaluation.dataflow), Work::Evaluate);
        process::report_view(EVALUATING, view);
        crash_point::reach_for(CrashPoint::Evaluate, view);
        let rest_of = |(question, answers): (&Question, &Vec<Answer>)| Question {
            call: question.call.clone(),
            rows: question.rows[answers.len()..].to_vec(),
        };
        let rest: Vec<Question> = evaluation.questions.iter().zip(&answers).map(rest_of).collect();
        let keys = self.sort_keys.entry(evaluation.dataflow).or_default();
        for (answers, rest) in
            answers.iter_mut().zip(answer_all(&rest, &|_| Limits::by_row(), keys))
        {
            answers.extend(rest);
        }
        evaluation.answer(answers);
    }

    /// Views that have seen many more values than they may still have start afresh, so that the sort keys of those go.
    pub(super) fn let_go_of_sort_keys(&mut self) {
        let mut crowded = Vec::new();
        for (dataflow, keys) in &mut self.sort_keys {
            let Some(view) = self.dataflows.get(dataflow).and_then(|relid| self.views.get(relid))
            else {
                continue;
            };
            if view.is_stored() && view.former.is_none() {
                keys.settle();
            }
            if keys.are_too_many() {
                pgrx::log!(
                    "pg_eddy: view {} starts afresh to let go of {} bytes of sort keys",
                    view.name,
                    keys.bytes()
                );
                crowded.push(view.relid);
            }
        }
        for relid in crowded {
            self.set_phase(relid, Phase::waiting());
        }
    }

    /// Bytes of a dataflow's sort keys.
    pub(super) fn bytes_of_sort_keys(&self, dataflow: DataflowId) -> usize {
        self.sort_keys.get(&dataflow).map_or(0, SortKeys::bytes)
    }
}

/// Answers as many rows of each question as there is time for, and all that only this process can answer.
fn answer_all(
    questions: &[Question],
    limits: &dyn Fn(&Question) -> Limits,
    keys: &mut SortKeys,
) -> Vec<Vec<Answer>> {
    let answers = evaluate::in_transaction(|| {
        questions.iter().map(|question| answer_one(question, &limits(question), keys)).collect()
    });
    answers.unwrap_or_else(|caught| {
        // The transaction itself failed: so did every row in it.
        let error = DataError::from(caught);
        questions.iter().map(|question| vec![Err(error.clone()); question.rows.len()]).collect()
    })
}

/// Whether PostgreSQL's own functions are to make rows without a type, or to take some. What such rows are made of each process
/// knows of its own ones only, so the worker does that itself, however long it takes.
fn is_of_rows(question: &Question) -> bool {
    let is_row = |ty: &Type| matches!(ty.base(), Scalar::Host(host) if host.id == pg_sys::RECORDOID.to_u32());
    match &question.call.work {
        HostWork::Expression { args, is_builtin, .. } => {
            *is_builtin && args.iter().chain([&question.call.ty]).any(is_row)
        }
        HostWork::SortKey { .. } => false,
    }
}

/// As whom a question is answered.
fn caller_of(question: &Question) -> u32 {
    match &question.call.work {
        HostWork::Expression { caller, .. } | HostWork::SortKey { caller, .. } => *caller,
    }
}

fn answer_one(question: &Question, limits: &Limits, keys: &mut SortKeys) -> Vec<Answer> {
    match &question.call.work {
        HostWork::Expression { code, caller, args, .. } => {
            let code = Code { code, caller: *caller, args, ty: question.call.ty };
            evaluate::evaluate(&code, &question.rows, limits)
        }
        HostWork::SortKey { of, collation, caller } => {
            sort_keys(keys, *caller, (*of, *collation), &question.rows)
        }
    }
}

/// The sort keys of the values of rows of one column, compared as that user.
fn sort_keys(
    keys: &mut SortKeys,
    caller: u32,
    (ty, collation): (Type, u32),
    rows: &[Row],
) -> Vec<Answer> {
    let keys = RefCell::new(keys);
    evaluate::answer_each(rows, &Limits::by_row(), |rows, answers| {
        xact::as_user(caller.into(), || {
            let mut keys = keys.borrow_mut();
            for row in rows {
                let label = keys.label(caller, (ty, collation), &row.column(0));
                answers.push(Ok(Datum::Bytea(label)));
            }
        });
    })
}
