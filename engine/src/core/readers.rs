//! Dataflows that read what another one puts out: each of its threads hands them what it puts out itself.

use crate::core::updates::{Time, Updates};
use crate::memory::Account;
use plan::row::Row;
use plan::SourceId;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Output that all readers have together. It is on nobody's account: whoever does not take it answers for it.
#[derive(Default)]
pub(crate) struct PutOut {
    pub(crate) updates: Updates<Row>,
    /// What it takes in memory.
    pub(crate) bytes: usize,
}

impl PutOut {
    fn copy(updates: &Updates<Row>) -> Arc<PutOut> {
        let _on_nobodys = Account::common().enter();
        let rows = updates.iter().map(|(row, ..)| row.as_bytes().len());
        let bytes = rows.sum::<usize>() + size_of_val(updates.as_slice());
        Arc::new(PutOut { updates: updates.clone(), bytes })
    }
}

/// Takes output that is complete before a time; answers whether the reader is still there.
pub(crate) type Take = Box<dyn Fn(&Arc<PutOut>, Time) -> bool + Send>;

/// A dataflow that reads the output of another one.
pub(crate) struct Reader {
    /// The instance that reads, and the source of it.
    pub(crate) input: (u64, SourceId),
    pub(crate) take: Take,
}

thread_local! {
    /// Who reads the output of this thread's dataflow, and the time before which they have it.
    static READERS: RefCell<Vec<Reader>> = const { RefCell::new(Vec::new()) };
    static FRONTIER: Cell<Time> = const { Cell::new(0) };
    /// What is to happen before the first one comes.
    static BEFORE_FIRST: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// What is to happen before this thread's dataflow has its first reader.
pub(crate) fn before_first(action: impl FnOnce() + 'static) {
    BEFORE_FIRST.set(Some(Box::new(action)));
}

/// From now on a dataflow reads what the one of this thread puts out.
pub(crate) fn add(reader: Reader) {
    BEFORE_FIRST.take().into_iter().for_each(|action| action());
    if (reader.take)(&Arc::default(), FRONTIER.get()) {
        READERS.with_borrow_mut(|readers| readers.push(reader));
    }
}

/// What this thread puts out, which is complete before `frontier`, goes to all readers.
pub(crate) fn pass_on(updates: &Updates<Row>, frontier: Time) {
    FRONTIER.set(frontier);
    READERS.with_borrow_mut(|readers| {
        if !readers.is_empty() {
            let put_out = PutOut::copy(updates);
            readers.retain(|reader| (reader.take)(&put_out, frontier));
        }
    });
}
