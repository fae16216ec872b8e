//! Joins of a spilling dataflow.
//!
//! The two sides are read key by key; of each side the updates of one key are in memory. Results are
//! made as they are asked for, so that a key with many matches does not fill the memory.

use super::arrange::Arrangement;
use super::chunk::{Batch, Difference, Stored, StoredTime};
use super::reader::{Edits, Reader};
use differential_dataflow::consolidation::{consolidate_updates, ConsolidatingContainerBuilder};
use differential_dataflow::difference::{Multiply, Semigroup};
use differential_dataflow::operators::join::{join_with_tactic, Fresh, JoinTactic};
use differential_dataflow::{AsCollection, Data, VecCollection};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;
use timely::container::{ContainerBuilder, NoopBuilder, PushInto};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::Accountable;

/// Differential lets a join put out a million results before others work. That may be more memory than
/// there is: each counts as this many.
const WEIGHT: i64 = 64;

/// Joins two arrangements by key.
pub(crate) fn join<'s, K, V1, V2, T, R1, R2, D, I, L>(
    left: Arrangement<'s, K, V1, T, R1>,
    right: Arrangement<'s, K, V2, T, R2>,
    logic: L,
) -> VecCollection<'s, T, D, <R1 as Multiply<R2>>::Output>
where
    K: Stored,
    V1: Stored,
    V2: Stored,
    T: StoredTime,
    R1: Difference + Multiply<R2, Output: Semigroup + 'static>,
    R2: Difference,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    let tactic = Tactic { logic: Rc::new(RefCell::new(logic)), results: PhantomData };
    join_with_tactic(left, right, tactic)
        .unary::<NoopBuilder<Vec<_>>, _, _, _>(Pipeline, "Results", |_, _| {
            move |input, output| {
                input.for_each(|capability, Heavy(results)| {
                    output.session_with_builder(&capability).give_container(results);
                });
            }
        })
        .as_collection()
}

/// Results that count as more than they are.
#[derive(Clone, Default)]
struct Heavy<C>(C);

impl<C: Accountable> Accountable for Heavy<C> {
    fn record_count(&self) -> i64 {
        self.0.record_count() * WEIGHT
    }
}

struct Tactic<L, D> {
    logic: Rc<RefCell<L>>,
    results: PhantomData<D>,
}

type Matched<D, T, R> = Vec<(D, T, R)>;

impl<K, V1, V2, T, R1, R2, D, I, L>
    JoinTactic<
        Batch<K, V1, T, R1>,
        Batch<K, V2, T, R2>,
        Heavy<Matched<D, T, <R1 as Multiply<R2>>::Output>>,
    > for Tactic<L, D>
where
    K: Stored,
    V1: Stored,
    V2: Stored,
    T: StoredTime,
    R1: Difference + Multiply<R2, Output: Semigroup + 'static>,
    R2: Difference,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    fn prep(
        &mut self,
        left: Vec<Batch<K, V1, T, R1>>,
        right: Vec<Batch<K, V2, T, R2>>,
        fresh: Fresh,
        meet: T,
    ) -> Box<dyn Iterator<Item = Heavy<Matched<D, T, <R1 as Multiply<R2>>::Output>>>> {
        Box::new(Matches {
            left: Reader::new(left),
            right: Reader::new(right),
            is_left_fresh: matches!(fresh, Fresh::Input0),
            meet,
            key: None,
            pairs: Pairs { left: Vec::new(), right: Vec::new(), next: (0, 0) },
            logic: Rc::clone(&self.logic),
            builder: ConsolidatingContainerBuilder::default(),
            ready: VecDeque::new(),
        })
    }
}

/// The matches of two lists of batches.
struct Matches<K, V1, V2, T, R1, R2, D, L>
where
    K: Stored,
    V1: Stored,
    V2: Stored,
    T: StoredTime,
    R1: Difference + Multiply<R2, Output: Semigroup + 'static>,
    R2: Difference,
    D: Data,
{
    left: Reader<K, V1, T, R1>,
    right: Reader<K, V2, T, R2>,
    is_left_fresh: bool,
    /// The least time of the results; the times of the side that is not fresh may be advanced to it.
    meet: T,
    /// The key whose matches are in `pairs`.
    key: Option<K>,
    pairs: Pairs<V1, V2, T, R1, R2>,
    logic: Rc<RefCell<L>>,
    builder: ConsolidatingContainerBuilder<Matched<D, T, <R1 as Multiply<R2>>::Output>>,
    ready: VecDeque<Matched<D, T, <R1 as Multiply<R2>>::Output>>,
}

/// Every update of the left with every one of the right.
struct Pairs<V1, V2, T, R1, R2> {
    left: Edits<V1, T, R1>,
    right: Edits<V2, T, R2>,
    next: (usize, usize),
}

impl<K, V1, V2, T, R1, R2, D, I, L> Iterator for Matches<K, V1, V2, T, R1, R2, D, L>
where
    K: Stored,
    V1: Stored,
    V2: Stored,
    T: StoredTime,
    R1: Difference + Multiply<R2, Output: Semigroup + 'static>,
    R2: Difference,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    type Item = Heavy<Matched<D, T, <R1 as Multiply<R2>>::Output>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && (self.key.is_some() || self.next_key()) {
            self.play_row();
            while let Some(results) = self.builder.extract() {
                self.ready.push_back(std::mem::take(results));
            }
        }
        if self.ready.is_empty() {
            while let Some(results) = self.builder.finish() {
                self.ready.push_back(std::mem::take(results));
            }
        }
        self.ready.pop_front().map(Heavy)
    }
}

impl<K, V1, V2, T, R1, R2, D, I, L> Matches<K, V1, V2, T, R1, R2, D, L>
where
    K: Stored,
    V1: Stored,
    V2: Stored,
    T: StoredTime,
    R1: Difference + Multiply<R2, Output: Semigroup + 'static>,
    R2: Difference,
    D: Data,
    I: IntoIterator<Item = D>,
    L: FnMut(&K, &V1, &V2) -> I + 'static,
{
    /// Loads the next key that both sides have; false if there is none.
    fn next_key(&mut self) -> bool {
        loop {
            let (Some(left), Some(right)) = (self.left.key(), self.right.key()) else {
                return false;
            };
            if left == right {
                let key = left.clone();
                self.load(&key);
                self.key = Some(key);
                return true;
            }
            let later = left.max(right).clone();
            self.left.seek(&later);
            self.right.seek(&later);
        }
    }

    fn load(&mut self, key: &K) {
        let Pairs { left, right, next } = &mut self.pairs;
        left.clear();
        right.clear();
        *next = (0, 0);
        self.left.take_key(key, left);
        self.right.take_key(key, right);
        if self.is_left_fresh {
            advance(right, &self.meet);
        } else {
            advance(left, &self.meet);
        }
    }

    /// Results of one update of the left with some of the right.
    fn play_row(&mut self) {
        const AT_ONCE: usize = 1024;
        let Some(key) = &self.key else { return };
        let Pairs { left, right, next } = &mut self.pairs;
        if let Some((value1, time1, diff1)) = left.get(next.0) {
            let logic = &mut *self.logic.borrow_mut();
            for (value2, time2, diff2) in right.iter().skip(next.1).take(AT_ONCE) {
                let time = time1.join(time2);
                let diff = diff1.clone().multiply(diff2);
                for data in logic(key, value1, value2) {
                    self.builder.push_into((data, time.clone(), diff.clone()));
                }
            }
            next.1 += AT_ONCE;
        }
        if next.1 >= right.len() {
            *next = (next.0 + 1, 0);
        }
        if next.0 >= left.len() {
            self.key = None;
        }
    }
}

/// Advances times and adds up what is equal then.
fn advance<V: Stored, T: StoredTime, R: Difference>(edits: &mut Edits<V, T, R>, meet: &T) {
    edits.iter_mut().for_each(|(_, time, _)| time.join_assign(meet));
    consolidate_updates(edits);
}
