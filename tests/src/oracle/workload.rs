//! Random transactions on the base tables, in one session or in two that interleave.

use super::expression::{expression, predicate, Field};
use super::schema::Table;
use super::types::Type;
use crate::dice::Dice;

/// What one session does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub session: usize,
    pub sql: String,
}

/// The statements of one transaction, or of two that overlap. Every session ends outside a
/// transaction.
pub fn random_steps(dice: &mut Dice, tables: &[Table]) -> Vec<Step> {
    if dice.chance(15) {
        let one = transaction(dice, tables);
        let two = transaction(dice, tables);
        return interleave(dice, one, two);
    }
    let statements =
        if dice.chance(35) { vec![change(dice, tables)] } else { transaction(dice, tables) };
    let session = dice.index(2);
    statements.into_iter().map(|sql| Step { session, sql }).collect()
}

fn interleave(dice: &mut Dice, one: Vec<String>, two: Vec<String>) -> Vec<Step> {
    let mut queues = [one.into_iter(), two.into_iter()];
    let mut steps = Vec::new();
    while queues.iter().any(|queue| queue.len() > 0) {
        let session = dice.index(2);
        if let Some(sql) = queues[session].next() {
            steps.push(Step { session, sql });
        }
    }
    steps
}

fn transaction(dice: &mut Dice, tables: &[Table]) -> Vec<String> {
    let mut statements = vec!["BEGIN".to_string()];
    let mut open = 0;
    for _ in 0..dice.range(1, 5) {
        match dice.index(6) {
            0 => {
                open += 1;
                statements.push(format!("SAVEPOINT s{open}"));
            }
            1 if open > 0 => {
                statements.push(format!("ROLLBACK TO s{open}"));
            }
            2 if open > 0 => {
                statements.push(format!("RELEASE s{open}"));
                open -= 1;
            }
            _ => {}
        }
        statements.push(change(dice, tables));
    }
    statements.push(if dice.chance(12) { "ROLLBACK" } else { "COMMIT" }.to_string());
    statements
}

/// One statement that changes a table.
fn change(dice: &mut Dice, tables: &[Table]) -> String {
    let table = if dice.chance(45) { &tables[0] } else { dice.pick(tables) };
    let name = &table.name;
    let fields: Vec<Field> =
        table.columns.iter().map(|c| Field { reference: c.name.clone(), kind: c.kind }).collect();
    match dice.index(12) {
        0 if dice.chance(25) => format!("TRUNCATE {name}"),
        0..=4 => {
            let count = dice.range(1, 3) as usize;
            let conflict = if table.has_key { " ON CONFLICT DO NOTHING" } else { "" };
            format!("INSERT INTO {name} VALUES {}{conflict}", table.rows(dice, count))
        }
        5 if !table.has_key => {
            let key = &table.columns[0].name;
            let value = dice.range(-3, 9);
            format!("INSERT INTO {name} SELECT * FROM {name} WHERE {key} = {value}")
        }
        5..=8 => format!("DELETE FROM {name} WHERE {}", narrow(dice, table, &fields)),
        _ => {
            let assignments: Vec<String> = (0..dice.range(1, 2))
                .map(|_| dice.index(table.columns.len()))
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .map(|i| assignment(dice, table, &fields, i))
                .collect();
            let condition = narrow(dice, table, &fields);
            format!("UPDATE {name} SET {} WHERE {condition}", assignments.join(", "))
        }
    }
}

fn assignment(dice: &mut Dice, table: &Table, fields: &[Field], column: usize) -> String {
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

/// Mostly few rows, sometimes whatever a predicate selects.
fn narrow(dice: &mut Dice, table: &Table, fields: &[Field]) -> String {
    let key = &table.columns[0].name;
    if dice.chance(70) {
        return format!("{key} = {}", dice.range(-3, 9));
    }
    predicate(dice, fields, 1)
}
