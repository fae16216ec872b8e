//! The utility hook: statements on materialized views, transaction control, commands on databases.

use crate::errors::Error;
use crate::hooks::command;
use crate::hooks::raw_tree;
use crate::hooks::statement::{decode, Child, Statement};
use crate::hooks::{fill, tags};
use crate::pg::report;
use crate::pg::view_settings::{self, Level};
use crate::pg::{confinement, entry, xact};
use pgrx::pg_sys::{self, NodeTag, Oid};
use rules::security_label::Options;
use std::ffi::{c_char, c_int, CStr, CString};
use std::sync::OnceLock;

/// What happens with a statement after the checks.
#[derive(Clone, Copy)]
pub enum Then {
    /// PostgreSQL runs it, as if there were no hook.
    Run,
    /// PostgreSQL runs it; the tag says INCREMENTAL.
    RunTagged,
    /// PostgreSQL runs it, filling an incremental view anew, under settings that end with it.
    Refill { view: Oid, tagged: bool, settings: Level },
    /// PostgreSQL runs it, creating a relation that is then registered, under settings that end with it.
    Register { schema: Oid, tagged: bool, settings: Level, options: Options },
    /// PostgreSQL runs it, altering an incremental view.
    Alter { view: Oid, tagged: bool },
    /// PostgreSQL runs it; a table has then become the child of another.
    Adopt(Child),
    /// Nothing is left to do.
    Done,
    /// The same: a view has been replaced.
    Replaced { tagged: bool },
    /// The same: a view is going to be attached anew.
    Refreshed { tagged: bool },
}

impl Then {
    /// Whether the statement fills an incremental view.
    fn fills_view(self) -> bool {
        matches!(self, Then::Register { .. } | Then::Refill { .. })
    }
}

/// One call of the hook.
#[derive(Clone)]
pub struct Call {
    pstmt: *mut pg_sys::PlannedStmt,
    source: *const c_char,
    read_only_tree: bool,
    dest: *mut pg_sys::DestReceiver,
    context: pg_sys::ProcessUtilityContext::Type,
}

/// What the extension does with statements on materialized views.
#[derive(Clone, Copy)]
pub struct Handler {
    /// Before PostgreSQL runs it; an error stops the statement.
    pub before: fn(&mut Call, Statement) -> Result<Then, Error>,
    /// After the view has been created.
    pub created: fn(Oid, Options) -> Result<(), Error>,
    /// After the view has been filled anew.
    pub refilled: fn(Oid) -> Result<(), Error>,
    /// After the view has been altered.
    pub altered: fn(Oid),
    /// After a table has become the child of another.
    pub adopted: fn(Oid) -> Result<(), Error>,
}

/// What is done about statements on anything but views.
#[derive(Clone, Copy)]
pub struct Observer {
    /// COMMIT PREPARED is about to run.
    pub before_commit_prepared: fn(),
    /// COMMIT PREPARED has run.
    pub after_commit_prepared: fn(),
    /// A statement has run that may have used the snapshot which all statements of its transaction share.
    pub after_use_of_snapshot: fn(),
    /// A statement is about to run, by somebody who may, that needs this database for itself.
    pub before_database_command: fn(u32),
    /// A statement is about to run that defines something anew, or no more, that queries may be made from.
    pub before_definition: fn(),
}

static HANDLER: OnceLock<Handler> = OnceLock::new();
static OBSERVER: OnceLock<Observer> = OnceLock::new();
static NEXT: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

/// Puts the hook in place, once per process.
pub fn install(handler: Handler) {
    if HANDLER.set(handler).is_err() {
        return;
    }
    // SAFETY: hook variables are plain globals, set at library load by the only thread.
    unsafe {
        let _ = NEXT.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

/// Lets the hook, once it is in place, call an observer too.
pub fn observe(observer: Observer) {
    // Once per process, as the hook itself.
    let _ = OBSERVER.set(observer);
}

/// The hook. Its frame has no destructors, so that errors of the server may jump over it: they keep
/// their position and context, which pgrx's guard would drop.
/// Unguarded: what it calls of ours is guarded.
///
/// # Safety
/// For PostgreSQL to call, as this hook.
#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn process_utility(
    pstmt: *mut pg_sys::PlannedStmt,
    source: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    env: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    extern "C-unwind" {
        #[link_name = "standard_ProcessUtility"]
        fn standard(
            pstmt: *mut pg_sys::PlannedStmt,
            source: *const c_char,
            read_only_tree: bool,
            context: pg_sys::ProcessUtilityContext::Type,
            params: pg_sys::ParamListInfo,
            env: *mut pg_sys::QueryEnvironment,
            dest: *mut pg_sys::DestReceiver,
            completion: *mut pg_sys::QueryCompletion,
        );
    }
    // SAFETY: PostgreSQL's own arguments are handed on. What the observer needs afterwards is found out
    // before, because the statement may be gone with its transaction's memory.
    unsafe {
        let observed = observe_before((*pstmt).utilityStmt, context);
        let mut call = Call { pstmt, source, read_only_tree, dest, context };
        let mut then = Then::Run;
        let concerns = may_concern(pstmt);
        if concerns {
            report::completing(source, || before(&mut call, &mut then));
        }
        match then {
            Then::Done => return,
            Then::Replaced { .. } | Then::Refreshed { .. } => {
                after(&call, &then, completion);
                observed.after();
                return;
            }
            _ => {}
        }
        let next = NEXT.get().copied().flatten().unwrap_or(standard);
        let tree = call.read_only_tree;
        let outer = concerns.then(|| fill::arm(then.fills_view()));
        next(call.pstmt, source, tree, context, params, env, dest, completion);
        outer.map(fill::arm);
        if !matches!(then, Then::Run) {
            after(&call, &then, completion);
        }
        if let Then::Register { settings, .. } | Then::Refill { settings, .. } = then {
            view_settings::end(settings);
        }
        observed.after();
    }
}

/// What is to be known of a statement when it has run, and may be gone.
#[derive(Clone, Copy)]
struct Observed {
    commits_prepared: bool,
    reads_nothing: bool,
}

impl Observed {
    /// Tells the observer that the statement has run.
    ///
    /// # Safety
    /// As for [`observe_before`].
    unsafe fn after(self) {
        // SAFETY: per contract.
        unsafe {
            if self.commits_prepared {
                after_commit_prepared();
            }
            if xact::uses_one_snapshot() && xact::has_snapshot() && !self.reads_nothing {
                after_use_of_snapshot();
            }
        }
    }
}

/// Tells the observer that a statement is about to run; fails if it must not.
///
/// # Safety
/// The node of a utility statement. An error jumps over this frame: it has no destructors.
unsafe fn observe_before(
    node: *mut pg_sys::Node,
    context: pg_sys::ProcessUtilityContext::Type,
) -> Observed {
    // SAFETY: per contract.
    unsafe {
        confinement::check_statement(node);
        let commits_prepared = command::commits_prepared(node);
        if command::is_database_command(node) {
            before_database_command(node, context);
        }
        if commits_prepared {
            before_commit_prepared();
        }
        if command::redefines(node) {
            before_definition();
        }
        if command::grants_on_relations(node) {
            before_grant(node);
        }
        Observed { commits_prepared, reads_nothing: command::reads_nothing(node) }
    }
}

/// Cheap test by the statement's node tag.
///
/// # Safety
/// A utility statement.
unsafe fn may_concern(pstmt: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: utility statements always carry their node.
    let tag = unsafe { (*(*pstmt).utilityStmt).type_ };
    matches!(
        tag,
        NodeTag::T_CreateTableAsStmt
            | NodeTag::T_ExplainStmt
            | NodeTag::T_DropStmt
            | NodeTag::T_RefreshMatViewStmt
            | NodeTag::T_RenameStmt
            | NodeTag::T_AlterObjectSchemaStmt
            | NodeTag::T_AlterTableStmt
            | NodeTag::T_CreateStmt
            | NodeTag::T_AlterObjectDependsStmt
            | NodeTag::T_CommentStmt
            | NodeTag::T_IndexStmt
            | NodeTag::T_VacuumStmt
            | NodeTag::T_ViewStmt
            | NodeTag::T_CopyStmt
    )
}

/// # Safety
/// Variables of the hook's frame.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before(call: *mut Call, then: *mut Then) {
    // SAFETY: the hook passes variables of its own live frame.
    let (call, then) = unsafe { (&mut *call, &mut *then) };
    let Some(handler) = HANDLER.get() else { return };
    // SAFETY: the node belongs to the statement being run.
    let Some(statement) = (unsafe { decode((*call.pstmt).utilityStmt) }) else { return };
    let decision = (handler.before)(call, statement).unwrap_or_else(|error| error.raise());
    if matches!(decision, Then::Done) {
        // Others see it all the same.
        call.pass_on(|| Ok(())).unwrap_or_else(|error| error.raise());
    }
    *then = decision;
}

/// # Safety
/// Variables of the hook's frame; `completion` may be null.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn after(
    call: *const Call,
    then: *const Then,
    completion: *mut pg_sys::QueryCompletion,
) {
    let Some(handler) = HANDLER.get() else { return };
    // SAFETY: the hook passes its own live frame; the node lives as long as the statement's memory
    // context; `completion` may be null.
    unsafe {
        let (call, then) = (&*call, *then);
        let mut tagged = matches!(
            then,
            Then::RunTagged
                | Then::Refill { tagged: true, .. }
                | Then::Alter { tagged: true, .. }
                | Then::Replaced { tagged: true }
                | Then::Refreshed { tagged: true }
        );
        if let Then::Register { schema, tagged: rewrite, options, .. } = then {
            let creation = (*call.pstmt).utilityStmt.cast::<pg_sys::CreateTableAsStmt>();
            let name = (*(*(*creation).into).rel).relname;
            let view = pg_sys::get_relname_relid(name, schema);
            if let Err(error) = (handler.created)(view, options) {
                error.raise();
            }
            tagged = rewrite;
        }
        if let Then::Refill { view, .. } = then {
            (handler.refilled)(view).unwrap_or_else(|error| error.raise());
        }
        if let Then::Alter { view, .. } = then {
            (handler.altered)(view);
        }
        if let Then::Adopt(child) = then {
            child.oid().map_or(Ok(()), handler.adopted).unwrap_or_else(|error| error.raise());
        }
        let sends_tag = call.sends_tag();
        let creates = match then {
            Then::Register { tagged, .. } => tagged,
            Then::Replaced { .. } => true,
            _ => false,
        };
        if sends_tag && creates && !completion.is_null() {
            (*completion).commandTag = pg_sys::CommandTag::CMDTAG_CREATE_MATERIALIZED_VIEW;
            (*completion).nprocessed = 0;
        }
        if sends_tag && tagged {
            tags::rewrite_next();
        }
    }
}

/// # Safety
/// The statement of the hook, which runs.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_database_command(
    node: *mut pg_sys::Node,
    context: pg_sys::ProcessUtilityContext::Type,
) {
    // SAFETY: the hook has tested the node.
    let command = unsafe { command::database_command(node) };
    let (Some(observer), Some(command)) = (OBSERVER.get(), command) else { return };
    let is_top_level = context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL;
    // What PostgreSQL will refuse is no reason to disturb anybody.
    let runs = |database: &u32| {
        command.is_possible(*database, is_top_level) && command.is_permitted(*database)
    };
    if let Some(database) = command.database().filter(runs) {
        (observer.before_database_command)(database);
    }
}

#[pgrx::pg_guard]
extern "C-unwind" fn before_definition() {
    if let Some(observer) = OBSERVER.get() {
        (observer.before_definition)();
    }
}

/// # Safety
/// The statement of the hook, which runs.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_grant(node: *mut pg_sys::Node) {
    // SAFETY: the hook has tested the node.
    unsafe {
        for name in command::granted_relations(node) {
            entry::keep_from_filling(name);
        }
    }
}

/// # Safety
/// The statement of the hook, which runs.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_commit_prepared() {
    if let Some(observer) = OBSERVER.get() {
        (observer.before_commit_prepared)();
    }
}

/// # Safety
/// The statement of the hook, which runs.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn after_commit_prepared() {
    if let Some(observer) = OBSERVER.get() {
        (observer.after_commit_prepared)();
    }
}

/// # Safety
/// The statement of the hook, which runs.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn after_use_of_snapshot() {
    if let Some(observer) = OBSERVER.get() {
        (observer.after_use_of_snapshot)();
    }
}

impl Call {
    /// The whole source text, which may hold several statements.
    pub fn source(&self) -> &[u8] {
        // SAFETY: the source is a C string that outlives the call.
        unsafe { CStr::from_ptr(self.source).to_bytes() }
    }

    /// The same for PostgreSQL.
    pub(super) fn source_text(&self) -> *const c_char {
        self.source
    }

    /// Where this statement begins in the source text, and how long it is, as PostgreSQL has it.
    pub(super) fn extent(&self) -> (c_int, c_int) {
        // SAFETY: the planned statement is valid during the call.
        unsafe { ((*self.pstmt).stmt_location, (*self.pstmt).stmt_len) }
    }

    /// Byte offset of this statement in the source text.
    pub fn start(&self) -> usize {
        // SAFETY: the planned statement is valid during the call.
        usize::try_from(unsafe { (*self.pstmt).stmt_location }).unwrap_or(0)
    }

    /// Byte offset at which this statement first names a table by a name or an alias, -1 if unknown.
    pub fn locate_table(&self, name: &str) -> i32 {
        // SAFETY: the planned statement is valid during the call.
        let start = unsafe { (*self.pstmt).stmt_location };
        // SAFETY: the source of the statement being run.
        let locate = |name: CString| unsafe { raw_tree::locate_table(self.source, start, &name) };
        CString::new(name).map_or(-1, locate)
    }

    /// Whether a client sent this statement, so that its completion goes to the client. (The
    /// destination does not tell: it is "none" in the extended protocol.)
    fn sends_tag(&self) -> bool {
        self.context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL
    }

    /// Lets a creation or a refresh leave the view without data, on a copy of the tree.
    pub fn skip_data(&mut self) {
        // SAFETY: nodes of the statement being run, cast according to their tags.
        unsafe {
            let node = self.own_statement();
            match (*node).type_ {
                NodeTag::T_CreateTableAsStmt => {
                    (*(*node.cast::<pg_sys::CreateTableAsStmt>()).into).skipData = true;
                }
                NodeTag::T_RefreshMatViewStmt => {
                    (*node.cast::<pg_sys::RefreshMatViewStmt>()).skipData = true;
                }
                _ => {}
            }
        }
    }

    /// Whether its transaction goes on after the statement.
    pub fn is_in_block(&self) -> bool {
        xact::is_in_block(self.sends_tag())
    }

    /// Has the relation created in that schema, whatever the search path will be, on a copy of the tree.
    pub fn qualify_creation(&mut self, schema: Oid) {
        // SAFETY: the statement is a creation; the schema's name is a copy.
        unsafe {
            let node = self.own_statement().cast::<pg_sys::CreateTableAsStmt>();
            let name = (*(*node).into).rel;
            (*name).schemaname = pg_sys::get_namespace_name(schema);
        }
    }

    /// The statement in a copy that is ours to change: a cached statement may run again.
    ///
    /// # Safety
    /// Within the hook, before the statement runs.
    pub(super) unsafe fn own_statement(&mut self) -> *mut pg_sys::Node {
        // SAFETY: the planned statement being run; the copy lives in the statement's memory.
        unsafe {
            let copied = pg_sys::copyObjectImpl(self.pstmt.cast()).cast::<pg_sys::PlannedStmt>();
            self.pstmt = copied;
            self.read_only_tree = false;
            (*copied).utilityStmt
        }
    }

    /// Has another statement run in its place.
    ///
    /// # Safety
    /// An analysed utility statement in the statement's memory; within the hook, before it runs.
    pub(super) unsafe fn replace_statement(&mut self, node: *mut pg_sys::Node) {
        // SAFETY: per contract; the copy of the planned statement is ours.
        unsafe {
            self.own_statement();
            (*self.pstmt).utilityStmt = node;
        }
    }

    /// Whether hooks of other libraries come after this one.
    pub(super) fn has_other_hooks() -> bool {
        NEXT.get().copied().flatten().is_some()
    }

    /// Has these hooks run another statement, which they take for this one.
    ///
    /// # Safety
    /// A utility statement that gives no rows.
    pub(super) unsafe fn hand_to_others(&self, node: *mut pg_sys::Node) {
        let Some(next) = NEXT.get().copied().flatten() else { return };
        // SAFETY: per contract; the planned statement is a copy.
        unsafe {
            let planned = pg_sys::copyObjectImpl(self.pstmt.cast()).cast::<pg_sys::PlannedStmt>();
            (*planned).utilityStmt = node;
            let (source, context, none) = (self.source, self.context, std::ptr::null_mut());
            let (params, env, completion) = (none, std::ptr::null_mut(), std::ptr::null_mut());
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                next(planned, source, false, context, params, env, self.dest, completion);
            });
        }
    }

    /// Sends EXPLAIN's result: a row for each line, or one row.
    pub fn send_explanation(&self, text: &str, by_line: bool) -> Result<(), Error> {
        let text = c_string(text)?;
        // SAFETY: the statement is an ExplainStmt (only `Statement::Explain` leads here); the tuple
        // output functions copy the text.
        unsafe {
            let statement = (*self.pstmt).utilityStmt.cast::<pg_sys::ExplainStmt>();
            let desc = pg_sys::ExplainResultDesc(statement);
            let slots = std::ptr::addr_of!(pg_sys::TTSOpsVirtual);
            let output = pg_sys::begin_tup_output_tupdesc(self.dest, desc, slots);
            if by_line {
                pg_sys::do_text_output_multiline(output, text.as_ptr());
            } else {
                let mut value = pg_sys::Datum::from(pg_sys::cstring_to_text(text.as_ptr()));
                let mut is_null = false;
                pg_sys::do_tup_output(output, &raw mut value, &raw mut is_null);
            }
            pg_sys::end_tup_output(output);
        }
        Ok(())
    }
}

fn c_string(value: &str) -> Result<CString, Error> {
    CString::new(value).map_err(|_| Error::internal("text contains a zero byte"))
}
