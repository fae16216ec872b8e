//! Random transactions on the base tables, in one session or in two that interleave.

use std::collections::BTreeSet;

use super::case::{Statement, Step};
use super::draws::Draws;
use super::expression::{expression, predicate, Field};
use super::feature::Feature;
use super::inside;
use super::schema::Table;
use super::types::Type;

/// What one session does next, and the rules of the grammar that made it.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub step: Step,
    pub rules: Vec<Feature>,
}

/// A view that transactions may read: its name and its query.
pub type Readable<'a> = (&'a str, &'a str);

/// A statement and the rules that made it.
type Made = (Statement, Vec<Feature>);

/// The statements of one transaction, or of two that overlap. Every session ends outside a
/// transaction.
pub fn random_steps(dice: &mut Draws, tables: &[Table], views: &[Readable<'_>]) -> Vec<Drawn> {
    if dice.chance(15) {
        let one = transaction(dice, tables, views);
        let two = transaction(dice, tables, views);
        let mut steps = interleave(dice, one, two);
        steps[0].rules.push(Feature::Interleaved);
        return steps;
    }
    let statements = if dice.chance(35) {
        let mut alone = change(dice, tables);
        alone.1.push(Feature::Autocommit);
        vec![alone]
    } else {
        transaction(dice, tables, views)
    };
    let session = dice.index(2);
    statements.into_iter().map(|made| drawn(session, made)).collect()
}

fn drawn(session: usize, (statement, rules): Made) -> Drawn {
    Drawn { step: Step { session, statement }, rules }
}

fn interleave(dice: &mut Draws, one: Vec<Made>, two: Vec<Made>) -> Vec<Drawn> {
    let mut queues = [one.into_iter(), two.into_iter()];
    let mut steps = Vec::new();
    while queues.iter().any(|queue| queue.len() > 0) {
        let session = dice.index(2);
        if let Some(made) = queues[session].next() {
            steps.push(drawn(session, made));
        }
    }
    steps
}

fn transaction(dice: &mut Draws, tables: &[Table], views: &[Readable<'_>]) -> Vec<Made> {
    use Feature::{Commit, Release, Rollback, RollbackTo, Savepoint};
    let mut statements = vec![begin(dice)];
    let mut open = 0;
    for _ in 0..dice.range(1, 5) {
        match dice.index(6) {
            0 => {
                open += 1;
                statements.push((Statement::plain(format!("SAVEPOINT s{open}")), vec![Savepoint]));
            }
            1 if open > 0 => {
                statements
                    .push((Statement::plain(format!("ROLLBACK TO s{open}")), vec![RollbackTo]));
            }
            2 if open > 0 => {
                statements.push((Statement::plain(format!("RELEASE s{open}")), vec![Release]));
                open -= 1;
            }
            _ => {}
        }
        statements.extend(read(dice, views));
        statements.push(change(dice, tables));
        statements.extend(read(dice, views));
    }
    let end = if dice.chance(12) { Rollback } else { Commit };
    statements.push((Statement::plain(end.name()), vec![end]));
    statements
}

/// Perhaps a read.
fn read(dice: &mut Draws, views: &[Readable<'_>]) -> Option<Made> {
    if views.is_empty() || !dice.chance(12) {
        return None;
    }
    let (view, query) = dice.pick(views);
    Some((Statement::plain(inside::read(view, query)), vec![Feature::ReadInside]))
}

fn begin(dice: &mut Draws) -> Made {
    let (level, rules) = match dice.index(6) {
        0 => (" ISOLATION LEVEL REPEATABLE READ", vec![Feature::RepeatableRead]),
        1 => (" ISOLATION LEVEL SERIALIZABLE", vec![Feature::Serializable]),
        _ => ("", vec![]),
    };
    (Statement::plain(format!("BEGIN{level}")), rules)
}

/// One statement that changes a table.
fn change(dice: &mut Draws, tables: &[Table]) -> Made {
    use Feature::*;
    let table = if dice.chance(45) { &tables[0] } else { dice.pick(tables) };
    let name = &table.name;
    let fields: Vec<Field> =
        table.columns.iter().map(|c| Field { reference: c.name.clone(), kind: c.kind }).collect();
    let without_key = i64::from(!table.has_key);
    let rule = dice.rule(&[
        (1, Truncate),
        (16 * without_key, Insert),
        (16 * (1 - without_key), InsertOnConflict),
        (4 * without_key, InsertCopies),
        (10, DeleteByKey),
        (5, DeleteByPredicate),
        (11, Update),
        (3, UpdateKey),
    ]);
    let sql = match rule {
        Truncate => format!("TRUNCATE {name}"),
        Insert | InsertOnConflict => {
            let count = dice.range(1, 3) as usize;
            return (table.insert(dice, count), dice.take());
        }
        InsertCopies => {
            format!("INSERT INTO {name} SELECT * FROM {name} WHERE {}", by_key(dice, table))
        }
        DeleteByKey => format!("DELETE FROM {name} WHERE {}", by_key(dice, table)),
        DeleteByPredicate => format!("DELETE FROM {name} WHERE {}", by_predicate(dice, &fields)),
        _ => {
            let condition = match dice.chance(70) {
                true => by_key(dice, table),
                false => by_predicate(dice, &fields),
            };
            let columns: BTreeSet<usize> = match rule {
                UpdateKey => [0].into(),
                _ => (0..dice.range(1, 2)).map(|_| 1 + dice.index(fields.len() - 1)).collect(),
            };
            let assignments: Vec<String> =
                columns.into_iter().map(|i| assignment(dice, table, &fields, i)).collect();
            format!("UPDATE {name} SET {} WHERE {condition}", assignments.join(", "))
        }
    };
    (Statement::plain(sql), dice.take())
}

fn assignment(dice: &mut Draws, table: &Table, fields: &[Field], column: usize) -> String {
    let name = &table.columns[column].name;
    let kind = table.columns[column].kind;
    if column == 0 && table.has_key {
        return format!("{name} = {name} + {}", dice.range(-2, 50));
    }
    // Values computed from values would grow without bound over a round; lists as well.
    let fresh = matches!(kind, Type::Text | Type::Varchar | Type::Int4Array | Type::TextArray)
        || kind.is_number();
    if fresh || dice.chance(50) {
        return format!("{name} = {}", kind.literal(dice));
    }
    format!("{name} = {}", expression(dice, fields, kind, 1))
}

/// A condition that mostly few rows meet.
fn by_key(dice: &mut Draws, table: &Table) -> String {
    format!("{} = {}", table.columns[0].name, dice.range(-3, 9))
}

/// Whatever rows a predicate selects.
fn by_predicate(dice: &mut Draws, fields: &[Field]) -> String {
    let predicate = predicate(dice, fields, 1);
    dice.forget_values();
    predicate
}
