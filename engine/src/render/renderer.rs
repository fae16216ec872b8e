//! A rendered node, and what rendering the next one needs to know.

use super::arrangements::{ArrangementKey, RowArrangement};
use super::errors::{Errs, Raised};
use super::imported::Import;
use super::input::Held;
use super::share::Wake;
use super::storage::Storage;
use crate::core::collection::Collection;
use crate::core::monitor::Guard;
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::layout::infer::{Columns, Types};
use crate::layout::Layout;
use plan::error::DataError;
use plan::LocalId;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use timely::dataflow::Scope;

#[derive(Clone)]
pub(crate) struct Bundle<'s, L: Layout, const LOOPS: usize> {
    pub(crate) oks: Collection<'s, L::Row, LOOPS>,
    /// Errors raised by it and by what is below it.
    pub(super) errs: Errs,
    /// The columns of its rows.
    pub(crate) columns: Columns,
}

/// What rendering a node needs to know of its surroundings.
pub(super) struct Renderer<'s, L: Layout, S: Storage, const LOOPS: usize> {
    pub(super) context: Context<'s, S, LOOPS>,
    pub(super) sources: Vec<Bundle<'s, L, LOOPS>>,
    /// Who holds the rows of each source.
    pub(super) held: Vec<Held<L::Row>>,
    /// How often the plan refers to each source.
    pub(super) uses: Vec<usize>,
    pub(super) locals: BTreeMap<LocalId, Bundle<'s, L, LOOPS>>,
    /// Arrangements of sources and locals by join keys, shared by all joins of this view.
    pub(super) arrangements: Vec<(ArrangementKey, RowArrangement<'s, L, S, LOOPS>)>,
    /// Indexes to read instead of arranging sources.
    pub(super) imports: Vec<Import>,
    pub(super) wake: Arc<Wake<Stamp<LOOPS>>>,
}

/// What operators need to know of their surroundings, whatever the layout of rows.
pub(super) struct Context<'s, S: Storage, const LOOPS: usize> {
    pub(super) scope: Scope<'s, Stamp<LOOPS>>,
    pub(super) as_of: Time,
    pub(super) guard: Guard,
    pub(super) raised: Raised<'s, LOOPS>,
    /// Number of enclosing loops.
    pub(super) depth: usize,
    pub(super) storage: PhantomData<S>,
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// Lets `id` stand for `bundle`. Within its loop a recursion's name stands for something else than
    /// after it, so what was arranged under that name is not valid any more.
    pub(super) fn bind(&mut self, id: LocalId, bundle: Bundle<'s, L, LOOPS>) {
        self.arrangements.retain(|(key, _)| !key.is_of(id));
        self.locals.insert(id, bundle);
    }

    pub(super) fn get(&self, id: LocalId) -> Bundle<'s, L, LOOPS> {
        self.locals.get(&id).expect("a plan refers only to names bound around it").clone()
    }

    /// The columns of everything that has a name now.
    pub(super) fn types(&self) -> Types {
        let columns = |bundle: &Bundle<'s, L, LOOPS>| Rc::clone(&bundle.columns);
        let locals = self.locals.iter().map(|(id, bundle)| (*id, columns(bundle))).collect();
        Types { sources: self.sources.iter().map(columns).collect(), locals, widths: None }
    }
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// Whether what is rendered now is outside of all loops, and may keep tables in memory.
    pub(super) fn times_are_ordered(&self) -> bool {
        S::HAS_TABLES && self.depth == 0
    }

    /// The errors of an operator that is rendered now.
    pub(super) fn raise(&mut self, errors: Collection<'s, DataError, LOOPS>) -> Errs {
        self.raised.add(self.depth, errors)
    }

    /// The errors of a set of streams.
    pub(super) fn errors(&self, errs: &Errs) -> Collection<'s, DataError, LOOPS> {
        self.raised.collect(self.scope, errs)
    }

    /// Of a set of streams those that come from within the innermost loop, as one, and the others.
    pub(super) fn split_errors(
        &self,
        errs: &Errs,
    ) -> (Option<Collection<'s, DataError, LOOPS>>, Errs) {
        let (inner, outer) = self.raised.split(errs, self.depth);
        ((!inner.is_empty()).then(|| self.errors(&inner)), outer)
    }
}
