//! From a query in PostgreSQL's catalogs to a plan.
//!
//! PostgreSQL parses, analyses and rewrites; what is not supported is refused on the analysed tree,
//! which still knows positions; the rest is deparsed to canonical SQL for the planner. Errors that
//! PostgreSQL itself raises (a relation that has just gone, a lock timeout) are raised, not returned.

mod by_settings;
mod evaluator;
mod host;
mod native;
mod ordering;
mod recursion;
mod refuse;
mod relations;
mod rows;
mod statistics;
mod temporal;
mod text_rules;
mod unsupported;
mod volatility;
mod zoned;

pub use host::HostExpressions;
pub use statistics::{Figures, Known};

use crate::errors::{Error, ErrorKind};
use crate::pg::catalog::{self, Attribute, ReplicaIdentity};
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::mirror::Mirror;
use crate::pg::relation::{numbers_in_child, TABLE_OID};
use crate::pg::types::Spellings;
use crate::pg::{
    changes_table, code, dependencies, inval, mirror, registry, types, view_settings,
    view_statistics, xact, zones,
};
use crate::rewrite::conversions;
use crate::rewrite::cuts::Terms;
use crate::rewrite::recursive_references;
use crate::rewrite::tree::{self, Tree};
use pgrx::pg_sys::{self, Oid};
use plan::types::{Scalar, Type};
use plan::{ViewPlan, Zone};
use rules::security_label::{Label, Retention, Storage};
use rules::view_settings::ViewSettings;
use std::collections::{BTreeMap, BTreeSet};

/// A base table, or an incremental view, as a plan reads it; index = `plan::SourceId`.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTable {
    /// The table (for partitioned and inheritance parents: the parent).
    pub table: RelationId,
    /// Whether it is read without its children.
    pub only: bool,
    /// Whether it is an incremental view, whose changes come from its dataflow.
    pub is_view: bool,
    /// Attribute numbers of the plan's source columns, in their order; that of `tableoid` is negative.
    pub attnums: Vec<i16>,
    /// Their types.
    pub types: Vec<Type>,
}

impl SourceTable {
    /// The present time, as a plan reads it.
    fn clock(types: Vec<Type>) -> SourceTable {
        let table = RelationId::NONE;
        SourceTable { table, only: false, is_view: false, attnums: vec![], types }
    }

    /// Attribute numbers and types of the plan's source columns.
    pub fn columns(&self) -> Vec<(i16, Type)> {
        self.attnums.iter().copied().zip(self.types.iter().copied()).collect()
    }

    /// The tables whose rows it has, the descendants with the table. Takes the locks a reader takes.
    pub fn tables(&self) -> Vec<Oid> {
        statistics::tables(self.table.into(), self.only)
    }

    /// Whether it is no table but the present time.
    pub fn is_clock(&self) -> bool {
        self.table == RelationId::NONE
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CompiledQuery {
    pub plan: ViewPlan,
    /// Parallel to `plan.sources`.
    pub sources: Vec<SourceTable>,
    /// Canonical SQL, from which the plan was made.
    pub canonical: String,
    /// Plain views and incremental views the query reads through: a change of one of them may
    /// change the plan.
    pub views: Vec<RelationId>,
    /// What the canonical SQL leaves to the host.
    pub host: HostExpressions,
    /// What was known of its tables when it was planned.
    pub figures: Figures,
    /// Whether the query itself, run by PostgreSQL, might have no end or cannot be run at all.
    pub is_beyond_sql: bool,
}

/// A query as the planner reads it.
struct Canonical {
    text: String,
    /// The plain and incremental views that it names.
    views: Vec<RelationId>,
    host: HostExpressions,
    /// The view's time zone, if its rules are known.
    zone: Option<Zone>,
    /// Whether something in it only the planner understands.
    is_beyond_sql: bool,
}

/// Everything the worker needs to maintain one view.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledView {
    pub relid: ViewId,
    pub query: CompiledQuery,
    /// The view's owner, with whose rights base tables are read.
    pub owner: Oid,
    /// The composite types that columns and results of the host consist of, and their columns.
    pub composites: BTreeMap<RelationId, Vec<Attribute>>,
    /// The functions of users that are called, and what tells one definition of each from the next; so for how values
    /// of users' types are written, and how texts are searched.
    pub functions: BTreeMap<u32, String>,
    /// Where its changes are kept, if they are.
    pub changes: Option<KeptChanges>,
    /// Whether who listens is notified of its changes.
    pub notify: bool,
    /// The table that has its rows, too.
    pub mirror: Option<Mirror>,
    /// When it was last planned by what was known then, be it by CREATE or REFRESH, as PostgreSQL counts time; 0 if that is
    /// not on record.
    pub planned_at: i64,
}

/// Where the changes of a view are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptChanges {
    pub table: RelationId,
    pub retention: Retention,
}

/// Derives the plan of an incremental view from its rewrite rule, by the statistics that are on record. Needs a transaction
/// with an active snapshot.
pub fn compile_view(view: ViewId) -> Result<CompiledView, Error> {
    let noted = view_statistics::of(view);
    let compiled = compile_view_by(view, Known::noted(noted.as_ref()))?;
    Ok(CompiledView { planned_at: noted.map_or(0, |noted| noted.at), ..compiled })
}

/// The same by other statistics.
pub fn compile_view_by(view: ViewId, known: Known) -> Result<CompiledView, Error> {
    let Label { settings, options } = registry::label(view.into())?;
    let changes = options.changes.map(|retention| match changes_table::of(view) {
        Some(table) => Ok(KeptChanges { table, retention }),
        None => Err(Error::no_changes_table(&catalog::qualified_name(view))),
    });
    let compiled = compile_view_with(view, &settings, known)?;
    let mirror = match options.storage {
        Storage::View => None,
        Storage::Table => Some(mirror_of(view, &compiled.query.plan)?),
    };
    Ok(CompiledView { changes: changes.transpose()?, notify: options.notify, mirror, ..compiled })
}

fn mirror_of(view: ViewId, plan: &ViewPlan) -> Result<Mirror, Error> {
    let table = mirror::of(view);
    let table = table.ok_or_else(|| Error::no_mirror(&catalog::qualified_name(view)))?;
    let key = key_of(plan).ok_or_else(|| Error::no_key(&catalog::qualified_name(view)))?;
    let mirror = mirror::with_key(table, &key);
    mirror.ok_or_else(|| {
        let names: Vec<_> = key.iter().map(|place| plan.columns[*place].name.clone()).collect();
        Error::mirror_without_key(&catalog::qualified_name(table), &names.join(", "))
    })
}

/// Whether all values of a type are short.
fn is_short(ty: Type) -> bool {
    use Scalar::{Bytea, Char, Host, Numeric, Text, Varchar};
    !matches!(ty, Type::Array(_) | Type::Scalar(Text | Varchar | Char | Bytea | Numeric | Host(_)))
}

/// The columns by which rows of a view are told apart, one at least and no more than an index can have.
pub fn key_of(plan: &ViewPlan) -> Option<Vec<usize>> {
    match plan.key.as_deref()? {
        // There is one row at most, so that any column does: one that is short, if there is one.
        [] => {
            let short = plan.columns.iter().position(|column| is_short(column.ty));
            (!plan.columns.is_empty()).then(|| vec![short.unwrap_or(0)])
        }
        key => (key.len() <= pg_sys::INDEX_MAX_KEYS as usize).then(|| key.to_vec()),
    }
}

/// The same for a view that is to have these settings.
pub fn compile_view_with(
    view: ViewId,
    settings: &ViewSettings,
    known: Known,
) -> Result<CompiledView, Error> {
    xact::without_waiting(|| compile_rule(view, settings, known))
}

fn compile_rule(
    relid: ViewId,
    settings: &ViewSettings,
    known: Known,
) -> Result<CompiledView, Error> {
    let (tree, owner) = view_tree(relid.into())?;
    let query = xact::as_user(owner, || compile_query(&tree, settings, known, &|_| -1))?;
    let columns = query.sources.iter().flat_map(|source| source.types.iter().copied());
    let mut composites = BTreeMap::new();
    for ty in columns.chain(query.host.values().map(|expression| expression.ty)) {
        if let Scalar::Host(ty) = ty.base() {
            types::collect_composites(Oid::from(ty.id), &mut composites);
        }
    }
    let mut functions = dependencies::functions_called(
        [relid.into()].into_iter().chain(query.views.iter().copied()),
    );
    let frames = query.host.values().filter_map(|expression| code::read(&expression.code));
    let mut spellings = Spellings::default();
    let (mut searches, mut has_types, mut names_tables) = (false, false, false);
    let mut names = BTreeSet::new();
    for (frame, _) in frames {
        searches |= frame.searches;
        has_types |= !frame.types.is_empty();
        names_tables |= frame.names_tables;
        if !frame.names_tables {
            names.extend(frame.names);
        }
        for ty in frame.types {
            types::collect_composites(ty, &mut composites);
            types::collect_spellings(ty, &mut spellings);
        }
    }
    // Also where a type has none yet: it may get one.
    if has_types {
        functions.insert(inval::SPELLINGS, format!("{spellings:?}"));
        functions.extend(spellings.casts);
    }
    if searches {
        functions.insert(inval::SEARCHES, types::version_of_searches());
    }
    if !names.is_empty() {
        functions.insert(inval::NAMES, types::version_of_names(&names));
        if names.contains(&pg_sys::REGROLEOID.to_u32()) {
            functions.insert(inval::NAMES_OF_ROLES, String::new());
        }
    }
    if names_tables {
        functions.insert(inval::NAMES_OF_TABLES, names_of_tables(&query.sources));
    }
    Ok(CompiledView {
        relid,
        query,
        owner,
        composites,
        functions,
        changes: None,
        notify: false,
        mirror: None,
        planned_at: 0,
    })
}

/// The names of the tables of which a query reads `tableoid`.
fn names_of_tables(sources: &[SourceTable]) -> String {
    let is_named = |source: &&SourceTable| source.attnums.contains(&TABLE_OID);
    let tables: Vec<Oid> = sources.iter().filter(is_named).flat_map(SourceTable::tables).collect();
    // As they are written where the rest of the query is evaluated.
    xact::as_user(catalog::current_user(), || types::names_of_relations(&tables))
}

/// Plans an analysed query as the current user, who is to own the view, which is to have these settings, by what is `known`.
/// `locate` finds the byte offset at which the source text names a table, for error positions; -1 if unknown.
pub fn compile_query(
    tree: &Tree,
    settings: &ViewSettings,
    known: Known,
    locate: &dyn Fn(&str) -> i32,
) -> Result<CompiledQuery, Error> {
    let Canonical { text: canonical, mut views, host, zone, is_beyond_sql } =
        translate(tree, settings, locate)?;
    let catalog = relations::PgCatalog::new(host, zone, known);
    let planned = planner::plan_view(&canonical, &catalog);
    let plan = planned.map_err(|error| {
        let location = error.relation.as_deref().map_or(-1, locate);
        Error::from(error).at(location)
    })?;
    let plan = plan.compared_as(catalog::current_user().to_u32());
    let sources = plan.sources.iter().map(|s| catalog.source(s)).collect::<Result<_, _>>()?;
    let figures = catalog.figures(&plan.sources);
    views.sort();
    views.dedup();
    let host = catalog.host_expressions();
    let is_beyond_sql = is_beyond_sql || plan.root.is_beyond_sql();
    Ok(CompiledQuery { plan, sources, canonical, views, host, figures, is_beyond_sql })
}

/// Whether a query, or that of an incremental view that it reads, run by PostgreSQL, might have no end or cannot be run at all.
pub fn is_beyond_sql(query: &CompiledQuery) -> bool {
    query.is_beyond_sql || beneath(query).iter().any(|view| view.query.is_beyond_sql)
}

/// The incremental views that a query reads, and those that these read, as far as they can be planned.
pub fn beneath(query: &CompiledQuery) -> Vec<CompiledView> {
    let mut unseen = query.views.clone();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    while let Some(view) = unseen.pop() {
        if seen.insert(view) && registry::contains(view.into()) {
            let view = compile_view(Oid::from(view).into());
            unseen.extend(view.iter().flat_map(|view| view.query.views.iter().copied()));
            found.extend(view);
        }
    }
    found
}

/// An analysed query, checked and deparsed, with the current user's rights, for a view with these settings. Incremental
/// views that it names are names to it.
fn translate(
    tree: &Tree,
    settings: &ViewSettings,
    locate: &dyn Fn(&str) -> i32,
) -> Result<Canonical, Error> {
    if !catalog::encoding_is_utf8() {
        return Err(Error::unsupported("incremental views need a database with encoding UTF8"));
    }
    // They decide what is constant, and how.
    view_settings::with(settings, || translate_under(tree, settings, locate))
}

fn translate_under(
    tree: &Tree,
    settings: &ViewSettings,
    locate: &dyn Fn(&str) -> i32,
) -> Result<Canonical, Error> {
    let tree = tree
        .rewritten()
        .without_names_of_joins()
        .with_names_of_owners()
        .with_texts_of_documents()
        .with_plain_groups()
        .with_plain_json_aggregates()
        .with_own_window_functions()
        .with_compared_columns()
        .with_rows_of_columns()
        .with_generated_columns()
        .with_table_oids()
        .with_dependent_groups()
        .with_sorted_sets()
        .with_scalar_tables()
        .folded()
        .with_frames_of_numbers()
        .with_reaches_of_frames();
    let tree = tree.with_orders_of_distinct(&ordering::shows_collations).with_cast_operands();
    let tree = tree.with_computed_comparisons(&refuse::knows_comparison);
    let cuts = refuse::check(&tree, locate)?;
    let (views, is_beyond_sql) = (views_of(&tree), recursive_references::are_in(&tree));
    let names_tables = conversions::names_tables(&tree);
    let terms = Terms { caller: catalog::current_user(), settings, names_tables };
    let (tree, host) = host::separate(&tree, &cuts, &terms)?;
    let text = tree.without_collate().with_explicit_casts().with_offsets_in_microseconds();
    let text = text.with_known_syntax().with_fences().deparse(true);
    Ok(Canonical { text, views, host, zone: zones::of_settings(), is_beyond_sql })
}

/// Checks what may change without the plan changing: the owner's SELECT privilege on the columns
/// read, row-level security, and that old rows of every base table carry the columns needed.
/// Needs a transaction with an active snapshot.
pub fn check_sources(view: &CompiledView) -> Result<(), Error> {
    xact::without_waiting(|| check_rights_and_identity(view))
}

fn check_rights_and_identity(view: &CompiledView) -> Result<(), Error> {
    check_privileges(view.relid.into())?;
    match view.query.sources.iter().flat_map(lacking_identity).next() {
        Some(table) => Err(identity_error(table)),
        None => Ok(()),
    }
}

/// The tables, descendants included, that do not write enough of their old rows for the columns
/// that a source needs.
pub fn lacking_identity(source: &SourceTable) -> Vec<Oid> {
    if source.is_clock() {
        return Vec::new();
    }
    let stores_rows = |t: &Oid| catalog::relation_kind(*t) == Some(pg_sys::RELKIND_RELATION);
    let suffices = |table: &Oid| match catalog::replica_identity(*table) {
        None | Some(ReplicaIdentity::Full) => true,
        Some(ReplicaIdentity::Nothing) => false,
        Some(ReplicaIdentity::Key(key)) => covers(*table, &key, source),
    };
    let tables = source.tables().into_iter();
    tables.filter(stores_rows).filter(|table| !suffices(table)).collect()
}

/// Whether a table's key has all columns a source needs; a descendant may number them differently.
fn covers(table: Oid, key: &[i16], source: &SourceTable) -> bool {
    let is_in_key = |number: &i16| *number == TABLE_OID || key.contains(number);
    if table == source.table.into() {
        return source.attnums.iter().all(is_in_key);
    }
    let names = |oid| catalog::describe_relation(oid).map_or(Vec::new(), |r| r.attributes);
    let (parent, child) = (names(source.table.into()), names(table));
    numbers_in_child(source.attnums.iter().copied(), &parent, &child)
        .is_some_and(|numbers| numbers.iter().all(is_in_key))
}

/// What to tell about a table whose replica identity does not suffice.
pub fn identity_error(table: Oid) -> Error {
    let name = catalog::relation_name(table);
    Error::replica_identity(&name, &catalog::qualified_name(table), ".")
}

/// The query of a view and its owner.
fn view_tree(relid: Oid) -> Result<(Tree, Oid), Error> {
    let gone = || {
        let message = format!("materialized view with OID {} does not exist", relid.to_u32());
        Error::new(ErrorKind::UndefinedObject, message)
    };
    let info = catalog::describe_relation(relid).ok_or_else(gone)?;
    let tree = Tree::of_view(relid).ok_or_else(gone)?;
    Ok((tree, info.owner))
}

fn check_privileges(relid: Oid) -> Result<(), Error> {
    let (tree, owner) = view_tree(relid)?;
    xact::as_user(owner, || {
        let tree = tree.rewritten();
        refuse::row_security(&tree)?;
        let Some((query, entry)) = unreadable(&tree) else { return Ok(()) };
        let hint = format!("Grant the right to {}.", catalog::reader(query, entry));
        Err(denied(entry.relid).hint(hint))
    })
}

/// Fails, as reading would, unless the current user may read all that a query reads.
pub fn require_rights(tree: &Tree) -> Result<(), Error> {
    unreadable(&tree.rewritten()).map_or(Ok(()), |(_, entry)| Err(denied(entry.relid)))
}

/// What of a rewritten query the current user, or who else is to read it, may not read, or not all columns needed.
fn unreadable(tree: &Tree) -> Option<(&pg_sys::Query, &pg_sys::RangeTblEntry)> {
    tree::reads(tree).find(|(query, entry)| !catalog::may_read(query, entry))
}

/// In PostgreSQL's words.
fn denied(relation: Oid) -> Error {
    let kind = match catalog::relation_kind(relation) {
        Some(pg_sys::RELKIND_VIEW) => "view",
        Some(pg_sys::RELKIND_MATVIEW) => "materialized view",
        _ => "table",
    };
    let message = format!("permission denied for {kind} {}", catalog::relation_name(relation));
    Error::new(ErrorKind::InsufficientPrivilege, message)
}

/// Plain views that were expanded, and materialized views that are read.
fn views_of(tree: &Tree) -> Vec<RelationId> {
    tree::reads(tree)
        .map(|(_, entry)| entry.relid)
        .filter(|oid| {
            matches!(
                catalog::relation_kind(*oid),
                Some(pg_sys::RELKIND_VIEW | pg_sys::RELKIND_MATVIEW)
            )
        })
        .map(RelationId::from)
        .collect()
}
