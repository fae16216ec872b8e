//! Churn: one row of one table changes, in a transaction of its own.
//!
//! Rows are updated, taken away and put back, mostly rows that matter to the query at hand. New values
//! are near what the queries ask for, so that rows enter results as well as leave them.

use anyhow::{ensure, Context, Result};
use harness::dice::Dice;
use postgres::Client;

use super::generator::{retail_price, supplier_of, Generator, Sizes};
use super::query::Focus;
use super::row::{money, Day};
use super::words::{PRIORITIES, SEGMENTS, SHIP_MODES};

struct Table {
    name: &'static str,
    /// Its primary key; the first column is the one by which rows are picked.
    key: &'static str,
    assignment: fn(&mut Churn) -> String,
}

/// A table stands here as often as it is to be chosen.
const TABLES: [Table; 9] = [
    LINEITEM,
    LINEITEM,
    LINEITEM,
    ORDERS,
    ORDERS,
    Table { name: "customer", key: "c_custkey", assignment: customer },
    Table { name: "part", key: "p_partkey", assignment: part },
    Table { name: "partsupp", key: "ps_partkey, ps_suppkey", assignment: partsupp },
    Table { name: "supplier", key: "s_suppkey", assignment: supplier },
];
const LINEITEM: Table =
    Table { name: "lineitem", key: "l_orderkey, l_linenumber", assignment: lineitem };
const ORDERS: Table = Table { name: "orders", key: "o_orderkey", assignment: orders };

/// Where the rows are that were taken away from a table.
fn aside(table: &str) -> String {
    format!("aside_{table}")
}

pub struct Churn<'a> {
    focuses: &'a [Focus],
    dice: Dice,
    /// For values that need not be near anything.
    generator: Generator,
    /// Names of the tables of the rows that are away.
    away: Vec<&'static str>,
}

impl<'a> Churn<'a> {
    pub fn new(
        client: &mut Client,
        focuses: &'a [Focus],
        sizes: Sizes,
        seed: u64,
    ) -> Result<Churn<'a>> {
        for table in ["lineitem", "orders", "customer", "part", "partsupp", "supplier"] {
            client.batch_execute(&format!("CREATE TABLE {} (LIKE {table})", aside(table)))?;
        }
        let generator = Generator::new(sizes, seed, 200);
        Ok(Churn { focuses, dice: Dice::new(seed), generator, away: Vec::new() })
    }

    /// Changes one row and says how.
    pub fn change_one(&mut self, client: &mut Client) -> Result<String> {
        let sql = self.next_change()?;
        let mut transaction = client.transaction()?;
        let rows = transaction.execute(&sql, &[])?;
        ensure!(rows == 1, "{rows} rows instead of one were changed by: {sql}");
        transaction.commit()?;
        Ok(sql)
    }

    fn next_change(&mut self) -> Result<String> {
        if !self.away.is_empty() && self.dice.chance(25) {
            let table = self.away.swap_remove(self.dice.index(self.away.len()));
            return Ok(put_back(table));
        }
        let focus = self.dice.chance(70).then(|| self.dice.pick(self.focuses));
        let table = match focus {
            Some(focus) => TABLES.iter().find(|table| table.name == focus.table),
            None => Some(self.dice.pick(&TABLES)),
        };
        let table = table.context("rows of an unknown table are to change")?;
        let row = self.pick_row(table, focus.map_or("true", |focus| focus.condition.as_str()));
        if self.dice.chance(35) {
            self.away.push(table.name);
            return Ok(take_away(table, &row));
        }
        let assignment = (table.assignment)(self);
        Ok(format!("UPDATE {} SET {assignment} WHERE {row}", table.name))
    }

    /// A condition that one row meets: one with the condition if there is any, from a random key on if
    /// there is any. It reads the whole table, which nobody measures, and always finds a row.
    fn pick_row(&mut self, table: &Table, condition: &str) -> String {
        let Table { name, key, .. } = table;
        let first = key.split(',').next().unwrap_or(key);
        let sizes = self.generator.sizes;
        let greatest = match *name {
            "lineitem" | "orders" => sizes.orders * 4,
            "customer" => sizes.customers,
            "supplier" => sizes.suppliers,
            _ => sizes.parts,
        };
        let start = self.dice.range(1, greatest);
        format!(
            "({key}) = (SELECT {key} FROM {name} \
             ORDER BY NOT ({condition}), {first} < {start}, {key} LIMIT 1)"
        )
    }

    /// A day in a year, or a month of it, that some query asks for.
    fn asked_day(&mut self) -> Day {
        let (year, month) = *self.dice.pick(&[
            (1993, 7),
            (1993, 10),
            (1994, 1),
            (1994, 6),
            (1995, 3),
            (1995, 9),
            (1996, 1),
            (1996, 12),
            (1998, 8),
        ]);
        Day::of(year, month, 1).plus(self.dice.range(0, 45))
    }

    fn asked_nation(&mut self) -> i64 {
        // Brazil, Canada, France, Germany, India, Saudi Arabia.
        *self.dice.pick(&[2, 3, 6, 7, 8, 20])
    }
}

fn take_away(table: &Table, row: &str) -> String {
    let Table { name, .. } = table;
    format!(
        "WITH gone AS (DELETE FROM {name} WHERE {row} RETURNING *) \
         INSERT INTO {} SELECT * FROM gone",
        aside(name)
    )
}

fn put_back(table: &str) -> String {
    let aside = aside(table);
    format!(
        "WITH back AS (DELETE FROM {aside} WHERE ctid = (SELECT min(ctid) FROM {aside}) RETURNING *) \
         INSERT INTO {table} SELECT * FROM back"
    )
}

fn lineitem(churn: &mut Churn) -> String {
    let sizes = churn.generator.sizes;
    let dice = &mut churn.dice;
    match dice.index(7) {
        0 => {
            let quantity = dice.range(1, 50);
            let price = money(quantity * retail_price(dice.range(1, sizes.parts)));
            format!("l_quantity = {quantity}, l_extendedprice = {price}")
        }
        1 => format!("l_discount = 0.0{}, l_tax = 0.0{}", dice.range(4, 8), dice.range(0, 8)),
        2 => lineitem_days(churn),
        3 => format!(
            "l_returnflag = '{}', l_linestatus = '{}'",
            dice.pick(&["R", "A", "N"]),
            dice.pick(&["O", "F"])
        ),
        4 => format!("l_shipmode = '{}'", dice.pick(&SHIP_MODES)),
        5 => {
            let part = dice.range(1, sizes.parts);
            let supplier = supplier_of(part, dice.range(0, 3), sizes.suppliers);
            format!("l_partkey = {part}, l_suppkey = {supplier}")
        }
        _ => format!("l_comment = '{}'", churn.generator.text(10, 43)),
    }
}

fn lineitem_days(churn: &mut Churn) -> String {
    let shipped = churn.asked_day();
    let committed = shipped.plus(churn.dice.range(-30, 30));
    let received = shipped.plus(churn.dice.range(1, 30));
    format!("l_shipdate = '{shipped}', l_commitdate = '{committed}', l_receiptdate = '{received}'")
}

fn orders(churn: &mut Churn) -> String {
    match churn.dice.index(6) {
        0 => format!("o_orderdate = '{}'", churn.asked_day()),
        1 => format!("o_orderpriority = '{}'", churn.dice.pick(&PRIORITIES)),
        2 => format!("o_orderstatus = '{}'", churn.dice.pick(&["F", "O", "P"])),
        3 => format!("o_totalprice = {}", money(churn.dice.range(100_000, 50_000_000))),
        4 => format!("o_custkey = {}", churn.generator.customer_key()),
        _ if churn.dice.chance(50) => "o_comment = 'even special final requests'".to_owned(),
        _ => format!("o_comment = '{}'", churn.generator.order_comment()),
    }
}

fn customer(churn: &mut Churn) -> String {
    match churn.dice.index(4) {
        0 => format!("c_mktsegment = '{}'", churn.dice.pick(&SEGMENTS)),
        1 => {
            let nation = churn.asked_nation();
            format!("c_nationkey = {nation}, c_phone = '{}'", churn.generator.phone(nation))
        }
        2 => format!("c_acctbal = {}", churn.generator.balance()),
        _ => format!("c_comment = '{}'", churn.generator.text(29, 116)),
    }
}

fn part(churn: &mut Churn) -> String {
    let dice = &mut churn.dice;
    match dice.index(4) {
        0 => {
            let start = *dice.pick(&["forest ", "green ", ""]);
            format!("p_name = '{start}{}'", churn.generator.part_name())
        }
        1 => format!(
            "p_brand = '{}', p_container = '{}'",
            dice.pick(&["Brand#12", "Brand#23", "Brand#34", "Brand#45"]),
            dice.pick(&["SM BOX", "MED BOX", "LG BOX"])
        ),
        2 => format!(
            "p_type = '{}', p_size = {}",
            dice.pick(&[
                "ECONOMY ANODIZED STEEL",
                "MEDIUM POLISHED BRASS",
                "LARGE PLATED BRASS",
                "PROMO BRUSHED TIN"
            ]),
            dice.pick(&[3, 9, 14, 15])
        ),
        _ => format!("p_retailprice = {}", money(dice.range(90_000, 200_000))),
    }
}

fn partsupp(churn: &mut Churn) -> String {
    let dice = &mut churn.dice;
    match dice.index(3) {
        0 => format!("ps_availqty = {}", dice.range(1, 500)),
        1 => format!("ps_supplycost = {}", money(dice.range(100, 30_000))),
        _ => format!("ps_comment = '{}'", churn.generator.text(49, 198)),
    }
}

fn supplier(churn: &mut Churn) -> String {
    match churn.dice.index(4) {
        0 => {
            let nation = churn.asked_nation();
            format!("s_nationkey = {nation}, s_phone = '{}'", churn.generator.phone(nation))
        }
        1 => format!("s_acctbal = {}", churn.generator.balance()),
        2 => "s_comment = 'Customer furious Complaints'".to_owned(),
        _ => format!("s_comment = '{}'", churn.generator.supplier_comment()),
    }
}
