//! The rows of TPC-H's tables, drawn from a seed: every table has dice of its own, so its rows depend
//! on the seed and the scale alone.
//!
//! Keys, ranges and shares are those of the specification (TPC-H 4.2.3), but that every query should have
//! rows at scale 0.01: more suppliers have complaints, more comments ask for special requests, and one
//! order in a thousand is a large one.

use harness::dice::Dice;

use super::row::{money, Day, Row};
use super::words::*;

/// Numbers of rows at a scale; 1 means 1,500,000 orders.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub suppliers: i64,
    pub parts: i64,
    pub customers: i64,
    pub orders: i64,
    pub clerks: i64,
    /// Orders that one refresh function inserts or deletes.
    pub refreshed: i64,
}

impl Sizes {
    pub fn of(scale: f64) -> Sizes {
        let rows = |full: f64, least: i64| ((full * scale).round() as i64).max(least);
        Sizes {
            suppliers: rows(10_000.0, 10),
            parts: rows(200_000.0, 20),
            customers: rows(150_000.0, 15),
            orders: rows(1_500_000.0, 150),
            clerks: rows(1000.0, 1),
            refreshed: rows(1500.0, 1),
        }
    }
}

/// An order and its lines.
pub struct Order {
    pub order: Row,
    pub lines: Vec<Row>,
}

pub struct Generator {
    pub sizes: Sizes,
    dice: Dice,
}

/// Lines shipped later are still open.
const TODAY: (i64, u32, u32) = (1995, 6, 17);
/// The first day of an order, and how many days later the last one is.
const FIRST_DAY: (i64, u32, u32) = (1992, 1, 1);
const ORDER_DAYS: i64 = 2405;
const SUPPLIERS_OF_A_PART: i64 = 4;

impl Generator {
    /// `stream` tells the generators of one seed apart.
    pub fn new(sizes: Sizes, seed: u64, stream: u64) -> Generator {
        Generator { sizes, dice: Dice::new(seed.wrapping_mul(1000).wrapping_add(stream)) }
    }

    pub fn region(&mut self, key: i64) -> Row {
        let comment = self.text(31, 115);
        Row::of(&[&key, &REGIONS[key as usize], &comment])
    }

    pub fn nation(&mut self, key: i64) -> Row {
        let (name, region) = NATIONS[key as usize];
        Row::of(&[&key, &name, &region, &self.text(31, 114)])
    }

    pub fn supplier(&mut self, key: i64) -> Row {
        let nation = self.nation_key();
        Row::of(&[
            &key,
            &format!("Supplier#{key:09}"),
            &self.address(),
            &nation,
            &self.phone(nation),
            &self.balance(),
            &self.supplier_comment(),
        ])
    }

    pub fn part(&mut self, key: i64) -> Row {
        let maker = self.dice.range(1, 5);
        Row::of(&[
            &key,
            &self.part_name(),
            &format!("Manufacturer#{maker}"),
            &format!("Brand#{maker}{}", self.dice.range(1, 5)),
            &self.words(&TYPES),
            &self.dice.range(1, 50),
            &self.words(&CONTAINERS),
            &money(retail_price(key)),
            &self.text(5, 22),
        ])
    }

    /// The rows of `partsupp` of a part.
    pub fn stock(&mut self, part: i64) -> Vec<Row> {
        let suppliers = self.sizes.suppliers;
        let row = |number| {
            Row::of(&[
                &part,
                &supplier_of(part, number, suppliers),
                &self.dice.range(1, 9999),
                &money(self.dice.range(100, 100_000)),
                &self.text(49, 198),
            ])
        };
        (0..SUPPLIERS_OF_A_PART).map(row).collect()
    }

    pub fn customer(&mut self, key: i64) -> Row {
        let nation = self.nation_key();
        Row::of(&[
            &key,
            &format!("Customer#{key:09}"),
            &self.address(),
            &nation,
            &self.phone(nation),
            &self.balance(),
            &self.word(&SEGMENTS),
            &self.text(29, 116),
        ])
    }

    pub fn order(&mut self, key: i64) -> Order {
        let day = self.order_day();
        let is_large = self.dice.index(1000) == 0;
        let count = if is_large { 7 } else { self.dice.range(1, 7) };
        let lines: Vec<Line> = (1..=count).map(|_| self.line(day, is_large)).collect();
        let total = lines.iter().map(Line::total).sum();
        let order = Row::of(&[
            &key,
            &self.customer_key(),
            &status(&lines),
            &money(total),
            &day,
            &self.word(&PRIORITIES),
            &format!("Clerk#{:09}", self.dice.range(1, self.sizes.clerks)),
            &0,
            &self.order_comment(),
        ]);
        let lines = (1..).zip(&lines).map(|(number, line)| self.line_row(key, number, line));
        Order { order, lines: lines.collect() }
    }

    fn line(&mut self, ordered: Day, of_large_order: bool) -> Line {
        let part = self.dice.range(1, self.sizes.parts);
        let number = self.dice.range(0, SUPPLIERS_OF_A_PART - 1);
        let quantity = self.dice.range(if of_large_order { 44 } else { 1 }, 50);
        let shipped = ordered.plus(self.dice.range(1, 121));
        Line {
            part,
            supplier: supplier_of(part, number, self.sizes.suppliers),
            quantity,
            price: quantity * retail_price(part),
            discount: self.dice.range(0, 10),
            tax: self.dice.range(0, 8),
            shipped,
            committed: ordered.plus(self.dice.range(30, 90)),
            received: shipped.plus(self.dice.range(1, 30)),
        }
    }

    fn line_row(&mut self, order: i64, number: i64, line: &Line) -> Row {
        let returned = if line.received > today() { "N" } else { self.word(&["R", "A"]) };
        Row::of(&[
            &order,
            &line.part,
            &line.supplier,
            &number,
            &line.quantity,
            &money(line.price),
            &money(line.discount),
            &money(line.tax),
            &returned,
            &line.status(),
            &line.shipped,
            &line.committed,
            &line.received,
            &self.word(&INSTRUCTIONS),
            &self.word(&SHIP_MODES),
            &self.text(10, 43),
        ])
    }

    pub fn order_day(&mut self) -> Day {
        first_day().plus(self.dice.range(0, ORDER_DAYS))
    }

    /// A third of the customers has no orders.
    pub fn customer_key(&mut self) -> i64 {
        let key = self.dice.range(1, self.sizes.customers);
        if key % 3 == 0 {
            key - 1
        } else {
            key
        }
    }

    pub fn nation_key(&mut self) -> i64 {
        self.dice.index(NATIONS.len()) as i64
    }

    /// It begins with the nation's country code.
    pub fn phone(&mut self, nation: i64) -> String {
        let dice = &mut self.dice;
        let (area, exchange) = (dice.range(100, 999), dice.range(100, 999));
        format!("{}-{area}-{exchange}-{}", nation + 10, dice.range(1000, 9999))
    }

    pub fn balance(&mut self) -> String {
        money(self.dice.range(-99_999, 999_999))
    }

    pub fn part_name(&mut self) -> String {
        let mut names: Vec<&str> = Vec::new();
        while names.len() < 5 {
            let colour = self.word(&COLOURS);
            if !names.contains(&colour) {
                names.push(colour);
            }
        }
        names.join(" ")
    }

    pub fn supplier_comment(&mut self) -> String {
        match self.dice.index(50) {
            0 => self.text_with("Customer", "Complaints", 25, 100),
            1 => self.text_with("Customer", "Recommends", 25, 100),
            _ => self.text(25, 100),
        }
    }

    pub fn order_comment(&mut self) -> String {
        if self.dice.chance(4) {
            self.text_with("special", "requests", 30, 78)
        } else {
            self.text(19, 78)
        }
    }

    fn address(&mut self) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ,";
        let length = self.dice.range(10, 40);
        (0..length).map(|_| char::from(*self.dice.pick(LETTERS))).collect()
    }

    fn word(&mut self, words: &[&'static str]) -> &'static str {
        words[self.dice.index(words.len())]
    }

    /// One of each list.
    fn words(&mut self, lists: &[&[&'static str]]) -> String {
        let words: Vec<&str> = lists.iter().map(|list| self.word(list)).collect();
        words.join(" ")
    }

    /// Words of `least` to `most` bytes in all; the last one may be cut.
    pub fn text(&mut self, least: i64, most: i64) -> String {
        let length = self.dice.range(least, most) as usize;
        let mut text = String::new();
        while text.len() < length {
            text.push_str(self.word(&WORDS));
            text.push(' ');
        }
        text.truncate(length);
        text.trim_end().to_owned()
    }

    /// The same with two words in it, the second one some way behind the first.
    fn text_with(&mut self, first: &str, second: &str, least: i64, most: i64) -> String {
        let room = (first.len() + second.len() + 2) as i64;
        let between = self.text(1, 8);
        let rest = room + between.len() as i64;
        let before = self.text((least - rest).max(0), most - rest);
        format!("{before} {first}{between} {second}")
    }
}

/// What the columns of a `lineitem` are derived from; amounts in hundredths.
struct Line {
    part: i64,
    supplier: i64,
    quantity: i64,
    price: i64,
    discount: i64,
    tax: i64,
    shipped: Day,
    committed: Day,
    received: Day,
}

impl Line {
    /// With tax and discount, in hundredths.
    fn total(&self) -> i64 {
        (self.price * (100 + self.tax) * (100 - self.discount) + 5000) / 10_000
    }

    fn status(&self) -> &'static str {
        if self.shipped > today() {
            "O"
        } else {
            "F"
        }
    }
}

/// An order is partly open while some of its lines are.
fn status(lines: &[Line]) -> &'static str {
    let open = lines.iter().filter(|line| line.status() == "O").count();
    match open {
        0 => "F",
        open if open == lines.len() => "O",
        _ => "P",
    }
}

/// The key of an order by its number, from 0: eight of 32 keys are used, the rest is for later orders.
pub fn order_key(number: i64) -> i64 {
    number / 8 * 32 + number % 8 + 1
}

/// The key of a later order, beside the one of that number.
pub fn later_order_key(number: i64) -> i64 {
    order_key(number) + 8
}

fn first_day() -> Day {
    Day::of(FIRST_DAY.0, FIRST_DAY.1, FIRST_DAY.2)
}

fn today() -> Day {
    Day::of(TODAY.0, TODAY.1, TODAY.2)
}

/// In hundredths.
pub fn retail_price(part: i64) -> i64 {
    90_000 + part / 10 % 20_001 + 100 * (part % 1000)
}

/// One of a part's suppliers. The stride between them is from a quarter to a third of all suppliers, so
/// they are four different ones.
pub fn supplier_of(part: i64, number: i64, suppliers: i64) -> i64 {
    let stride = suppliers / 4 + (part - 1) / suppliers % (suppliers / 12).max(1);
    (part + number * stride) % suppliers + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_part_has_four_suppliers_at_any_scale() {
        for suppliers in [10, 11, 20, 30, 100, 1000] {
            for part in 1..=20 * suppliers {
                let of_part: BTreeSet<i64> =
                    (0..4).map(|number| supplier_of(part, number, suppliers)).collect();
                assert_eq!(of_part.len(), 4, "part {part} of {suppliers} suppliers");
                assert!(of_part.iter().all(|key| (1..=suppliers).contains(key)));
            }
        }
    }

    #[test]
    fn rows_depend_on_the_seed_alone() {
        let order = |seed| {
            let mut generator = Generator::new(Sizes::of(0.001), seed, 0);
            let Order { order, lines } = generator.order(order_key(7));
            lines.iter().fold(order.copy_line(), |text, line| text + &line.copy_line())
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn later_orders_have_keys_of_their_own() {
        let keys: BTreeSet<i64> =
            (0..100).flat_map(|n| [order_key(n), later_order_key(n)]).collect();
        assert_eq!(keys.len(), 200);
    }
}
