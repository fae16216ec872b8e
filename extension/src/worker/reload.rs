//! Reload: what changes in the catalogs mean for the views.

use super::main_loop::Worker;
use super::sources::{file_and_indexes_of, file_of, sources_of};
use super::view::{Heals, Phase, View};
use crate::compile;
use crate::pg::ids::ViewId;
use crate::pg::inval::{self, Invalidated};
use crate::pg::relation::{with_relation, Lock};
use crate::pg::role_names::{NameChanges, RoleNames};
use crate::pg::xact::{self, Caught};
use crate::pg::{creations, markers, process, records, registry};
use crate::shared;
use rules::budget::Budget;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What could not be read is read again after this long.
const RETRY: Duration = Duration::from_millis(20);

/// A view that failed for reasons unknown is tried again after DDL, but not more often than this.
const RETRY_FAILED: Duration = Duration::from_secs(1);

/// When owners' rights could not be looked at for a lock, they are after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Whoever changes a view says so just before he gives his locks back: so long they are waited for, by all views together.
const LOCKED_FOR: Duration = Duration::from_millis(20);

/// What is to be done about changes of roles.
pub struct Roles {
    /// When owners' rights are to be looked at, `None` for not at all.
    due: Option<Instant>,
    budget: Budget,
    names: RoleNames,
}

impl Roles {
    pub fn new() -> Roles {
        Roles { due: None, budget: Budget::new(Instant::now()), names: RoleNames::default() }
    }
}

impl Worker {
    /// Looks at the catalogs again after DDL. What was decoded but is not visible yet will be told of once more.
    pub(super) fn reload(&mut self, invalidated: Invalidated) {
        let listed = xact::try_run(|| {
            let extension = registry::extension();
            extension.map(|_| registry::all())
        });
        let listed = match listed {
            Ok(Some(listed)) => listed,
            Ok(None) => self.leave(),
            // Trying again is all that can be done: the catalog may be locked for a moment.
            Err(caught) => {
                pgrx::log!("pg_eddy: could not read the list of views: {}", caught.message);
                inval::mark_all();
                process::wait_for_latch(RETRY);
                return;
            }
        };
        self.forget_dropped(&listed);
        let until = Instant::now() + LOCKED_FOR;
        for relid in listed {
            let is_new = !self.views.contains_key(&relid);
            let view = self.views.entry(relid).or_insert_with(|| View::new(relid));
            if is_new {
                continue;
            }
            let is_touched = invalidated.touches(&view.depends);
            self.check_former(relid, &invalidated, until);
            if is_touched {
                self.check_again(relid, &invalidated, until);
            } else if let Some(view) = self.views.get_mut(&relid) {
                view.try_again(view.attempted + RETRY_FAILED);
            }
        }
    }

    /// After a change of roles, looks whether the owners of views still may read what they read. Anybody can change a role, so it
    /// costs a part of the time only, and a lock that is in the way takes no view out: what it guards is as it was.
    pub(super) fn follow_roles(&mut self) {
        let now = Instant::now();
        let changed = inval::take_roles();
        if changed.is_some() {
            self.roles.due.get_or_insert(now);
        }
        let is_due =
            self.roles.due.is_some_and(|due| due <= now) && self.roles.budget.free_at() <= now;
        let relids: Vec<ViewId> = match changed.map(|changed| self.concerned_by_names(&changed)) {
            _ if is_due => self.views.keys().copied().collect(),
            Some(concerned) => concerned,
            None => return,
        };
        let mut is_in_the_way = false;
        for relid in relids {
            is_in_the_way |= !self.look_at_owner(relid);
        }
        if !is_due {
            return;
        }
        let end = Instant::now();
        self.roles.budget.spend(now, end);
        self.roles.due = is_in_the_way.then(|| end + LOOK_AGAIN);
    }

    /// The views that may show another name after a change of roles. They do not wait: names change seldom, and nobody changes the
    /// own one.
    fn concerned_by_names(&mut self, changed: &BTreeSet<u32>) -> Vec<ViewId> {
        if self.views.is_empty() {
            self.roles.names = RoleNames::default();
            return Vec::new();
        }
        let names = &mut self.roles.names;
        let changes = xact::try_run(|| names.follow(changed)).unwrap_or(NameChanges::Unknown);
        // One that owns a view is a name in its query, and in those of others that read it.
        let owns = |role: &u32| self.views.values().any(|view| view.owner() == *role);
        let concerns_all = match &changes {
            NameChanges::None => return Vec::new(),
            NameChanges::Some { renamed } => renamed.iter().any(owns),
            NameChanges::Unknown => true,
        };
        let shows_roles = |view: &View| {
            let compiled = view.compiled();
            compiled.is_some_and(|view| view.functions.contains_key(&inval::NAMES_OF_ROLES))
        };
        let concerned = self.views.values().filter(|view| concerns_all || shows_roles(view));
        concerned.map(|view| view.relid).collect()
    }

    /// Whether it could be seen that the owner of a view may read what it reads; if not, it is attached anew.
    fn look_at_owner(&mut self, relid: ViewId) -> bool {
        let Some(view) = self.views.get_mut(&relid) else { return true };
        view.try_again(view.attempted + RETRY_FAILED);
        match &view.phase {
            Phase::Waiting { .. } | Phase::Failed { .. } => return true,
            Phase::Reading(_) | Phase::Attached(_) => {}
        }
        let now = match xact::try_run(|| sources_of(relid)) {
            Err(caught) if caught.is_transient() => return false,
            now => now,
        };
        let is_same = match (&view.phase, &now) {
            (Phase::Reading(reading), Ok(Ok(sources))) => *sources == reading.sources,
            (Phase::Attached(attachment), Ok(Ok(sources))) => attachment.is_made_from(sources),
            _ => false,
        };
        if !is_same {
            self.set_phase(relid, Phase::waiting());
        }
        true
    }

    /// When owners are to be looked at next.
    pub(super) fn roles_are_due_in(&self) -> Option<Duration> {
        let at = self.roles.due?.max(self.roles.budget.free_at());
        Some(at.saturating_duration_since(Instant::now()))
    }

    fn forget_dropped(&mut self, listed: &[ViewId]) {
        let dropped: Vec<ViewId> =
            self.views.keys().filter(|relid| !listed.contains(relid)).copied().collect();
        for relid in &dropped {
            self.set_phase(*relid, Phase::waiting());
            self.views.remove(relid);
            markers::forget(*relid);
        }
        shared::remove_views(process::database(), |relid| listed.contains(&relid));
    }

    /// Something a view depends on may have changed: if it has, the view is attached anew.
    fn check_again(&mut self, relid: ViewId, why: &Invalidated, until: Instant) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        match &view.phase {
            Phase::Waiting { .. } => view.await_nothing(),
            Phase::Failed { heals: Heals::OnDdl | Heals::WithView { .. }, .. } => {
                view.try_again(Instant::now());
            }
            Phase::Failed { heals: Heals::OnRefresh { file }, .. } => {
                if file_of(relid) != Some(*file) || has_other_query(view) {
                    self.start_refreshed(relid);
                }
            }
            Phase::Failed { heals: Heals::OnFewerIndexes { file, indexes }, .. } => {
                let now = file_and_indexes_of(relid);
                let is_same = now.is_some_and(|now| now.0 == *file && now.1 >= *indexes);
                if !is_same || has_other_query(view) {
                    self.start_refreshed(relid);
                }
            }
            Phase::Reading(reading) => match look_until(until, || sources_of(relid)) {
                Ok(Ok(sources)) if sources == reading.sources => {}
                Ok(Ok(sources)) => self.attach_anew(relid, &sources, why),
                _ => self.set_phase(relid, Phase::waiting()),
            },
            Phase::Attached(attachment) => {
                let now = look_until(until, || {
                    let file = with_relation(relid, Lock::AccessShare, |view| view.file());
                    (file, sources_of(relid))
                });
                let stored = attachment.file();
                match now {
                    Ok((file, Ok(_))) if stored.is_some() && stored != file => {
                        self.start_refreshed(relid);
                    }
                    Ok((_, Ok(sources))) if attachment.is_made_from(&sources) => {}
                    Ok((_, Ok(sources))) => self.attach_anew(relid, &sources, why),
                    _ => self.set_phase(relid, Phase::waiting()),
                }
            }
        }
    }

    /// REFRESH, too, lets a view try again whether its state fits into memory.
    fn start_refreshed(&mut self, relid: ViewId) {
        if let Some(view) = self.views.get_mut(&relid) {
            view.spills = false;
        }
        self.set_phase(relid, Phase::waiting());
    }
}

/// Looks at what others may have locked, until then again and again. Each look waits for a moment.
pub(super) fn look_until<R>(until: Instant, look: impl Fn() -> R) -> Result<R, Caught> {
    loop {
        match xact::try_run(&look) {
            Err(caught) if caught.is_transient() && Instant::now() < until => {}
            result => return result,
        }
    }
}

/// Whether a view has been replaced since it was last attached, as far as that can be told.
fn has_other_query(view: &View) -> bool {
    let now = xact::try_run(|| compile::compile_view(view.relid));
    matches!(now, Ok(Ok(compiled)) if compiled.query.canonical != view.query)
}

/// Removes what is on record of views that were dropped where the library was not loaded. It only takes room: if it cannot be
/// removed now, because of somebody's lock, it stays.
pub(super) fn forget_former_views() {
    let forgotten = xact::try_run(|| {
        let recorded = creations::recorded().into_iter();
        recorded.filter(|view| !registry::contains((*view).into())).for_each(records::forget);
    });
    if let Err(caught) = forgotten {
        pgrx::log!(
            "pg_eddy: could not clear eddy.view_creations and eddy.view_statistics: {}",
            caught.message
        );
    }
}
