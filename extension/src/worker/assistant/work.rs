//! An assistant: a process that does one job for the worker of its database and ends.
//!
//! It runs with the worker's settings. What it writes it commits only while that worker owns the database. What came of a
//! job that writes is a draft until the transaction has committed: who finds a draft knows that it may have, and who finds
//! neither that it has not.

use super::files::Files;
use super::order::{self, Call, Order, Work};
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::evaluate::{self, Answer, Code, Limits};
use crate::pg::heap::Tid;
use crate::pg::xact;
use crate::pg::{guc, markers, process};
use crate::shared;
use crate::worker::evaluate::EVALUATING;
use crate::worker::stored;
use crate::worker::write::{read, write, Found, Outcome, Patience, Target};
use plan::error::DataError;
use plan::row::Row;
use rules::codec::{Decoder, Encoder};
use rules::row_hash::Keys;
use std::io;
use std::time::{Duration, Instant};

/// How long an assistant evaluates before others get their turn.
const TURN: Duration = Duration::from_secs(2);

/// Entry point, called by PostgreSQL with the database's OID.
#[pgrx::pg_guard]
#[no_mangle]
pub extern "C-unwind" fn pg_eddy_assistant(argument: pgrx::pg_sys::Datum) {
    process::connect(argument.value() as u32);
    let files = Files::named(process::extra());
    match Order::read(&files) {
        // Nobody wants it any more.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => pgrx::error!("pg_eddy: could not read the order of an assistant: {error}"),
        Ok((order, settings, rest)) if is_wanted(&order) => follow(&order, settings, rest, &files),
        Ok(_) => {}
    }
    process::exit(0)
}

/// Whether the worker that gave the order still owns the database.
fn is_wanted(order: &Order) -> bool {
    let owner = shared::my_database().and_then(|database| database.living_worker());
    owner == Some(order.worker)
}

fn follow(order: &Order, settings: Vec<u8>, rest: Decoder, files: &Files) {
    markers::join(process::database(), order.relid);
    crate::worker::prepare();
    xact::run_without_snapshot(|| guc::restore(settings));
    if !matches!(order.work, Work::Evaluate(_)) {
        // It may take long, and can be done again.
        process::give_way();
    }
    let (point, doing) = match order.work {
        Work::Evaluate(_) => (CrashPoint::Evaluate, EVALUATING),
        Work::Compare { .. } => (CrashPoint::Apply, "comparing"),
        Work::Write { .. } => (CrashPoint::Apply, "writing"),
    };
    process::report_view(doing, &order.view);
    crash_point::reach_for(point, &order.view);
    let done = match &order.work {
        Work::Evaluate(calls) => evaluate_all(calls, rest, files),
        Work::Compare { owner, types, keys } => {
            let (relid, types) = (order.relid, types.clone());
            let target = Target {
                relid,
                owner: *owner,
                types,
                changes: None,
                mirror: None,
                are_read: false,
            };
            finish(rest).and_then(|()| compare(&target, *keys, files))
        }
        Work::Write { owner, types, beside, file } => {
            let target = beside.target(order.relid, *owner, types.clone());
            write_view(order, &target, *file, rest, files)
        }
    };
    if let Err(error) = done {
        pgrx::error!("pg_eddy: an assistant failed at {doing} view {}: {error}", order.view);
    }
}

fn finish(rest: Decoder) -> io::Result<()> {
    rest.finish()
}

fn evaluate_all(calls: &[Call], mut rest: Decoder, files: &Files) -> io::Result<()> {
    let rows: Vec<Vec<Row>> =
        calls.iter().map(|_| order::read_rows(&mut rest)).collect::<io::Result<_>>()?;
    rest.finish()?;
    let began = Instant::now();
    let answers = xact::try_run(|| answer(calls, &rows, began + TURN));
    let answers = answers.unwrap_or_else(|caught| {
        // The transaction itself failed: so did every row in it.
        let error = DataError::from(caught);
        rows.iter().map(|rows| vec![Err(error.clone()); rows.len()]).collect()
    });
    let mut encoder = Encoder::create(files.draft())?;
    encoder.number(began.elapsed().as_micros() as u64)?;
    for answers in &answers {
        encoder.number(answers.len() as u64)?;
        for answer in answers {
            order::write_answer(&mut encoder, answer)?;
        }
    }
    encoder.finish()?;
    publish(files)
}

/// Answers as many rows as there is time for, but one at least.
fn answer(calls: &[Call], rows: &[Vec<Row>], end: Instant) -> Vec<Vec<Answer>> {
    let mut is_first = true;
    let of_call = |(call, rows): (&Call, &Vec<Row>)| {
        if rows.is_empty() {
            return Vec::new();
        }
        let Call { code, caller, args, ty } = call;
        let code = Code { code, caller: *caller, args, ty: *ty };
        let mut answers = Vec::new();
        if std::mem::take(&mut is_first) {
            answers = evaluate::evaluate(&code, &rows[..rows.len().min(1)], &Limits::by_row());
        }
        let limits = Limits { end: Some(end), ..Limits::by_row() };
        answers.extend(evaluate::evaluate(&code, &rows[answers.len()..], &limits));
        answers
    };
    calls.iter().zip(rows).map(of_call).collect()
}

/// Tells what a heap holds.
fn compare(target: &Target, keys: Keys, files: &Files) -> io::Result<()> {
    let mut rows: Vec<(u128, Tid)> = Vec::new();
    let found =
        xact::try_run(|| read(target, |row, tid| rows.push((stored::hash(keys, row).0, tid))));
    let outcome = found.unwrap_or_else(Outcome::Failed);
    let mut encoder = Encoder::create(files.draft())?;
    order::write_outcome(&mut encoder, &outcome, |encoder, found| {
        let Found { file, is_populated } = *found;
        for number in [file.into(), is_populated.into(), rows.len() as u64] {
            encoder.number(number)?;
        }
        for (hash, tid) in &rows {
            encoder.number(*hash as u64)?;
            encoder.number((*hash >> 64) as u64)?;
            encoder.number(tid.to_number())?;
        }
        Ok(())
    })?;
    encoder.finish()?;
    publish(files)
}

fn write_view(
    order: &Order,
    target: &Target,
    file: u32,
    mut rest: Decoder,
    files: &Files,
) -> io::Result<()> {
    let changes = order::read_changes(&mut rest)?;
    rest.finish()?;
    let committed = xact::try_run(|| {
        let began = Instant::now();
        let outcome = write(target, file, &changes, Patience::ForRows);
        if !is_wanted(order) {
            process::exit(0);
        }
        if let Err(error) = note_written(&outcome, began.elapsed(), files) {
            pgrx::error!("pg_eddy: could not note what was written: {error}");
        }
    });
    if let Err(caught) = committed {
        note_written(&Outcome::Failed(caught), Duration::ZERO, files)?;
    }
    publish(files)
}

/// Writes down the places of new rows, and how long writing them took.
fn note_written(outcome: &Outcome<Vec<Tid>>, took: Duration, files: &Files) -> io::Result<()> {
    let mut encoder = Encoder::create(files.draft())?;
    order::write_outcome(&mut encoder, outcome, |encoder, places| {
        encoder.number(xact::full_xid(xact::take_xid()))?;
        encoder.number(took.as_micros() as u64)?;
        encoder.number(places.len() as u64)?;
        places.iter().try_for_each(|tid| encoder.number(tid.to_number()))
    })?;
    encoder.finish()
}

/// The draft is the result.
fn publish(files: &Files) -> io::Result<()> {
    std::fs::rename(files.draft(), files.result())
}
