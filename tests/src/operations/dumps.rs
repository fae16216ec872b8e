//! Dumps from each version into each later one: of all databases, by several processes, definitions and data apart.

use std::time::Instant;

use anyhow::{bail, ensure, Result};
use harness::cluster::Cluster;
use harness::timing::readable;

use super::column_versions;
use super::site::{Record, Server, Site};
use super::times::Times;
use super::views::{self, DATABASE};
use crate::programs::{dump, restore};

pub fn run(site: &Site, times: &mut Times, record: Record) {
    for (from, to) in site.all_ways() {
        let way = format!("from {} to {}", from.major, to.major);
        match from
            .start(site.folder(), "dumped", &[])
            .and_then(|old| views::create(&old).map(|_| old))
        {
            Err(error) => record(&format!("a server to dump {way}"), Err(error)),
            Ok(old) => {
                let result = all_databases(site, &old, to, &way, times);
                record(&format!("pg_dumpall {way}"), result);
                let result = in_parallel(site, &old, to, &way, times);
                record(&format!("dump and restore by several processes {way}"), result);
                let result = apart(site, &old, to, &way, times);
                record(&format!("definitions and data apart {way}"), result);
            }
        }
    }
}

fn all_databases(
    site: &Site,
    old: &Cluster,
    to: &Server,
    way: &str,
    times: &mut Times,
) -> Result<()> {
    let new = to.start(site.folder(), "target", &[])?;
    column_versions::forget(old, &new)?;
    let began = Instant::now();
    let script = dump(&new, "pg_dumpall", &["--dbname", &old.connection_text()])?;
    // The superuser and the first databases are there already.
    restore(&new, "postgres", &script, false)?;
    finish(&new, &format!("pg_dumpall {way} and restore"), began, times)
}

fn in_parallel(
    site: &Site,
    old: &Cluster,
    to: &Server,
    way: &str,
    times: &mut Times,
) -> Result<()> {
    let new = to.start(site.folder(), "target", &[])?;
    column_versions::forget(old, &new)?;
    let source = format!("{} dbname={DATABASE}", old.connection_text());
    let folder = new.socket_folder().join("dump").display().to_string();
    let began = Instant::now();
    let arguments = ["--format=directory", "--jobs=2", "--file", &folder, "--dbname", &source];
    dump(&new, "pg_dump", &arguments)?;
    prepare(&new)?;
    let target = format!("--dbname={DATABASE}");
    // A view in error cannot be filled by its query; it is there nevertheless.
    let Err(error) = dump(&new, "pg_restore", &["--jobs=2", &target, &folder]) else {
        bail!("the view in error was filled")
    };
    let text = error.to_string();
    let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("Command was")).collect();
    ensure!(failed == ["Command was: REFRESH MATERIALIZED VIEW public.broken;"], "{text}");
    finish(&new, &format!("pg_dump -Fd -j 2 {way} and pg_restore -j 2"), began, times)
}

/// Tables that are loaded after their views were made.
fn apart(site: &Site, old: &Cluster, to: &Server, way: &str, times: &mut Times) -> Result<()> {
    let new = to.start(site.folder(), "target", &[])?;
    column_versions::forget(old, &new)?;
    let source = format!("{} dbname={DATABASE}", old.connection_text());
    let began = Instant::now();
    prepare(&new)?;
    for part in ["--schema-only", "--data-only"] {
        let script = dump(&new, "pg_dump", &[part, "--dbname", &source])?;
        restore(&new, DATABASE, &script, true)?;
    }
    finish(&new, &format!("pg_dump -s, then -a, {way} and restores"), began, times)
}

/// What a dump of one database expects.
fn prepare(new: &Cluster) -> Result<()> {
    let create = format!("CREATE ROLE keeper; CREATE DATABASE {DATABASE}");
    for statement in create.split("; ") {
        new.connect("postgres")?.batch_execute(statement)?;
    }
    Ok(())
}

fn finish(new: &Cluster, what: &str, dumped: Instant, times: &mut Times) -> Result<()> {
    let operation = format!("{what} (which took {})", readable(dumped.elapsed()));
    times.recovered(&operation, new, Instant::now())?;
    views::expect_alive(&mut new.connect(DATABASE)?)
}
