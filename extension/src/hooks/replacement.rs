//! `CREATE OR REPLACE INCREMENTAL VIEW`, and `CREATE OR REPLACE VIEW … WITH (incremental)`, as the creation of a materialized view.
//!
//! The grammar takes both for a plain view: the word in front of VIEW stands for UNLOGGED there ([`super::keywords`]).

use crate::errors::{Error, ErrorKind};
use crate::hooks::statement::{option_index, Creation};
use crate::hooks::utility::Call;
use crate::pg::definition::{self, Column};
use crate::pg::{lists, report};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::CStr;

/// A `CREATE OR REPLACE VIEW` about to run.
#[derive(Clone, Copy)]
pub struct Replacement {
    pub(super) statement: *mut pg_sys::ViewStmt,
}

impl Replacement {
    /// Whether its options say that it is to be incremental.
    pub fn asks_to_be_incremental(&self) -> bool {
        // SAFETY: options are DefElem nodes of the statement being run.
        unsafe {
            let options = (*self.statement).options;
            option_index(options, c"incremental").is_some_and(|index| {
                pg_sys::defGetBoolean(lists::pointers::<pg_sys::DefElem>(options)[index])
            })
        }
    }

    /// Whether it has a check option, which is for what can be written.
    pub fn has_check_option(&self) -> bool {
        // SAFETY: the statement being run.
        let option = unsafe { (*self.statement).withCheckOption };
        option != pg_sys::ViewCheckOption::NO_CHECK_OPTION
    }
}

impl Replacement {
    /// Refuses what would not last.
    pub fn require_persistence(&self, written: bool) -> Result<(), Error> {
        // SAFETY: the statement being run names a relation.
        match unsafe { (*(*self.statement).view).relpersistence } as u8 {
            pg_sys::RELPERSISTENCE_TEMP => {
                Err(Error::unsupported("an incremental view cannot be temporary"))
            }
            pg_sys::RELPERSISTENCE_UNLOGGED if !written => {
                Err(Error::unsupported("an incremental view cannot be unlogged"))
            }
            _ => Ok(()),
        }
    }
}

impl Call {
    /// Has the statement be the creation of a materialized view, analysed as PostgreSQL would, from here on.
    pub fn become_creation(&mut self, replacement: Replacement) -> Result<Creation, Error> {
        // SAFETY: a raw tree is made of copies of the parts of another; the analysis of a utility statement answers a query
        // that has the statement.
        unsafe {
            let raw = new_node::<pg_sys::RawStmt>(NodeTag::T_RawStmt);
            (*raw).stmt = creation_of(&*replacement.statement).cast();
            ((*raw).stmt_location, (*raw).stmt_len) = self.extent();
            let (source, none) = (self.source_text(), std::ptr::null_mut());
            let query = report::keeping_position(|| {
                pg_sys::parse_analyze_fixedparams(raw, source, std::ptr::null(), 0, none)
            });
            let node = (*query).utilityStmt;
            if node.is_null() || (*node).type_ != NodeTag::T_CreateTableAsStmt {
                return Err(Error::internal("the statement does not create a view"));
            }
            self.replace_statement(node);
            Ok(Creation { statement: node.cast() })
        }
    }

    /// Fails where the statement of that name, which writes, cannot be run.
    pub fn require_writable(&self, statement: &CStr) {
        // SAFETY: looks at the state of the transaction.
        unsafe { pg_sys::PreventCommandIfReadOnly(statement.as_ptr()) }
    }

    /// Changes a view as the statement says, between its event triggers.
    pub fn between_event_triggers(
        &mut self,
        view: Oid,
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        // SAFETY: the statement being run. What `work` borrows is not looked at after an error.
        unsafe {
            let statement = self.own_statement();
            let work = std::panic::AssertUnwindSafe(work);
            self.pass_on(|| {
                definition::between_event_triggers(statement, view, || {
                    let work = work;
                    (work.0)()
                })
            })
        }
    }
}

/// The raw statement that creates a materialized view of that name, with these columns, options and query.
///
/// # Safety
/// A complete raw tree.
unsafe fn creation_of(view: &pg_sys::ViewStmt) -> *mut pg_sys::CreateTableAsStmt {
    // SAFETY: copies of nodes of the statement, in new ones.
    unsafe {
        let rel = pg_sys::copyObjectImpl(view.view.cast()).cast::<pg_sys::RangeVar>();
        (*rel).relpersistence = pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char;
        let into = new_node::<pg_sys::IntoClause>(NodeTag::T_IntoClause);
        (*into).rel = rel;
        (*into).colNames = pg_sys::copyObjectImpl(view.aliases.cast()).cast();
        (*into).options = pg_sys::copyObjectImpl(view.options.cast()).cast();
        (*into).onCommit = pg_sys::OnCommitAction::ONCOMMIT_NOOP;
        let creation = new_node::<pg_sys::CreateTableAsStmt>(NodeTag::T_CreateTableAsStmt);
        (*creation).query = pg_sys::copyObjectImpl(view.query.cast()).cast();
        (*creation).into = into;
        (*creation).objtype = pg_sys::ObjectType::OBJECT_MATVIEW;
        creation
    }
}

/// A new node of a kind, all zero.
///
/// # Safety
/// The type of that kind's nodes.
pub(super) unsafe fn new_node<T>(tag: NodeTag) -> *mut T {
    // SAFETY: zeroed memory of that size; every node begins with its tag.
    unsafe {
        let node = pg_sys::palloc0(size_of::<T>()).cast::<T>();
        node.cast::<NodeTag>().write(tag);
        node
    }
}

impl Creation {
    /// The columns, by the names that are given behind that of the view, or else by those of the query.
    pub fn columns(&self) -> Result<Vec<Column>, Error> {
        // SAFETY: the analysed statement that is being run; names are strings.
        unsafe {
            let names = lists::pointers::<pg_sys::Node>((*(*self.statement).into).colNames);
            let mut names = names.into_iter().map(|name| super::statement::string(name));
            let targets = lists::pointers::<pg_sys::TargetEntry>(self.query().targetList);
            let columns = targets.into_iter().filter(|target| !(**target).resjunk).map(|target| {
                let expression = (*target).expr.cast::<pg_sys::Node>();
                let own = || super::statement::text((*target).resname);
                Column {
                    name: names.next().unwrap_or_else(own),
                    ty: pg_sys::exprType(expression),
                    typmod: pg_sys::exprTypmod(expression),
                    collation: pg_sys::exprCollation(expression),
                }
            });
            let columns = columns.collect();
            match names.next() {
                None => Ok(columns),
                Some(_) => {
                    Err(Error::new(ErrorKind::Syntax, "too many column names were specified"))
                }
            }
        }
    }

    /// Gives an existing view, which has these columns, the query.
    pub fn store_query_of(&self, view: Oid) {
        // SAFETY: the analysed query of the statement.
        unsafe { definition::store_query(view, self.query()) }
    }

    /// Gives it the storage parameters that are named.
    pub fn set_options_of(&self, view: Oid) {
        // SAFETY: options of the statement.
        unsafe {
            let options = (*(*self.statement).into).options;
            if !options.is_null() {
                definition::set_options(view, options);
            }
        }
    }
}
