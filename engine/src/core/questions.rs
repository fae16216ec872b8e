//! What is asked of the host, and its answers: values of expressions that only it can compute.

use crate::core::updates::DataflowId;
use plan::error::DataError;
use plan::host::HostCall;
use plan::row::Row;
use plan::value::Datum;
use std::sync::mpsc::{channel, Receiver, Sender};
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
#[derive(Debug)]
pub struct Evaluation {
    /// The dataflow whose thread asks.
    pub dataflow: DataflowId,
    /// What is asked.
    pub questions: Vec<Question>,
    reply: Sender<Vec<Vec<Answer>>>,
}

impl Evaluation {
    /// Questions and where the answers will come in.
    pub(crate) fn new(
        dataflow: DataflowId,
        questions: Vec<Question>,
    ) -> (Evaluation, Receiver<Vec<Vec<Answer>>>) {
        let (reply, answers) = channel();
        (Evaluation { dataflow, questions, reply }, answers)
    }

    /// Answers: for each question as many as it has rows.
    pub fn answer(self, answers: Vec<Vec<Answer>>) {
        // A thread that has gone wants to know nothing.
        let _ = self.reply.send(answers);
    }
}
