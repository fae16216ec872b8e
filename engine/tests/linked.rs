//! Dataflows that read the output of other dataflows, however high they stand and whenever they come.
//!
//! `ENGINE_SEEDS=5000 cargo test -p engine --test linked` tries more, `ENGINE_SEED=42` just that one.

mod common;

use common::expected::{compare, Expected};
use common::generate::{random_view, ARITIES};
use common::history::*;
use common::{config, nothing_in_memory, seeds, Host, Random};
use engine::{Config, DataflowId, Engine, StopReason, Time, Updates};
use plan::naive::evaluate;
use plan::row::Row;
use plan::value::Datum;
use plan::{SourceId, ViewPlan};
use std::collections::BTreeMap;
use std::panic::catch_unwind;

const MAX_RECURSION: u64 = 12;
const TIMES: Time = 16;

/// Most dataflows that stand on one another.
const MOST: u64 = 5;

#[test]
fn views_over_views_are_right_at_every_time() {
    let linked: usize = seeds(300)
        .map(|seed| {
            let outcome = catch_unwind(|| play(seed));
            outcome.unwrap_or_else(|_| panic!("failed with ENGINE_SEED={seed}"))
        })
        .sum();
    assert!(linked > 0, "no view has read another one");
    println!("{linked} times a view has read another one");
}

/// What a source of a view reads.
enum Reads {
    Table(usize),
    View { name: u64, columns: Vec<usize> },
}

/// A view while it is there.
struct View {
    plan: ViewPlan,
    reads: Vec<Reads>,
    /// At every time of the history.
    expected: BTreeMap<Time, Expected>,
    since: Time,
}

impl View {
    /// Whether it has the columns that it says it has, as random plans may not.
    fn is_readable(&self) -> bool {
        let is_integer = |value: &Datum| matches!(value, Datum::Int8(_) | Datum::Null);
        self.expected.values().flat_map(|(rows, _)| rows.keys()).all(|row| {
            let values = row.unpack();
            values.len() == self.plan.columns.len() && values.iter().all(is_integer)
        })
    }
}

struct Game {
    random: Random,
    host: Host,
    /// What tables hold at every time.
    tables: BTreeMap<Time, Contents>,
    views: BTreeMap<u64, View>,
    linked: usize,
}

/// Plays a history with views that come and go; answers how often one has read another one.
fn play(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let history = random_history(&mut random, TIMES);
    let spill = (random.below(3) == 0).then(|| nothing_in_memory("eddy-linked"));
    let workers = 1 + random.below(2) as usize;
    let config = Config { max_recursion: MAX_RECURSION, spill, ..config(workers) };
    let (mut contents, mut tables) = (vec![BTreeMap::new(); ARITIES.len()], BTreeMap::new());
    for (time, events) in &history {
        apply(&mut contents, events);
        tables.insert(*time, contents.clone());
    }
    let mut game =
        Game { random, host: Host::with(config), tables, views: BTreeMap::new(), linked: 0 };
    for (time, events) in &history {
        // What was put out may not have been polled yet when a view comes, nor when it is told of the next time.
        match game.random.below(4) {
            0 => {}
            1 => game.host.engine.advance(*time),
            _ => game.host.advance(*time),
        }
        match game.random.below(4) {
            0 if game.views.len() > 2 => game.end_last(*time),
            _ if (game.views.len() as u64) < MOST => game.create(*time),
            _ => {}
        }
        events.iter().for_each(|event| game.feed(*time, event));
    }
    game.host.advance(TIMES + 1);
    while !game.views.is_empty() {
        game.end_last(TIMES + 1);
    }
    assert!(game.host.stopped.is_empty() || game.has_too_many_copies(), "{:?}", game.host.stopped);
    game.linked
}

impl Game {
    /// Whether a recursion has more copies of a row than can be counted, which the naive evaluation does not notice: from
    /// then on nothing can be said.
    fn has_too_many_copies(&self) -> bool {
        let is_it = |reason: &StopReason| matches!(reason, StopReason::TooManyCopies { .. });
        self.host.stopped.values().any(is_it)
    }

    /// A view over tables, and over views that are there, just before a time.
    fn create(&mut self, since: Time) {
        let plan = random_view(&mut self.random);
        let reads: Vec<Reads> = (0..ARITIES.len()).map(|table| self.read(table)).collect();
        let Some(expected) = self.expect(&plan, &reads) else { return };
        let name = self.views.keys().last().map_or(1, |last| last + 1);
        match self.random.below(6) {
            0 => self.host.engine.create_spilling_dataflow(DataflowId(name), &plan, since),
            _ => self.host.create(name, &plan, since),
        }
        for (source, reads) in reads.iter().enumerate() {
            match reads {
                Reads::Table(table) => self.fill(name, source, *table, since),
                Reads::View { name: beneath, columns } => {
                    self.linked += 1;
                    let polled = self.host.output(*beneath).oks;
                    let polled: Updates<Row> = polled
                        .into_iter()
                        .flat_map(|(time, rows)| {
                            rows.into_iter().map(move |(row, diff)| (row, time, diff))
                        })
                        .collect();
                    let input = (DataflowId(name), SourceId(source));
                    self.host.engine.connect(DataflowId(*beneath), input, columns.clone(), &polled);
                }
            }
        }
        self.views.insert(name, View { plan, reads, expected, since });
    }

    fn read(&mut self, table: usize) -> Reads {
        let is_readable = |(_, view): &(&u64, &View)| view.is_readable();
        let names: Vec<u64> =
            self.views.iter().filter(is_readable).map(|(name, _)| *name).collect();
        if names.is_empty() || self.random.below(3) == 0 {
            return Reads::Table(table);
        }
        let name = names[self.random.below(names.len() as u64) as usize];
        let arity = self.views[&name].plan.columns.len() as u64;
        let columns = (0..ARITIES[table]).map(|_| self.random.below(arity) as usize).collect();
        Reads::View { name, columns }
    }

    /// What a view is at every time; `None` if it, or one beneath it, has errors or passes a limit.
    fn expect(&self, plan: &ViewPlan, reads: &[Reads]) -> Option<BTreeMap<Time, Expected>> {
        let at = |time: &Time| {
            let of = |reads: &Reads| match reads {
                Reads::Table(table) => self.tables[time][*table].clone(),
                Reads::View { name, columns } => {
                    let mut rows = BTreeMap::new();
                    for (row, diff) in &self.views[name].expected[time].0 {
                        let values = row.unpack();
                        let row = Row::pack(columns.iter().map(|column| &values[*column]));
                        *rows.entry(row).or_insert(0) += diff;
                    }
                    rows
                }
            };
            let contents: Contents = reads.iter().map(of).collect();
            catch_unwind(|| evaluate(plan, &contents, MAX_RECURSION)).ok()?.ok()
        };
        let all = self.tables.keys().map(|time| Some((*time, at(time)?)));
        let all: BTreeMap<Time, Expected> = all.collect::<Option<_>>()?;
        all.values().all(|(_, errs)| errs.is_empty()).then_some(all)
    }

    /// Feeds what a table holds before a time.
    fn fill(&mut self, name: u64, source: usize, table: usize, at: Time) {
        let before = self.tables.range(..at).next_back();
        let rows = before.map(|(_, contents)| contents[table].clone()).unwrap_or_default();
        let rows = rows.into_iter().map(|(row, diff)| (row, at, diff)).collect();
        self.host.update(name, source, rows);
    }

    fn feed(&mut self, time: Time, event: &Event) {
        let of = match event {
            Event::Update(table, ..) | Event::Truncate(table) => *table,
        };
        for (name, view) in &self.views {
            for (source, reads) in view.reads.iter().enumerate() {
                match (reads, event) {
                    (Reads::Table(table), Event::Update(_, row, diff)) if *table == of => {
                        self.host.update(*name, source, vec![(row.clone(), time, *diff)]);
                    }
                    (Reads::Table(table), Event::Truncate(_)) if *table == of => {
                        self.host.engine.truncate(DataflowId(*name), SourceId(source), time);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The view that came last, which none reads, goes just before a time.
    fn end_last(&mut self, time: Time) {
        self.host.advance(time);
        let Some((name, View { plan, mut expected, since, .. })) = self.views.pop_last() else {
            return;
        };
        if self.has_too_many_copies() {
            return;
        }
        expected.retain(|at, _| *at >= since && *at < time);
        let output = self.host.output(name);
        assert!(output.oks.keys().all(|at| *at <= TIMES), "{plan:?} since {since}");
        compare(&expected, &output);
        self.host.engine.drop_dataflow(DataflowId(name));
        self.host.outputs.remove(&DataflowId(name));
        self.host.frontiers.remove(&DataflowId(name));
    }
}
