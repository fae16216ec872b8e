//! A round: tables, views and transactions drawn from a seed, and the comparisons in between.

use anyhow::{bail, Context, Result};
use harness::cluster::Cluster;
use harness::report::Counts;
use postgres::error::SqlState;
use postgres::SimpleQueryMessage;

use super::case::{mentions, Case, Statement, Unit};
use super::coverage::Coverage;
use super::draws::Draws;
use super::feature::{Feature, Group};
use super::inside;
use super::mismatch::{compare, Found, Mismatch};
use super::plan_nodes;
use super::query;
use super::relation::{Query, Relation};
use super::schema::{self, Table};
use super::sessions::Sessions;
use super::types::OWN_TYPES;
use super::workload::{self, Drawn};

const VIEWS_AT_ONCE: usize = 5;
/// After so many transactions a view comes and, when there are enough, another one goes.
const TRANSACTIONS_PER_VIEW: usize = 2;

struct View {
    name: String,
    query: Query,
    /// Then no other view reads it: nothing can be read of a view in error, but a view over it may do
    /// without the column that fails.
    may_fail: bool,
    /// The present time is that of the transaction in a query, and that of the worker in a view.
    reads_clock: bool,
}

impl View {
    fn reads(&self, name: &str) -> bool {
        mentions(&self.query.sql, name)
    }
}

pub struct Round {
    dice: Draws,
    schema: String,
    sessions: Sessions,
    /// Everything done so far.
    case: Case,
    tables: Vec<Table>,
    /// A view that is not incremental.
    plain_view: Option<Relation>,
    views: Vec<View>,
    views_drawn: usize,
    pub differing_texts: i64,
    /// Views dropped because PostgreSQL took too long to run their queries.
    pub too_costly: usize,
}

impl Round {
    pub fn start(cluster: &Cluster, seed: u64) -> Result<Round> {
        let schema = format!("round_{seed}");
        Ok(Round {
            dice: Draws::new(seed),
            sessions: Sessions::open(cluster, &schema)?,
            schema,
            case: Case::default(),
            tables: Vec::new(),
            plain_view: None,
            views: Vec::new(),
            views_drawn: 0,
            differing_texts: 0,
            too_costly: 0,
        })
    }

    /// Ends the sessions: what was done, and the schema in which it was.
    pub fn end(self) -> (Case, String) {
        (self.case, self.schema)
    }

    /// Draws and does everything. The error says which view was [`Found`] to be wrong, or what went wrong
    /// otherwise.
    pub fn play(
        &mut self,
        transactions: usize,
        counts: &mut Counts,
        coverage: &mut Coverage,
    ) -> Result<()> {
        for statement in OWN_TYPES {
            self.execute(Statement::plain(statement.to_owned()), None)?;
        }
        self.execute(Statement::plain(inside::create_function()), None)?;
        self.tables = schema::random_tables(&mut self.dice);
        for table in self.tables.clone() {
            for statement in table.create() {
                self.execute(Statement::plain(statement), None)?;
            }
            let count = self.dice.range(0, 25) as usize;
            self.dice.take();
            if count > 0 {
                let insert = table.insert(&mut self.dice, count);
                self.execute(insert, None)?;
                coverage.count_statement(self.dice.take());
            }
            // Where something is known of the tables joins are not made in the order of the text.
            if self.dice.chance(60) {
                self.execute(Statement::plain(format!("ANALYZE {}", table.name)), None)?;
            }
        }
        if self.dice.chance(30) {
            self.create_plain_view()?;
        }
        for _ in 0..VIEWS_AT_ONCE {
            self.create_view(counts, coverage)?;
        }
        for number in 0..transactions {
            if number % TRANSACTIONS_PER_VIEW == TRANSACTIONS_PER_VIEW - 1 {
                if self.views.len() == VIEWS_AT_ONCE {
                    self.drop_view(coverage)?;
                }
                self.create_view(counts, coverage)?;
            }
            if self.dice.chance(8) {
                self.replace_view(coverage)?;
            }
            self.transact(coverage)?;
            self.compare_all()?;
            counts.record(true);
        }
        Ok(())
    }

    /// A statement by itself, about a view or about none.
    fn execute(&mut self, statement: Statement, view: Option<&str>) -> Result<()> {
        let sql = statement.sql();
        self.case.units.push(Unit::single(statement, view));
        self.sessions.writers[0].batch_execute(&sql).with_context(|| sql)
    }

    fn create_plain_view(&mut self) -> Result<()> {
        let relations: Vec<Relation> = self.tables.iter().map(Relation::of_table).collect();
        self.dice.take();
        let query = query::plain_view(&mut self.dice, &relations);
        let rules = self.dice.take();
        if rules.contains(&Feature::PresentTime) {
            // What moves with the present time cannot be read in a recursion.
            return Ok(());
        }
        // PostgreSQL would compute with a constant, and fail, even where the view has no rows.
        let is_apart = rules.contains(&Feature::Constant) || self.dice.chance(50);
        let barrier = if is_apart { " WITH (security_barrier)" } else { "" };
        let create = format!("CREATE VIEW plain{barrier} AS {}", query.sql);
        self.execute(Statement::plain(create), None)?;
        self.plain_view = Some(Relation::of_view("plain", &query, Feature::PlainView));
        Ok(())
    }

    /// A refusal counts as a failure: the grammar stays within what views support.
    fn create_view(&mut self, counts: &mut Counts, coverage: &mut Coverage) -> Result<()> {
        let mut relations: Vec<Relation> = self.tables.iter().map(Relation::of_table).collect();
        relations.extend(self.plain_view.clone());
        if self.dice.chance(30) {
            let sound = self.views.iter().filter(|view| !view.may_fail);
            let relation =
                |view: &View| Relation::of_view(&view.name, &view.query, Feature::EarlierView);
            relations.extend(sound.map(relation));
        }
        self.dice.take();
        let query = query::random_query(&mut self.dice, &relations);
        let rules = self.dice.take();
        let may_fail =
            [Feature::ErrorsOfRows, Feature::SeveralRows].iter().any(|f| rules.contains(f));
        let is_of_clock = |view: &&View| view.reads_clock && mentions(&query.sql, &view.name);
        let reads_clock = rules.contains(&Feature::PresentTime)
            || self.views.iter().any(|view| is_of_clock(&view));
        self.views_drawn += 1;
        let name = format!("v{}", self.views_drawn);
        let mut options = Vec::new();
        if self.dice.chance(40) {
            options.push("storage = table");
        }
        if self.dice.chance(25) {
            options.push("changes = '1 day'");
        }
        let mut create = create_statement(&name, &options, &query.sql);
        let mut created = self.execute(Statement::plain(&create), Some(&name));
        if created.as_ref().is_err_and(lacks_key) {
            options.retain(|option| !option.starts_with("storage"));
            create = create_statement(&name, &options, &query.sql);
            self.case.units.pop();
            created = self.execute(Statement::plain(&create), Some(&name));
        }
        match created {
            Ok(()) => {}
            // The query fails on today's data; the view may come without them.
            Err(error) if is_data_error(&error) => {
                let create = Statement::plain(format!("{create} WITH NO DATA"));
                self.execute(create, Some(&name))?;
                coverage.count_statement([Feature::CreateWithNoData]);
            }
            Err(error) if state_of(&error) == Some(&SqlState::FEATURE_NOT_SUPPORTED) => {
                println!("refused: {error:#}\n-- after\n{}", self.case.text());
                counts.record(false);
                return Ok(());
            }
            // Views over views may join more rows than PostgreSQL itself can.
            Err(error) if state_of(&error) == Some(&SqlState::QUERY_CANCELED) => {
                println!("not created within the time: {}", query.sql);
                self.case.units.pop();
                return Ok(());
            }
            Err(error) => return Err(self.not_created(name, query, error)),
        }
        let plan = self
            .sessions
            .reader
            .query_one("SELECT eddy.explain_view($1::text::regclass)", &[&name])?;
        coverage.count_statement([Feature::CreateView]);
        coverage.count_view(rules.into_iter().chain(plan_nodes::of_plan(plan.get(0))?));
        self.views.push(View { name, query, may_fail, reads_clock });
        self.compare_all()
    }

    fn not_created(&self, view: String, query: Query, error: anyhow::Error) -> anyhow::Error {
        match state_of(&error).map(|state| state.code().to_owned()) {
            Some(state) => {
                let mismatch = Mismatch::NotCreated { state, message: format!("{error:#}") };
                Found { view, query: query.sql, mismatch }.into()
            }
            None => error,
        }
    }

    /// Replaces a view by one of the same rows, which is computed anew; what it is by now is compared after the next transaction.
    fn replace_view(&mut self, coverage: &mut Coverage) -> Result<()> {
        let index = self.dice.index(self.views.len().max(1));
        let Some(View { name, query, .. }) = self.views.get(index) else { return Ok(()) };
        let name = name.clone();
        let replace = match self.dice.chance(50) {
            true => format!("CREATE OR REPLACE INCREMENTAL VIEW {name} AS {}", query.sql),
            false => format!(
                "CREATE OR REPLACE INCREMENTAL VIEW {name} AS SELECT * FROM ({}) q",
                query.sql
            ),
        };
        match self.execute(Statement::plain(replace), Some(&name)) {
            Ok(()) => {
                coverage.count_statement([Feature::ReplaceView]);
                Ok(())
            }
            // In a subquery it may be refused, or found to have no key.
            Err(error) if state_of(&error).is_some() => {
                println!("not replaced: {error:#}");
                self.case.units.pop();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Drops the oldest view that no other one reads.
    fn drop_view(&mut self, coverage: &mut Coverage) -> Result<()> {
        let is_read = |view: &View| self.views.iter().any(|other| other.reads(&view.name));
        let Some(index) = self.views.iter().position(|view| !is_read(view)) else { return Ok(()) };
        self.drop_at(index)?;
        coverage.count_statement([Feature::DropView]);
        Ok(())
    }

    fn drop_at(&mut self, index: usize) -> Result<()> {
        let view = self.views.remove(index);
        let drop = Statement::plain(format!("DROP INCREMENTAL VIEW {}", view.name));
        self.execute(drop, Some(&view.name))
    }

    /// Drops a view whose query has become too costly to be run after each transaction, and those that read it.
    fn drop_costly(&mut self, name: &str) -> Result<()> {
        while let Some(reader) = self.views.iter().find(|view| view.reads(name)) {
            let reader = reader.name.clone();
            self.drop_costly(&reader)?;
        }
        match self.views.iter().position(|view| view.name == name) {
            Some(index) => self.drop_at(index),
            None => Ok(()),
        }
    }

    fn transact(&mut self, coverage: &mut Coverage) -> Result<()> {
        let readable = self.views.iter().filter(|view| !view.reads_clock);
        let readable: Vec<_> =
            readable.map(|view| (view.name.as_str(), view.query.sql.as_str())).collect();
        let drawn = workload::random_steps(&mut self.dice, &self.tables, &readable);
        let steps = drawn.iter().map(|drawn| drawn.step.clone()).collect();
        self.case.units.push(Unit::transactions(steps));
        for Drawn { step, rules } in drawn {
            let sql = step.statement.sql();
            match self.sessions.writers[step.session].simple_query(&sql) {
                Ok(messages) => coverage.count_statement(had_effect(&rules, &messages)),
                // Conflicts and violated keys are part of the game; a lost session is not.
                Err(error) if error.code().is_none() => return Err(error).context(sql),
                Err(error) if is_difference(&error) => bail!(self.found_inside(&sql, &error)),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn found_inside(&self, sql: &str, error: &postgres::Error) -> Found {
        let is_read = |view: &&View| sql == inside::read(&view.name, &view.query.sql);
        let read = self.views.iter().find(is_read);
        let (view, query) =
            read.map(|view| (view.name.clone(), view.query.sql.clone())).unwrap_or_default();
        let message = error.as_db_error().map(|error| error.message().to_owned());
        let mismatch = Mismatch::Inside { message: message.unwrap_or_default() };
        Found { view, query, mismatch }
    }

    fn compare_all(&mut self) -> Result<()> {
        let mut costly = Vec::new();
        for View { name, query, .. } in &self.views {
            self.case.units.push(Unit::read(name));
            let verdict = compare(&mut self.sessions.reader, name, &query.sql)?;
            self.differing_texts += verdict.differing_texts;
            if let Some(mismatch) = verdict.mismatch {
                bail!(Found { view: name.clone(), query: query.sql.clone(), mismatch });
            }
            if verdict.is_too_costly {
                println!("dropped, its query takes too long to be compared: {}", query.sql);
                costly.push(name.clone());
            }
        }
        self.too_costly += costly.len();
        costly.iter().try_for_each(|name| self.drop_costly(name))
    }
}

/// The rules of a statement that succeeded, but of a change only if there was a row to change.
fn had_effect(rules: &[Feature], messages: &[SimpleQueryMessage]) -> Vec<Feature> {
    let is_change = rules.iter().any(|rule| rule.group() == Group::Changes);
    let has_rows =
        messages.iter().any(|message| matches!(message, SimpleQueryMessage::CommandComplete(1..)));
    if is_change && !has_rows {
        return Vec::new();
    }
    rules.to_vec()
}

fn create_statement(name: &str, options: &[&str], query: &str) -> String {
    let with = match options {
        [] => String::new(),
        _ => format!(" WITH ({})", options.join(", ")),
    };
    format!("CREATE INCREMENTAL VIEW {name}{with} AS {query}")
}

/// Whether a view cannot have its rows in a table.
fn lacks_key(error: &anyhow::Error) -> bool {
    let report = error.downcast_ref::<postgres::Error>().and_then(postgres::Error::as_db_error);
    report.is_some_and(|report| report.message().ends_with("they have no key"))
}

/// Whether a transaction has read something else in a view than its query says.
fn is_difference(error: &postgres::Error) -> bool {
    error.code().is_some_and(|state| state.code() == inside::DIFFERS)
}

fn state_of(error: &anyhow::Error) -> Option<&SqlState> {
    error.downcast_ref::<postgres::Error>().and_then(postgres::Error::code)
}

/// Class 22, data exceptions, and the subquery that has several rows.
fn is_data_error(error: &anyhow::Error) -> bool {
    let is_data = |code: &str| code.starts_with("22") || code == "21000";
    state_of(error).is_some_and(|state| is_data(state.code()))
}
