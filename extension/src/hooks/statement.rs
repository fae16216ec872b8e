//! The statements on materialized views, those that may replace one, and those that give a table a new child or take it out of the WAL, as owned data.

use crate::hooks::replacement::Replacement;
use crate::pg::lists;
use pgrx::pg_sys::{self, AlterTableType, NodeTag, ObjectType, Oid};
use std::ffi::{c_char, CStr};

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
    /// `CREATE OR REPLACE VIEW`, written in any way.
    Replace(Replacement),
    /// `EXPLAIN CREATE MATERIALIZED VIEW`
    Explain { creation: Creation, options: ExplainOptions },
    /// `DROP MATERIALIZED VIEW`
    Drop(Vec<Target>),
    /// `ALTER MATERIALIZED VIEW … SET (…)` or `RESET (…)`
    SetOptions(Target),
    /// Any other `ALTER MATERIALIZED VIEW` of one view.
    Alter(Target),
    /// `REFRESH MATERIALIZED VIEW`
    Refresh { view: Target, concurrently: bool, with_data: bool },
    /// `COPY … TO` of a relation.
    Copy(Target),
    /// `COMMENT ON MATERIALIZED VIEW`
    Comment(Target),
    /// `CREATE INDEX` or `ANALYZE` of relations that it names.
    Scan(Vec<Target>),
    /// A table is about to become a partition, or to inherit.
    NewChild(Child),
    /// `ALTER TABLE … SET LOGGED` or `UNLOGGED`, which may do the former as well.
    SetLogged { table: Target, is_logged: bool, child: Option<Child> },
}

/// The name of a table that is to become the child of another; it may not exist yet.
#[derive(Clone, Copy)]
pub struct Child {
    name: *mut pg_sys::RangeVar,
}

impl Child {
    /// The table, once it exists.
    pub fn oid(self) -> Option<Oid> {
        // SAFETY: a RangeVar of the statement being run.
        unsafe { range_target(self.name) }.oid
    }
}

/// What `EXPLAIN` was told.
#[derive(Clone, Debug, Default)]
pub struct ExplainOptions {
    pub analyze: bool,
    pub verbose: bool,
    /// `FORMAT`, lower case; empty for the default.
    pub format: String,
    /// An option that PostgreSQL does not have, and where it is written.
    pub unknown: Option<(String, i32)>,
}

/// Options of EXPLAIN, of any version, that mean nothing for a plan which is not run.
const WITHOUT_EFFECT: [&[u8]; 8] =
    [b"costs", b"settings", b"generic_plan", b"buffers", b"wal", b"timing", b"summary", b"memory"];

/// A `CREATE MATERIALIZED VIEW` about to run.
#[derive(Clone, Copy)]
pub struct Creation {
    pub(super) statement: *mut pg_sys::CreateTableAsStmt,
}

impl Creation {
    pub fn query(&self) -> &pg_sys::Query {
        // SAFETY: parse analysis has put a Query here before utility hooks run; a creation does not outlive its statement.
        unsafe { &*(*self.statement).query.cast() }
    }

    /// Schema the view will be created in.
    pub fn schema(&self) -> Oid {
        // SAFETY: the statement names a relation.
        unsafe { pg_sys::RangeVarGetCreationNamespace((*(*self.statement).into).rel) }
    }

    /// The relation of that name in that schema.
    pub fn existing_in(&self, schema: Oid) -> Option<Oid> {
        // SAFETY: as above.
        let found = unsafe {
            let name = (*(*(*self.statement).into).rel).relname;
            pg_sys::get_relname_relid(name, schema)
        };
        (found != Oid::INVALID).then_some(found)
    }

    /// Names of the options in `WITH (…)`.
    pub fn option_names(&self) -> Vec<String> {
        // SAFETY: options are DefElem nodes with names.
        unsafe {
            let options = lists::pointers::<pg_sys::DefElem>((*(*self.statement).into).options);
            options.into_iter().map(|option| text((*option).defname)).collect()
        }
    }

    /// Name of the view, without schema.
    pub fn name(&self) -> String {
        // SAFETY: as above.
        unsafe { text((*(*(*self.statement).into).rel).relname) }
    }

    /// Index of an option in `WITH (…)`.
    pub(super) fn option_index(&self, name: &CStr) -> Option<usize> {
        // SAFETY: options are DefElem nodes.
        unsafe { option_index((*(*self.statement).into).options, name) }
    }
}

/// Index of the option of that name.
///
/// # Safety
/// A list of `DefElem`.
pub(super) unsafe fn option_index(options: *mut pg_sys::List, name: &CStr) -> Option<usize> {
    // SAFETY: options have names.
    unsafe {
        lists::pointers::<pg_sys::DefElem>(options)
            .into_iter()
            .position(|o| (*o).defnamespace.is_null() && CStr::from_ptr((*o).defname) == name)
    }
}

/// A copy of a string of a parse tree.
///
/// # Safety
/// A `String` node.
pub(super) unsafe fn string(node: *mut pg_sys::Node) -> String {
    // SAFETY: per contract.
    unsafe { text((*node.cast::<pg_sys::String>()).sval) }
}

/// A copy of a name.
///
/// # Safety
/// A C string.
pub(super) unsafe fn text(value: *const c_char) -> String {
    // SAFETY: names in parse nodes are C strings.
    unsafe { CStr::from_ptr(value).to_string_lossy().into_owned() }
}

/// The relation of a name.
///
/// # Safety
/// A name in the statement being run.
unsafe fn range_target(relation: *mut pg_sys::RangeVar) -> Target {
    // SAFETY: a RangeVar of the statement; the look-up takes no lock and tolerates absence.
    unsafe {
        let flags = pg_sys::RVROption::RVR_MISSING_OK;
        let oid = pg_sys::RangeVarGetRelidExtended(relation, 0, flags, None, std::ptr::null_mut());
        let oid = (oid != Oid::INVALID).then_some(oid);
        Target { oid, name: text((*relation).relname) }
    }
}

/// The relation of a name that is a list.
///
/// # Safety
/// A list of strings: a name in the statement being run.
unsafe fn name_target(names: *mut pg_sys::Node) -> Target {
    // SAFETY: DROP and COMMENT name relations by lists of strings.
    unsafe { range_target(pg_sys::makeRangeVarFromNameList(names.cast())) }
}

/// The statement as owned data, if it is one that may concern incremental views.
///
/// # Safety
/// `node` must be the statement of a running utility command.
pub unsafe fn decode(node: *mut pg_sys::Node) -> Option<Statement> {
    use ObjectType::OBJECT_MATVIEW;
    // SAFETY: each cast follows from the node tag checked before it.
    unsafe {
        match (*node).type_ {
            NodeTag::T_CreateTableAsStmt => decode_creation(node).map(Statement::Create),
            NodeTag::T_ViewStmt => {
                let statement = node.cast::<pg_sys::ViewStmt>();
                (*statement).replace.then_some(Statement::Replace(Replacement { statement }))
            }
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
                let (concurrently, with_data) = ((*refresh).concurrent, !(*refresh).skipData);
                Some(Statement::Refresh { view, concurrently, with_data })
            }
            NodeTag::T_CopyStmt => {
                let copy = &*node.cast::<pg_sys::CopyStmt>();
                let is_meant = !copy.is_from && !copy.relation.is_null();
                is_meant.then(|| Statement::Copy(range_target(copy.relation)))
            }
            NodeTag::T_IndexStmt => {
                let index = &*node.cast::<pg_sys::IndexStmt>();
                Some(Statement::Scan(vec![range_target(index.relation)]))
            }
            NodeTag::T_VacuumStmt => decode_analyze(&*node.cast()),
            NodeTag::T_AlterTableStmt => decode_alter_table(&*node.cast()),
            NodeTag::T_CreateStmt => {
                let create = &*node.cast::<pg_sys::CreateStmt>();
                let is_child = !create.inhRelations.is_null();
                is_child.then_some(Statement::NewChild(Child { name: create.relation }))
            }
            NodeTag::T_CommentStmt => {
                let comment = &*node.cast::<pg_sys::CommentStmt>();
                (comment.objtype == OBJECT_MATVIEW)
                    .then(|| Statement::Comment(name_target(comment.object)))
            }
            _ => decode_alteration(node),
        }
    }
}

/// The statement if it changes what a materialized view is called, where it is, or what it goes with.
///
/// # Safety
/// As for [`decode`].
unsafe fn decode_alteration(node: *mut pg_sys::Node) -> Option<Statement> {
    use ObjectType::{OBJECT_COLUMN, OBJECT_MATVIEW};
    // SAFETY: each cast follows from the node tag checked before it.
    unsafe {
        let (concerns, relation) = match (*node).type_ {
            NodeTag::T_RenameStmt => {
                let rename = &*node.cast::<pg_sys::RenameStmt>();
                let concerns = rename.renameType == OBJECT_MATVIEW
                    || (rename.renameType == OBJECT_COLUMN
                        && rename.relationType == OBJECT_MATVIEW);
                (concerns, rename.relation)
            }
            NodeTag::T_AlterObjectSchemaStmt => {
                let alter = &*node.cast::<pg_sys::AlterObjectSchemaStmt>();
                (alter.objectType == OBJECT_MATVIEW, alter.relation)
            }
            NodeTag::T_AlterObjectDependsStmt => {
                let alter = &*node.cast::<pg_sys::AlterObjectDependsStmt>();
                (alter.objectType == OBJECT_MATVIEW, alter.relation)
            }
            _ => return None,
        };
        concerns.then(|| Statement::Alter(range_target(relation)))
    }
}

/// The statement if it creates a materialized view.
///
/// # Safety
/// A `CREATE TABLE AS` of any kind.
unsafe fn decode_creation(node: *mut pg_sys::Node) -> Option<Creation> {
    // SAFETY: the caller has checked the tag.
    unsafe {
        let statement = node.cast::<pg_sys::CreateTableAsStmt>();
        ((*statement).objtype == ObjectType::OBJECT_MATVIEW).then_some(Creation { statement })
    }
}

/// The statement if it explains the creation of a materialized view.
///
/// # Safety
/// A complete, analysed `EXPLAIN`.
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
                b"verbose" => options.verbose = pg_sys::defGetBoolean(option),
                b"format" => options.format = text(pg_sys::defGetString(option)).to_lowercase(),
                name if WITHOUT_EFFECT.contains(&name) => {
                    pg_sys::defGetBoolean(option);
                }
                _ => options.unknown = Some((text((*option).defname), (*option).location)),
            }
        }
        Some(Statement::Explain { creation, options })
    }
}

/// The statement if it analyses relations that it names.
///
/// # Safety
/// A complete node of the statement being run.
unsafe fn decode_analyze(vacuum: &pg_sys::VacuumStmt) -> Option<Statement> {
    // SAFETY: per contract; options are DefElem nodes with names.
    unsafe {
        let options = lists::pointers::<pg_sys::DefElem>(vacuum.options);
        let is_analyze = |option: *mut pg_sys::DefElem| {
            CStr::from_ptr((*option).defname) == c"analyze" && pg_sys::defGetBoolean(option)
        };
        if vacuum.is_vacuumcmd && !options.into_iter().any(is_analyze) {
            return None;
        }
        let relations = lists::pointers::<pg_sys::VacuumRelation>(vacuum.rels).into_iter();
        let named = relations.map(|relation| (*relation).relation).filter(|name| !name.is_null());
        Some(Statement::Scan(named.map(|name| range_target(name)).collect()))
    }
}

/// What an `ALTER TABLE`, or one of a materialized view, may mean for views.
///
/// # Safety
/// A complete node of the statement being run.
unsafe fn decode_alter_table(alter: &pg_sys::AlterTableStmt) -> Option<Statement> {
    // SAFETY: per contract.
    unsafe {
        if alter.objtype == ObjectType::OBJECT_MATVIEW {
            let target = range_target(alter.relation);
            let commands = lists::pointers::<pg_sys::AlterTableCmd>(alter.cmds);
            return Some(match commands.iter().any(|command| sets_options(&**command)) {
                true => Statement::SetOptions(target),
                false => Statement::Alter(target),
            });
        }
        let child = decode_new_child(alter);
        match decode_persistence(alter) {
            Some(is_logged) => {
                let table = range_target(alter.relation);
                Some(Statement::SetLogged { table, is_logged, child })
            }
            None => child.map(Statement::NewChild),
        }
    }
}

/// Whether a command of ALTER sets or resets options.
pub(super) fn sets_options(command: &pg_sys::AlterTableCmd) -> bool {
    matches!(command.subtype, AlterTableType::AT_SetRelOptions | AlterTableType::AT_ResetRelOptions)
}

/// The table that becomes a child.
///
/// # Safety
/// A complete node of the statement being run.
unsafe fn decode_new_child(alter: &pg_sys::AlterTableStmt) -> Option<Child> {
    // SAFETY: commands of ALTER TABLE; the kind of a command decides what `def` is.
    unsafe {
        let commands = lists::pointers::<pg_sys::AlterTableCmd>(alter.cmds);
        commands.into_iter().find_map(|command| match (*command).subtype {
            AlterTableType::AT_AttachPartition => {
                let attach = (*command).def.cast::<pg_sys::PartitionCmd>();
                Some(Child { name: (*attach).name })
            }
            AlterTableType::AT_AddInherit => Some(Child { name: alter.relation }),
            _ => None,
        })
    }
}

/// Whether the table is to be logged.
///
/// # Safety
/// A complete node of the statement being run.
unsafe fn decode_persistence(alter: &pg_sys::AlterTableStmt) -> Option<bool> {
    // SAFETY: commands of ALTER TABLE.
    unsafe {
        let commands = lists::pointers::<pg_sys::AlterTableCmd>(alter.cmds);
        commands.into_iter().find_map(|command| match (*command).subtype {
            AlterTableType::AT_SetLogged => Some(true),
            AlterTableType::AT_SetUnLogged => Some(false),
            _ => None,
        })
    }
}
