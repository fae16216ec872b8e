//! Removes from tables of changes what has been kept for long enough.
//!
//! A table is looked through from its beginning to its end, some pages at a time, several times in the time for which changes are
//! kept. What is gone is on record in the same transaction: who asks for changes since a position before that is told.

use super::view::View;
use crate::compile::KeptChanges;
use crate::pg::heap::{Projection, Tid};
use crate::pg::heap_writer::Writer;
use crate::pg::ids::ViewId;
use crate::pg::relation::{try_lock, with_relation, Lock};
use crate::pg::{changes_table, scan, wal, xact};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// Pages that are looked through at once: a moment's work.
const PAGES: u32 = 64;

/// A table is looked through so many times while a change is kept.
const PASSES: u32 = 8;

/// However long changes are kept, and however short, the next pages follow within these times.
const LEAST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where the tables of changes are being looked through.
#[derive(Debug, Default)]
pub struct Retention(BTreeMap<ViewId, Place>);

#[derive(Clone, Copy, Debug)]
struct Place {
    changes: KeptChanges,
    page: u32,
    not_before: Instant,
}

impl Retention {
    /// Removes old changes from the next pages of the tables whose turn it is.
    pub fn go_on(&mut self, views: &BTreeMap<ViewId, View>) {
        let kept = views.values();
        let kept = kept.filter_map(|view| Some((view.relid, view.served()?.compiled.changes?)));
        let kept: BTreeMap<ViewId, KeptChanges> = kept.collect();
        self.0.retain(|view, _| kept.contains_key(view));
        let now = Instant::now();
        for (view, changes) in kept {
            let new = Place { changes, page: 0, not_before: now };
            let place = self.0.entry(view).or_insert(new);
            if place.changes != changes {
                *place = new;
            }
            if place.not_before > now {
                continue;
            }
            let pages = xact::try_run(|| remove_from(view, changes, place.page));
            // Who cannot look now, because somebody has locked the table, looks later.
            let pages = pages.unwrap_or_else(|caught| {
                pgrx::log!("pg_eddy: could not remove old changes: {}", caught.message);
                None
            });
            let pages = pages.unwrap_or(0);
            place.page = if place.page + PAGES < pages { place.page + PAGES } else { 0 };
            place.not_before = now + pause(changes, pages);
        }
    }
}

/// Until the next pages of a table of so many.
fn pause(KeptChanges { retention, .. }: KeptChanges, pages: u32) -> Duration {
    let kept = Duration::from_micros(retention.micros().unsigned_abs());
    (kept / PASSES / (pages / PAGES + 1)).clamp(LEAST_PAUSE, LONGEST_PAUSE)
}

/// Removes what is old from some pages; answers how many there are.
fn remove_from(view: ViewId, changes: KeptChanges, first: u32) -> Option<u32> {
    let KeptChanges { table, retention } = changes;
    if !try_lock(table, Lock::RowExclusive) {
        return None;
    }
    let end = xact::now().saturating_sub(retention.micros());
    with_relation(table, Lock::RowExclusive, |relation| {
        let pages = scan::pages(&relation).filter(|_| changes_table::has_own_columns(&relation))?;
        let number = Type::Scalar(Scalar::Int8);
        // Its position, and when that was.
        let projection = Projection { columns: vec![(1, number), (3, number)] };
        let mut old: Vec<(u64, i64, Tid)> = Vec::new();
        let range = first..first.saturating_add(PAGES);
        let look = |_, row: Result<plan::row::Row, _>, tid| {
            let row = row.map(|row| row.unpack()).unwrap_or_default();
            if let [Datum::Int8(lsn), Datum::Int8(at)] = row[..] {
                old.extend((at < end).then_some((lsn as u64, at, tid)));
            }
            Ok::<(), Infallible>(())
        };
        let Ok(()) =
            xact::with_new_snapshot(|| scan::scan_pages(&relation, range, &[&projection], look));
        let last = old.iter().max_by_key(|(lsn, ..)| *lsn).copied();
        // Nobody who writes into the table shall say what has not come yet.
        if let Some((lsn, at)) = last.map(|(lsn, at, _)| (lsn.min(wal::insert_lsn()), at)) {
            xact::with_new_snapshot(|| {
                let mut writer = Writer::of_table(&relation, &[]);
                old.iter().for_each(|(.., tid)| writer.delete(*tid));
                writer.finish();
            });
            changes_table::note_removed(view, lsn, at);
        }
        Some(pages)
    })
    .flatten()
}
