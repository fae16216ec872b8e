//! Reload: what changes in the catalogs mean for the views.

use super::main_loop::Worker;
use super::sources::{file_of, sources_of};
use super::view::{Heals, Phase, View};
use crate::pg::ids::ViewId;
use crate::pg::inval::{self, Invalidated};
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{creations, markers, process, registry, xact};
use crate::shared;
use rules::budget::Budget;
use std::time::{Duration, Instant};

/// What could not be read is read again after this long.
const RETRY: Duration = Duration::from_millis(20);

/// A view that failed for reasons unknown is tried again after DDL, but not more often than this.
const RETRY_FAILED: Duration = Duration::from_secs(1);

/// When owners' rights could not be looked at for a lock, they are after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What is to be done about changes of roles.
pub struct Roles {
    /// When owners' rights are to be looked at, `None` for not at all.
    due: Option<Instant>,
    budget: Budget,
}

impl Roles {
    pub fn new() -> Roles {
        Roles { due: None, budget: Budget::new(Instant::now()) }
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
        for relid in listed {
            let is_new = !self.views.contains_key(&relid);
            let view = self.views.entry(relid).or_insert_with(|| View::new(relid));
            if is_new {
                continue;
            }
            if invalidated.touches(&view.depends) {
                self.check_again(relid);
            } else if matches!(view.phase, Phase::Failed { heals: Heals::OnDdl, .. }) {
                let not_before = view.attempted + RETRY_FAILED;
                self.set_phase(relid, Phase::Waiting { not_before, attempts: 0 });
            }
        }
    }

    /// After a change of roles, looks whether the owners of views still may read what they read. Anybody can change a role, so it
    /// costs a part of the time only, and a lock that is in the way takes no view out: what it guards is as it was.
    pub(super) fn follow_roles(&mut self) {
        let now = Instant::now();
        if inval::take_roles() && self.roles.due.is_none() {
            self.roles.due = Some(now);
        }
        let is_due = self.roles.due.is_some_and(|due| due <= now);
        if !is_due || self.roles.budget.free_at() > now {
            return;
        }
        let relids: Vec<ViewId> = self.views.keys().copied().collect();
        let mut is_in_the_way = false;
        for relid in relids {
            is_in_the_way |= !self.look_at_owner(relid);
        }
        let end = Instant::now();
        self.roles.budget.spend(now, end);
        self.roles.due = is_in_the_way.then(|| end + LOOK_AGAIN);
    }

    /// Whether it could be seen that the owner of a view may read what it reads; if not, it is attached anew.
    fn look_at_owner(&mut self, relid: ViewId) -> bool {
        let Some(view) = self.views.get(&relid) else { return true };
        match &view.phase {
            Phase::Failed { heals: Heals::OnDdl, .. } => {
                let not_before = view.attempted + RETRY_FAILED;
                self.set_phase(relid, Phase::Waiting { not_before, attempts: 0 });
                return true;
            }
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
    fn check_again(&mut self, relid: ViewId) {
        let Some(view) = self.views.get(&relid) else { return };
        match &view.phase {
            Phase::Waiting { .. } => {}
            Phase::Failed { heals: Heals::OnDdl, .. } => self.set_phase(relid, Phase::waiting()),
            Phase::Failed { heals: Heals::OnRefresh { file }, .. } => {
                if file_of(relid) != Some(*file) {
                    self.start_refreshed(relid);
                }
            }
            Phase::Reading(reading) => {
                let now = xact::try_run(|| sources_of(relid));
                if !matches!(now, Ok(Ok(sources)) if sources == reading.sources) {
                    self.set_phase(relid, Phase::waiting());
                }
            }
            Phase::Attached(attachment) => {
                let now = xact::try_run(|| {
                    let file = with_relation(relid, Lock::AccessShare, |view| view.file());
                    (file, sources_of(relid))
                });
                let stored = attachment.file();
                let (is_same, is_refreshed) = match now {
                    Ok((file, Ok(sources))) => {
                        (attachment.is_made_from(&sources), stored.is_some() && stored != file)
                    }
                    _ => (false, false),
                };
                if is_refreshed {
                    self.start_refreshed(relid);
                } else if !is_same {
                    self.set_phase(relid, Phase::waiting());
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

/// Removes what is on record of views that were dropped where the library was not loaded. It only takes room: if it cannot be
/// removed now, because of somebody's lock, it stays.
pub(super) fn forget_former_views() {
    let forgotten = xact::try_run(|| {
        let recorded = creations::recorded().into_iter();
        recorded.filter(|view| !registry::contains((*view).into())).for_each(creations::forget);
    });
    if let Err(caught) = forgotten {
        pgrx::log!("pg_eddy: could not clear eddy.view_creations: {}", caught.message);
    }
}
