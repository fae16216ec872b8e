//! Relations that are defined by one another, or by themselves more than once.
//!
//! ```sql
//! WITH RECURSIVE
//!     even(n) AS (SELECT 0 UNION SELECT o.n + 1 FROM eddy.recursive('odd') AS o(n int)),
//!     odd(n) AS (SELECT e.n + 1 FROM even e UNION SELECT …)
//! ```
//!
//! PostgreSQL's parser takes no forward reference that closes a circle, and no second reference of a CTE to itself.
//! `eddy.recursive('name') AS alias(column type, …)` is a reference to a CTE of the list that it sees as a function: it may
//! be anywhere. Binding makes a `Get` of it, before or after what it refers to is bound. At the end of the list its CTEs
//! are put in order; those of a circle become one recursion, the *members* of which are told apart by a column:
//!
//! ```text
//! LetRec "even and odd" UNION LeastFixpoint      columns: member, even's, odd's; those of other members are NULL
//!   base   what refers to no member
//!   step   what does; a member is  Map (its columns) Filter [member = its number] Get "even and odd"
//! Let even = Map … Filter [member = 0] Get "even and odd"
//! Let odd  = Map … Filter [member = 1] Get "even and odd"
//! ```
//!
//! What that means: let F take a set of rows for each member to the sets that the members' queries make of them. Members
//! are sets (UNION, or SELECT DISTINCT), and `choose_recursion` lets their queries only be made of what is monotone:
//! whichever rows are added, none goes. Then F has a least fixpoint (Knaster, Tarski), which is the union of F(∅), F(F(∅)), …
//! if that comes to an end: the rows that have a derivation, and no others. The order of members, and which of them
//! has a base, do not matter. For one member that refers to itself once it is what PostgreSQL computes.

use super::super::refuse::{invalid, unsupported_hint};
use super::super::types::bind_type;
use super::binder::Binder;
use super::frame::{Binding, Entry, State};
use super::row_order::Sorted;
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Rel};
use plan::expr::Expr;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{LocalId, Recursion};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, TableFactor};
use std::collections::BTreeSet;

const MEMBER: Type = Type::Scalar(Scalar::Int4);

/// The name of the CTE that an item of FROM refers to as `eddy.recursive('name')`, and its alias.
pub(super) fn reference(factor: &TableFactor) -> Option<(&[FunctionArg], &ast::TableAlias)> {
    let (name, args, alias) = match factor {
        TableFactor::Table { name, args: Some(args), alias, .. } => (name, &args.args, alias),
        TableFactor::Function { name, args, alias, .. } => (name, args, alias),
        _ => return None,
    };
    let parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str()));
    let is_named = parts.eq([Some("eddy"), Some("recursive")]);
    Some((args.as_slice(), alias.as_ref()?)).filter(|_| is_named)
}

impl Binder<'_> {
    /// A reference to a CTE that may not be bound yet.
    pub(super) fn bind_recursive_reference(
        &mut self,
        args: &[FunctionArg],
        alias: &ast::TableAlias,
    ) -> Result<Sorted, PlanError> {
        let name = name_of(args)?;
        let Some((depth, index)) = self.find_member(&name) else {
            let message =
                format!("eddy.recursive(): there is no query \"{name}\" in WITH RECURSIVE");
            return Err(invalid(message));
        };
        let columns = alias.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let id = match &self.frames[depth].ctes[index].awaited {
            Some((id, known)) => {
                check_columns(&name, known, &columns)?;
                *id
            }
            None => {
                let id = self.new_local(&name, &columns);
                self.frames[depth].ctes[index].awaited = Some((id, columns.clone()));
                id
            }
        };
        Ok(Sorted::unordered(Rel { columns, node: Node::Get(id) }))
    }

    /// Where in the lists in scope a CTE is that may be referred to before it is bound.
    fn find_member(&self, name: &str) -> Option<(usize, usize)> {
        let frames = self.frames.iter().enumerate().rev();
        frames.filter(|(_, frame)| frame.recursive).find_map(|(depth, frame)| {
            let index = frame.ctes.iter().position(|cte| cte.name == name)?;
            Some((depth, index))
        })
    }

    /// At the end of the innermost list: binds what is referred to and has not been bound, and makes recursions of what
    /// refers to itself. Answers the query over the list, which may have such references, too.
    pub(super) fn close_circles(&mut self, body: Rel) -> Result<Rel, PlanError> {
        let depth = self.frames.len() - 1;
        let is_next = |cte: &Entry| cte.awaited.is_some() && matches!(cte.state, State::Unbound);
        while let Some(index) = self.frames[depth].ctes.iter().position(is_next) {
            self.bind_cte(depth, index)?;
        }
        if self.frames[depth].ctes.iter().all(|cte| cte.awaited.is_none()) {
            return Ok(body);
        }
        let mut body = body;
        let mut bindings = std::mem::take(&mut self.frames[depth].bindings);
        let mut beyond_sql = BTreeSet::new();
        for cte in &self.frames[depth].ctes {
            let Some((awaited, expected)) = &cte.awaited else { continue };
            let State::Bound { id, columns, arity, .. } = &cte.state else {
                return Err(invalid(format!("query \"{}\" was not bound", cte.name)));
            };
            check_columns(&cte.name, &columns[..*arity], expected)?;
            let own = bindings.iter().find(|binding| binding.id() == *id);
            if own.is_some_and(|own| own.refers_to(*awaited)) {
                beyond_sql.insert(*id);
            }
            let found = (*id, columns.as_slice());
            body = with_id(body, *awaited, found);
            let named = |rel: Rel| with_id(rel, *awaited, found);
            bindings = bindings.into_iter().map(|binding| binding.map(&named)).collect();
        }
        for circle in circles(bindings) {
            let is_circle = circle.len() > 1 || beyond_sql.contains(&circle[0].id());
            let closed = if is_circle { self.close(circle)? } else { circle };
            self.frames[depth].bindings.extend(closed);
        }
        Ok(body)
    }

    /// One recursion in place of bindings that refer to one another, and what each of them is then.
    fn close(&mut self, circle: Vec<Binding>) -> Result<Vec<Binding>, PlanError> {
        let members = circle.into_iter().map(|binding| self.member(binding));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> =
            members.iter().map(|member| self.locals[member.id.0].name.as_str()).collect();
        let name = names.join(" and ");
        let columns = Circle::columns(&members);
        let circle = Circle { id: self.new_local(&name, &columns), columns, members };
        let (mut base, mut step) = (Vec::new(), Vec::new());
        for (number, member) in circle.members.iter().enumerate() {
            for arm in &member.arms {
                let refers = |other: &Member| arm.count_gets(other.id) > 0;
                let arms = match circle.members.iter().any(refers) {
                    true => &mut step,
                    false => &mut base,
                };
                arms.push(circle.numbered(number, circle.with_rows(arm.clone())));
            }
        }
        let [base, step] = [base, step].map(|arms| circle.union(arms));
        let form = Some(Recursion::LeastFixpoint);
        let mut bindings = vec![Binding::Recursive { id: circle.id, all: false, form, base, step }];
        for (number, member) in circle.members.iter().enumerate() {
            let rows = circle.rows_of(number, &member.columns);
            // Equal values may differ in form: then the recursion has each form.
            let value = if rows.is_canonical() { rows } else { rows.distinct() };
            bindings.push(Binding::Value { id: member.id, value });
        }
        Ok(bindings)
    }

    fn member(&self, binding: Binding) -> Result<Member, PlanError> {
        let (id, columns, arms) = match binding {
            Binding::Recursive { id, all: false, base, step, .. } => {
                (id, base.columns.clone(), [arms_of(base), arms_of(step)].concat())
            }
            Binding::Value { id, value: Rel { columns, node: Node::Distinct { input } } } => {
                (id, columns, arms_of(*input))
            }
            Binding::Recursive { id, .. } | Binding::Value { id, .. } => {
                let name = &self.locals[id.0].name;
                let what = format!("query \"{name}\", which refers to itself, without UNION is");
                return Err(unsupported_hint(what, "Write UNION, or SELECT DISTINCT."));
            }
        };
        Ok(Member { id, columns, arms })
    }
}

/// A CTE of a circle: the set of all rows of its arms.
struct Member {
    id: LocalId,
    columns: Vec<Column>,
    arms: Vec<Rel>,
}

/// What are the rows of all members.
struct Circle {
    id: LocalId,
    columns: Vec<Column>,
    members: Vec<Member>,
}

impl Circle {
    /// The number of the member, if there are several, and the columns of each.
    fn columns(members: &[Member]) -> Vec<Column> {
        let number = Column { name: "member".into(), ty: MEMBER, typmod: -1, nullable: false };
        let number = (members.len() > 1).then_some(number);
        let nullable = |column: &Column| Column { nullable: true, ..column.clone() };
        let columns = members.iter().flat_map(|member| member.columns.iter().map(nullable));
        number.into_iter().chain(columns).collect()
    }

    /// Where the columns of a member begin.
    fn start(&self, number: usize) -> usize {
        let before = &self.members[..number];
        let width: usize = before.iter().map(|member| member.columns.len()).sum();
        width + usize::from(self.members.len() > 1)
    }

    /// Rows of a member as rows of all.
    fn numbered(&self, number: usize, rows: Rel) -> Rel {
        let start = self.start(number);
        let width = rows.arity();
        let output = |(place, column): (usize, &Column)| match place.checked_sub(start) {
            Some(own) if own < width => Expr::Column(own),
            _ if place == 0 && column.ty == MEMBER && self.members.len() > 1 => {
                Expr::Literal(Datum::Int4(number as i32), MEMBER)
            }
            _ => Expr::Literal(Datum::Null, column.ty),
        };
        let outputs = self.columns.iter().enumerate().map(output).collect();
        rows.map(outputs, self.columns.clone())
    }

    /// The rows of a member, under the names that a reference has for its columns.
    fn rows_of(&self, number: usize, columns: &[Column]) -> Rel {
        let all = Rel { columns: self.columns.clone(), node: Node::Get(self.id) };
        let rows = match self.members.len() {
            1 => all,
            _ => {
                let own = Expr::Literal(Datum::Int4(number as i32), MEMBER);
                all.filter(vec![Predicate::equal(Expr::Column(0), own, MEMBER)])
            }
        };
        let start = self.start(number);
        let outputs = (start..start + columns.len()).map(Expr::Column).collect();
        rows.map(outputs, columns.to_vec())
    }

    /// A relation with the rows of members in place of references to them.
    fn with_rows(&self, rel: Rel) -> Rel {
        let number = match rel.node {
            Node::Get(id) => self.members.iter().position(|member| member.id == id),
            _ => None,
        };
        match number {
            Some(number) => self.rows_of(number, &rel.columns),
            None => rel.map_children(&mut |child| self.with_rows(child)),
        }
    }

    fn union(&self, mut arms: Vec<Rel>) -> Rel {
        let columns = self.columns.clone();
        match arms.len() {
            0 => Rel { columns, node: Node::Constant { rows: vec![] } },
            1 => arms.remove(0),
            _ => Rel::union(arms, columns),
        }
    }
}

impl Binding {
    fn id(&self) -> LocalId {
        match self {
            Binding::Value { id, .. } | Binding::Recursive { id, .. } => *id,
        }
    }

    fn map(self, f: &dyn Fn(Rel) -> Rel) -> Binding {
        match self {
            Binding::Value { id, value } => Binding::Value { id, value: f(value) },
            Binding::Recursive { id, all, form, base, step } => {
                Binding::Recursive { id, all, form, base: f(base), step: f(step) }
            }
        }
    }

    fn refers_to(&self, id: LocalId) -> bool {
        match self {
            Binding::Value { value, .. } => value.count_gets(id) > 0,
            Binding::Recursive { base, step, .. } => base.count_gets(id) + step.count_gets(id) > 0,
        }
    }
}

/// Bindings, those together that refer to one another, each behind those that it refers to.
fn circles(bindings: Vec<Binding>) -> Vec<Vec<Binding>> {
    let count = bindings.len();
    let ids: Vec<LocalId> = bindings.iter().map(Binding::id).collect();
    // Whether one refers to the other, directly or not.
    let mut reaches: Vec<Vec<bool>> = bindings
        .iter()
        .map(|binding| ids.iter().map(|id| binding.refers_to(*id)).collect())
        .collect();
    for over in 0..count {
        let beyond = reaches[over].clone();
        for row in reaches.iter_mut().filter(|row| row[over]) {
            row.iter_mut().zip(&beyond).for_each(|(reached, more)| *reached |= more);
        }
    }
    let mut left: Vec<Option<Binding>> = bindings.into_iter().map(Some).collect();
    let mut circles = Vec::new();
    while let Some(next) = (0..count).find(|&index| {
        let is_ready =
            |other: usize| !reaches[index][other] || left[other].is_none() || reaches[other][index];
        left[index].is_some() && (0..count).all(is_ready)
    }) {
        let is_in =
            |other: &usize| *other == next || (reaches[next][*other] && reaches[*other][next]);
        circles.push((0..count).filter(is_in).filter_map(|index| left[index].take()).collect());
    }
    circles
}

/// The relations whose rows, without duplicates, are those of a relation.
fn arms_of(rel: Rel) -> Vec<Rel> {
    match rel.node {
        Node::Distinct { input } => arms_of(*input),
        Node::Union { inputs } => inputs.into_iter().flat_map(arms_of).collect(),
        _ => vec![rel],
    }
}

/// A relation with another local in the place of one, of which it has the first columns.
fn with_id(rel: Rel, awaited: LocalId, (id, columns): (LocalId, &[Column])) -> Rel {
    if !matches!(rel.node, Node::Get(other) if other == awaited) {
        return rel.map_children(&mut |child| with_id(child, awaited, (id, columns)));
    }
    let get = Rel { columns: columns.to_vec(), node: Node::Get(id) };
    get.map((0..rel.columns.len()).map(Expr::Column).collect(), rel.columns)
}

/// The name that is the only argument.
fn name_of(args: &[FunctionArg]) -> Result<String, PlanError> {
    let mut name = match args {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(name))] => Some(name),
        _ => None,
    };
    while let Some(ast::Expr::Cast { expr, .. } | ast::Expr::Nested(expr)) = name {
        name = Some(expr);
    }
    match name {
        Some(ast::Expr::Value(value)) => value.value.clone().into_string(),
        _ => None,
    }
    .ok_or_else(|| {
        invalid("the argument of eddy.recursive() must be the name of a query in WITH RECURSIVE")
    })
}

/// A column as a reference declares it.
fn column(definition: &ast::TableAliasColumnDef) -> Result<Column, PlanError> {
    let name = definition.name.value.clone();
    let Some(ty) = &definition.data_type else {
        return Err(invalid(format!("column \"{name}\" of a recursive reference has no type")));
    };
    let (ty, typmod) = bind_type(ty)?;
    Ok(Column { name, ty, typmod, nullable: true })
}

/// Whether references to a query say the types that its columns have.
fn check_columns(name: &str, found: &[Column], expected: &[Column]) -> Result<(), PlanError> {
    if found.iter().map(|column| column.ty).eq(expected.iter().map(|column| column.ty)) {
        return Ok(());
    }
    Err(invalid(format!("eddy.recursive(): query \"{name}\" has columns of other types")))
}
