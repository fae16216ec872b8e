//! What a dataflow is made from, as a text that is the same as long as that is.

use crate::compile::CompiledView;
use crate::pg::ids::RelationId;
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{catalog, xact};
use crate::worker::view::Attachment;
use rules::row_hash::Keys;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the dataflow of a view is made from, as the catalogs say now; nothing if that cannot be told.
pub(super) fn made_from_of(attachment: &Attachment) -> Option<String> {
    xact::try_run(|| made_from(&attachment.compiled, &attachment.members)).ok()
}

thread_local! {
    /// What is the same as long as the process is there.
    static OF_SERVER: OnceCell<String> = const { OnceCell::new() };
}

/// The release of the server, and the order of texts. Needs a transaction with a snapshot.
fn server() -> String {
    format!("{} {:?}", pgrx::pg_sys::PG_VERSION_NUM, catalog::collation_versions())
}

/// Stands for all that a dataflow is made from: the query and what it calls, the tables and the files that their rows are in, the
/// server, the order of texts. Needs a transaction.
pub(super) fn made_from(compiled: &CompiledView, members: &[BTreeSet<RelationId>]) -> String {
    let mut text = format!("{compiled:?} {members:?} {}", env!("CARGO_PKG_VERSION"));
    let of_server = OF_SERVER.with(|of_server| of_server.get_or_init(server).clone());
    let _ = write!(text, " {of_server}");
    for table in members.iter().flatten() {
        let file = with_relation(*table, Lock::AccessShare, |table| table.file());
        let _ = write!(text, " {file:?}");
    }
    format!("{:032x}", Keys([1, 2]).hash(text.as_bytes()))
}
