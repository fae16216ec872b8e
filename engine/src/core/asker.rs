//! What worker threads ask of the host: values of expressions that only it can compute.
//!
//! An operator that has a batch of rows evaluates them once just to learn what it must ask ([`with_answers`]), asks for
//! all of it together, and then evaluates them for good. Answers are remembered for a while: what is retracted was
//! inserted before. A thread that asks waits for the answer and does nothing else.

use crate::core::monitor::{Dataflow, Shared};
use crate::core::questions::{Answer, Evaluation, Question};
use crate::core::report::Report;
use plan::error::DataError;
use plan::host::{Evaluator, HostCall};
use plan::row::Row;
use plan::sqlstate;
use plan::value::Datum;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::Arc;

/// Rows that are asked for together.
pub(crate) const BATCH: usize = 4096;

/// Bytes of answers kept of either age, old and new.
const KEPT_BYTES: usize = 8 << 20;

/// What a value costs beside its own bytes.
const ENTRY_BYTES: usize = 96;

/// Answers by call and arguments.
type Answers = HashMap<(u64, Row), Answer>;

/// Asks on behalf of a thread.
pub(crate) struct Asker {
    shared: Arc<Shared>,
    dataflow: Arc<Dataflow>,
    /// New answers, and those from before there were too many.
    new: RefCell<Answers>,
    old: RefCell<Answers>,
    bytes: Cell<usize>,
    /// What is to be asked for, while it is collected.
    collected: RefCell<Option<Collected>>,
}

#[derive(Default)]
struct Collected {
    questions: HashMap<u64, Question>,
    wanted: HashSet<(u64, Row)>,
    /// Whether the row at hand lacks an answer.
    is_missing: bool,
}

thread_local! {
    static ASKER: RefCell<Option<Rc<Asker>>> = const { RefCell::new(None) };
}

/// Lets this thread ask the host on behalf of a dataflow.
pub(crate) fn start(shared: Arc<Shared>, dataflow: &Arc<Dataflow>) {
    let asker = Rc::new(Asker {
        shared,
        dataflow: Arc::clone(dataflow),
        new: RefCell::default(),
        old: RefCell::default(),
        bytes: Cell::new(0),
        collected: RefCell::default(),
    });
    ASKER.with(|cell| cell.replace(Some(Rc::clone(&asker))));
    plan::host::install(asker);
}

/// Calls `evaluate` for items, at most [`BATCH`] of them, until the host has answered all that it asks.
pub(crate) fn with_answers<T>(items: &[T], evaluate: impl Fn(&T)) {
    let Some(asker) = ASKER.with(|cell| cell.borrow().clone()) else { return };
    asker.forget_oldest();
    let mut waiting: Vec<&T> = items.iter().collect();
    while !waiting.is_empty() {
        asker.collected.replace(Some(Collected::default()));
        waiting.retain(|item| {
            evaluate(item);
            let mut collected = asker.collected.borrow_mut();
            collected.as_mut().is_some_and(|c| std::mem::take(&mut c.is_missing))
        });
        let collected = asker.collected.take().unwrap_or_default();
        asker.ask(collected.questions.into_values().collect());
    }
}

impl Asker {
    fn known(&self, key: &(u64, Row)) -> Option<Answer> {
        let known = self.new.borrow().get(key).cloned();
        known.or_else(|| {
            let answer = self.old.borrow_mut().remove(key)?;
            self.remember(key.clone(), answer.clone());
            Some(answer)
        })
    }

    fn remember(&self, key: (u64, Row), answer: Answer) {
        let value = match &answer {
            Ok(value) => Row::pack([value]).heap_bytes(),
            Err(error) => error.text_bytes(),
        };
        self.bytes.set(self.bytes.get() + key.1.heap_bytes() + value + ENTRY_BYTES);
        self.new.borrow_mut().insert(key, answer);
    }

    /// Forgets the oldest answers if there are too many. Not while a batch waits for some.
    fn forget_oldest(&self) {
        if self.bytes.get() > KEPT_BYTES {
            self.old.replace(self.new.take());
            self.bytes.set(0);
        }
    }

    /// Asks, waits, and remembers.
    fn ask(&self, questions: Vec<Question>) {
        if questions.is_empty() {
            return;
        }
        let asked: Vec<(u64, Vec<Row>)> =
            questions.iter().map(|q| (q.call.fingerprint, q.rows.clone())).collect();
        let Dataflow { id, instance, .. } = *self.dataflow;
        let (reply, answers) = channel();
        let evaluation = Evaluation::new(id, questions, move |answers| {
            // A thread that has gone wants to know nothing.
            let _ = reply.send(answers);
        });
        self.shared.report(Report::Evaluate { instance, evaluation });
        let answers = answers.recv().unwrap_or_default().into_iter().map(Some);
        for ((call, rows), answers) in asked.into_iter().zip(answers.chain(std::iter::repeat(None)))
        {
            let mut answers = answers.unwrap_or_default().into_iter();
            for row in rows {
                let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
                self.remember((call, row), answer);
            }
        }
    }
}

/// What comes of a call that nobody answers: the engine is being shut down.
fn unanswered() -> DataError {
    DataError::new(sqlstate::ADMIN_SHUTDOWN, "the host does not evaluate expressions any more")
}

impl Evaluator for Asker {
    fn evaluate(&self, call: &HostCall, args: &[&Datum]) -> Answer {
        let key = (call.fingerprint, Row::pack(args.iter().copied()));
        if let Some(answer) = self.known(&key) {
            return answer;
        }
        if let Some(collected) = &mut *self.collected.borrow_mut() {
            collected.is_missing = true;
            if collected.wanted.insert(key.clone()) {
                let question = collected
                    .questions
                    .entry(key.0)
                    .or_insert_with(|| Question { call: Arc::new(call.clone()), rows: Vec::new() });
                question.rows.push(key.1);
            }
            return Err(unanswered());
        }
        self.forget_oldest();
        self.ask(vec![Question { call: Arc::new(call.clone()), rows: vec![key.1.clone()] }]);
        self.known(&key).unwrap_or_else(|| Err(unanswered()))
    }
}
