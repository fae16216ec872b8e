//! Servers with very many or very large things. Each is right at the end.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::cluster::{Cluster, Settings};
use harness::installation::Installation;
use postgres::Client;

use super::figures::{latency, memory, restart, Figures};

/// Tables that the many views share.
const TABLES: u32 = 10;

fn start(
    installation: &Installation,
    folder: &Path,
    name: &str,
    settings: Settings,
) -> Result<Cluster> {
    let always: Settings =
        &[("fsync", "off"), ("full_page_writes", "off"), ("max_wal_size", "8GB")];
    Cluster::start_new(installation, folder, name, &[always, settings].concat())
}

/// The database of a case, with the extension.
fn database(cluster: &Cluster, name: &str) -> Result<Client> {
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = cluster.connect(name)?;
    client.batch_execute("SET client_min_messages = warning; CREATE EXTENSION pg_eddy")?;
    Ok(client)
}

fn number(client: &mut Client, sql: &str) -> Result<i64> {
    Ok(client.query_one(sql, &[])?.get(0))
}

fn expect_right(client: &mut Client, view: &str) -> Result<()> {
    let sql = format!("SELECT missing + surplus FROM eddy.verify_view('{view}')");
    let wrong = number(client, &sql)?;
    ensure!(wrong == 0, "{view} differs from its query by {wrong} rows");
    Ok(())
}

/// Views over ten tables; a change concerns the views of one.
pub fn views(installation: &Installation, folder: &Path, count: u32) -> Result<Figures> {
    let mut cluster = start(installation, folder, "views", &[])?;
    let mut client = database(&cluster, "views")?;
    for table in 0..TABLES {
        client.batch_execute(&format!(
            "CREATE TABLE t{table} (k int, x bigint);
             INSERT INTO t{table} SELECT i, i FROM generate_series(1, 1000) i"
        ))?;
    }
    let began = Instant::now();
    for view in 0..count {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW v{view} AS
             SELECT k % {} AS k, count(*) AS n, sum(x) AS x FROM t{} GROUP BY 1",
            view + 1,
            view % TABLES
        ))?;
    }
    let creation = began.elapsed();
    let start = restart(&mut cluster, &["views".to_owned()], count.into())?;
    let mut client = cluster.connect("views")?;
    let latency = latency(
        &mut client,
        |client, number| {
            Ok(client.batch_execute(&format!("INSERT INTO t0 VALUES ({number}, 1000000)"))?)
        },
        |client, changes| {
            let n = number(client, "SELECT n FROM v0")?;
            ensure!(n == i64::from(1000 + changes), "{n} rows");
            Ok(())
        },
    )?;
    for view in (0..count).step_by(97) {
        expect_right(&mut client, &format!("v{view}"))?;
    }
    Ok(Figures { creation, start, memory: memory(&mut client)?, latency })
}

/// Databases with a view each.
pub fn databases(installation: &Installation, folder: &Path, count: u32) -> Result<Figures> {
    let (workers, slots) = ((4 * count + 8).to_string(), (count + 4).to_string());
    let settings = [
        ("max_worker_processes", workers.as_str()),
        ("max_replication_slots", slots.as_str()),
        ("max_wal_senders", slots.as_str()),
    ];
    let mut cluster = start(installation, folder, "databases", &settings)?;
    let names: Vec<String> = (0..count).map(|number| format!("d{number}")).collect();
    let began = Instant::now();
    for name in &names {
        database(&cluster, name)?.batch_execute(
            "CREATE TABLE t (k int, x bigint);
             INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
             CREATE INCREMENTAL VIEW v AS SELECT k % 10 AS k, count(*) AS n FROM t GROUP BY 1",
        )?;
    }
    let creation = began.elapsed();
    let start = restart(&mut cluster, &names, 1)?;
    // One worker after the other looks for the extension; nobody sleeps in between.
    ensure!(start < Duration::from_millis(500) * count, "the workers started after {start:?}");
    let mut client = cluster.connect("d0")?;
    let latency = latency(
        &mut client,
        |client, _| Ok(client.batch_execute("INSERT INTO t VALUES (0, 0)")?),
        |client, changes| {
            let n = number(client, "SELECT n FROM v WHERE k = 0")?;
            ensure!(n == i64::from(100 + changes), "{n} rows");
            Ok(())
        },
    )?;
    for name in &names {
        expect_right(&mut cluster.connect(name)?, "v")?;
    }
    Ok(Figures { creation, start, memory: memory(&mut client)?, latency })
}

/// A view of so many columns over a table of as many.
pub fn columns(installation: &Installation, folder: &Path, count: u32) -> Result<Figures> {
    let mut cluster = start(installation, folder, "columns", &[])?;
    let mut client = database(&cluster, "columns")?;
    let (mut definitions, mut values, mut outputs) = (String::new(), String::new(), String::new());
    for column in 1..count {
        write!(definitions, ", c{column} int")?;
        write!(values, ", i + {column}")?;
        write!(outputs, ", c{column} + 1 AS c{column}")?;
    }
    client.batch_execute(&format!(
        "CREATE TABLE wide (id int PRIMARY KEY{definitions});
         INSERT INTO wide SELECT i{values} FROM generate_series(1, 1000) i"
    ))?;
    let began = Instant::now();
    client.batch_execute(&format!("CREATE INCREMENTAL VIEW v AS SELECT id{outputs} FROM wide"))?;
    let creation = began.elapsed();
    let start = restart(&mut cluster, &["columns".to_owned()], 1)?;
    let mut client = cluster.connect("columns")?;
    let latency = latency(
        &mut client,
        |client, change| {
            let sql = format!("UPDATE wide SET c{} = {change} WHERE id = {change}", count - 1);
            Ok(client.batch_execute(&sql)?)
        },
        |client, change| {
            let sql = format!("SELECT c{}::bigint FROM v WHERE id = {change}", count - 1);
            let value = number(client, &sql)?;
            ensure!(value == i64::from(change + 1), "the last column is {value}");
            Ok(())
        },
    )?;
    expect_right(&mut client, "v")?;
    Ok(Figures { creation, start, memory: memory(&mut client)?, latency })
}

/// A text of so many megabytes that no compression makes smaller, in a column of the view.
pub fn megabytes(installation: &Installation, folder: &Path, size: u32) -> Result<Figures> {
    let mut cluster = start(installation, folder, "megabytes", &[])?;
    let mut client = database(&cluster, "megabytes")?;
    client.batch_execute(&format!(
        "CREATE TABLE doc (id int PRIMARY KEY, kind int, body text);
         ALTER TABLE doc ALTER body SET STORAGE EXTERNAL;
         CREATE FUNCTION large(seed int) RETURNS text LANGUAGE sql AS
         $$ SELECT string_agg(md5((i + seed)::text), '') FROM generate_series(1, {size} * 32768) i $$;
         INSERT INTO doc VALUES (0, 0, large(0))"
    ))?;
    let began = Instant::now();
    client.batch_execute(
        "CREATE INCREMENTAL VIEW v AS SELECT id, kind, body, length(body) AS n FROM doc",
    )?;
    let creation = began.elapsed();
    let start = restart(&mut cluster, &["megabytes".to_owned()], 1)?;
    let mut client = cluster.connect("megabytes")?;
    let expected = i64::from(size) << 20;
    let latency = latency(
        &mut client,
        |client, change| {
            let sql = match change % 3 {
                1 => format!("INSERT INTO doc VALUES ({change}, {change}, large({change}))"),
                2 => format!("UPDATE doc SET kind = {change} WHERE id = {} - 1", change),
                _ => format!("DELETE FROM doc WHERE id = {} - 2", change),
            };
            Ok(client.batch_execute(&sql)?)
        },
        |client, change| {
            let found = number(client, "SELECT coalesce(max(kind), 0)::bigint FROM v")?;
            let kind = if change % 3 == 0 { 0 } else { change };
            ensure!(found == i64::from(kind), "kind {found} after change {change}");
            Ok(())
        },
    )?;
    ensure!(number(&mut client, "SELECT min(n)::bigint FROM v")? == expected);
    expect_right(&mut client, "v")?;
    Ok(Figures { creation, start, memory: memory(&mut client)?, latency })
}

/// A view over a table of so many partitions.
pub fn partitions(installation: &Installation, folder: &Path, count: u32) -> Result<Figures> {
    let mut cluster = start(installation, folder, "partitions", &[])?;
    let mut client = database(&cluster, "partitions")?;
    client.batch_execute("CREATE TABLE part (k int, x bigint) PARTITION BY RANGE (k)")?;
    for partition in 0..count {
        client.batch_execute(&format!(
            "CREATE TABLE part{partition} PARTITION OF part FOR VALUES FROM ({partition}) TO ({partition} + 1)"
        ))?;
    }
    client.batch_execute(&format!(
        "INSERT INTO part SELECT i % {count}, i FROM generate_series(1, 10 * {count}) i"
    ))?;
    let began = Instant::now();
    client.batch_execute(
        "CREATE INCREMENTAL VIEW v AS SELECT k % 10 AS k, count(*) AS n FROM part GROUP BY 1",
    )?;
    let creation = began.elapsed();
    let start = restart(&mut cluster, &["partitions".to_owned()], 1)?;
    let mut client = cluster.connect("partitions")?;
    let latency = latency(
        &mut client,
        |client, change| {
            Ok(client.batch_execute(&format!("INSERT INTO part VALUES ({change} * 10, 0)"))?)
        },
        |client, changes| {
            let n = number(client, "SELECT n FROM v WHERE k = 0")?;
            ensure!(n == i64::from(count + changes), "{n} rows");
            Ok(())
        },
    )?;
    client.batch_execute(&format!(
        "CREATE TABLE another PARTITION OF part FOR VALUES FROM ({count}) TO ({count} + 1);
         INSERT INTO part VALUES ({count}, 0);
         DROP TABLE part1"
    ))?;
    expect_right(&mut client, "v")?;
    Ok(Figures { creation, start, memory: memory(&mut client)?, latency })
}
