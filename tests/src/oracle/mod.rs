//! Random views and transactions, compared with PostgreSQL's own executor after every commit.
//!
//! A round has its own schema, tables, views and transactions, all drawn from one seed, so that a
//! failure is a short script. After every transaction each view must equal its query as a
//! multiset; a query that raises an error must be matched by the same SQLSTATE.

mod expression;
mod ordered;
mod query;
mod recursion;
mod schema;
mod script;
mod subquery;
mod types;
mod workload;

use anyhow::{bail, ensure, Context, Result};
use postgres::error::SqlState;
use postgres::Client;

use crate::cleanup;
use crate::cluster::Cluster;
use crate::compare::comparison;
use crate::dice::Dice;
use crate::report::Counts;
use query::{Query, Relation};
use schema::Table;
use script::Script;

/// Short rounds make short scripts.
const TRANSACTIONS_PER_ROUND: usize = 25;
const VIEWS_PER_ROUND: i64 = 6;
/// More failing rounds than this tell nothing new.
const FAILING_ROUNDS: usize = 8;

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Seed of the first round; each further round adds one
    #[arg(long, default_value_t = Extent::default().seed)]
    pub seed: u64,
    /// Number of transactions
    #[arg(long, default_value_t = Extent::default().transactions)]
    pub transactions: usize,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { seed: 1, transactions: 500 }
    }
}

/// Why a round ended early.
struct Mismatch(String);

/// Runs rounds until the wanted number of transactions is reached. Each transaction is one test.
pub fn run(cluster: &Cluster, extent: &Extent) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut failing = 0;
    let mut differing_texts = 0;
    let mut left = extent.transactions;
    let mut seed = extent.seed;
    while left > 0 && failing < FAILING_ROUNDS {
        let length = left.min(TRANSACTIONS_PER_ROUND);
        let mut round = Round::start(cluster, seed)?;
        let outcome = round.play(length, &mut counts);
        differing_texts += round.differing_texts;
        ensure!(!cleanup::is_stopping(), "stopped by a signal; {counts}");
        if let Err(error) = &outcome {
            failing += 1;
            counts.record(false);
            println!("seed {seed}: {error:#}");
            println!("-- repeat with: oracle --seed {seed} --transactions {length}");
            println!("-- script for psql:\n{}\n-- end of script", round.script.text());
        }
        drop(round);
        cluster
            .connect_when_ready("postgres")?
            .batch_execute(&format!("DROP SCHEMA IF EXISTS round_{seed} CASCADE"))
            .context("dropping the schema of a round")?;
        println!("oracle: seed {seed} done, {counts}");
        left -= length;
        seed += 1;
    }
    println!("oracle: {differing_texts} rows equal but written differently, such as 1.0 and 1.00");
    Ok(counts)
}

struct View {
    name: String,
    query: Query,
}

struct Round {
    dice: Dice,
    /// Two sessions that write and one that compares.
    writers: [Client; 2],
    reader: Client,
    script: Script,
    tables: Vec<Table>,
    views: Vec<View>,
    differing_texts: i64,
}

impl Round {
    fn start(cluster: &Cluster, seed: u64) -> Result<Round> {
        let connect = || -> Result<Client> {
            let mut client = cluster.connect_when_ready("postgres")?;
            client.batch_execute(&format!(
                "SET client_min_messages = warning; SET lock_timeout = '100ms';
                 CREATE EXTENSION IF NOT EXISTS pg_eddy;
                 CREATE SCHEMA IF NOT EXISTS round_{seed};
                 SET search_path = round_{seed}, public"
            ))?;
            Ok(client)
        };
        Ok(Round {
            dice: Dice::new(seed),
            writers: [connect()?, connect()?],
            reader: connect()?,
            script: Script::default(),
            tables: Vec::new(),
            views: Vec::new(),
            differing_texts: 0,
        })
    }

    fn play(&mut self, transactions: usize, counts: &mut Counts) -> Result<()> {
        self.tables = schema::random_tables(&mut self.dice);
        for table in self.tables.clone() {
            for statement in table.create() {
                self.setup(&statement)?;
            }
            let count = self.dice.range(0, 25) as usize;
            if count > 0 {
                let conflict = if table.has_key { " ON CONFLICT DO NOTHING" } else { "" };
                let rows = table.rows(&mut self.dice, count);
                self.setup(&format!("INSERT INTO {} VALUES {rows}{conflict}", table.name))?;
            }
        }
        for _ in 0..VIEWS_PER_ROUND / 2 {
            self.create_view(counts)?;
        }
        for number in 0..transactions {
            if number % 5 == 3 && (self.views.len() as i64) < VIEWS_PER_ROUND {
                self.create_view(counts)?;
            }
            self.transact()?;
            self.compare_all()?;
            counts.record(true);
        }
        Ok(())
    }

    fn setup(&mut self, sql: &str) -> Result<()> {
        let result = self.writers[0].batch_execute(sql);
        self.script.statement(0, sql, result.is_err());
        self.script.end(0);
        result.with_context(|| sql.to_string())
    }

    /// A refusal counts as a failure: the grammar stays within what views support.
    fn create_view(&mut self, counts: &mut Counts) -> Result<()> {
        let mut relations: Vec<Relation> = self.tables.iter().map(Relation::of_table).collect();
        if self.dice.chance(30) {
            relations.extend(self.views.iter().map(|v| Relation::of_view(&v.name, &v.query)));
        }
        let query = query::random_query(&mut self.dice, &relations);
        let name = format!("v{}", self.views.len() + 1);
        let create = format!("CREATE INCREMENTAL VIEW {name} AS {}", query.sql);
        match self.setup(&create) {
            Ok(()) => {}
            // The query fails on today's data; the view may come without them.
            Err(error) if is_data_error(&error) => self.setup(&format!("{create} WITH NO DATA"))?,
            Err(error) if state_of(&error) == Some(&SqlState::FEATURE_NOT_SUPPORTED) => {
                println!("refused: {error:#}");
                counts.record(false);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.views.push(View { name, query });
        self.compare_all()
    }

    fn transact(&mut self) -> Result<()> {
        let mut in_transaction = [false; 2];
        for step in workload::random_steps(&mut self.dice, &self.tables) {
            let result = self.writers[step.session].batch_execute(&step.sql);
            self.script.statement(step.session, &step.sql, result.is_err());
            if let Err(error) = result {
                // Conflicts and violated keys are part of the game; a lost session is not.
                if error.code().is_none() {
                    return Err(error).context(step.sql);
                }
            }
            match step.sql.as_str() {
                "BEGIN" => in_transaction[step.session] = true,
                "COMMIT" | "ROLLBACK" => in_transaction[step.session] = false,
                _ => {}
            }
            if !in_transaction[step.session] {
                self.script.end(step.session);
            }
        }
        Ok(())
    }

    fn compare_all(&mut self) -> Result<()> {
        for index in 0..self.views.len() {
            if let Err(Mismatch(text)) = self.compare(index)? {
                let view = &self.views[index];
                bail!("view {} {text}\n{};", view.name, comparison(&view.name, &view.query.sql));
            }
        }
        Ok(())
    }

    fn compare(&mut self, index: usize) -> Result<Result<(), Mismatch>> {
        let view = &self.views[index];
        let error = match self.reader.query_one(&comparison(&view.name, &view.query.sql), &[]) {
            Ok(row) => {
                let (missing, surplus, texts): (i64, i64, i64) =
                    (row.get(0), row.get(1), row.get(2));
                self.differing_texts += texts;
                if missing == 0 && surplus == 0 {
                    return Ok(Ok(()));
                }
                let text = format!("misses {missing} rows and has {surplus} surplus rows");
                return Ok(Err(Mismatch(text)));
            }
            Err(error) => error,
        };
        if error.code().is_none() {
            return Err(error).context("comparing a view with its query");
        }
        let of_query =
            self.outcome(&format!("SELECT q::text FROM ({}) q", self.views[index].query.sql))?;
        let of_view = self.outcome(&format!("SELECT * FROM {}", self.views[index].name))?;
        if of_query == of_view && of_query.is_some() {
            return Ok(Ok(()));
        }
        let text = format!(
            "ends with {}, its query with {} ({error})",
            of_view.unwrap_or("rows".into()),
            of_query.unwrap_or("rows".into()),
        );
        Ok(Err(Mismatch(text)))
    }

    /// The SQLSTATE with which a query fails.
    fn outcome(&mut self, sql: &str) -> Result<Option<String>> {
        match self.reader.simple_query(sql) {
            Ok(_) => Ok(None),
            Err(error) => match error.code() {
                Some(code) => Ok(Some(code.code().to_string())),
                None => Err(error.into()),
            },
        }
    }
}

fn state_of(error: &anyhow::Error) -> Option<&SqlState> {
    error.downcast_ref::<postgres::Error>().and_then(postgres::Error::code)
}

/// Class 22, data exceptions, and the subquery that has several rows.
fn is_data_error(error: &anyhow::Error) -> bool {
    let is_data = |code: &str| code.starts_with("22") || code == "21000";
    state_of(error).is_some_and(|state| is_data(state.code()))
}
