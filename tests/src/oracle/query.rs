//! Random queries without recursion: projections, filters, joins, groups, DISTINCT, set operations, CTEs,
//! subqueries in FROM and VALUES.

use super::expression::{expression, predicate, risky, Field};
use super::ordered;
use super::recursion;
use super::schema::Table;
use super::subquery;
use super::types::{Type, ALL};
use crate::dice::Dice;

/// A query and the columns it returns, named o1, o2, …
#[derive(Clone, Debug)]
pub struct Query {
    pub sql: String,
    pub kinds: Vec<Type>,
}

/// Something that FROM can name: a base table or an earlier view.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<(String, Type)>,
}

impl Relation {
    pub fn of_table(table: &Table) -> Relation {
        let columns = table.columns.iter().map(|c| (c.name.clone(), c.kind)).collect();
        Relation { name: table.name.clone(), columns }
    }

    pub fn of_view(name: &str, query: &Query) -> Relation {
        let columns = query.kinds.iter().enumerate();
        let columns = columns.map(|(i, kind)| (format!("o{}", i + 1), *kind)).collect();
        Relation { name: name.into(), columns }
    }

    pub fn fields(&self, alias: &str) -> Vec<Field> {
        self.columns
            .iter()
            .map(|(name, kind)| Field { reference: format!("{alias}.{name}"), kind: *kind })
            .collect()
    }
}

/// A query over `relations`, of which the first is the graph.
pub fn random_query(dice: &mut Dice, relations: &[Relation]) -> Query {
    match dice.index(23) {
        19..=22 => ordered::random_query(dice, relations),
        14..=18 => subquery::random_query(dice, relations),
        0 | 1 => select(dice, relations, None, true),
        2 => grouped(dice, relations),
        3 => grouped(dice, relations),
        4 => distinct(dice, relations),
        5 => set_operation(dice, relations),
        6 => nested(dice, relations),
        7 => with_values(dice, relations),
        _ => recursion::random_query(dice, relations),
    }
}

/// FROM and WHERE with the columns in scope; at most one join that is not an equality. Joins may be outer.
pub struct Source {
    pub text: String,
    pub scope: Vec<Field>,
}

pub fn source(dice: &mut Dice, relations: &[Relation]) -> Source {
    let first = dice.pick(relations);
    let mut scope = first.fields("x1");
    let mut text = format!("FROM {} x1", first.name);
    let joins = dice.pick(&[0, 0, 0, 1, 1, 2]);
    let mut conditions = Vec::new();
    for number in 0..*joins {
        let alias = format!("x{}", number + 2);
        let relation = dice.pick(relations);
        let fields = relation.fields(&alias);
        let condition = join_condition(dice, &scope, &fields, *joins == 1);
        if dice.chance(70) {
            let join = join_kind(dice, &condition);
            text.push_str(&format!(" {join} {} {alias} ON {condition}", relation.name));
        } else {
            text.push_str(&format!(" CROSS JOIN {} {alias}", relation.name));
            conditions.push(condition);
        }
        scope.extend(fields);
    }
    if dice.chance(50) {
        conditions.push(predicate(dice, &scope, 2));
    }
    if !conditions.is_empty() {
        text.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    Source { text, scope }
}

/// PostgreSQL computes a FULL JOIN for nothing but equalities.
fn join_kind(dice: &mut Dice, condition: &str) -> &'static str {
    let is_equality = condition.split(' ').nth(1) == Some("=") && !condition.contains(" AND ");
    match dice.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]) {
        &"FULL JOIN" if !is_equality => "LEFT JOIN",
        join => join,
    }
}

/// An equality of columns of one type where there is such a pair, else any comparison.
fn join_condition(dice: &mut Dice, left: &[Field], right: &[Field], any: bool) -> String {
    let pairs: Vec<(&Field, &Field)> = left
        .iter()
        .flat_map(|l| right.iter().map(move |r| (l, r)))
        .filter(|(l, r)| l.kind == r.kind && l.kind != Type::Bool)
        .collect();
    if pairs.is_empty() {
        let (l, r) = (&left[0].reference, &right[0].reference);
        return format!("{l} IS NOT NULL AND {r} IS NULL");
    }
    let (l, r) = *dice.pick(&pairs);
    let operator = if any { *dice.pick(&["=", "=", "=", "<", "<>"]) } else { "=" };
    let mut text = format!("{} {operator} {}", l.reference, r.reference);
    if dice.chance(25) {
        let (l, r) = *dice.pick(&pairs);
        text.push_str(&format!(" AND {} IS NOT DISTINCT FROM {}", l.reference, r.reference));
    }
    text
}

/// A select list of the wanted types, or of random ones.
fn select(
    dice: &mut Dice,
    relations: &[Relation],
    wanted: Option<&[Type]>,
    may_fail: bool,
) -> Query {
    let Source { text, scope } = source(dice, relations);
    let kinds = match wanted {
        Some(kinds) => kinds.to_vec(),
        None => (0..dice.range(1, 4)).map(|_| scope[dice.index(scope.len())].kind).collect(),
    };
    let mut items: Vec<String> =
        kinds.iter().map(|kind| expression(dice, &scope, *kind, 2)).collect();
    let mut kinds = kinds;
    if may_fail && dice.chance(10) {
        items.push(format!("({})::bigint", risky(dice, &scope)));
        kinds.push(Type::Int8);
    }
    Query { sql: format!("SELECT {} {text}", named(&items)), kinds }
}

fn grouped(dice: &mut Dice, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    let mut items = Vec::new();
    let mut kinds = Vec::new();
    let keys = dice.range(0, 2) as usize;
    for _ in 0..keys {
        let kind = scope[dice.index(scope.len())].kind;
        items.push(expression(dice, &scope, kind, 1));
        kinds.push(kind);
    }
    for _ in 0..dice.range(1, 3) {
        let (item, kind) = aggregate(dice, &scope);
        items.push(item);
        kinds.push(kind);
    }
    let mut sql = format!("SELECT {} {text}", named(&items));
    if keys > 0 {
        let numbers: Vec<String> = (1..=keys).map(|n| n.to_string()).collect();
        let numbers = numbers.join(", ");
        let grouping = match dice.index(10) {
            0 => format!("ROLLUP ({numbers})"),
            1 => format!("CUBE ({numbers})"),
            2 => format!("GROUPING SETS (({numbers}), (1), ())"),
            _ => numbers,
        };
        sql.push_str(&format!(" GROUP BY {grouping}"));
    }
    if dice.chance(30) {
        let condition = dice.pick(&["count(*) > 1", "count(*) % 2 = 1", "count(*) <> 3"]);
        sql.push_str(&format!(" HAVING {condition}"));
    }
    Query { sql, kinds }
}

/// An aggregate, now and then with DISTINCT or FILTER.
pub fn aggregate(dice: &mut Dice, scope: &[Field]) -> (String, Type) {
    let (mut call, kind) = plain_aggregate(dice, scope);
    if dice.chance(20) && !call.contains("(*)") {
        call = call.replacen('(', "(DISTINCT ", 1);
    }
    if dice.chance(15) {
        call.push_str(&format!(" FILTER (WHERE {})", predicate(dice, scope, 1)));
    }
    (call, kind)
}

pub fn plain_aggregate(dice: &mut Dice, scope: &[Field]) -> (String, Type) {
    let kind = scope[dice.index(scope.len())].kind;
    match dice.index(8) {
        0 => ("count(*)".into(), Type::Int8),
        1 => (format!("count({})", expression(dice, scope, kind, 1)), Type::Int8),
        2 => {
            let name = dice.pick(&["bool_and", "bool_or"]).to_string();
            (format!("{name}({})", predicate(dice, scope, 1)), Type::Bool)
        }
        3 if kind.is_number() => {
            (format!("sum({})", expression(dice, scope, kind, 1)), sum_kind(kind))
        }
        4 if kind.is_number() => {
            let result = match kind {
                Type::Float4 | Type::Float8 => Type::Float8,
                _ => Type::Numeric,
            };
            (format!("avg({})", expression(dice, scope, kind, 1)), result)
        }
        5 if matches!(kind, Type::Int2 | Type::Int4 | Type::Int8) => {
            let name = dice.pick(&["bit_and", "bit_or", "bit_xor"]).to_string();
            (format!("{name}({})", expression(dice, scope, kind, 1)), kind)
        }
        // Of floats PostgreSQL's own last digits depend on the order of the rows.
        6 if matches!(kind, Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric) => {
            let name = dice.pick(&["var_pop", "variance", "stddev_pop", "stddev"]).to_string();
            (format!("{name}({})", expression(dice, scope, kind, 1)), Type::Numeric)
        }
        _ if kind.has_min() => {
            let name = dice.pick(&["min", "max"]).to_string();
            // min(varchar) is text.
            let result = if kind == Type::Varchar { Type::Text } else { kind };
            (format!("{name}({})", expression(dice, scope, kind, 1)), result)
        }
        _ => ("count(*)".into(), Type::Int8),
    }
}

fn sum_kind(kind: Type) -> Type {
    match kind {
        Type::Int2 | Type::Int4 => Type::Int8,
        Type::Int8 => Type::Numeric,
        other => other,
    }
}

fn distinct(dice: &mut Dice, relations: &[Relation]) -> Query {
    let query = select(dice, relations, None, false);
    Query { sql: query.sql.replacen("SELECT", "SELECT DISTINCT", 1), kinds: query.kinds }
}

fn set_operation(dice: &mut Dice, relations: &[Relation]) -> Query {
    let kinds: Vec<Type> = (0..dice.range(1, 3)).map(|_| *dice.pick(ALL)).collect();
    let branches: Vec<String> = (0..dice.range(2, 3))
        .map(|_| format!("({})", select(dice, relations, Some(&kinds), false).sql))
        .collect();
    let operator = match dice.index(8) {
        0 => " INTERSECT ",
        1 => " INTERSECT ALL ",
        2 => " EXCEPT ",
        3 => " EXCEPT ALL ",
        4 | 5 => " UNION ",
        _ => " UNION ALL ",
    };
    Query { sql: branches.join(operator), kinds }
}

/// A query over another query, as a subquery in FROM or as a CTE.
fn nested(dice: &mut Dice, relations: &[Relation]) -> Query {
    let inner = match dice.index(4) {
        0 => grouped(dice, relations),
        1 => distinct(dice, relations),
        2 => set_operation(dice, relations),
        _ => select(dice, relations, None, false),
    };
    let relation = Relation::of_view("q", &inner);
    let with_graph = [relation.clone(), relations[0].clone()];
    let around: &[Relation] = if dice.chance(40) { &with_graph } else { &with_graph[..1] };
    let outer = match dice.index(3) {
        0 => grouped(dice, around),
        1 => distinct(dice, around),
        _ => select(dice, around, None, false),
    };
    if dice.chance(50) || !outer.sql.contains("FROM q x1") {
        return Query {
            sql: format!("WITH q AS ({}) {}", inner.sql, outer.sql),
            kinds: outer.kinds,
        };
    }
    let sql = outer.sql.replacen("FROM q x1", &format!("FROM ({}) x1", inner.sql), 1);
    if sql.contains(" q ") {
        return Query {
            sql: format!("WITH q AS ({}) {}", inner.sql, outer.sql),
            kinds: outer.kinds,
        };
    }
    Query { sql, kinds: outer.kinds }
}

fn with_values(dice: &mut Dice, relations: &[Relation]) -> Query {
    let rows: Vec<String> = (0..dice.range(1, 4))
        .map(|_| format!("({}, {})", Type::Int4.literal(dice), Type::Text.literal(dice)))
        .collect();
    let constants = Relation {
        name: format!("(VALUES {})", rows.join(", ")),
        columns: vec![("column1".into(), Type::Int4), ("column2".into(), Type::Text)],
    };
    let around = [relations[0].clone(), constants];
    select(dice, &around, None, true)
}

pub fn named(items: &[String]) -> String {
    let items: Vec<String> =
        items.iter().enumerate().map(|(i, item)| format!("{item} AS o{}", i + 1)).collect();
    items.join(", ")
}
