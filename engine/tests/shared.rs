//! Indexes that several dataflows read, created and dropped in any order.
//!
//! `ENGINE_SEEDS=5000 cargo test -p engine --test shared` tries more, `ENGINE_SEED=42` just that one.

mod common;
#[path = "common/counted.rs"]
mod counted;

use common::expected::{compare, expect, Expected};
use common::generate::{random_view, ARITIES};
use common::history::*;
use common::plans::*;
use common::{config, nothing_in_memory, seeds, Host, Random};
use counted::{alone, MB};
use engine::{
    lookups, sources_beside, sub_plans, table_joins, Config, DataflowId, Engine, Form, Index, Read,
    StopReason, SubPlan, TableJoin, Time,
};
use plan::aggregate::AggregateFunc;
use plan::expr::Expr;
use plan::func::{Blanks, Comparison, Func};
use plan::row::Row;
use plan::value::Datum;
use plan::{Aggregate, Mfp, Plan, Recursion, Source, SourceId, ViewPlan};
use std::collections::BTreeMap;
use std::panic::catch_unwind;

const MAX_RECURSION: u64 = 12;
const TIMES: Time = 16;

#[test]
fn views_over_indexes_are_right_at_every_time() {
    let _alone = alone();
    let seeds = seeds(200);
    let mut all = Reads::default();
    for seed in seeds {
        let outcome = catch_unwind(|| play(seed));
        let reads = outcome.unwrap_or_else(|_| panic!("failed with ENGINE_SEED={seed}"));
        all.any += reads.any;
        all.some_rows += reads.some_rows;
        all.joins += reads.joins;
        all.sub_plans += reads.sub_plans;
    }
    assert!(all.any > 0, "no view has read an index");
    assert!(all.some_rows > 0, "no view has read some of the rows of an index");
    assert!(all.joins > 0, "no view has read what a join puts out");
    assert!(all.sub_plans > 0, "no view has read what a sub-plan puts out");
    println!("{all:?}");
}

/// A view over the two sources that joins at least one of them, mostly.
fn random_reader(random: &mut Random) -> ViewPlan {
    match random.below(11) {
        9 => {
            let inputs = vec![source(0), source(1), source(0)];
            view(&ARITIES, chain(inputs, project(6, &[0, 5])), 2)
        }
        10 => {
            let inputs =
                vec![some_rows(random, 0), some_rows(random, 1), source(random.below(2) as usize)];
            view(&ARITIES, chain(inputs, project(6, &[0, 3])), 2)
        }
        6 => {
            let (one, other) = (some_rows(random, 0), some_rows(random, 1));
            view(&ARITIES, join((one, 1), (other, 0), project(4, &[0, 3])), 2)
        }
        7 => {
            let step = join((get(0), 1), (some_rows(random, 0), 0), project(4, &[0, 3]));
            view(&ARITIES, letrec(0, Recursion::FixpointDistinct, source(1), step, get(0)), 2)
        }
        8 => {
            let joined = join((source(0), 1), (source(1), 0), project(4, &[0, 3]));
            let count = Aggregate { func: AggregateFunc::Count, arg: None };
            let counted = Plan::Reduce {
                input: Box::new(joined),
                key: vec![col(1)],
                aggregates: vec![count],
            };
            view(&ARITIES, counted, 2)
        }
        0 => view(&ARITIES, join((source(0), 1), (source(1), 0), project(4, &[0, 3])), 2),
        1 => view(&ARITIES, join((source(0), 0), (source(0), 1), project(4, &[2, 1])), 2),
        2 => {
            let step = join((get(0), 1), (source(0), 0), project(4, &[0, 3]));
            view(&ARITIES, letrec(0, Recursion::FixpointDistinct, source(1), step, get(0)), 2)
        }
        3 => {
            let paths = join((source(0), 1), (source(1), 0), project(4, &[0, 3]));
            let step = join((get(0), 1), (source(1), 0), project(4, &[0, 3]));
            view(&ARITIES, letrec(0, Recursion::FixpointDistinct, paths, step, get(0)), 2)
        }
        _ => random_view(random),
    }
}

/// Some rows of a source, with columns in another order and computed ones, none of which can fail.
fn some_rows(random: &mut Random, of: usize) -> Plan {
    let bound = Expr::Literal(Datum::Int8(random.below(4) as i64), BIGINT);
    let compared = [Comparison::Lt, Comparison::Ge, Comparison::Ne][random.below(3) as usize];
    let compare = Func::Compare(compared, Blanks::Significant);
    // Column 2 is the first one without its NULLs.
    let maps = vec![Expr::Coalesce(vec![col(0), bound.clone()])];
    let filtered = [1, 2][random.below(2) as usize];
    let filter = vec![Expr::Call { func: compare, args: vec![col(filtered), bound] }];
    let project = [[1, 0], [2, 1], [0, 2], [1, 2]][random.below(4) as usize].to_vec();
    map(source(of), Mfp { input_arity: 2, maps, filter, project })
}

/// The source of a dataflow.
type Input = (DataflowId, usize);

/// The columns of an index, by those of the table: it may have them in any order, and more than once.
type Order = Vec<usize>;

fn ordered(row: &Row, order: &[usize]) -> Row {
    let values = row.unpack();
    Row::pack(order.iter().map(|column| &values[*column]))
}

/// How many views read indexes, some of their rows only, and what joins and sub-plans put out.
#[derive(Debug, Default)]
struct Reads {
    any: usize,
    some_rows: usize,
    joins: usize,
    sub_plans: usize,
}

/// A view while it is there.
struct Reader {
    plan: ViewPlan,
    expected: BTreeMap<Time, Expected>,
    since: Time,
}

struct Game {
    random: Random,
    workers: usize,
    host: Host,
    history: History,
    contents: Contents,
    /// Indexes that were created and not dropped, and all that are fed.
    indexes: Vec<(Index, DataflowId)>,
    fed: Vec<(SourceId, Order, Input)>,
    readers: BTreeMap<u64, Reader>,
    next: u64,
    reads: Reads,
}

/// Plays a history with views that come and go.
fn play(seed: u64) -> Reads {
    let mut random = Random::new(seed);
    let history = random_history(&mut random, TIMES);
    let spill = (random.below(2) == 0).then(|| nothing_in_memory("eddy-shared"));
    let workers = 1 + random.below(2) as usize;
    let config = Config { max_recursion: MAX_RECURSION, spill, ..config(workers) };
    let mut game = Game {
        workers,
        random,
        host: Host::with(config),
        history: history.clone(),
        contents: vec![BTreeMap::new(); ARITIES.len()],
        indexes: Vec::new(),
        fed: Vec::new(),
        readers: BTreeMap::new(),
        next: 1,
        reads: Reads::default(),
    };
    for (time, events) in &history {
        if game.random.below(3) > 0 {
            game.host.advance(*time);
        }
        for _ in 0..game.random.below(3) {
            game.change(*time);
        }
        game.feed(*time, events);
        apply(&mut game.contents, events);
    }
    game.host.advance(TIMES + 1);
    let left: Vec<u64> = game.readers.keys().copied().collect();
    left.into_iter().for_each(|name| game.end(name, TIMES));
    assert!(game.host.stopped.is_empty(), "{:?}", game.host.stopped);
    game.reads
}

impl Game {
    /// A view comes or goes, or nobody wants an index any more, just before a time.
    fn change(&mut self, time: Time) {
        match self.random.below(5) {
            0 if !self.readers.is_empty() => {
                let names: Vec<u64> = self.readers.keys().copied().collect();
                let name = names[self.random.below(names.len() as u64) as usize];
                self.host.advance(time);
                self.end(name, time - 1);
            }
            1 if !self.indexes.is_empty() => {
                let (_, id) =
                    self.indexes.swap_remove(self.random.below(self.indexes.len() as u64) as usize);
                self.host.engine.drop_dataflow(id);
            }
            _ => self.create(time),
        }
    }

    fn create(&mut self, since: Time) {
        let plan = random_reader(&mut self.random);
        let history = &self.history;
        let expected = catch_unwind(|| expect(&plan, history, MAX_RECURSION));
        let Ok(Some(mut expected)) = expected else { return };
        expected.retain(|time, _| *time >= since);
        let name = self.name();
        if self.random.below(6) == 0 {
            self.host.engine.create_spilling_dataflow(DataflowId(name), &plan, since);
        } else {
            let (mut reader, mut reads) = (plan.clone(), Vec::new());
            if self.workers > 1 {
                reader = reader.without_delta_joins();
            }
            let mut form = Form::of(&reader);
            // What raises errors is not shared.
            let is_safe = expected.values().all(|(_, errs)| errs.is_empty());
            for part in sub_plans(&reader).into_iter().filter(|_| is_safe) {
                let Some((with_part, source)) = part.read_by(&reader) else { continue };
                let both = Form::of(&with_part).and(Form::of(&part.plan));
                let index = Index::of_sub_plan(&part, form.and(both));
                if self.random.below(2) == 0
                    && index.fits()
                    && (reads.is_empty() || form == index.form)
                {
                    (reader, form) = (with_part, index.form);
                    let index = self.sub_plan(index, (&plan, &part), since);
                    reads.push(Read { source, key: Vec::new(), index });
                    self.reads.sub_plans += 1;
                }
            }
            for join in table_joins(&reader).into_keys() {
                let (with_join, source) = join.read_by(&reader);
                let is_of_tables =
                    [&join.left, &join.right].iter().all(|side| side.0 .0 < ARITIES.len());
                let wide = form.and(Form::of(&with_join));
                let wide = wide.with(&with_join.sources[source.0], &join.left.1);
                if is_of_tables && self.random.below(2) == 0 && (reads.is_empty() || form == wide) {
                    let Some(index) = self.join((&with_join, wide), source, &join, since) else {
                        continue;
                    };
                    (reader, form) = (with_join, wide);
                    reads.push(Read { source, key: Vec::new(), index });
                    self.reads.joins += 1;
                }
            }
            let mut wanted = lookups(&reader, form);
            wanted.retain(|lookup, _| lookup.0 .0 < ARITIES.len() && self.random.below(4) > 0);
            self.reads.some_rows += usize::from(wanted.values().any(|filter| !filter.is_empty()));
            for (source, key) in wanted.into_keys() {
                let index = self.index((&reader, form), source, &key, since);
                reads.push(Read { source, key, index });
            }
            self.reads.any += usize::from(!reads.is_empty());
            self.host.engine.create_reading(DataflowId(name), (&reader, form), &reads, since);
        }
        for source in 0..ARITIES.len() {
            self.fill(name, source, (SourceId(source), &[0, 1]), since);
        }
        self.readers.insert(name, Reader { plan, expected, since });
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// An index that is there, or a new one.
    fn index(
        &mut self,
        (plan, form): (&ViewPlan, Form),
        source: SourceId,
        key: &[usize],
        since: Time,
    ) -> DataflowId {
        let answers = |(index, _): &&(Index, DataflowId)| {
            index.answers(form, &plan.sources[source.0], key).is_some()
        };
        if let Some((_, id)) = self.indexes.iter().find(answers) {
            return *id;
        }
        let (index, order) = self.new_index((plan, form), source, key);
        let id = DataflowId(self.name());
        self.host.engine.create_index(id, &index, &[], since);
        self.fill(id.0, 0, (source, &order), since);
        self.indexes.push((index, id));
        self.fed.push((source, order, (id, 0)));
        id
    }

    /// What a sub-plan puts out, by an index that is there, or a new one, which reads some of the tables by indexes.
    fn sub_plan(
        &mut self,
        index: Index,
        (whole, part): (&ViewPlan, &SubPlan),
        since: Time,
    ) -> DataflowId {
        if let Some((_, id)) = self.indexes.iter().find(|(other, _)| *other == index) {
            return *id;
        }
        let mut reads = Vec::new();
        for (source, key) in lookups(&part.plan, index.form).into_keys() {
            if self.random.below(2) == 0 && part.plan.sources[source.0].columns.len() == 2 {
                let table = part.sources[source.0].0;
                let found = self.index((whole, index.form), table, &key, since);
                reads.push(Read { source, key, index: found });
            }
        }
        let id = DataflowId(self.name());
        self.host.engine.create_index(id, &index, &reads, since);
        let answered = reads.into_iter().map(|read| (read.source, read.key)).collect();
        for source in sources_beside(&part.plan, &answered) {
            let (table, order) = part.sources[source.0].clone();
            self.fill(id.0, source.0, (table, &order), since);
            self.fed.push((table, order, (id, source.0)));
        }
        self.indexes.push((index, id));
        id
    }

    /// What a join puts out, by an index that is there, or a new one.
    fn join(
        &mut self,
        (reader, form): (&ViewPlan, Form),
        source: SourceId,
        join: &TableJoin,
        since: Time,
    ) -> Option<DataflowId> {
        let answers = |(index, _): &&(Index, DataflowId)| {
            index.answers(form, &reader.sources[source.0], &[]).is_some()
        };
        if let Some((_, id)) = self.indexes.iter().find(answers) {
            return Some(*id);
        }
        let sides = [&join.left, &join.right].map(|(source, key)| {
            let id = self.index((reader, form), *source, key, since);
            let (index, _) = self.indexes.iter().find(|(_, other)| *other == id).unwrap();
            (index.clone(), id)
        });
        let [(left, left_id), (right, right_id)] = sides;
        let index = Index::of_join(&left, &right);
        if !index.fits() {
            return None;
        }
        let side = |number: usize, index: &Index, id| Read {
            source: SourceId(number),
            key: index.key.clone(),
            index: id,
        };
        let reads = [side(0, &left, left_id), side(1, &right, right_id)];
        let id = DataflowId(self.name());
        self.host.engine.create_index(id, &index, &reads, since);
        self.indexes.push((index, id));
        Some(id)
    }

    fn new_index(
        &mut self,
        (plan, form): (&ViewPlan, Form),
        source: SourceId,
        key: &[usize],
    ) -> (Index, Order) {
        let order = [vec![0, 1], vec![1, 0], vec![1, 0, 1]][self.random.below(3) as usize].clone();
        let with = |order: &[usize]| {
            let of = &plan.sources[source.0];
            let columns = order.iter().map(|column| of.columns[*column]).collect();
            let schema = order.iter().map(|column| of.schema[*column].clone()).collect();
            let place = |column: &usize| order.iter().position(|other| other == column).unwrap();
            Index {
                source: Source { columns, schema, ..of.clone() },
                key: key.iter().map(place).collect(),
                form,
                made_by: None,
            }
        };
        match with(&order) {
            index if index.fits() => (index, order),
            _ => (with(&[0, 1]), vec![0, 1]),
        }
    }

    /// Feeds what a table has to a source of a dataflow.
    fn fill(&mut self, name: u64, to: usize, (table, order): (SourceId, &[usize]), at: Time) {
        let rows = self.contents[table.0].iter();
        let rows = rows.map(|(row, diff)| (ordered(row, order), at, *diff)).collect();
        self.host.update(name, to, rows);
    }

    fn feed(&mut self, time: Time, events: &[Event]) {
        for event in events {
            let of = match event {
                Event::Update(source, ..) | Event::Truncate(source) => *source,
            };
            let fed: Vec<_> = self.fed.iter().filter(|(source, ..)| source.0 == of).collect();
            let fed: Vec<(Order, Input)> =
                fed.into_iter().map(|(_, order, input)| (order.clone(), *input)).collect();
            for (order, (id, source)) in fed {
                self.tell(id.0, (source, &order), event, time);
            }
            let names: Vec<u64> = self.readers.keys().copied().collect();
            names.into_iter().for_each(|name| self.tell(name, (of, &[0, 1]), event, time));
        }
    }

    fn tell(&mut self, name: u64, (source, order): (usize, &[usize]), event: &Event, time: Time) {
        match event {
            Event::Update(_, row, diff) => {
                self.host.update(name, source, vec![(ordered(row, order), time, *diff)]);
            }
            Event::Truncate(_) => {
                self.host.engine.truncate(DataflowId(name), SourceId(source), time);
            }
        }
    }

    /// A view goes, of which everything up to a time has arrived.
    fn end(&mut self, name: u64, last: Time) {
        let Some(Reader { plan, mut expected, since }) = self.readers.remove(&name) else { return };
        expected.retain(|time, _| *time <= last);
        let output = self.host.output(name);
        assert!(output.oks.keys().all(|time| *time <= TIMES), "{plan:?} since {since}");
        compare(&expected, &output);
        self.host.engine.drop_dataflow(DataflowId(name));
    }
}

const ROWS: i64 = 200_000;

/// A join of source 0, which is large, with source 1.
fn large_join() -> ViewPlan {
    view(&ARITIES, join((source(0), 0), (source(1), 0), project(4, &[1, 3])), 2)
}

fn read(source: usize, key: usize, index: u64) -> Read {
    Read { source: SourceId(source), key: vec![key], index: DataflowId(index) }
}

fn index_of(plan: &ViewPlan, source: usize, key: usize) -> Index {
    let source = plan.sources[source].clone();
    Index { source, key: vec![key], form: Form::of(plan), made_by: None }
}

fn large_source() -> Vec<(Row, Time, i64)> {
    (0..ROWS).map(|i| (row(&[i, i]), 1, 1)).collect()
}

#[test]
fn what_is_shared_is_kept_once_and_goes_with_its_last_reader() {
    let _alone = alone();
    let before = engine::memory::allocated();
    let plan = large_join();
    let mut host = Host::new(1);
    host.engine.create_index(DataflowId(1), &index_of(&plan, 0, 0), &[], 1);
    for name in 2..6 {
        host.engine.create_reading(DataflowId(name), (&plan, Form::of(&plan)), &[read(0, 0, 1)], 1);
        host.update(name, 1, vec![(row(&[name as i64, 7]), 1, 1)]);
    }
    host.update(1, 0, large_source());
    host.advance(2);
    for name in 2..6 {
        assert_eq!(host.rows(name), [(row(&[name as i64, 7]), 1)].into());
        let stats = host.engine.stats(DataflowId(name));
        assert!(stats.state_bytes < MB, "{} bytes of its own", stats.state_bytes);
    }
    let kept = host.engine.stats(DataflowId(1)).state_bytes;
    assert!(kept > 4 * MB, "{kept} bytes in the index");
    host.engine.drop_dataflow(DataflowId(1));
    for name in 2..6 {
        host.update(1, 0, vec![(row(&[name as i64, 0]), name, 1)]);
        host.advance(name + 1);
        assert_eq!(host.rows(name).len(), 2, "the index lives on while it is read");
        host.engine.drop_dataflow(DataflowId(name));
    }
    host.wait_until(|_| engine::memory::allocated() < before + kept / 2);
}

#[test]
fn an_index_that_outgrows_memory_stops_those_that_read_it() {
    let _alone = alone();
    let plan = large_join();
    let before = engine::memory::allocated();
    let mut host = Host::with(Config { memory_limit: before + 4 * MB, ..config(1) });
    host.create(9, &view(&[1], source(0), 1), 1);
    host.engine.create_index(DataflowId(1), &index_of(&plan, 0, 0), &[], 1);
    host.engine.create_reading(DataflowId(2), (&plan, Form::of(&plan)), &[read(0, 0, 1)], 1);
    host.update(1, 0, large_source());
    host.engine.advance(2);
    host.wait(|host| host.stopped.len() == 2);
    for name in [1, 2] {
        let reason = host.stopped.get(&DataflowId(name));
        assert!(matches!(reason, Some(StopReason::MemoryLimit { .. })), "{name}: {reason:?}");
    }
    host.update(9, 0, vec![(row(&[5]), 2, 1)]);
    host.advance(3);
    assert_eq!(host.rows(9), [(row(&[5]), 1)].into(), "others go on");
}

#[test]
fn a_reader_that_is_behind_gets_what_came_meanwhile() {
    let _alone = alone();
    let plan = large_join();
    let mut host = Host::new(1);
    host.engine.create_index(DataflowId(1), &index_of(&plan, 0, 0), &[], 1);
    host.engine.create_reading(DataflowId(2), (&plan, Form::of(&plan)), &[read(0, 0, 1)], 1);
    host.update(2, 1, vec![(row(&[1, 7]), 1, 1)]);
    for time in 1..50 {
        host.update(1, 0, vec![(row(&[1, time as i64]), time, 1)]);
        host.engine.advance_dataflow(DataflowId(1), time + 1);
    }
    host.wait(|host| host.frontiers.get(&DataflowId(1)) == Some(&50));
    assert!(!host.frontiers.contains_key(&DataflowId(2)), "it was not told to go on");
    host.engine.advance_dataflow(DataflowId(2), 20);
    host.wait(|host| host.frontiers.get(&DataflowId(2)) == Some(&20));
    assert_eq!(host.rows(2).len(), 19, "and no further than that");
    host.advance(50);
    assert_eq!(host.rows(2).len(), 49);
}
