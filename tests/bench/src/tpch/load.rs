//! The tables filled with COPY, and the two refresh functions, each a transaction.

use anyhow::Result;
use postgres::{Client, GenericClient};

use super::generator::{later_order_key, order_key, Generator, Order, Sizes};
use super::row::Row;
use super::words::{NATIONS, REGIONS};

const SCHEMA: &str = include_str!("schema.sql");

/// Orders that are copied at once: two tables are filled from them, and COPY knows one.
const CHUNK: i64 = 10_000;

/// Creates all tables and fills them; answers the number of lines.
pub fn create_tables(client: &mut Client, sizes: Sizes, seed: u64) -> Result<u64> {
    client.batch_execute(SCHEMA)?;
    let mut stream = 0;
    let mut generator = || {
        stream += 1;
        Generator::new(sizes, seed, stream)
    };
    fill(client, "region", generator(), 0..REGIONS.len() as i64, |g, key| vec![g.region(key)])?;
    fill(client, "nation", generator(), 0..NATIONS.len() as i64, |g, key| vec![g.nation(key)])?;
    fill(client, "supplier", generator(), keys(sizes.suppliers), |g, key| vec![g.supplier(key)])?;
    fill(client, "part", generator(), keys(sizes.parts), |g, key| vec![g.part(key)])?;
    fill(client, "partsupp", generator(), keys(sizes.parts), Generator::stock)?;
    fill(client, "customer", generator(), keys(sizes.customers), |g, key| vec![g.customer(key)])?;
    let lines = fill_orders(client, generator())?;
    client.batch_execute("VACUUM ANALYZE")?;
    Ok(lines)
}

fn keys(count: i64) -> std::ops::Range<i64> {
    1..count + 1
}

fn fill(
    client: &mut Client,
    table: &str,
    mut generator: Generator,
    keys: std::ops::Range<i64>,
    rows: impl Fn(&mut Generator, i64) -> Vec<Row>,
) -> Result<u64> {
    copy(client, table, keys.flat_map(|key| rows(&mut generator, key)))
}

fn fill_orders(client: &mut Client, mut generator: Generator) -> Result<u64> {
    let count = generator.sizes.orders;
    let mut lines = 0;
    for start in (0..count).step_by(CHUNK as usize) {
        let numbers = start..count.min(start + CHUNK);
        let orders: Vec<Order> = numbers.map(|n| generator.order(order_key(n))).collect();
        lines += copy_orders(client, orders)?;
    }
    Ok(lines)
}

fn copy_orders(client: &mut impl GenericClient, orders: Vec<Order>) -> Result<u64> {
    let (orders, lines): (Vec<Row>, Vec<Vec<Row>>) =
        orders.into_iter().map(|order| (order.order, order.lines)).unzip();
    copy(client, "orders", orders)?;
    copy(client, "lineitem", lines.into_iter().flatten())
}

fn copy(
    client: &mut impl GenericClient,
    table: &str,
    rows: impl IntoIterator<Item = Row>,
) -> Result<u64> {
    crate::copy::copy(client, table, rows.into_iter().map(|row| row.copy_line()))
}

/// RF1: new orders with their lines. Answers the number of rows.
pub fn insert_orders(client: &mut Client, sizes: Sizes, seed: u64) -> Result<u64> {
    // Streams of small numbers fill the tables.
    let mut generator = Generator::new(sizes, seed, 100);
    let numbers = spread(sizes);
    let orders: Vec<Order> = numbers.map(|n| generator.order(later_order_key(n))).collect();
    let count = orders.len() as u64;
    let mut transaction = client.transaction()?;
    let lines = copy_orders(&mut transaction, orders)?;
    transaction.commit()?;
    Ok(count + lines)
}

/// RF2: as many old orders go, with their lines. Answers the number of rows.
pub fn delete_orders(client: &mut Client, sizes: Sizes) -> Result<u64> {
    let keys: Vec<i32> = spread(sizes).map(|n| order_key(n) as i32).collect();
    let mut transaction = client.transaction()?;
    let lines =
        transaction.execute("DELETE FROM lineitem WHERE l_orderkey = ANY ($1)", &[&keys])?;
    let orders = transaction.execute("DELETE FROM orders WHERE o_orderkey = ANY ($1)", &[&keys])?;
    transaction.commit()?;
    Ok(orders + lines)
}

/// Numbers of orders all over the table.
fn spread(sizes: Sizes) -> impl Iterator<Item = i64> {
    (0..sizes.refreshed).map(move |i| i * (sizes.orders / sizes.refreshed))
}
