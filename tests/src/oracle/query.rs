//! Random queries without recursion: projections, filters, joins, groups, DISTINCT, set operations, CTEs,
//! subqueries in FROM and VALUES.

use std::collections::BTreeSet;

use super::aggregate::aggregate;
use super::draws::Draws;
use super::expression::{expression, predicate, risky, Field};
use super::feature::Feature;
use super::ordered;
use super::recursion;
use super::schema::Table;
use super::subquery;
use super::types::{Type, ALL};

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
    /// What it is, if that is not recorded elsewhere.
    feature: Option<Feature>,
}

impl Relation {
    pub fn of_table(table: &Table) -> Relation {
        let columns = table.columns.iter().map(|c| (c.name.clone(), c.kind));
        let generated = table.has_generated.then(|| ("g".to_owned(), Type::Int4));
        let columns = columns.chain(generated).collect();
        let feature = match table {
            Table { partitioned: true, .. } => Feature::PartitionedTable,
            Table { has_generated: true, .. } => Feature::GeneratedColumn,
            Table { has_child: true, .. } => Feature::InheritanceParent,
            Table { has_key: true, .. } => Feature::KeyedTable,
            _ => Feature::PlainTable,
        };
        Relation { name: table.name.clone(), columns, feature: Some(feature) }
    }

    /// An incremental view, or a plain one.
    pub fn of_view(name: &str, query: &Query, feature: Feature) -> Relation {
        Relation { feature: Some(feature), ..Relation::of_query(name, query) }
    }

    /// The CTE or the subquery in FROM with this name.
    pub fn of_query(name: &str, query: &Query) -> Relation {
        let columns = query.kinds.iter().enumerate();
        let columns = columns.map(|(i, kind)| (format!("o{}", i + 1), *kind)).collect();
        Relation { name: name.into(), columns, feature: None }
    }

    /// One of them for FROM.
    pub fn random<'a>(dice: &mut Draws, relations: &'a [Relation]) -> &'a Relation {
        let relation = dice.pick(relations);
        if let Some(feature) = relation.feature {
            dice.record(feature);
        }
        relation
    }

    pub fn fields(&self, alias: &str) -> Vec<Field> {
        self.columns
            .iter()
            .map(|(name, kind)| Field { reference: format!("{alias}.{name}"), kind: *kind })
            .collect()
    }
}

/// A query over `relations`, of which the first is the graph.
pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(27) {
        0 => plain_select(dice, relations),
        1..=3 => grouped(dice, relations),
        4 => distinct(dice, relations),
        5 | 6 => set_operation(dice, relations),
        7 | 8 => nested(dice, relations),
        9 => with_values(dice, relations),
        10..=14 => subquery::random_query(dice, relations),
        15..=20 => ordered::random_query(dice, relations),
        _ => recursion::random_query(dice, relations),
    }
}

/// The query of a plain view: one that no data makes fail.
pub fn plain_view(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(3) {
        0 => grouped(dice, relations),
        1 => distinct(dice, relations),
        _ => select(dice, relations, None, false),
    }
}

/// FROM and WHERE with the columns in scope; at most one join that is not an equality. Joins may be outer.
pub struct Source {
    pub text: String,
    pub scope: Vec<Field>,
}

pub fn source(dice: &mut Draws, relations: &[Relation]) -> Source {
    let first = Relation::random(dice, relations);
    let mut scope = first.fields("x1");
    let mut text = format!("FROM {} x1", first.name);
    let joins = dice.pick(&[0, 0, 0, 1, 1, 2]);
    let mut conditions = Vec::new();
    for number in 0..*joins {
        let alias = format!("x{}", number + 2);
        let relation = Relation::random(dice, relations);
        dice.record_if(relation.name == first.name, Feature::SelfJoin);
        let fields = relation.fields(&alias);
        let merged = merged_columns(dice, first, relation).filter(|_| number == 0);
        let condition = join_condition(dice, &scope, &fields, *joins == 1);
        if let Some(columns) = merged {
            let join = join_kind(dice, "a = b");
            text.push_str(&match columns {
                Some(column) => format!(" {join} {} {alias} USING ({column})", relation.name),
                None => format!(" NATURAL {join} {} {alias}", relation.name),
            });
        } else if dice.chance(70) {
            let join = join_kind(dice, &condition);
            text.push_str(&format!(" {join} {} {alias} ON {condition}", relation.name));
        } else {
            dice.record(Feature::CrossJoin);
            text.push_str(&format!(" CROSS JOIN {} {alias}", relation.name));
            conditions.push(condition);
        }
        scope.extend(fields);
    }
    if dice.chance(50) {
        conditions.push(predicate(dice, &scope, 2));
    }
    conditions.extend(present_time(dice, &scope));
    if !conditions.is_empty() {
        text.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    Source { text, scope }
}

/// Now and then a column for USING, or `None` for NATURAL, where two relations have columns of one name and type.
fn merged_columns(dice: &mut Draws, left: &Relation, right: &Relation) -> Option<Option<String>> {
    let named = |name: &String| right.columns.iter().find(|(other, _)| other == name);
    let pairs: Vec<(&String, Type, Type)> = left
        .columns
        .iter()
        .filter_map(|(name, kind)| named(name).map(|(_, other)| (name, *kind, *other)))
        .collect();
    let same: Vec<&String> = pairs.iter().filter(|(_, l, r)| l == r).map(|(n, ..)| *n).collect();
    if same.is_empty() || !dice.chance(15) {
        return None;
    }
    let can_be_natural = i64::from(same.len() == pairs.len() && pairs.len() < 3);
    match dice.rule(&[(2, Feature::JoinUsing), (can_be_natural, Feature::JoinNatural)]) {
        Feature::JoinNatural => Some(None),
        _ => Some(Some(dice.pick(&same).to_string())),
    }
}

/// Now and then a condition that the present time decides: all times of the tables are long ago, or infinite.
fn present_time(dice: &mut Draws, scope: &[Field]) -> Option<String> {
    let present = |kind| match kind {
        Type::Timestamp => Some("localtimestamp"),
        Type::Timestamptz => Some("now()"),
        Type::Date => Some("current_date"),
        _ => None,
    };
    let times: Vec<(&Field, &str)> =
        scope.iter().filter_map(|field| Some((field, present(field.kind)?))).collect();
    if times.is_empty() || !dice.takes(20, Feature::PresentTime) {
        return None;
    }
    let (field, now) = *dice.pick(&times);
    let operator = dice.pick(&["<", "<=", ">", ">="]);
    let span = dice.pick(&["", " - interval '1 hour'", " + interval '3 days'"]);
    Some(match dice.chance(50) {
        true => format!("{} {operator} {now}{span}", field.reference),
        false => format!("{now}{span} {operator} {}", field.reference),
    })
}

/// PostgreSQL computes a FULL JOIN for nothing but equalities.
fn join_kind(dice: &mut Draws, condition: &str) -> &'static str {
    let is_equality = condition.split(' ').nth(1) == Some("=")
        && ![" AND ", " OR "].iter().any(|connective| condition.contains(connective));
    dice.form(&[
        (1, Feature::InnerJoin, "JOIN"),
        (1, Feature::LeftJoin, "LEFT JOIN"),
        (1, Feature::RightJoin, "RIGHT JOIN"),
        (i64::from(is_equality), Feature::FullJoin, "FULL JOIN"),
    ])
}

/// An equality of columns of one type where there is such a pair, else any comparison.
fn join_condition(dice: &mut Draws, left: &[Field], right: &[Field], any: bool) -> String {
    let pairs: Vec<(&Field, &Field)> = left
        .iter()
        .flat_map(|l| right.iter().map(move |r| (l, r)))
        .filter(|(l, r)| l.kind == r.kind && l.kind != Type::Bool)
        .collect();
    if pairs.is_empty() {
        let (l, r) = (&left[0].reference, &right[0].reference);
        dice.record(Feature::JoinOnNull);
        return format!("{l} IS NOT NULL AND {r} IS NULL");
    }
    let (l, r) = *dice.pick(&pairs);
    let any = i64::from(any);
    let operator = dice.form(&[
        (3, Feature::JoinOnEqual, "="),
        (any, Feature::JoinOnLess, "<"),
        (any, Feature::JoinOnUnequal, "<>"),
    ]);
    let mut text = format!("{} {operator} {}", l.reference, r.reference);
    if dice.takes(25, Feature::JoinOnNotDistinct) {
        let (l, r) = *dice.pick(&pairs);
        text.push_str(&format!(" AND {} IS NOT DISTINCT FROM {}", l.reference, r.reference));
    }
    if !dice.takes(20, Feature::JoinOnOr) {
        return text;
    }
    // Arms with keys of their own.
    let mut arms = vec![text];
    for _ in 0..dice.range(1, 2) {
        let ((l, r), (x, y)) = (*dice.pick(&pairs), *dice.pick(&pairs));
        let more = match dice.chance(40) {
            true => format!(" AND {} <= {}", x.reference, y.reference),
            false => String::new(),
        };
        arms.push(format!("{} = {}{more}", l.reference, r.reference));
    }
    format!("({})", arms.join(" OR "))
}

fn plain_select(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::Select);
    select(dice, relations, None, true)
}

/// A select list of the wanted types, or of random ones.
fn select(
    dice: &mut Draws,
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
    if may_fail && dice.chance(40) {
        if let Some(item) = risky(dice, &scope) {
            dice.record(Feature::ErrorsOfRows);
            items.push(format!("({item})::bigint"));
            kinds.push(Type::Int8);
        }
    }
    Query { sql: format!("SELECT {} {text}", named(&items)), kinds }
}

fn grouped(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::Grouped);
    let Source { text, scope } = source(dice, relations);
    let mut items = Vec::new();
    let mut kinds = Vec::new();
    let keys = *dice.pick(&[0, 1, 1, 2, 2]);
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
    if dice.takes(10, Feature::OuterAggregate) {
        let (graph, column) = (&relations[0], &dice.pick(&scope).reference);
        let (first, kind) = &graph.columns[0];
        let condition = match kind {
            Type::Int4 => format!("h.{first} <= count({column})"),
            _ => format!("h.{first} IS NOT NULL AND count({column}) > 1"),
        };
        items.push(format!("(SELECT count(h.{first}) FROM {} h WHERE {condition})", graph.name));
        kinds.push(Type::Int8);
    }
    let numbers: Vec<String> = (1..=keys).map(|n| n.to_string()).collect();
    let numbers = numbers.join(", ");
    let several = i64::from(keys > 0 && are_different(&items[..keys], &scope));
    let grouping = match dice.rule(&[
        (i64::from(keys == 0), Feature::GroupOfAll),
        (3 * i64::from(keys > 0), Feature::PlainKeys),
        (several, Feature::Rollup),
        (several, Feature::Cube),
        (several, Feature::GroupingSets),
        (several, Feature::NestedGroupingSets),
    ]) {
        Feature::GroupOfAll => String::new(),
        Feature::PlainKeys => format!(" GROUP BY {numbers}"),
        sets => {
            if dice.takes(50, Feature::GroupingCall) {
                items.push(format!("GROUPING({})", items[..keys].join(", ")));
                kinds.push(Type::Int4);
            }
            match sets {
                Feature::Rollup => format!(" GROUP BY ROLLUP ({numbers})"),
                Feature::Cube => format!(" GROUP BY CUBE ({numbers})"),
                Feature::GroupingSets => format!(" GROUP BY GROUPING SETS (({numbers}), (1), ())"),
                _ => format!(" GROUP BY GROUPING SETS (ROLLUP ({numbers}), CUBE (1), ({numbers}))"),
            }
        }
    };
    let mut sql = format!("SELECT {} {text}{grouping}", named(&items));
    if dice.takes(30, Feature::Having) {
        let condition = dice.pick(&["count(*) > 1", "count(*) % 2 = 1", "count(*) <> 3"]);
        sql.push_str(&format!(" HAVING {condition}"));
    }
    Query { sql, kinds }
}

/// Whether no two keys can be the same expression, which grouping sets refuse: they read different columns.
/// (Two spellings of one constant would be equal, so their texts do not tell.)
fn are_different(keys: &[String], scope: &[Field]) -> bool {
    let columns = |key: &String| -> Vec<bool> {
        scope.iter().map(|field| key.contains(&field.reference)).collect()
    };
    let distinct: BTreeSet<Vec<bool>> = keys.iter().map(columns).collect();
    distinct.len() == keys.len()
}

fn distinct(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::Distinct);
    let query = select(dice, relations, None, false);
    Query { sql: query.sql.replacen("SELECT", "SELECT DISTINCT", 1), kinds: query.kinds }
}

fn set_operation(dice: &mut Draws, relations: &[Relation]) -> Query {
    use Feature::{Except, ExceptAll, Intersect, IntersectAll, SetOperation, Union, UnionAll};
    dice.record(SetOperation);
    let kinds: Vec<Type> = (0..dice.range(1, 3)).map(|_| *dice.pick(ALL)).collect();
    let branches: Vec<String> = (0..dice.range(2, 3))
        .map(|_| format!("({})", select(dice, relations, Some(&kinds), false).sql))
        .collect();
    let rules = [Intersect, IntersectAll, Except, ExceptAll, Union, UnionAll];
    let operator = dice.rule(&rules.map(|rule| (1, rule))).name();
    Query { sql: branches.join(&format!(" {operator} ")), kinds }
}

/// A query over another query, as a subquery in FROM or as a CTE.
fn nested(dice: &mut Draws, relations: &[Relation]) -> Query {
    let inner = match dice.index(4) {
        0 => grouped(dice, relations),
        1 => distinct(dice, relations),
        2 => set_operation(dice, relations),
        _ => select(dice, relations, None, false),
    };
    let relation = Relation::of_query("q", &inner);
    let with_graph = [relation.clone(), relations[0].clone()];
    let around: &[Relation] = if dice.chance(40) { &with_graph } else { &with_graph[..1] };
    let outer = match dice.index(3) {
        0 => grouped(dice, around),
        1 => distinct(dice, around),
        _ => select(dice, around, None, false),
    };
    let in_from = outer.sql.replacen("FROM q x1", &format!("FROM ({}) x1", inner.sql), 1);
    let is_used_once = in_from != outer.sql && !in_from.contains(" q ");
    if is_used_once && dice.takes(60, Feature::SubqueryInFrom) {
        return Query { sql: in_from, kinds: outer.kinds };
    }
    dice.record(Feature::Cte);
    Query { sql: format!("WITH q AS ({}) {}", inner.sql, outer.sql), kinds: outer.kinds }
}

fn with_values(dice: &mut Draws, relations: &[Relation]) -> Query {
    let graph = &relations[0].name;
    let row = |dice: &mut Draws| {
        let number = match dice.takes(20, Feature::SubqueryInValues) {
            true => format!("(SELECT max(v.a) FROM {graph} v)"),
            false => Type::Int4.literal(dice),
        };
        format!("({number}, {})", Type::Text.literal(dice))
    };
    let rows: Vec<String> = (0..dice.range(1, 4)).map(|_| row(dice)).collect();
    let constants = Relation {
        name: format!("(VALUES {})", rows.join(", ")),
        columns: vec![("column1".into(), Type::Int4), ("column2".into(), Type::Text)],
        feature: Some(Feature::ValuesList),
    };
    let around = [relations[0].clone(), constants];
    // Columns of a single row are constants to PostgreSQL.
    select(dice, &around, None, false)
}

pub fn named(items: &[String]) -> String {
    let items: Vec<String> =
        items.iter().enumerate().map(|(i, item)| format!("{item} AS o{}", i + 1)).collect();
    items.join(", ")
}
