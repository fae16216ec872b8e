//! What a view was before it was replaced, or got other settings: that is maintained, and serves, until the dataflow of what
//! the view is now has come to where all others are. Then that one goes on with the rows as the former one has left them, and the
//! difference is written.
//!
//! Only the view itself may have changed. Where its tables, functions or rights have, or other views stand on it or beneath it, it is
//! attached anew like any other, and who reads it waits.

use super::attach::depends_on;
use super::main_loop::Worker;
use super::reload::look_until;
use super::sources::Sources;
use super::stored::Compared;
use super::view::{Attachment, Former, Phase, View};
use crate::compile::{self, CompiledView};
use crate::pg::dependencies::Dependencies;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::inval::Invalidated;
use engine::DataflowId;
use std::time::Instant;

impl View {
    /// What it depends on beside itself and the tables that get the columns that it gets.
    fn depends_beside_itself(&self) -> Dependencies {
        let mut others = self.depends.without(self.relid.into());
        if let Some(compiled) = self.compiled() {
            let (changes, mirror) = (compiled.changes, compiled.mirror);
            let tables = changes.map(|changes| changes.table);
            for table in tables.into_iter().chain(mirror.map(|mirror| mirror.table)) {
                others = others.without(table);
            }
        }
        others
    }
}

impl Attachment {
    /// Keeps its changes for as long, tells of them and is mirrored as it is now said to, if that is all that is new.
    fn takes_options_of(&mut self, now: &Sources) -> bool {
        let options = |of: &CompiledView| (of.changes, of.notify, of.mirror);
        let was = options(&self.compiled);
        let take = |compiled: &mut CompiledView, options| {
            (compiled.changes, compiled.notify, compiled.mirror) = options;
        };
        if table_of_changes(&self.compiled) == table_of_changes(&now.compiled) {
            take(&mut self.compiled, options(&now.compiled));
        }
        let is_all = self.is_made_from(now);
        if !is_all {
            take(&mut self.compiled, was);
        }
        is_all
    }
}

impl Worker {
    /// A view is not what it was when it was attached. It is attached as what it is now, and serves meanwhile as what it was, if
    /// it can.
    pub(super) fn attach_anew(&mut self, relid: ViewId, now: &Sources, why: &Invalidated) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        if view.attachment().is_some_and(|attachment| attachment.takes_options_of(now)) {
            view.depends = depends_on(&now.compiled, &now.members);
            return;
        }
        let is_refresh =
            view.compiled().is_some_and(|was| was.planned_at != now.compiled.planned_at);
        // It may try again whether its state fits into memory.
        view.spills &= !is_refresh;
        if view.former.is_some() {
            return self.drop_present(relid, Phase::waiting());
        }
        let is_alone = self.stack.above(relid).chain(self.stack.beneath(relid)).next().is_none();
        let depends = view.depends_beside_itself();
        let goes_on = matches!(&view.phase, Phase::Attached(attachment)
            if attachment.is_stored() && attachment.vouched().is_none()
                && attachment.problem().is_none()
                && may_go_on(&attachment.compiled, &now.compiled));
        if !goes_on || !is_alone || why.touches(&depends) {
            return self.set_phase(relid, Phase::waiting());
        }
        let was = std::mem::replace(&mut view.phase, Phase::waiting());
        if let Phase::Attached(attachment) = was {
            view.former = Some(Former { attachment, depends });
            pgrx::log!("pg_eddy: view {} serves as it was until it is attached anew", view.name);
        }
    }

    /// Something has changed in the catalogs: what a view was goes if it was concerned.
    pub(super) fn check_former(&mut self, relid: ViewId, why: &Invalidated, until: Instant) {
        let Some(former) = self.views.get(&relid).and_then(|view| view.former.as_ref()) else {
            return;
        };
        let was = &former.attachment.compiled;
        let goes_on_beside_itself = || {
            let now = look_until(until, || compile::compile_view(relid));
            matches!(now, Ok(Ok(now)) if may_go_on(was, &now))
        };
        let is_itself_touched = why.touches(&Dependencies::on(relid.into()));
        if why.touches(&former.depends) || is_itself_touched && !goes_on_beside_itself() {
            self.end_former(relid);
        }
    }

    /// Views whose dataflows have come to a position to which the others have, too, are what they are from now on.
    pub(super) fn succeed_formers(&mut self, position: u64) {
        let is_due = |view: &&View| match (&view.former, &view.phase) {
            (Some(Former { attachment: former, .. }), Phase::Attached(present)) => {
                former.stored.is_some()
                    && !former.is_comparing
                    && self.is_present(present, position)
            }
            _ => false,
        };
        let due: Vec<ViewId> = self.views.values().filter(is_due).map(|view| view.relid).collect();
        for relid in due {
            let Some(Former { attachment: former, .. }) = self.take_former(relid) else { continue };
            let Some(present) = self.views.get_mut(&relid).and_then(View::attachment) else {
                continue;
            };
            // REFRESH is asked for by those who do not trust the rows: the heap is read again.
            if former.compiled.planned_at == present.compiled.planned_at {
                present.compared =
                    former.stored.map(|stored| Compared { stored, is_populated: true });
            }
        }
    }

    /// What a view was does not serve any more; answers whether it did.
    pub(super) fn end_former(&mut self, relid: ViewId) -> bool {
        let former = self.take_former(relid);
        if let (Some(_), Some(view)) = (&former, self.views.get(&relid)) {
            pgrx::log!("pg_eddy: view {} does not serve as it was any more", view.name);
            self.compare_early(relid);
        }
        former.is_some()
    }

    /// The same if a dataflow is that of what a view was.
    pub(super) fn end_former_of(&mut self, dataflow: DataflowId) -> bool {
        let is_its = |view: &&View| {
            view.former.as_ref().is_some_and(|former| former.attachment.dataflow == dataflow)
        };
        let view = self.dataflows.get(&dataflow).and_then(|relid| self.views.get(relid));
        view.filter(is_its).map(|view| view.relid).is_some_and(|relid| self.end_former(relid))
    }

    /// Takes what a view was, whose dataflow is dropped.
    pub(super) fn take_former(&mut self, relid: ViewId) -> Option<Former> {
        let former = self.views.get_mut(&relid)?.former.take()?;
        self.forget_dataflow(former.attachment.dataflow);
        Some(former)
    }
}

/// Whether what a view was can be maintained when it is something else: as the same owner, with the same tables beside it.
fn may_go_on(was: &CompiledView, now: &CompiledView) -> bool {
    was.owner == now.owner
        && table_of_changes(was) == table_of_changes(now)
        && was.mirror == now.mirror
}

fn table_of_changes(view: &CompiledView) -> Option<RelationId> {
    view.changes.map(|changes| changes.table)
}
