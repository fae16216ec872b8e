//! What is asked of the host, and its answers: values of expressions that only it can compute.

use crate::core::updates::DataflowId;
use plan::error::DataError;
use plan::host::HostCall;
use plan::row::Row;
use plan::value::Datum;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// The value of an expression, or the error that evaluating it raised.
pub type Answer = Result<Datum, DataError>;

/// A call with the rows of arguments for which values are wanted.
#[derive(Debug)]
pub struct Question {
    /// What is to be computed.
    pub call: Arc<HostCall>,
    /// The arguments, a row for each value wanted.
    pub rows: Vec<Row>,
}

/// Questions of a worker thread, which waits for the answers.
pub struct Evaluation {
    /// The dataflow whose thread asks.
    pub dataflow: DataflowId,
    /// What is asked.
    pub questions: Vec<Question>,
    reply: Reply,
}

/// Takes the answers to where they are waited for.
type Reply = Box<dyn FnOnce(Vec<Vec<Answer>>) + Send>;

impl Evaluation {
    /// Questions of a dataflow, and what becomes of the answers.
    pub fn new(
        dataflow: DataflowId,
        questions: Vec<Question>,
        reply: impl FnOnce(Vec<Vec<Answer>>) + Send + 'static,
    ) -> Evaluation {
        Evaluation { dataflow, questions, reply: Box::new(reply) }
    }

    /// Answers: for each question as many as it has rows.
    pub fn answer(self, answers: Vec<Vec<Answer>>) {
        (self.reply)(answers);
    }
}

impl Debug for Evaluation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let Evaluation { dataflow, questions, .. } = self;
        formatter
            .debug_struct("Evaluation")
            .field("dataflow", dataflow)
            .field("questions", questions)
            .finish()
    }
}
