//! `COPY view TO`: as the query that reads the view, which waits for it as every other does, whatever the server allows.

use crate::hooks::utility::Call;
use crate::pg::lists;
use pgrx::pg_sys::{self, NodeTag};

use super::replacement::new_node;

impl Call {
    /// Has `COPY relation (columns) TO` be `COPY (SELECT columns FROM relation) TO`, on a copy of the tree.
    pub fn copy_query(&mut self) {
        // SAFETY: the statement is such a COPY (only `Statement::Copy` leads here); new nodes get parts of the copy.
        unsafe {
            let copy = self.own_statement().cast::<pg_sys::CopyStmt>();
            let names = lists::pointers::<pg_sys::Node>((*copy).attlist);
            // With the name of the relation, a name is that of a column and nothing else.
            let relation = new_node::<pg_sys::String>(NodeTag::T_String);
            (*relation).sval = (*(*copy).relation).relname;
            let every = [new_node::<pg_sys::Node>(NodeTag::T_A_Star)];
            let names = if names.is_empty() { every.to_vec() } else { names };
            let select = new_node::<pg_sys::SelectStmt>(NodeTag::T_SelectStmt);
            for name in names {
                let column = new_node::<pg_sys::ColumnRef>(NodeTag::T_ColumnRef);
                let fields = pg_sys::lappend(std::ptr::null_mut(), relation.cast());
                (*column).fields = pg_sys::lappend(fields, name.cast());
                (*column).location = -1;
                let target = new_node::<pg_sys::ResTarget>(NodeTag::T_ResTarget);
                (*target).val = column.cast();
                (*target).location = -1;
                (*select).targetList = pg_sys::lappend((*select).targetList, target.cast());
            }
            (*select).fromClause = pg_sys::lappend(std::ptr::null_mut(), (*copy).relation.cast());
            (*copy).query = select.cast();
            (*copy).relation = std::ptr::null_mut();
            (*copy).attlist = std::ptr::null_mut();
        }
    }
}
