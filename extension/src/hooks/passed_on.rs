//! Statements that are carried out here pass through the hooks of other libraries all the same: these count and audit what users
//! send, and must have seen a statement before its event triggers fire (those of pgaudit fail otherwise).
//!
//! The hooks are given CLOSE in its place, of a cursor whose end is the work. PostgreSQL runs nothing else of utility statements that
//! does no more than call back.

use crate::errors::Error;
use crate::hooks::replacement::new_node;
use crate::hooks::utility::Call;
use pgrx::pg_sys::{self, NodeTag, PgTryBuilder};
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

/// What a statement does. It answers an error, which is raised through the hooks and then answered by [`Call::pass_on`].
type Work<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

thread_local! {
    /// The work of a statement on its way to the end of the hooks.
    static ON_ITS_WAY: RefCell<Option<Work<'static>>> = const { RefCell::new(None) };
    static FAILED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

impl Call {
    /// Carries out the statement where PostgreSQL would, behind the hooks of all other libraries.
    pub(super) fn pass_on(
        &mut self,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !Call::has_other_hooks() {
            return work();
        }
        let mut work = Some(work);
        let mut once = || work.take().map_or(Ok(()), |work| work());
        let once: Work<'_> = &mut once;
        // SAFETY: it is taken out of there below, whether it was called or not.
        let once = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(once) };
        ON_ITS_WAY.replace(Some(once));
        FAILED.take();
        let call = AssertUnwindSafe(&mut *self);
        let passed = PgTryBuilder::new(move || {
            let call = call;
            // SAFETY: the statement closes a cursor that is there, of a query of no statements, whose text lives longer.
            unsafe {
                let cursor = pg_sys::CreateNewPortal();
                (*cursor).visible = false;
                let (none, tag) = (std::ptr::null_mut(), pg_sys::CommandTag::CMDTAG_CLOSE_CURSOR);
                let (name, plan) = (std::ptr::null(), std::ptr::null_mut());
                pg_sys::PortalDefineQuery(cursor, name, call.0.source_text(), tag, none, plan);
                // One that is still being set up cannot be closed.
                (*cursor).status = pg_sys::PortalStatus::PORTAL_READY;
                (*cursor).cleanup = Some(at_end);
                let closing = new_node::<pg_sys::ClosePortalStmt>(NodeTag::T_ClosePortalStmt);
                (*closing).portalname = pg_sys::pstrdup((*cursor).name);
                call.0.hand_to_others(closing.cast());
            }
            Ok(())
        })
        .catch_others(|cause| FAILED.take().map_or_else(|| cause.rethrow(), Err))
        .finally(|| {
            ON_ITS_WAY.take();
        })
        .execute();
        passed?;
        match work {
            None => Ok(()),
            Some(_) => Err(Error::internal("a library has kept a statement from being run")),
        }
    }
}

/// Called by PostgreSQL when the cursor is closed, and when it goes because the statement has failed on its way.
///
/// # Safety
/// For PostgreSQL to call, with the cursor.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_end(cursor: pg_sys::Portal) {
    // SAFETY: looks at the state of the transaction; the cursor is still there.
    let is_closed = unsafe {
        (*cursor).cleanup = None;
        pg_sys::IsTransactionState()
    };
    let work = ON_ITS_WAY.take().filter(|_| is_closed);
    if let Some(Err(error)) = work.map(|work| work()) {
        FAILED.replace(Some(error.clone()));
        error.raise();
    }
}
