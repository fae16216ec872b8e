//! The column types that views support, with literals that meet often and meet the edges.

use crate::dice::Dice;

/// What can be done with values of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Arithmetic, min and max.
    Number,
    /// Min and max.
    Ordered,
    /// Neither.
    Plain,
}

/// The table of types: variant, SQL name, class.
macro_rules! types {
    ($($variant:ident $name:literal $class:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Type {
            $($variant,)*
        }

        pub const ALL: &[Type] = &[$(Type::$variant,)*];

        impl Type {
            pub fn name(self) -> &'static str {
                match self {
                    $(Type::$variant => $name,)*
                }
            }

            fn class(self) -> Class {
                match self {
                    $(Type::$variant => Class::$class,)*
                }
            }
        }
    };
}

types! {
    Bool "boolean" Plain,
    Int2 "smallint" Number,
    Int4 "integer" Number,
    Int8 "bigint" Number,
    Float4 "real" Number,
    Float8 "double precision" Number,
    Numeric "numeric" Number,
    Text "text" Ordered,
    Varchar "varchar" Ordered,
    Char "char(4)" Ordered,
    Date "date" Ordered,
    Timestamp "timestamp" Ordered,
    Timestamptz "timestamptz" Ordered,
    Uuid "uuid" Plain,
    Bytea "bytea" Plain,
    Int4Array "integer[]" Ordered,
    TextArray "text[]" Ordered,
}

use Type::*;

impl Type {
    pub fn is_number(self) -> bool {
        self.class() == Class::Number
    }

    /// Types for which min and max exist.
    pub fn has_min(self) -> bool {
        self.class() != Class::Plain
    }

    /// A typed literal, sometimes NULL.
    pub fn literal(self, dice: &mut Dice) -> String {
        if dice.chance(12) {
            return format!("NULL::{}", self.name());
        }
        format!("'{}'::{}", self.text(dice), self.name())
    }

    /// A typed literal that is not NULL.
    pub fn present(self, dice: &mut Dice) -> String {
        format!("'{}'::{}", self.text(dice), self.name())
    }

    /// Sums of the floats here are exact, whatever the order of addition.
    fn text(self, dice: &mut Dice) -> String {
        let small = dice.range(-3, 9);
        match self {
            Bool => dice.pick(&["true", "false"]).to_string(),
            Int2 | Int4 | Int8 => small.to_string(),
            Float4 | Float8 if dice.chance(8) => {
                dice.pick(&["NaN", "Infinity", "-Infinity", "-0"]).to_string()
            }
            Float4 | Float8 => format!("{}", small as f64 / 4.0),
            Numeric if dice.chance(4) => "NaN".to_string(),
            Numeric => format!("{small}{}", dice.pick(&["", ".0", ".5", ".50", ".25"])),
            Text | Varchar => self.word(dice),
            Char => dice.pick(&["", "a", "ab", "abc", "b", "B"]).to_string(),
            Date => format!("2024-02-{:02}", 24 + dice.range(0, 5)),
            Timestamp => format!("2024-02-29 23:59:5{}.{}", dice.range(0, 9), dice.range(0, 2)),
            Timestamptz => {
                format!(
                    "2024-02-29 2{}:30:00{}",
                    dice.range(0, 2),
                    dice.pick(&["+00", "+01", "-03"])
                )
            }
            Uuid => format!("00000000-0000-0000-0000-00000000000{}", dice.range(0, 9)),
            Bytea => format!("\\x{}", dice.pick(&["", "00", "0001", "ff", "deadbeef"])),
            Int4Array => format!("{{{}}}", list(dice, |d| d.range(0, 4).to_string())),
            TextArray => {
                format!("{{{}}}", list(dice, |d| d.pick(&["a", "b", "\"\"", "NULL"]).to_string()))
            }
        }
    }

    /// Mostly short words; now and then one that is stored out of line.
    fn word(self, dice: &mut Dice) -> String {
        if self == Text && dice.chance(2) {
            // Digits of a linear congruence compress badly, so the value is really toasted.
            let mut state = dice.range(1, 1 << 30) as u64;
            return (0..900)
                .map(|_| {
                    state =
                        state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    format!("{:08x}", state >> 32)
                })
                .collect();
        }
        dice.pick(&["", "a", "A", "ab", "b", "ä", "a b", "%", "zz", "é€"]).to_string()
    }
}

fn list(dice: &mut Dice, mut item: impl FnMut(&mut Dice) -> String) -> String {
    let items: Vec<String> = (0..dice.range(0, 3)).map(|_| item(dice)).collect();
    items.join(",")
}
