//! pg_repack: writes a base table anew while others write it, and gives it the new files.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{anyhow, ensure, Result};
use harness::cluster::Cluster;

use super::scene::{database, expect_right, number};

const ROUNDS: usize = 3;

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "repacked")?;
    client.batch_execute(
        "CREATE EXTENSION pg_repack;
         CREATE TABLE item (id int PRIMARY KEY, grp int, note text);
         INSERT INTO item SELECT i, i % 100, repeat('x', 100) FROM generate_series(1, 20000) i;
         CREATE INCREMENTAL VIEW groups AS SELECT grp, count(*) AS n, max(id) AS last FROM item GROUP BY grp;
         DELETE FROM item WHERE id % 3 = 0",
    )?;
    expect_right(&mut client, "groups")?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<i32> {
            let mut writer = cluster.connect("repacked")?;
            let mut next = 100_000;
            while !is_over.load(Ordering::Relaxed) {
                let sql = "INSERT INTO item VALUES ($1, $1 % 100, 'new')";
                writer.execute(sql, &[&next])?;
                let sql = "SELECT last FROM groups WHERE grp = $1 % 100";
                let last: i32 = writer.query_one(sql, &[&next])?.get(0);
                ensure!(last == next, "the view shows {last} after {next} was written");
                writer.execute("UPDATE item SET grp = grp + 1 WHERE id = $1 - 100", &[&next])?;
                next += 1;
            }
            Ok(next)
        });
        let file = "SELECT relfilenode::bigint FROM pg_class WHERE oid = 'item'::regclass";
        let repacked = (0..ROUNDS).try_for_each(|_| {
            let before = number(&mut client, file)?;
            repack(cluster)?;
            ensure!(number(&mut client, file)? != before, "the table has the same file");
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        let written = writer.join().map_err(|_| anyhow!("the writer panicked"))?;
        repacked?;
        println!("pg_repack: {} rows written and read meanwhile", written? - 100_000);
        Ok::<_, anyhow::Error>(())
    })?;
    expect_right(&mut client, "groups")?;
    client.batch_execute("DELETE FROM item WHERE grp < 50")?;
    expect_right(&mut client, "groups")
}

fn repack(cluster: &Cluster) -> Result<()> {
    let output = cluster
        .client_program(&cluster.installation().program("pg_repack"))
        .args(["--dbname=repacked", "--table=item", "--no-order"])
        .stdin(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pg_repack: {text}");
    Ok(())
}
