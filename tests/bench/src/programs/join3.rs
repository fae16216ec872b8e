//! engine/join3: three tables joined, and what the items of each region add up to.

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::count::CountTotal;
use plan::value::Datum;
use timely::dataflow::Scope;

use crate::checksum::mix;
use crate::graph::integer;
use crate::workload::{Built, History, Inputs, Time, Workload};

const REGIONS: u64 = 100;
const ITEMS_PER_ORDER: u64 = 4;

/// Of 64 swaps 56 replace an item, 7 move an order to another customer, one a customer to another
/// region.
const CYCLE: u64 = 64;

/// Items come and go; orders and customers change.
pub struct Join3 {
    pub customers: u64,
    pub items: u64,
}

/// A row of one of the three tables.
#[derive(Clone)]
pub enum Base {
    /// Number and region.
    Customer(u32, u32),
    /// Number and customer.
    Order(u32, u32),
    /// Order and price.
    Item(u32, u32),
}

impl Join3 {
    fn orders(&self) -> u64 {
        (self.items / ITEMS_PER_ORDER).max(1)
    }

    /// A customer after so many changes.
    fn customer(&self, number: u64, changes: u64) -> Base {
        Base::Customer(number as u32, draw(1, number, changes, REGIONS))
    }

    fn order(&self, number: u64, changes: u64) -> Base {
        Base::Order(number as u32, draw(2, number, changes, self.customers))
    }

    fn item(&self, number: u64) -> Base {
        Base::Item(draw(3, number, 0, self.orders()), draw(4, number, 0, 1000))
    }
}

/// A number below `bound` that is a function of the others.
fn draw(seed: u64, number: u64, changes: u64, bound: u64) -> u32 {
    (mix(number ^ mix(changes ^ mix(seed))) % bound) as u32
}

impl History for Join3 {
    type Base = Base;

    const DEFINITIONS: &'static str =
        "CREATE TABLE customers (id int PRIMARY KEY, region int NOT NULL);
        CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL);
        CREATE TABLE items (\"order\" int NOT NULL, price int NOT NULL)";
    const TABLES: &'static [&'static str] = &["customers", "orders", "items"];

    fn load_size(&self) -> u64 {
        self.customers + self.orders() + self.items
    }

    fn loaded(&self, index: u64) -> Base {
        let Some(index) = index.checked_sub(self.customers) else {
            return self.customer(index, 0);
        };
        match index.checked_sub(self.orders()) {
            Some(number) => self.item(number),
            None => self.order(index, 0),
        }
    }

    fn swap(&self, k: u64) -> (Base, Base) {
        let (cycle, step) = (k / CYCLE, k % CYCLE);
        if step == 0 {
            let (number, changes) = (cycle % self.customers, cycle / self.customers);
            (self.customer(number, changes), self.customer(number, changes + 1))
        } else if step % 8 == 0 {
            let moved = cycle * 7 + step / 8 - 1;
            let (number, changes) = (moved % self.orders(), moved / self.orders());
            (self.order(number, changes), self.order(number, changes + 1))
        } else {
            let replaced = cycle * 56 + step - 1 - step / 8;
            (self.item(replaced), self.item(self.items + replaced))
        }
    }

    fn row(base: &Base) -> (usize, Vec<Datum>) {
        let (table, a, b) = match base {
            Base::Customer(number, region) => (0, number, region),
            Base::Order(number, customer) => (1, number, customer),
            Base::Item(order, price) => (2, order, price),
        };
        (table, vec![integer(*a), integer(*b)])
    }
}

impl Workload for Join3 {
    type History = Join3;
    type Out = (u32, isize, isize);

    fn history(&self) -> &Join3 {
        self
    }

    fn about(&self) -> String {
        "items and their prices by region, over items, orders and customers".to_owned()
    }

    fn query(&self) -> String {
        "SELECT c.region, count(*) AS items, sum(i.price) AS total \
         FROM items i JOIN orders o ON o.id = i.\"order\" JOIN customers c ON c.id = o.customer \
         GROUP BY c.region"
            .to_owned()
    }

    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Base, (u32, isize, isize)> {
        let (customer_input, customers) = scope.new_collection::<(u32, u32), isize>();
        let (order_input, orders) = scope.new_collection::<(u32, u32), isize>();
        let (item_input, items) = scope.new_collection::<(u32, u32), isize>();
        let output = items
            .join_map(orders, |_order, price, customer| (*customer, *price))
            .join_map(customers, |_customer, price, region| (*region, *price))
            // Count and sum are the difference: one record per region.
            .explode(|(region, price)| Some((region, (1isize, price as isize))))
            .count_total()
            .map(|(region, (count, total))| (region, count, total));
        let inputs = Tables { customers: customer_input, orders: order_input, items: item_input };
        Built { inputs: Box::new(inputs), output }
    }
}

struct Tables {
    customers: InputSession<Time, (u32, u32), isize>,
    orders: InputSession<Time, (u32, u32), isize>,
    items: InputSession<Time, (u32, u32), isize>,
}

impl Inputs<Base> for Tables {
    fn update(&mut self, updates: Vec<(Base, Time, isize)>) {
        for (base, time, diff) in updates {
            match base {
                Base::Customer(number, region) => {
                    self.customers.update_at((number, region), time, diff);
                }
                Base::Order(number, customer) => {
                    self.orders.update_at((number, customer), time, diff);
                }
                Base::Item(order, price) => self.items.update_at((order, price), time, diff),
            }
        }
    }

    fn advance(&mut self, time: Time) {
        self.customers.advance(time);
        self.orders.advance(time);
        self.items.advance(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_removes_a_row_that_is_there() {
        let workload = Join3 { customers: 3, items: 40 };
        let key = |base: &Base| Join3::row(base);
        let mut rows: Vec<_> =
            (0..workload.load_size()).map(|i| key(&workload.loaded(i))).collect();
        for k in 0..1000 {
            let (removed, inserted) = workload.swap(k);
            let removed = key(&removed);
            let position = rows.iter().position(|row| *row == removed);
            rows.swap_remove(position.unwrap_or_else(|| panic!("swap {k} removes {removed:?}")));
            rows.push(key(&inserted));
        }
        assert_eq!(rows.len() as u64, workload.load_size());
    }
}
