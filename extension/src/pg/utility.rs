//! The utility hook, and the statements on materialized views as owned data.

use crate::errors::Error;
use crate::pg::report::position_frame;
use crate::pg::{lists, raw_tree, tags};
use pgrx::pg_sys::{self, NodeTag, ObjectType, Oid};
use std::ffi::{c_char, CStr, CString};
use std::sync::OnceLock;

/// A relation a statement names.
#[derive(Clone, Debug)]
pub struct Target {
    /// The relation, if there is one of that name.
    pub oid: Option<Oid>,
    /// Its name as written, without schema.
    pub name: String,
}

/// The statements that can concern incremental views.
pub enum Statement {
    /// `CREATE MATERIALIZED VIEW`
    Create(Creation),
    /// `EXPLAIN CREATE MATERIALIZED VIEW`
    Explain { creation: Creation, options: ExplainOptions },
    /// `DROP MATERIALIZED VIEW`
    Drop(Vec<Target>),
    /// Any `ALTER MATERIALIZED VIEW` of one view.
    Alter(Target),
    /// `REFRESH MATERIALIZED VIEW`
    Refresh { view: Target, concurrently: bool },
    /// `COMMENT ON MATERIALIZED VIEW`
    Comment(Target),
}

/// What `EXPLAIN` was told.
#[derive(Clone, Debug, Default)]
pub struct ExplainOptions {
    /// `ANALYZE`
    pub analyze: bool,
    /// `FORMAT`, lower case; empty for the default.
    pub format: String,
}

/// A `CREATE MATERIALIZED VIEW` about to run.
#[derive(Clone, Copy)]
pub struct Creation {
    statement: *mut pg_sys::CreateTableAsStmt,
}

/// What happens with a statement after the checks.
#[derive(Clone, Copy)]
pub enum Then {
    /// PostgreSQL runs it.
    Run,
    /// PostgreSQL runs it; the tag says INCREMENTAL.
    RunTagged,
    /// PostgreSQL runs it, creating a relation that is then registered.
    Register { schema: Oid, definition: *const c_char, tagged: bool },
    /// Nothing is left to do.
    Done,
}

/// One call of the hook.
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
    /// After the view has been created; arguments are its OID and its definition.
    pub created: fn(Oid, &str) -> Result<(), Error>,
}

static HANDLER: OnceLock<Handler> = OnceLock::new();
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

/// The hook. Its frame has no destructors, so that errors of the server may jump over it: they keep
/// their position and context, which pgrx's guard would drop.
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
    // SAFETY: PostgreSQL's own arguments are handed on; the context frame is popped before this
    // frame ends, and the server resets the stack itself when an error jumps over it.
    unsafe {
        let mut call = Call { pstmt, source, read_only_tree, dest, context };
        let mut then = Then::Run;
        if may_concern(pstmt) {
            let mut frame = position_frame(source);
            frame.previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = &mut frame;
            before(&mut call, &mut then);
            pg_sys::error_context_stack = frame.previous;
        }
        if let Then::Done = then {
            return;
        }
        let next = NEXT.get().copied().flatten().unwrap_or(standard);
        let tree = call.read_only_tree;
        next(call.pstmt, source, tree, context, params, env, dest, completion);
        if !matches!(then, Then::Run) {
            after(&call, &then, completion);
        }
    }
}

/// Cheap test by the statement's node tag.
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
            | NodeTag::T_AlterObjectDependsStmt
            | NodeTag::T_CommentStmt
    )
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before(call: *mut Call, then: *mut Then) {
    // SAFETY: the hook passes variables of its own live frame.
    let (call, then) = unsafe { (&mut *call, &mut *then) };
    let Some(handler) = HANDLER.get() else { return };
    // SAFETY: the node belongs to the statement being run.
    let Some(statement) = (unsafe { decode((*call.pstmt).utilityStmt) }) else { return };
    match (handler.before)(call, statement) {
        Ok(decision) => *then = decision,
        Err(error) => error.raise(),
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn after(
    call: *const Call,
    then: *const Then,
    completion: *mut pg_sys::QueryCompletion,
) {
    let Some(handler) = HANDLER.get() else { return };
    // SAFETY: the hook passes its own live frame; the node and the definition live as long as the
    // statement's memory context; `completion` may be null.
    unsafe {
        let (call, then) = (&*call, *then);
        let mut tagged = matches!(then, Then::RunTagged);
        if let Then::Register { schema, definition, tagged: rewrite } = then {
            let creation = (*call.pstmt).utilityStmt.cast::<pg_sys::CreateTableAsStmt>();
            let name = (*(*(*creation).into).rel).relname;
            let view = pg_sys::get_relname_relid(name, schema);
            let definition = CStr::from_ptr(definition).to_string_lossy();
            if let Err(error) = (handler.created)(view, &definition) {
                error.raise();
            }
            tagged = rewrite;
        }
        if tagged && call.sends_tag() {
            if matches!(then, Then::Register { .. }) && !completion.is_null() {
                (*completion).commandTag = pg_sys::CommandTag::CMDTAG_CREATE_MATERIALIZED_VIEW;
                (*completion).nprocessed = 0;
            }
            tags::rewrite_next();
        }
    }
}

impl Call {
    /// The whole source text, which may hold several statements.
    pub fn source(&self) -> &[u8] {
        // SAFETY: the source is a C string that outlives the call.
        unsafe { CStr::from_ptr(self.source).to_bytes() }
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
        CString::new(name).map_or(-1, |name| raw_tree::locate_table(self.source, start, &name))
    }

    /// Whether a client sent this statement, so that its completion goes to the client. (The
    /// destination does not tell: it is "none" in the extended protocol.)
    fn sends_tag(&self) -> bool {
        self.context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL
    }

    /// Removes a boolean option from a creation's `WITH (…)`, on a copy if the tree is not ours to
    /// change. `None` if it is not there.
    pub fn take_option(&mut self, creation: &mut Creation, name: &CStr) -> Option<bool> {
        let position = creation.option_index(name)?;
        // SAFETY: nodes of the statement being run; a copy has the same shape. The copy is needed
        // because a cached statement may run again.
        unsafe {
            let copied = pg_sys::copyObjectImpl(self.pstmt.cast()).cast::<pg_sys::PlannedStmt>();
            self.pstmt = copied;
            self.read_only_tree = false;
            let mut node = (*copied).utilityStmt;
            if (*node).type_ == NodeTag::T_ExplainStmt {
                let query = (*node.cast::<pg_sys::ExplainStmt>()).query;
                node = (*query.cast::<pg_sys::Query>()).utilityStmt;
            }
            *creation = Creation { statement: node.cast() };
            let into = (*creation.statement).into;
            let options = lists::pointers::<pg_sys::DefElem>((*into).options);
            let value = pg_sys::defGetBoolean(options[position]);
            let index = i32::try_from(position).unwrap_or(0);
            (*into).options = pg_sys::list_delete_nth_cell((*into).options, index);
            Some(value)
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
                pg_sys::do_tup_output(output, &mut value, &mut false);
            }
            pg_sys::end_tup_output(output);
        }
        Ok(())
    }
}

impl Creation {
    /// The analysed query.
    pub fn query(&self) -> *mut pg_sys::Query {
        // SAFETY: parse analysis has put a Query here before utility hooks run.
        unsafe { (*self.statement).query.cast() }
    }

    /// Schema the view will be created in.
    pub fn schema(&self) -> Oid {
        // SAFETY: the statement names a relation.
        unsafe { pg_sys::RangeVarGetCreationNamespace((*(*self.statement).into).rel) }
    }

    /// Whether a relation of that name exists in that schema.
    pub fn exists_in(&self, schema: Oid) -> bool {
        // SAFETY: as above.
        unsafe {
            let name = (*(*(*self.statement).into).rel).relname;
            pg_sys::get_relname_relid(name, schema) != Oid::INVALID
        }
    }

    fn option_index(&self, name: &CStr) -> Option<usize> {
        // SAFETY: options are DefElem nodes with names.
        unsafe {
            lists::pointers::<pg_sys::DefElem>((*(*self.statement).into).options)
                .into_iter()
                .position(|o| (*o).defnamespace.is_null() && CStr::from_ptr((*o).defname) == name)
        }
    }
}

/// Copies a definition into the current memory context, for [`Then::Register`].
pub fn keep_text(value: &str) -> Result<*const c_char, Error> {
    let value = c_string(value)?;
    // SAFETY: pstrdup copies.
    Ok(unsafe { pg_sys::pstrdup(value.as_ptr()) })
}

fn c_string(value: &str) -> Result<CString, Error> {
    CString::new(value).map_err(|_| Error::internal("text contains a zero byte"))
}

unsafe fn text(value: *const c_char) -> String {
    // SAFETY: names in parse nodes are C strings.
    unsafe { CStr::from_ptr(value).to_string_lossy().into_owned() }
}

unsafe fn range_target(relation: *mut pg_sys::RangeVar) -> Target {
    // SAFETY: a RangeVar of the statement; the look-up takes no lock and tolerates absence.
    unsafe {
        let flags = pg_sys::RVROption::RVR_MISSING_OK;
        let oid = pg_sys::RangeVarGetRelidExtended(relation, 0, flags, None, std::ptr::null_mut());
        let oid = (oid != Oid::INVALID).then_some(oid);
        Target { oid, name: text((*relation).relname) }
    }
}

unsafe fn name_target(names: *mut pg_sys::Node) -> Target {
    // SAFETY: DROP and COMMENT name relations by lists of strings.
    unsafe { range_target(pg_sys::makeRangeVarFromNameList(names.cast())) }
}

/// The statement as owned data, if it is one on materialized views.
unsafe fn decode(node: *mut pg_sys::Node) -> Option<Statement> {
    use ObjectType::{OBJECT_COLUMN, OBJECT_MATVIEW};
    // SAFETY: each cast follows from the node tag checked before it.
    unsafe {
        match (*node).type_ {
            NodeTag::T_CreateTableAsStmt => decode_creation(node).map(Statement::Create),
            NodeTag::T_ExplainStmt => decode_explain(node.cast()),
            NodeTag::T_DropStmt => {
                let drop = node.cast::<pg_sys::DropStmt>();
                ((*drop).removeType == OBJECT_MATVIEW).then(|| {
                    let names = lists::pointers::<pg_sys::Node>((*drop).objects);
                    Statement::Drop(names.into_iter().map(|n| name_target(n)).collect())
                })
            }
            NodeTag::T_RefreshMatViewStmt => {
                let refresh = node.cast::<pg_sys::RefreshMatViewStmt>();
                let view = range_target((*refresh).relation);
                Some(Statement::Refresh { view, concurrently: (*refresh).concurrent })
            }
            NodeTag::T_RenameStmt => {
                let rename = &*node.cast::<pg_sys::RenameStmt>();
                let concerns = rename.renameType == OBJECT_MATVIEW
                    || (rename.renameType == OBJECT_COLUMN
                        && rename.relationType == OBJECT_MATVIEW);
                concerns.then(|| Statement::Alter(range_target(rename.relation)))
            }
            NodeTag::T_AlterObjectSchemaStmt => {
                let alter = &*node.cast::<pg_sys::AlterObjectSchemaStmt>();
                (alter.objectType == OBJECT_MATVIEW)
                    .then(|| Statement::Alter(range_target(alter.relation)))
            }
            NodeTag::T_AlterTableStmt => {
                let alter = &*node.cast::<pg_sys::AlterTableStmt>();
                (alter.objtype == OBJECT_MATVIEW)
                    .then(|| Statement::Alter(range_target(alter.relation)))
            }
            NodeTag::T_AlterObjectDependsStmt => {
                let alter = &*node.cast::<pg_sys::AlterObjectDependsStmt>();
                (alter.objectType == OBJECT_MATVIEW)
                    .then(|| Statement::Alter(range_target(alter.relation)))
            }
            NodeTag::T_CommentStmt => {
                let comment = &*node.cast::<pg_sys::CommentStmt>();
                (comment.objtype == OBJECT_MATVIEW)
                    .then(|| Statement::Comment(name_target(comment.object)))
            }
            _ => None,
        }
    }
}

unsafe fn decode_creation(node: *mut pg_sys::Node) -> Option<Creation> {
    // SAFETY: the caller has checked the tag.
    unsafe {
        let statement = node.cast::<pg_sys::CreateTableAsStmt>();
        ((*statement).objtype == ObjectType::OBJECT_MATVIEW).then_some(Creation { statement })
    }
}

unsafe fn decode_explain(explain: *mut pg_sys::ExplainStmt) -> Option<Statement> {
    // SAFETY: parse analysis has put a Query here; a utility Query carries its statement.
    unsafe {
        let query = (*explain).query.cast::<pg_sys::Query>();
        let node = (*query).utilityStmt;
        if node.is_null() || (*node).type_ != NodeTag::T_CreateTableAsStmt {
            return None;
        }
        let creation = decode_creation(node)?;
        let mut options = ExplainOptions::default();
        for option in lists::pointers::<pg_sys::DefElem>((*explain).options) {
            match CStr::from_ptr((*option).defname).to_bytes() {
                b"analyze" => options.analyze = pg_sys::defGetBoolean(option),
                b"format" => options.format = text(pg_sys::defGetString(option)).to_lowercase(),
                _ => {}
            }
        }
        Some(Statement::Explain { creation, options })
    }
}
