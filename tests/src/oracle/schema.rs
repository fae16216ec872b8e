//! Random base tables. The first one is always a graph, so that recursion has something to follow.

use super::case::Statement;
use super::draws::Draws;
use super::feature::Feature;
use super::types::{Type, ALL};

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Type,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub has_key: bool,
    pub partitioned: bool,
    /// Whether a child inherits from it.
    pub has_child: bool,
    /// Whether behind `columns` it has one that is computed from the key.
    pub has_generated: bool,
}

impl Table {
    /// Edges a → b with a weight and a label, among few nodes, so that cycles are common.
    pub fn graph(dice: &mut Draws) -> Table {
        let mut columns = vec![column("a", Type::Int4), column("b", Type::Int4)];
        columns.push(column("w", *dice.pick(&[Type::Int4, Type::Numeric, Type::Int8])));
        columns.push(column("l", Type::Text));
        Table {
            name: "edge".into(),
            columns,
            has_key: false,
            partitioned: dice.chance(20),
            has_child: false,
            has_generated: false,
        }
    }

    pub fn random(dice: &mut Draws, number: usize) -> Table {
        let has_key = dice.chance(60);
        let first = if has_key { "id" } else { "c0" };
        let mut columns = vec![column(first, Type::Int4)];
        for i in 1..=dice.range(2, 5) {
            columns.push(column(&format!("c{i}"), *dice.pick(ALL)));
        }
        let partitioned = dice.chance(15);
        Table {
            name: format!("t{number}"),
            columns,
            has_key,
            partitioned,
            has_child: !has_key && !partitioned && dice.chance(40),
            has_generated: has_key && dice.chance(25),
        }
    }

    /// Statements that create the table.
    pub fn create(&self) -> Vec<String> {
        let mut items: Vec<String> =
            self.columns.iter().map(|c| format!("{} {}", c.name, c.kind.name())).collect();
        let key = &self.columns[0].name;
        if self.has_generated {
            items.push(format!("g integer GENERATED ALWAYS AS ({key} % 4) STORED"));
        }
        if self.has_key {
            items.push(format!("PRIMARY KEY ({key})"));
        }
        let name = &self.name;
        let table = format!("CREATE TABLE {name} ({})", items.join(", "));
        if self.has_child {
            return vec![table, format!("CREATE TABLE {name}_child () INHERITS ({name})")];
        }
        if !self.partitioned {
            return vec![table];
        }
        vec![
            format!("{table} PARTITION BY RANGE ({key})"),
            format!(
                "CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (MINVALUE) TO (3)"
            ),
            format!("CREATE TABLE {name}_rest PARTITION OF {name} DEFAULT"),
        ]
    }

    /// A row for VALUES. Keys come from a small range, so that they collide now and then.
    fn row(&self, dice: &mut Draws) -> String {
        let values: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| match i {
                0 if self.has_key => dice.range(0, 40).to_string(),
                _ => c.kind.literal(dice),
            })
            .collect();
        format!("({})", values.join(", "))
    }

    /// An INSERT of so many rows.
    pub fn insert(&self, dice: &mut Draws, count: usize) -> Statement {
        let rows = (0..count).map(|_| self.row(dice)).collect();
        if self.has_child && dice.takes(30, Feature::InsertChild) {
            return Statement::insert(&format!("{}_child", self.name), rows, false);
        }
        Statement::insert(&self.name, rows, self.has_key)
    }
}

fn column(name: &str, kind: Type) -> Column {
    Column { name: name.into(), kind }
}

/// The tables of one round.
pub fn random_tables(dice: &mut Draws) -> Vec<Table> {
    let mut tables = vec![Table::graph(dice)];
    for number in 0..dice.range(1, 3) {
        tables.push(Table::random(dice, number as usize));
    }
    tables
}
