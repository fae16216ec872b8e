//! Customers and what they ordered: two tables of some size.

/// Creates the extension and both tables. Each customer has as many orders as any other.
pub fn create(customers: i64, orders: i64) -> String {
    format!(
        "SET client_min_messages = warning;
         CREATE EXTENSION pg_eddy;
         CREATE TABLE customer (id int NOT NULL, country int NOT NULL);
         CREATE TABLE ordered (id int NOT NULL, customer int NOT NULL, amount bigint NOT NULL);
         INSERT INTO customer SELECT i, i % 50 FROM generate_series(1, {customers}) i;
         INSERT INTO ordered SELECT i, i % {customers} + 1, i % 1000 FROM generate_series(1, {orders}) i"
    )
}
