//! Telling who listens that views have changed: after they have been written, so that nothing of it is in the way of that.

use super::main_loop::Worker;
use super::view::View;
use crate::pg::{catalog, notify, wal, xact};
use crate::shared::ViewState;

impl Worker {
    /// Tells of the views that have changed, each once, that they have everything up to a position. If that is not possible
    /// now it is tried again later.
    pub(super) fn tell(&mut self, position: u64) {
        let is_due = |view: &&mut View| {
            view.is_untold && matches!(view.state(), ViewState::Live | ViewState::Behind)
        };
        let mut untold: Vec<_> = self.views.values_mut().filter(is_due).collect();
        if untold.is_empty() {
            return;
        }
        let payload = wal::display(position);
        let told = xact::try_run(|| {
            notify::is_possible().then(|| {
                for relid in untold.iter().map(|view| view.relid.into()) {
                    let (schema, name) = (catalog::schema_of(relid), catalog::relation_name(relid));
                    notify::notify(&format!("{schema}.{name}"), &payload);
                }
            })
        });
        if matches!(told, Ok(Some(()))) {
            untold.iter_mut().for_each(|view| view.is_untold = false);
        }
    }
}
