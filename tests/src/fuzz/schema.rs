//! The base tables that the queries read: their rows, and random changes of them.
//!
//! Few rows, because the queries join at random; few values, so that joins find partners and rows come twice.

use std::fmt::Write;

use anyhow::Result;
use harness::dice::Dice;
use postgres::Client;

/// A column: name, type, values that it takes, as literals.
pub struct Column {
    pub name: &'static str,
    kind: &'static str,
    /// The type without its modifier, as others see the column.
    pub base: &'static str,
    values: &'static [&'static str],
}

/// A base table. What has a key has it in the first column.
pub struct Table {
    pub name: &'static str,
    has_key: bool,
    pub columns: &'static [Column],
}

macro_rules! columns {
    ($($name:ident $kind:literal of $base:literal [$($value:literal)*])*) => {
        &[$(Column {
            name: stringify!($name), kind: $kind, base: $base, values: &[$($value),*],
        }),*]
    };
}

pub const TABLES: &[Table] = &[
    Table {
        name: "item",
        has_key: true,
        columns: columns! {
            id "int" of "int" ["1" "2" "3" "4" "5" "6" "7" "8" "9"]
            parent "int" of "int" ["1" "2" "3" "0" "-1" "2147483647"]
            name "text" of "text" ["" "a" "b" "Ab" "ß" "a b"]
            price "numeric(10,2)" of "numeric" ["0" "1.5" "2.25" "-3" "99.99"]
            weight "float8" of "float8" ["0" "-0" "1.5" "2" "NaN" "-1e10"]
            sold "bool" of "bool" ["true" "false"]
            day "date" of "date" ["2024-02-29" "2024-03-01" "1999-12-31"]
        },
    },
    Table {
        name: "event",
        has_key: true,
        columns: columns! {
            id "bigint" of "int8" ["1" "2" "3" "4" "5" "6" "7" "8" "9"]
            item "int" of "int" ["1" "2" "3" "4" "10"]
            at "timestamp" of "timestamp" ["2024-02-29 12:00" "1999-12-31 23:59:59.5"]
            seen "timestamptz" of "timestamptz" ["2024-02-29 12:00+02" "2024-02-29 10:00+00"]
            kind "varchar(10)" of "varchar" ["a" "b" "Ab" ""]
            n "smallint" of "int2" ["0" "1" "2" "-5" "32767"]
            took "interval" of "interval" ["1 day" "24:00" "-3 hours" "1 month"]
        },
    },
    Table {
        name: "note",
        has_key: false,
        columns: columns! {
            a "int" of "int" ["1" "2" "3" "-7"]
            b "text" of "text" ["a" "b" "%" "ab"]
            c "char(3)" of "bpchar" ["a" "ab" "abc" ""]
            d "int[]" of "int[]" ["{}" "{1,2}" "{NULL,3}" "{{1,2},{3,4}}"]
            e "jsonb" of "jsonb" ["{\"a\": 1}" "[1, 2]" "\"x\"" "null" "{}"]
            u "uuid" of "uuid" ["00000000-0000-0000-0000-000000000001"
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]
        },
    },
    Table {
        name: "reading",
        has_key: false,
        columns: columns! {
            x "float4" of "float4" ["0" "1.5" "-2.25" "NaN"]
            y "float8" of "float8" ["0" "1" "0.1" "-7.5"]
            z "numeric" of "numeric" ["0" "1.0" "1.00" "-2.5" "1e20"]
            raw "bytea" of "bytea" ["\\x" "\\x00ff" "\\x61"]
            tags "text[]" of "text[]" ["{}" "{a}" "{a,b,NULL}"]
        },
    },
];

const ROWS: (i64, i64) = (4, 8);

impl Table {
    pub fn create(&self) -> String {
        let column = |(number, c): (usize, &Column)| {
            let key = if self.has_key && number == 0 { " PRIMARY KEY" } else { "" };
            format!("{} {}{key}", c.name, c.kind)
        };
        let columns: Vec<String> = self.columns.iter().enumerate().map(column).collect();
        format!("CREATE TABLE public.{} ({});", self.name, columns.join(", "))
    }

    /// Rows with NULLs; those of a table without key may come twice.
    fn insert(&self, dice: &mut Dice, count: i64) -> String {
        let mut rows: Vec<String> = Vec::new();
        for _ in 0..count {
            let row = match rows.last() {
                Some(last) if !self.has_key && dice.chance(25) => last.clone(),
                _ => self.row(dice),
            };
            rows.push(row);
        }
        let tail = if self.has_key { " ON CONFLICT DO NOTHING" } else { "" };
        format!("INSERT INTO public.{} VALUES {}{tail};", self.name, rows.join(", "))
    }

    fn row(&self, dice: &mut Dice) -> String {
        let value = |number: usize| self.value(dice, number);
        format!("({})", (0..self.columns.len()).map(value).collect::<Vec<_>>().join(", "))
    }

    fn value(&self, dice: &mut Dice, number: usize) -> String {
        let is_key = self.has_key && number == 0;
        match !is_key && dice.chance(20) {
            true => "NULL".to_owned(),
            false => format!("'{}'", dice.pick(self.columns[number].values)),
        }
    }

    /// A change of one row, or new ones.
    fn change(&self, dice: &mut Dice) -> String {
        // Of the rows in the order in which they are stored, so that a replay takes the same one.
        let one = format!(
            "WHERE ctid = (SELECT ctid FROM public.{} ORDER BY ctid LIMIT 1 OFFSET {})",
            self.name,
            dice.range(0, ROWS.0)
        );
        match dice.range(0, 9) {
            0..=3 => {
                let count = dice.range(1, 2);
                self.insert(dice, count)
            }
            4..=6 => {
                let number = match self.has_key {
                    true => 1 + dice.index(self.columns.len() - 1),
                    false => dice.index(self.columns.len()),
                };
                let value = self.value(dice, number);
                let name = self.columns[number].name;
                format!("UPDATE public.{} SET {name} = {value} {one};", self.name)
            }
            _ => format!("DELETE FROM public.{} {one};", self.name),
        }
    }
}

/// Statements that put new rows in place of all there are.
pub fn fill(dice: &mut Dice) -> String {
    let fill = |table: &Table| {
        let count = dice.range(ROWS.0, ROWS.1);
        format!("TRUNCATE public.{}; {}", table.name, table.insert(dice, count))
    };
    TABLES.iter().map(fill).collect::<Vec<_>>().join("\n")
}

/// The statements of one transaction.
pub fn changes(dice: &mut Dice) -> String {
    let count = dice.range(1, 4);
    (0..count).map(|_| dice.pick(TABLES).change(dice)).collect::<Vec<_>>().join("\n")
}

/// Statements that bring back the rows that the tables have now.
pub fn contents(client: &mut Client) -> Result<String> {
    let mut script = String::new();
    for Table { name, .. } in TABLES {
        let rows = format!("SELECT coalesce(json_agg(t), '[]')::text FROM public.{name} t");
        let rows: String = client.query_one(&rows, &[])?.get(0);
        let rows = rows.replace('\'', "''");
        let _ = writeln!(
            script,
            "TRUNCATE public.{name}; INSERT INTO public.{name} \
             SELECT * FROM json_populate_recordset(NULL::public.{name}, '{rows}');"
        );
    }
    Ok(script)
}
