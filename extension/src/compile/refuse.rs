//! Refuses, on the analysed and rewritten tree, what incremental views do not support, and finds what of the rest
//! PostgreSQL is to evaluate.
//!
//! Every refusal names the construct and, where the tree knows it, its position. What this walk lets
//! through the planner may still refuse, without a position.

use super::evaluator::{check_kind, check_native, check_node, judge, Evaluator};
use super::unsupported::unsupported;
use super::volatility::check_function;
use super::{native, ordering, recursion, rows, temporal, text_rules, zoned};
use crate::errors::{Error, ErrorKind};
use crate::pg::catalog;
use crate::pg::registry;
use crate::pg::types;
use crate::rewrite::cuts::Cuts;
use crate::rewrite::parts;
use crate::rewrite::returned;
use crate::rewrite::tree::{self, Node, Place, RowComparison, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid, RTEKind};
use plan::types::Type;
use planner::sql::{self, MAX_CHAIN};
use std::cell::RefCell;

/// Checks a whole tree; answers where it is to be cut.
pub fn check<'t>(tree: &'t Tree, locate: &'t dyn Fn(&str) -> i32) -> Result<Cuts<'t>, Error> {
    row_security(tree)?;
    let walk = Walk {
        locate,
        cuts: RefCell::default(),
        queries: RefCell::default(),
        keys: RefCell::default(),
        writes_rows: rows::are_known(tree),
        has_consumers: tree
            .queries()
            .into_iter()
            .any(|query| ordering::looks_at_rows(query, false) || ordering::has_array(query)),
    };
    walk.check_query(tree.query(), false)?;
    Ok(walk.cuts.take())
}

/// Refuses tables whose row-level security restricts whoever reads them through the view.
pub fn row_security(tree: &Tree) -> Result<(), Error> {
    let mut reads = tree::reads(tree);
    let Some((_, entry)) = reads.find(|(query, entry)| catalog::is_row_secured(query, entry))
    else {
        return Ok(());
    };
    let name = catalog::relation_name(entry.relid);
    Err(unsupported(format!("row-level security of table \"{name}\""), -1)
        .hint("Let a role own the view to whom the policies of the table do not apply."))
}

/// The walk over queries and what they read.
struct Walk<'t> {
    locate: &'t dyn Fn(&str) -> i32,
    cuts: RefCell<Cuts<'t>>,
    /// The queries around, innermost last, and what they are grouped by.
    queries: RefCell<Vec<&'t pg_sys::Query>>,
    keys: RefCell<Vec<Vec<Place<'t>>>>,
    /// Whether it is known what rows without a type are made of, and so how they are written.
    writes_rows: bool,
    /// Whether there is anything that looks at the order of rows.
    has_consumers: bool,
}

impl<'t> Walk<'t> {
    /// A query, at the order of whose rows somebody may look.
    fn check_query(&self, query: &'t pg_sys::Query, in_order: bool) -> Result<(), Error> {
        self.queries.borrow_mut().push(query);
        self.keys.borrow_mut().push(tree::grouping_keys(query));
        let result = self.check_parts(query, in_order);
        self.keys.borrow_mut().pop();
        self.queries.borrow_mut().pop();
        result
    }

    fn check_parts(&self, query: &'t pg_sys::Query, in_order: bool) -> Result<(), Error> {
        check_clauses(query)?;
        self.check_row_marks(query)?;
        self.cuts.borrow_mut().collated.extend(ordering::check(query, in_order)?);
        for cte in tree::ctes(query) {
            let in_order = self.has_consumers;
            parts::query_of_cte(cte).map_or(Ok(()), |q| self.check_query(q, in_order))?;
        }
        let in_order = ordering::looks_at_rows(query, in_order);
        let entries = tree::range_table(query);
        for place in parts::from(query).into_iter().chain(parts::set_operation(query)) {
            self.check_from(place, &entries, in_order)?;
        }
        // Those that are intervals become numbers.
        let offsets = parts::offsets_of_frames(query).into_iter();
        let mut offsets = offsets.filter(|place| tree::interval(*place).is_none());
        offsets.try_for_each(|place| self.check_expression(place))?;
        check_set_operation(query, &entries)?;
        let others = [parts::having(query), parts::limit(query), parts::offset(query)];
        let others = others.into_iter().flatten();
        let mut expressions = parts::outputs(query).into_iter().chain(others);
        expressions.try_for_each(|place| self.check_expression(place))
    }

    fn check_row_marks(&self, query: &'t pg_sys::Query) -> Result<(), Error> {
        if query.rowMarks.is_null() && !query.hasForUpdate {
            return Ok(());
        }
        let entry = tree::first_locked(query);
        let at = entry.map_or(-1, |entry| self.at(entry));
        Err(unsupported("FOR UPDATE or FOR SHARE", at)
            .hint("Leave it out: a view locks no rows of its tables."))
    }

    /// An expression, and the queries in it.
    fn check_expression(&self, place: Place<'t>) -> Result<(), Error> {
        match place.node() {
            Node::SubLink(link) => return self.check_sublink(place, link),
            Node::Query(_) | Node::RangeTblRef(_) => return Ok(()),
            Node::Container | Node::FromExpr(_) | Node::JoinExpr(_) => {}
            node @ Node::WindowFunc(call) if call.winagg => {
                check_node(place, node)?;
                if !native::is_native_window_aggregate(place, call) {
                    self.cuts.borrow_mut().aggregates.insert(place);
                }
            }
            node => match self.judge(place, node)? {
                Evaluator::Planner => {
                    if let Some(moved) = zoned::shifted(node) {
                        return self.check_expression(moved);
                    }
                }
                Evaluator::PostgresAsSet => return self.check_set(place, &[]),
                Evaluator::Postgres => {
                    self.cuts.borrow_mut().expressions.insert(place);
                    return self.check_below_cut(place);
                }
            },
        }
        if let Node::Aggref(aggregate) = place.node() {
            let mut cuts = self.cuts.borrow_mut();
            let is_native = native::is_native_aggregate(aggregate);
            let collated = ordering::check_aggregate(aggregate)?;
            // One that is not native sorts what WITHIN GROUP orders itself.
            if is_native || aggregate.aggkind as u8 == b'n' {
                cuts.collated.extend(collated);
            }
            if !is_native {
                cuts.aggregates.insert(place);
            }
        }
        let children = place.children();
        if matches!(place.node(), Node::Expr(NodeTag::T_BoolExpr)) && children.len() > MAX_CHAIN {
            // The planner would say the same, of a text that is long by then.
            return Err(Error::from(sql::chain_too_long()).at(place.location()));
        }
        children.into_iter().try_for_each(|child| self.check_expression(child))
    }

    /// Who computes one expression node, without what is below it.
    fn judge(&self, place: Place<'t>, node: Node<'t>) -> Result<Evaluator, Error> {
        match self.writes_rows && rows::writes(place) {
            true => Ok(Evaluator::Postgres),
            false => judge(place, node),
        }
    }

    /// What is below an expression that PostgreSQL evaluates: it takes from the query what only that can compute.
    fn check_below_cut(&self, place: Place<'t>) -> Result<(), Error> {
        for child in place.children() {
            let is_key =
                || self.keys.borrow().last().is_some_and(|k| k.iter().any(|k| k.equals(child)));
            let node = child.node();
            if tree::is_leaf(node) || is_key() {
                self.check_expression(child)?;
                continue;
            }
            if !matches!(node, Node::Container) {
                self.judge(child, node)?;
            }
            self.check_below_cut(child)?;
        }
        Ok(())
    }

    /// A subquery and what is compared with its rows.
    fn check_sublink(&self, place: Place<'t>, link: &'t pg_sys::SubLink) -> Result<(), Error> {
        use pg_sys::SubLinkType as Kind;
        judge(place, place.node())?;
        parts::test(link).map_or(Ok(()), |p| self.check_comparison(p))?;
        let Some(query) = parts::query_of_link(link) else { return Ok(()) };
        if link.subLinkType == Kind::ARRAY_SUBLINK {
            check_array_of(place, query)?;
        }
        self.check_query(query, link.subLinkType == Kind::ARRAY_SUBLINK)
    }

    /// The comparison of a value, or of one for each column, with the rows of a subquery, which the planner has to
    /// know.
    fn check_comparison(&self, place: Place<'t>) -> Result<(), Error> {
        match place.node() {
            Node::Expr(NodeTag::T_BoolExpr) => {
                place.operands().into_iter().try_for_each(|child| self.check_comparison(child))
            }
            Node::OpExpr(call) => {
                check_node(place, place.node())?;
                native::check(place, place.node())?;
                if !self.compares_by_collation(
                    place.operands().first(),
                    call.opno,
                    call.inputcollid,
                ) {
                    text_rules::check(place, place.node())?;
                }
                place.operands().into_iter().try_for_each(|child| self.check_expression(child))
            }
            _ => match tree::row_comparison(place) {
                Some(columns) => columns.into_iter().try_for_each(|column| {
                    let RowComparison { sides, operator, collation } = column;
                    if !native::compares(operator, sides) {
                        return check_kind(NodeTag::T_RowCompareExpr, place.location());
                    }
                    self.compares_by_collation(sides.first(), operator, collation);
                    self.check_expression(sides[0])
                }),
                None => self.check_expression(place),
            },
        }
    }

    /// Whether a collation decides a comparison of a value with others, of which the planner then is told.
    fn compares_by_collation(&self, value: Option<&Place<'t>>, operator: Oid, input: Oid) -> bool {
        let order =
            value.and_then(|v| Some((*v, text_rules::order_of_comparison(operator, *v, input)?)));
        self.cuts.borrow_mut().collated.extend(order);
        order.is_some()
    }

    /// FROM, at the order of whose rows somebody may look, WHERE and join conditions, or the tree of set operations.
    fn check_from(
        &self,
        place: Place<'t>,
        entries: &[&'t pg_sys::RangeTblEntry],
        in_order: bool,
    ) -> Result<(), Error> {
        match place.node() {
            Node::FromExpr(from) => {
                let items = parts::items(from);
                let in_order = in_order && items.len() == 1;
                items.into_iter().try_for_each(|p| self.check_from(p, entries, in_order))?;
                let conditions = parts::conditions(from).map_or(Vec::new(), tree::conjuncts);
                conditions.into_iter().try_for_each(|p| self.check_condition(p))
            }
            Node::JoinExpr(join) => {
                let sides = parts::sides(join);
                sides.into_iter().try_for_each(|p| self.check_from(p, entries, false))?;
                let Some(quals) = parts::join_condition(join) else { return Ok(()) };
                match join.usingClause.is_null() {
                    true => self.check_expression(quals)?,
                    false => self.check_equalities(quals)?,
                }
                self.check_using(join, quals, entries)
            }
            Node::SetOperation(operation) => {
                let sides = parts::sides_of_set(operation);
                sides.into_iter().try_for_each(|p| self.check_from(p, entries, false))
            }
            Node::RangeTblRef(reference) => tree::entry(entries, reference.rtindex)
                .map_or(Ok(()), |entry| self.check_entry(entry, in_order)),
            _ => Ok(()),
        }
    }

    /// The comparisons that USING stands for. For the planner columns are merged as values of one type, so PostgreSQL compares
    /// those of two types that only a time zone relates.
    fn check_equalities(&self, quals: Place<'t>) -> Result<(), Error> {
        tree::conjuncts(quals).into_iter().try_for_each(|equality| {
            if !zoned::is_native(equality, equality.node()) {
                return self.check_expression(equality);
            }
            self.cuts.borrow_mut().expressions.insert(equality);
            self.check_below_cut(equality)
        })
    }

    /// A join by USING whose columns PostgreSQL has to compare is one by ON for the planner. Then each merged column must be
    /// one of a side.
    fn check_using(
        &self,
        join: &pg_sys::JoinExpr,
        quals: Place<'t>,
        entries: &[&'t pg_sys::RangeTblEntry],
    ) -> Result<(), Error> {
        if join.usingClause.is_null() || !self.has_cut(quals) {
            return Ok(());
        }
        let merges = tree::entry(entries, join.rtindex).is_some_and(tree::has_columns_of_its_own);
        if !merges {
            return Ok(());
        }
        let place = quals.operands().first().map_or(Oid::INVALID, |side| side.expr_type());
        let construct = format!("USING of columns of type {}", types::type_name(place));
        let at = tree::joined_entry(join, entries).map_or(-1, |entry| self.at(entry));
        Err(unsupported(construct, at).hint("Write the comparison of the columns, after ON."))
    }

    /// Whether a part of an expression is to be evaluated by PostgreSQL.
    fn has_cut(&self, place: Place<'t>) -> bool {
        self.cuts.borrow().expressions.contains(&place)
            || place.children().into_iter().any(|child| self.has_cut(child))
    }

    /// A condition of WHERE.
    fn check_condition(&self, place: Place<'t>) -> Result<(), Error> {
        let Some((end, value)) = temporal::end_of(place)? else {
            return self.check_expression(place);
        };
        self.cuts.borrow_mut().temporal.insert(place, (end, value));
        self.check_expression(value)
    }

    fn check_entry(&self, entry: &'t pg_sys::RangeTblEntry, in_order: bool) -> Result<(), Error> {
        let name = tree::entry_name(entry);
        if !entry.tablesample.is_null() {
            return Err(unsupported(format!("TABLESAMPLE (\"{name}\")"), self.at(entry))
                .detail("Which rows are drawn depends on where they are stored, and so on UPDATE and VACUUM FULL, with REPEATABLE, too.")
                .hint("Use a condition on the key, such as hashint4(id) % 10 = 0."));
        }
        match entry.rtekind {
            RTEKind::RTE_RELATION => self.check_relation(entry),
            RTEKind::RTE_SUBQUERY => {
                parts::query_of_entry(entry).map_or(Ok(()), |q| self.check_query(q, in_order))
            }
            RTEKind::RTE_VALUES => {
                let mut values = parts::values(entry).into_iter();
                values.try_for_each(|place| self.check_expression(place))
            }
            RTEKind::RTE_FUNCTION if recursion::check(entry, &self.queries.borrow())? => Ok(()),
            RTEKind::RTE_FUNCTION => {
                let mut functions = returned::functions(entry).into_iter();
                functions.try_for_each(|(call, columns)| self.check_table_function(call, &columns))
            }
            RTEKind::RTE_TABLEFUNC => returned::document(entry)
                .map_or(Ok(()), |(document, columns)| self.check_document(document, &columns)),
            RTEKind::RTE_NAMEDTUPLESTORE => {
                Err(unsupported(format!("a transition table (\"{name}\")"), -1))
            }
            _ => Ok(()),
        }
    }

    /// A function in FROM, and the types of its columns if it returns rows.
    fn check_table_function(&self, place: Place<'t>, columns: &[Oid]) -> Result<(), Error> {
        match place.node() {
            Node::FuncExpr(call) if !native::is_cast(call) => {
                if returned::has_lost_all_columns(place) {
                    let construct = "a function of rows whose type has lost all its columns";
                    return Err(unsupported(construct, place.location())
                        .hint("Return a type that has columns."));
                }
                if !native::depends_on_input_only(call.funcid, columns) {
                    check_node(place, place.node())?;
                }
                if check_native(place, place.node()).is_err() || !columns.is_empty() {
                    return self.check_set(place, columns);
                }
            }
            Node::NullIfExpr(_) | Node::MinMaxExpr(_) | Node::SQLValueFunction(_) => {}
            Node::Expr(NodeTag::T_CoalesceExpr | NodeTag::T_XmlExpr) => {}
            // The planner's parser knows no casts there.
            node => {
                check_node(place, node)?;
                return self.check_set(place, columns);
            }
        }
        check_native(place, place.node())?;
        self.check_expression(place)
    }

    /// XMLTABLE or JSON_TABLE, and the types of its columns, which are made of texts.
    fn check_document(&self, place: Place<'t>, columns: &[Oid]) -> Result<(), Error> {
        let is_known = |ty: &&Oid| types::is_input_known(types::base_type(**ty));
        if let Some(ty) = columns.iter().find(|ty| !is_known(ty)) {
            check_function(types::io_functions(*ty).1, &[], place.location())?;
        }
        self.check_set(place, columns)
    }

    /// A call whose results PostgreSQL computes.
    fn check_set(&self, place: Place<'t>, columns: &[Oid]) -> Result<(), Error> {
        let types = match columns {
            [] => vec![place.expr_type()],
            columns => columns.to_vec(),
        };
        // Those of PostgreSQL return arrays of equal dimensions, which can be put together and taken apart.
        let is_array = types.iter().any(|ty| types::is_array(*ty));
        let is_known =
            matches!(place.node(), Node::FuncExpr(call) if catalog::is_builtin(call.funcid));
        if is_array && !(is_known && columns.is_empty()) {
            let (construct, hint) = match place.node() {
                Node::Container => (
                    "a column of a document that is an array",
                    "Take the column as json or text, and make an array of it in the select list.",
                ),
                _ => (
                    "a set-returning function of arrays",
                    "Arrays of different sizes cannot be passed on together: return texts, and cast them.",
                ),
            };
            return Err(unsupported(construct, place.location()).hint(hint));
        }
        let has_arrays = |ty: &&Oid| types::is_array(**ty) || types::array_of(**ty).is_some();
        if let Some(ty) = types.iter().find(|ty| !has_arrays(ty)) {
            let construct = format!("a set-returning function of type {}", types::type_name(*ty));
            return Err(unsupported(construct, place.location()).hint(
                "There are no arrays of that type, in which its results could be passed on.",
            ));
        }
        {
            let cuts = &mut *self.cuts.borrow_mut();
            let calls = if columns.is_empty() { &mut cuts.sets } else { &mut cuts.tables };
            calls.insert(place);
        }
        self.check_below_cut(place)
    }

    fn check_relation(&self, entry: &pg_sys::RangeTblEntry) -> Result<(), Error> {
        let check = || {
            check_base(entry.relid)?;
            if !entry.inh {
                return Ok(());
            }
            let descendants = catalog::with_descendants(entry.relid).into_iter();
            descendants.filter(|d| *d != entry.relid).try_for_each(check_base)
        };
        check().map_err(|error| error.at(self.at(entry)))
    }

    /// Where the source text names an entry of a range table.
    fn at(&self, entry: &pg_sys::RangeTblEntry) -> i32 {
        (self.locate)(&tree::entry_name(entry))
    }
}

/// Whether the planner can compare a value, or one for each column, with the rows of a subquery.
pub fn knows_comparison(place: Place<'_>) -> bool {
    match place.node() {
        Node::Expr(NodeTag::T_BoolExpr) => place.operands().into_iter().all(knows_comparison),
        Node::OpExpr(call) => {
            let collated = |value| {
                text_rules::order_of_comparison(call.opno, value, call.inputcollid).is_some()
            };
            let is_undetermined = |error: &Error| error.kind == ErrorKind::IndeterminateCollation;
            let text = text_rules::check(place, place.node());
            native::check(place, place.node()).is_ok()
                && (place.operands().first().copied().is_some_and(collated)
                    || text.as_ref().err().is_none_or(is_undetermined))
        }
        _ => tree::row_comparison(place).is_some_and(|columns| {
            let is_known =
                |column: RowComparison<'_>| native::compares(column.operator, column.sides);
            columns.into_iter().all(is_known)
        }),
    }
}

/// Of values of a domain over arrays PostgreSQL makes an array of such values, not one of more dimensions.
fn check_array_of(place: Place<'_>, query: &pg_sys::Query) -> Result<(), Error> {
    let targets = tree::targets(query);
    let Some(value) = targets.first().and_then(|target| parts::expression(target)) else {
        return Ok(());
    };
    let is_array = value.planner_type().is_some_and(|ty| ty.element().is_some());
    if is_array && value.expr_type() != place.expr_type() {
        let construct = format!("ARRAY of values of type {}", types::type_name(value.expr_type()));
        return Err(unsupported(construct, value.location()).hint("Cast them to the array type."));
    }
    Ok(())
}

/// The outputs of a set operation must have the collations of its columns where these decide what is equal.
fn check_set_operation(
    query: &pg_sys::Query,
    entries: &[&pg_sys::RangeTblEntry],
) -> Result<(), Error> {
    let Some(Node::SetOperation(operation)) = parts::set_operation(query).map(Place::node) else {
        return Ok(());
    };
    let columns = tree::set_columns(operation);
    if columns.is_empty() && counts_rows(operation) {
        let error = unsupported("INTERSECT or EXCEPT without columns", -1);
        return Err(error.hint("Select at least one column."));
    }
    let wanted: Vec<_> =
        columns.into_iter().map(|(ty, collation)| types::planner_type(ty, collation)).collect();
    for branch in entries.iter().filter_map(|entry| parts::query_of_entry(entry)) {
        let targets = tree::targets(branch).into_iter().filter(|target| !target.resjunk);
        let outputs = targets.filter_map(parts::expression);
        for (output, wanted) in outputs.zip(&wanted) {
            let found = output.planner_type();
            let is_host = |ty: &Option<Type>| ty.is_some_and(Type::is_host);
            if found != *wanted && (is_host(&found) || is_host(wanted)) {
                let construct = "a set operation of values with different collations";
                return Err(unsupported(construct, output.location())
                    .hint("Add COLLATE to the outputs that have another collation."));
            }
        }
    }
    Ok(())
}

/// Whether there is an INTERSECT or EXCEPT in a tree of set operations.
fn counts_rows(operation: &pg_sys::SetOperationStmt) -> bool {
    let is_within = |side: Place<'_>| match side.node() {
        Node::SetOperation(operation) => counts_rows(operation),
        _ => false,
    };
    operation.op != pg_sys::SetOperation::SETOP_UNION
        || parts::sides_of_set(operation).into_iter().any(is_within)
}

/// A grouping key that another output is, too: the text of the query does not say which of them is in which set.
fn equal_keys(query: &pg_sys::Query) -> Option<Place<'_>> {
    let keys = tree::grouping_outputs(query);
    let has_twin =
        |(number, key): &(usize, &Place<'_>)| keys[..*number].iter().any(|k| k.equals(**key));
    keys.iter().enumerate().find(has_twin).map(|(_, key)| *key)
}

/// Where a query's first output column is.
fn start_of_targets(query: &pg_sys::Query) -> i32 {
    parts::outputs(query).first().map_or(-1, |t| t.location())
}

/// Whether changes of a relation can be read from the WAL.
fn check_base(relation: Oid) -> Result<(), Error> {
    let Some(info) = catalog::describe_relation(relation) else { return Ok(()) };
    let refuse = |what: &str| unsupported(format!("{what} \"{}\"", info.name), -1);
    if catalog::is_builtin(relation) {
        return Err(refuse("system table").hint("Its changes cannot be followed: use a view."));
    }
    match info.kind {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE => {}
        pg_sys::RELKIND_MATVIEW if registry::contains(relation) => {}
        pg_sys::RELKIND_MATVIEW => {
            return Err(refuse("materialized view")
                .hint("Use a view, or an incremental view, in its place."))
        }
        pg_sys::RELKIND_FOREIGN_TABLE => {
            return Err(refuse("foreign table")
                .hint("Its changes are not in the WAL of this server: use a view."))
        }
        pg_sys::RELKIND_SEQUENCE => {
            return Err(refuse("sequence").hint("Its changes cannot be followed: use a view."))
        }
        _ => return Err(refuse("relation")),
    }
    match info.persistence {
        pg_sys::RELPERSISTENCE_TEMP => Err(refuse("temporary table")),
        pg_sys::RELPERSISTENCE_UNLOGGED => Err(refuse("unlogged table")
            .hint("Its changes are not in the WAL. Run ALTER TABLE ... SET LOGGED.")),
        _ => Ok(()),
    }
}

/// The clauses that a query either has or has not.
fn check_clauses(query: &pg_sys::Query) -> Result<(), Error> {
    let first_target = || start_of_targets(query);
    let has = |list: *mut pg_sys::List| !list.is_null();
    if query.commandType != pg_sys::CmdType::CMD_SELECT {
        return Err(unsupported("a data-modifying statement", -1));
    }
    if let Some(twin) = has(query.groupingSets).then(|| equal_keys(query)).flatten() {
        return Err(unsupported("an expression twice in grouping sets", twin.location())
            .hint("Select and group by it once."));
    }
    if has(query.constraintDeps) {
        return Err(unsupported("a column that is not in GROUP BY", first_target())
            .detail(
                "Its type has no equality, its table has children, or the query has grouping sets.",
            )
            .hint("Aggregate in a subquery, and join that with the table."));
    }
    Ok(())
}
