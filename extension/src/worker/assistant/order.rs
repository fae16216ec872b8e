//! What an assistant is to do, and in which form it says what came of it.

use super::files::Files;
use crate::pg::heap::Tid;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::mirror::Mirror;
use crate::pg::sqlstate::SqlState;
use crate::pg::xact::Caught;
use crate::worker::capture::Moment;
use crate::worker::changelog::{Entries, Entry};
use crate::worker::stored::{Changes, RowHash};
use crate::worker::write::{Outcome, Target};
use engine::Answer;
use plan::error::{DataError, More};
use plan::row::Row;
use plan::types::Type;
use plan::Diff;
use rules::codec::{Decoder, Encoder};
use rules::row_hash::Keys;
use serde::{Deserialize, Serialize};
use std::io;

/// The head of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The worker that wants it done.
    pub worker: i32,
    pub relid: ViewId,
    pub view: String,
    /// What is to be done.
    pub work: Work,
}

/// The kinds of work. What they work on follows in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Expressions are evaluated. A number of rows of arguments follows for each.
    Evaluate(Vec<Call>),
    /// The rows of the view's heap are told, by their hashes.
    Compare { owner: u32, types: Vec<Type>, keys: Keys },
    /// The view's heap is changed. The changes follow.
    Write { owner: u32, types: Vec<Type>, beside: Beside, file: u32 },
}

/// The tables that are written with a view.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Beside {
    /// That of its changes.
    changes: Option<u32>,
    /// The one with its rows, and the index of its key.
    mirror: Option<(u32, u32)>,
    /// Whether views read them.
    are_read: bool,
}

impl Beside {
    /// Those of a view.
    pub fn of(view: &Target) -> Beside {
        let mirror = |mirror: Mirror| (mirror.table.to_u32(), mirror.index.to_u32());
        Beside {
            changes: view.changes.map(RelationId::to_u32),
            mirror: view.mirror.map(mirror),
            are_read: view.are_read,
        }
    }

    /// What writing needs to know of a view with them.
    pub fn target(self, relid: ViewId, owner: u32, types: Vec<Type>) -> Target {
        let id = RelationId::new;
        let mirror = |(table, index)| Mirror { table: id(table), index: id(index) };
        let (changes, mirror) = (self.changes.map(id), self.mirror.map(mirror));
        Target { relid, owner, types, changes, mirror, are_read: self.are_read }
    }
}

/// An expression to be evaluated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    pub code: String,
    pub caller: u32,
    pub args: Vec<Type>,
    pub ty: Type,
}

impl Order {
    /// Begins the file of an order, with the settings under which it is done.
    pub fn write(&self, settings: &[u8], files: &Files) -> io::Result<Encoder> {
        let mut encoder = Encoder::create(files.order())?;
        encoder.bytes(&serde_json::to_vec(self)?)?;
        encoder.bytes(settings)?;
        Ok(encoder)
    }

    /// Begins to read it; answers the settings, too.
    pub fn read(files: &Files) -> io::Result<(Order, Vec<u8>, Decoder)> {
        let mut decoder = Decoder::open(files.order())?;
        let order = serde_json::from_slice(&decoder.bytes()?)?;
        let settings = decoder.bytes()?;
        Ok((order, settings, decoder))
    }
}

pub fn write_rows(encoder: &mut Encoder, rows: &[Row]) -> io::Result<()> {
    encoder.number(rows.len() as u64)?;
    rows.iter().try_for_each(|row| encoder.bytes(row.as_bytes()))
}

pub fn read_rows(decoder: &mut Decoder) -> io::Result<Vec<Row>> {
    (0..decoder.count()?).map(|_| decoder.row()).collect()
}

/// The hashes of rows are the worker's own business.
pub fn write_changes(encoder: &mut Encoder, changes: &Changes) -> io::Result<()> {
    let Changes { deletes, updates, inserts, entries } = changes;
    encoder.number(deletes.len() as u64)?;
    for (_, tid) in deletes {
        encoder.number(tid.to_number())?;
    }
    encoder.number(updates.len() as u64)?;
    for (_, tid, row) in updates {
        encoder.number(tid.to_number())?;
        encoder.bytes(row.as_bytes())?;
    }
    write_rows(encoder, inserts)?;
    match entries {
        Entries::None => encoder.number(0),
        Entries::Rows(entries) => {
            encoder.number(1)?;
            encoder.number(entries.len() as u64)?;
            entries.iter().try_for_each(|entry| {
                write_moment(encoder, &entry.moment)?;
                encoder.number(entry.diff as u64)?;
                encoder.bytes(entry.row.as_bytes())
            })
        }
        Entries::All(moment) => {
            encoder.number(2)?;
            write_moment(encoder, moment)
        }
    }
}

fn write_moment(encoder: &mut Encoder, Moment { lsn, xid, at }: &Moment) -> io::Result<()> {
    encoder.number(*lsn)?;
    // No transaction has the number 0.
    encoder.number(xid.unwrap_or(0))?;
    encoder.number(*at as u64)
}

fn read_moment(decoder: &mut Decoder) -> io::Result<Moment> {
    let (lsn, xid, at) = (decoder.number()?, decoder.number()?, decoder.number()?);
    Ok(Moment { lsn, xid: Some(xid).filter(|xid| *xid != 0), at: at as i64 })
}

fn read_entry(decoder: &mut Decoder) -> io::Result<Entry> {
    let moment = read_moment(decoder)?;
    Ok(Entry { moment, diff: decoder.number()? as Diff, row: decoder.row()? })
}

pub fn read_changes(decoder: &mut Decoder) -> io::Result<Changes> {
    const UNKNOWN: RowHash = RowHash(0);
    let mut changes = Changes::default();
    for _ in 0..decoder.count()? {
        changes.deletes.push((UNKNOWN, Tid::from_number(decoder.number()?)));
    }
    for _ in 0..decoder.count()? {
        let tid = Tid::from_number(decoder.number()?);
        changes.updates.push((UNKNOWN, tid, decoder.row()?));
    }
    changes.inserts = read_rows(decoder)?;
    changes.entries = match decoder.number()? {
        0 => Entries::None,
        1 => {
            let count = decoder.count()?;
            Entries::Rows((0..count).map(|_| read_entry(decoder)).collect::<io::Result<_>>()?)
        }
        _ => Entries::All(read_moment(decoder)?),
    };
    Ok(changes)
}

/// What follows the word for an outcome, if it is done.
pub fn write_outcome<T>(
    encoder: &mut Encoder,
    outcome: &Outcome<T>,
    write: impl FnOnce(&mut Encoder, &T) -> io::Result<()>,
) -> io::Result<()> {
    match outcome {
        Outcome::Done(value) => {
            encoder.number(0)?;
            write(encoder, value)
        }
        Outcome::Locked => encoder.number(1),
        Outcome::Foreign => encoder.number(2),
        Outcome::TooSlow => encoder.number(3),
        Outcome::Failed(caught) => {
            encoder.number(4)?;
            encoder.text(Some(caught.sqlstate.as_str()))?;
            encoder.text(Some(&caught.message))?;
            encoder.text(caught.detail.as_deref())?;
            encoder.text(caught.hint.as_deref())
        }
    }
}

pub fn read_outcome<T>(
    decoder: &mut Decoder,
    read: impl FnOnce(&mut Decoder) -> io::Result<T>,
) -> io::Result<Outcome<T>> {
    Ok(match decoder.number()? {
        0 => Outcome::Done(read(decoder)?),
        1 => Outcome::Locked,
        2 => Outcome::Foreign,
        3 => Outcome::TooSlow,
        _ => Outcome::Failed(Caught {
            sqlstate: SqlState::parse(&decoder.text()?.unwrap_or_default())
                .unwrap_or(SqlState::INTERNAL_ERROR),
            message: decoder.text()?.unwrap_or_default(),
            detail: decoder.text()?,
            hint: decoder.text()?,
        }),
    })
}

pub fn write_answer(encoder: &mut Encoder, answer: &Answer) -> io::Result<()> {
    match answer {
        Ok(value) => {
            encoder.number(0)?;
            encoder.bytes(Row::pack([value]).as_bytes())
        }
        Err(DataError { sqlstate, message, more }) => {
            encoder.number(1)?;
            encoder.text(Some(sqlstate))?;
            encoder.text(Some(message))?;
            let more = more.as_deref();
            encoder.text(more.and_then(|more| more.detail.as_deref()))?;
            encoder.text(more.and_then(|more| more.hint.as_deref()))
        }
    }
}

/// An answer whose value has not been taken apart: see [`rules::codec`].
pub type RawAnswer = Result<Row, DataError>;

pub fn read_answer(decoder: &mut Decoder) -> io::Result<RawAnswer> {
    Ok(match decoder.number()? {
        0 => Ok(decoder.row()?),
        _ => {
            let sqlstate = decoder.text()?.unwrap_or_default();
            let message = decoder.text()?.unwrap_or_default();
            let More { detail, hint } = More { detail: decoder.text()?, hint: decoder.text()? };
            Err(DataError { sqlstate, message, more: None }.with(detail, hint))
        }
    })
}
