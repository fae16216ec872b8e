//! Orders of customers: the tables beneath many views, what these are, and a load on the orders.

use std::path::Path;

use anyhow::Result;
use harness::load::Load;
use postgres::Client;

use super::subject::run_script;

/// Sessions that write.
const CLIENTS: u32 = 8;

/// Orders of a customer, on the average.
const ORDERS_EACH: u32 = 10;

/// Amounts are below it, but for those that are to pass every view's filter.
pub const AMOUNTS: i64 = 1000;

/// By how much the filters of one view and the next differ: the hundredth takes half of the orders.
const STEP: u32 = 5;

const TABLES: &str = "
    SELECT setseed(0.5);
    CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text NOT NULL);
    INSERT INTO customers SELECT i, 'customer ' || i, 'region ' || i % 20 FROM generate_series(1, {customers}) i;
    CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount bigint NOT NULL, status text NOT NULL,
        placed date NOT NULL, note text NOT NULL);
    INSERT INTO orders SELECT i, 1 + floor(random() * {customers})::int, floor(random() * {amounts})::bigint,
        (ARRAY['new', 'paid', 'packed', 'sent', 'returned'])[1 + i % 5], date '2026-01-01' + i % 365,
        'an order with a note of some words, number ' || i FROM generate_series(1, {rows}) i;
    VACUUM ANALYZE customers, orders;";

/// Changes an order that is chosen by its key.
const UPDATE: &str = "\
\\set id random(1, {rows})
\\set amount random(0, {amounts} - 1)
UPDATE orders SET amount = :amount WHERE id = :id;
";

/// Customers of so many orders.
pub fn customers(orders: u32) -> u32 {
    (orders / ORDERS_EACH).max(1)
}

/// Makes the tables with so many orders.
pub fn create_tables(client: &mut Client, orders: u32) -> Result<()> {
    run_script(client, &fill_in(TABLES, orders))
}

/// The load on the database `postgres`; `folder` gets its script.
pub fn load(folder: &Path, orders: u32) -> Result<Load> {
    Load::new(folder, "postgres", CLIENTS, &[("orders", &fill_in(UPDATE, orders), 1)])
}

/// A view over the join, the `number`-th of those that differ in their filter; from 0.
pub fn filtered(number: u32) -> String {
    format!(
        "SELECT c.region, count(*) AS orders, sum(o.amount) AS total
         FROM orders o JOIN customers c ON c.id = o.customer
         WHERE o.amount >= {} GROUP BY c.region",
        number * STEP
    )
}

fn fill_in(text: &str, orders: u32) -> String {
    text.replace("{rows}", &orders.to_string())
        .replace("{customers}", &customers(orders).to_string())
        .replace("{amounts}", &AMOUNTS.to_string())
}
