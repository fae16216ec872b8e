//! Evaluation by an assistant: the part that needs nothing of PostgreSQL.

use super::jobs::{without_result, Head, JobEnd, Turn};
use super::order::{self, Call, RawAnswer, Work};
use engine::{Answer, Evaluation};
use plan::host::HostWork;
use rules::codec::Decoder;
use std::io;
use std::time::Duration;

/// What was answered in this time is answered by the worker itself the next time.
const QUICK: Duration = Duration::from_millis(20);

/// Questions of a dataflow, of which some rows are answered.
pub struct Evaluating {
    pub evaluation: Evaluation,
    /// For each question, the answers of its first rows.
    pub answers: Vec<Vec<Answer>>,
    /// Whether all answers together took little time so far.
    pub is_quick: bool,
}

impl Evaluating {
    pub fn prepare(self, head: &Head) -> Turn {
        match self.write_order(head) {
            Ok(()) => Turn::Ready(self.into()),
            Err(error) => Turn::Unordered(self.into(), error),
        }
    }

    fn write_order(&self, head: &Head) -> io::Result<()> {
        let mut encoder = head.begin(Work::Evaluate(self.calls()))?;
        for (question, answers) in self.evaluation.questions.iter().zip(&self.answers) {
            order::write_rows(&mut encoder, &question.rows[answers.len()..])?;
        }
        encoder.finish()
    }

    fn calls(&self) -> Vec<Call> {
        let call = |question: &engine::Question| match &question.call.work {
            HostWork::Expression { code, caller, args, .. } => Call {
                code: code.clone(),
                caller: *caller,
                args: args.clone(),
                ty: question.call.ty,
            },
            // The worker answers these itself, all of them: no row is left.
            HostWork::SortKey { caller, .. } => {
                let ty = question.call.ty;
                Call { code: String::new(), caller: *caller, args: Vec::new(), ty }
            }
        };
        self.evaluation.questions.iter().map(call).collect()
    }

    pub fn digest(mut self, head: &Head) -> Turn {
        match self.read_result(head) {
            Err(error) => Turn::Failed(self.into(), without_result(&error)),
            Ok(()) if self.is_complete() => {
                let Evaluating { evaluation, answers, is_quick } = self;
                evaluation.answer(answers);
                Turn::Over(Box::new(JobEnd::Answered { is_quick }))
            }
            // The rest, when it is its turn.
            Ok(()) => Turn::Again(self.into()),
        }
    }

    fn is_complete(&self) -> bool {
        let questions = self.evaluation.questions.iter();
        questions.zip(&self.answers).all(|(question, answers)| answers.len() == question.rows.len())
    }

    fn read_result(&mut self, head: &Head) -> io::Result<()> {
        let mut decoder = Decoder::open(head.files.result())?;
        let took = Duration::from_micros(decoder.number()?);
        let mut more: Vec<Vec<RawAnswer>> = Vec::new();
        for _ in &self.answers {
            let count = decoder.count()?;
            more.push(
                (0..count).map(|_| order::read_answer(&mut decoder)).collect::<io::Result<_>>()?,
            );
        }
        decoder.finish()?;
        self.is_quick &= took < QUICK;
        for (answers, more) in self.answers.iter_mut().zip(more) {
            answers.extend(more.into_iter().map(|answer| answer.map(|row| row.column(0))));
        }
        Ok(())
    }
}
