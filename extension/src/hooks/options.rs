//! Options of statements that are ours: they are taken out of the tree before PostgreSQL looks at it.

use crate::hooks::statement::{sets_options, Creation};
use crate::hooks::utility::Call;
use crate::pg::lists;
use crate::pg::strings::owned;
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::CStr;

/// An option that was taken out.
#[derive(Clone, Debug)]
pub struct Taken {
    pub name: String,
    /// As text; `None` if the option is to be reset.
    pub value: Option<String>,
}

impl Call {
    /// Removes a boolean option from a creation's `WITH (…)`, on a copy if the tree is not ours to
    /// change. `None` if it is not there.
    pub fn take_option(&mut self, creation: &mut Creation, name: &CStr) -> Option<bool> {
        let position = creation.option_index(name)?;
        // SAFETY: nodes of the statement being run.
        unsafe {
            let into = self.own_creation(creation);
            let options = lists::pointers::<pg_sys::DefElem>((*into).options);
            let value = pg_sys::defGetBoolean(options[position]);
            let index = i32::try_from(position).unwrap_or(0);
            (*into).options = pg_sys::list_delete_nth_cell((*into).options, index);
            Some(value)
        }
    }

    /// Removes options from a creation's `WITH (…)`, on a copy.
    pub fn take_options(
        &mut self,
        creation: &mut Creation,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<Taken> {
        // SAFETY: nodes of the statement being run; the copy's lists are ours to change.
        unsafe {
            let into = self.own_creation(creation);
            let (taken, left) = split((*into).options, is_wanted, false);
            (*into).options = left;
            taken
        }
    }

    /// Removes options from the lists of an `ALTER … SET (…)` or `RESET (…)`, on a copy. What is left may be nothing.
    pub fn take_changed_options(&mut self, is_wanted: impl Fn(&str) -> bool) -> Vec<Taken> {
        // SAFETY: the statement is an ALTER (only `Statement::SetOptions` leads here); the copy's lists are ours to change.
        unsafe {
            let alter = self.own_statement().cast::<pg_sys::AlterTableStmt>();
            let (mut all, mut commands) = (Vec::new(), std::ptr::null_mut());
            for command in lists::pointers::<pg_sys::AlterTableCmd>((*alter).cmds) {
                if sets_options(&*command) {
                    let resets = (*command).subtype == pg_sys::AlterTableType::AT_ResetRelOptions;
                    let (taken, left) = split((*command).def.cast(), &is_wanted, resets);
                    all.extend(taken);
                    (*command).def = left.cast();
                    if left.is_null() {
                        continue;
                    }
                }
                commands = pg_sys::lappend(commands, command.cast());
            }
            (*alter).cmds = commands;
            all
        }
    }

    /// A creation's clauses, in a copy of the statement.
    ///
    /// # Safety
    /// Within the hook, before the statement runs.
    unsafe fn own_creation(&mut self, creation: &mut Creation) -> *mut pg_sys::IntoClause {
        // SAFETY: nodes of the statement being run; a copy has the same shape.
        unsafe {
            let mut node = self.own_statement();
            if (*node).type_ == NodeTag::T_ExplainStmt {
                let query = (*node.cast::<pg_sys::ExplainStmt>()).query;
                node = (*query.cast::<pg_sys::Query>()).utilityStmt;
            }
            *creation = Creation { statement: node.cast() };
            (*creation.statement).into
        }
    }
}

/// The options of a list that are wanted, and a list of the others.
///
/// # Safety
/// A list of `DefElem`.
unsafe fn split(
    list: *mut pg_sys::List,
    is_wanted: impl Fn(&str) -> bool,
    resets: bool,
) -> (Vec<Taken>, *mut pg_sys::List) {
    let (mut taken, mut left) = (Vec::new(), std::ptr::null_mut());
    // SAFETY: options have names; a new list.
    unsafe {
        for option in lists::pointers::<pg_sys::DefElem>(list) {
            let name = owned((*option).defname);
            if !(*option).defnamespace.is_null() || !is_wanted(&name) {
                left = pg_sys::lappend(left, option.cast());
                continue;
            }
            // An option without a value is on.
            let value = || match (*option).arg.is_null() {
                true => "true".to_owned(),
                false => owned(pg_sys::defGetString(option)),
            };
            let value = (!resets).then(value);
            taken.push(Taken { name, value });
        }
    }
    (taken, left)
}
