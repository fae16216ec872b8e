//! What the host computes: everything immutable that has no native kernel, and the order of its types.
//!
//! A plan names the work ([`HostCall`]); how it is done is the business of an [`Evaluator`], which whoever runs plans
//! installs for its thread.

use crate::error::DataError;
use crate::sqlstate;
use crate::types::Type;
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// A computation of the host's, without its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCall {
    /// What is computed.
    pub work: HostWork,
    /// Type of the result.
    pub ty: Type,
    /// The same for equal calls, and for no others but by accident.
    pub fingerprint: u64,
}

/// What the host computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostWork {
    /// The value of an expression over the arguments.
    Expression {
        /// As people read it; the arguments are `$1`, `$2` …
        text: String,
        /// As the host reads it.
        code: String,
        /// The host's number of the user as whom it is evaluated.
        caller: u32,
        /// Whether it calls no functions but the host's own.
        is_builtin: bool,
        /// The types of the arguments.
        args: Vec<Type>,
    },
    /// Bytes that compare as the values of a type do; equal values have equal bytes. They hold for one run of the
    /// host only. NULL is not asked for.
    SortKey {
        /// The type of the argument.
        of: Type,
        /// The host's number of the collation, 0 for the type's own.
        collation: u32,
        /// The host's number of the user as whom values are compared. Keys of different users do not compare.
        caller: u32,
    },
}

impl HostCall {
    /// A computation with a result of that type.
    pub fn new(work: HostWork, ty: Type) -> HostCall {
        let mut hasher = DefaultHasher::new();
        work.hash(&mut hasher);
        ty.hash(&mut hasher);
        HostCall { work, ty, fingerprint: hasher.finish() }
    }

    /// As people read it.
    pub fn text(&self) -> &str {
        match &self.work {
            HostWork::Expression { text, .. } => text,
            HostWork::SortKey { .. } => "sort_key($1)",
        }
    }
}

/// Does what [`HostCall`]s name.
pub trait Evaluator {
    /// The result for these arguments.
    fn evaluate(&self, call: &HostCall, args: &[&Datum]) -> Result<Datum, DataError>;
}

thread_local! {
    static EVALUATOR: RefCell<Option<Rc<dyn Evaluator>>> = const { RefCell::new(None) };
}

/// Gives this thread an evaluator, for as long as it lives.
pub fn install(evaluator: Rc<dyn Evaluator>) {
    EVALUATOR.with(|cell| cell.replace(Some(evaluator)));
}

/// The result of a call, by this thread's evaluator.
pub(crate) fn evaluate(call: &HostCall, args: &[&Datum]) -> Result<Datum, DataError> {
    if let (HostWork::SortKey { .. }, [value]) = (&call.work, args) {
        if value.is_null() {
            return Ok(Datum::Null);
        }
    }
    let evaluator = EVALUATOR.with(|cell| cell.borrow().clone());
    match evaluator {
        Some(evaluator) => evaluator.evaluate(call, args),
        None => Err(DataError::new(
            sqlstate::INTERNAL_ERROR,
            "this thread has no host to evaluate expressions",
        )),
    }
}
