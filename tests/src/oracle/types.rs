//! The column types that views support, with literals that meet often and meet the edges.

use super::draws::Draws;
use super::feature::Feature;

/// What can be done with values of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Arithmetic, min and max.
    Number,
    /// Has min and max, but no sum.
    Ordered,
    /// Has neither.
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
    Posix "text COLLATE \"C\"" Ordered,
    Icu "text COLLATE \"und-x-icu\"" Ordered,
    Caseless "text COLLATE caseless" Ordered,
    Char "char(4)" Ordered,
    Date "date" Ordered,
    Timestamp "timestamp" Ordered,
    Timestamptz "timestamptz" Ordered,
    Uuid "uuid" Plain,
    Bytea "bytea" Plain,
    Int4Array "integer[]" Ordered,
    TextArray "text[]" Ordered,
    Matrix "integer[]" Ordered,
    Mood "mood" Ordered,
    Jsonb "jsonb" Plain,
    Interval "interval" Ordered,
    Int4Range "int4range" Plain,
    Inet "inet" Ordered,
    Time "time" Ordered,
    Small "small" Plain,
    Pair "pair" Plain,
}

/// Statements that create the types, collations and aggregates of users' own.
pub const OWN_TYPES: [&str; 6] = [
    "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE DOMAIN small AS integer CHECK (VALUE < 100)",
    "CREATE TYPE pair AS (x integer, y numeric)",
    "CREATE AGGREGATE xor_of(integer) (SFUNC = int4xor, STYPE = integer, INITCOND = '0')",
    "CREATE AGGREGATE joined(text) (SFUNC = textcat, STYPE = text)",
];

/// Arrays of several dimensions, and what passes for one.
const MATRICES: [&str; 8] = [
    "{{1,2},{3,4}}",
    "{{1,2}}",
    "{{1},{2}}",
    "[0:1][1:1]={{1},{2}}",
    "{{NULL,1}}",
    "{{{1,2}}}",
    "{1,2}",
    "{}",
];

/// Values of `jsonb`, of which some are equal but written differently.
const DOCUMENTS: [&str; 8] =
    ["1", "1.0", "\"a\"", "null", "{}", "{\"a\": 1}", "{\"a\": 1.00, \"b\": []}", "[1, 2]"];

/// Intervals, of which some are equal but written differently.
const SPANS: [&str; 7] = ["1 day", "24 hours", "1 mon", "30 days", "-1 day", "00:00", "1:30"];

use Type::*;

impl Type {
    pub fn is_number(self) -> bool {
        self.class() == Class::Number
    }

    /// Types for which min and max exist.
    pub fn has_min(self) -> bool {
        self.class() != Class::Plain
    }

    /// The type, or now and then another one that compares with it.
    pub fn comparable(self, dice: &mut Draws) -> Type {
        let family: &[Type] = match self {
            Text | Varchar | Char => &[Text, Varchar, Char],
            Int2 | Int4 | Int8 | Numeric | Float8 | Small => &[Int2, Int4, Int8, Numeric, Float8],
            Date | Timestamp => &[Date, Timestamp],
            _ => return self,
        };
        match dice.takes(30, Feature::OtherType) {
            true => *dice.pick(family),
            false => self,
        }
    }

    /// A typed literal, sometimes NULL.
    pub fn literal(self, dice: &mut Draws) -> String {
        if dice.takes(12, Feature::Null) {
            return self.typed("NULL");
        }
        self.present(dice)
    }

    /// A typed literal that is not NULL.
    pub fn present(self, dice: &mut Draws) -> String {
        let text = self.text(dice);
        self.typed(&format!("'{text}'"))
    }

    fn typed(self, literal: &str) -> String {
        match self {
            // COLLATE is no part of the operands of BETWEEN.
            Posix | Icu | Caseless => format!("({literal}::{})", self.name()),
            _ => format!("{literal}::{}", self.name()),
        }
    }

    /// Sums of the floats here are exact, whatever the order of addition.
    fn text(self, dice: &mut Draws) -> String {
        let small = dice.range(-3, 9);
        match self {
            Bool => dice.pick(&["true", "false"]).to_string(),
            Int2 | Int4 | Int8 => small.to_string(),
            Float4 | Float8 => float(dice, small),
            Numeric => numeric(dice, small),
            Text | Varchar | Posix | Icu | Caseless => self.word(dice),
            Char => {
                let text = *dice.pick(&["", "a", "ab", "abc", "b", "B"]);
                dice.record_if(text.is_empty(), Feature::EmptyChar);
                text.to_string()
            }
            Date => format!("2024-02-{:02}", 24 + dice.range(0, 5)),
            Timestamp => format!("2024-02-29 23:59:5{}.{}", dice.range(0, 9), dice.range(0, 2)),
            Timestamptz => zoned_time(dice),
            Uuid => format!("00000000-0000-0000-0000-00000000000{}", dice.range(0, 9)),
            Bytea => {
                let bytes = *dice.pick(&["", "00", "0001", "ff", "deadbeef"]);
                dice.record_if(bytes.is_empty(), Feature::EmptyBytes);
                format!("\\x{bytes}")
            }
            Int4Array => list(dice, |dice| dice.range(0, 4).to_string()),
            Matrix => {
                dice.record(Feature::ArrayOfSeveral);
                dice.pick(&MATRICES).to_string()
            }
            TextArray => list(dice, |dice| {
                let text = *dice.pick(&["a", "b", "\"\"", "NULL"]);
                dice.record_if(text == "NULL", Feature::NullInArray);
                text.to_string()
            }),
            Mood => dice.pick(&["sad", "ok", "happy"]).to_string(),
            Jsonb => dice.pick(&DOCUMENTS).to_string(),
            Interval => dice.pick(&SPANS).to_string(),
            Int4Range => dice.pick(&["[1,5)", "[1,4]", "empty", "(,3)", "[2,)"]).to_string(),
            Inet => dice.pick(&["10.0.0.1", "10.0.0.0/8", "10.0.0.1/8", "::1"]).to_string(),
            Time => format!("1{}:30", dice.range(0, 3)),
            Small => small.to_string(),
            Pair => dice.pick(&["(1,1)", "(1,1.0)", "(2,)", "(,)", "(1,0.5)"]).to_string(),
        }
    }

    /// Mostly short words; now and then one that is stored out of line.
    fn word(self, dice: &mut Draws) -> String {
        if self == Text && dice.takes(2, Feature::LongText) {
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
        let word = *dice.pick(&["", "a", "A", "ab", "b", "ä", "a b", "%", "zz", "é€"]);
        dice.record_if(word.is_empty(), Feature::EmptyText);
        dice.record_if(!word.is_ascii(), Feature::MultibyteText);
        word.to_string()
    }
}

fn float(dice: &mut Draws, small: i64) -> String {
    if dice.chance(20) {
        use Feature::{Infinity, Nan, NegativeInfinity, NegativeZero};
        let rules = [Nan, Infinity, NegativeInfinity, NegativeZero];
        return dice.rule(&rules.map(|rule| (1, rule))).name().to_string();
    }
    format!("{}", small as f64 / 4.0)
}

fn numeric(dice: &mut Draws, small: i64) -> String {
    if dice.takes(4, Feature::NumericNan) {
        return "NaN".to_string();
    }
    let fraction = *dice.pick(&["", ".0", ".5", ".50", ".25"]);
    dice.record_if(fraction.ends_with('0'), Feature::TrailingZero);
    format!("{small}{fraction}")
}

fn zoned_time(dice: &mut Draws) -> String {
    if dice.takes(10, Feature::InfiniteTime) {
        return dice.pick(&["infinity", "-infinity"]).to_string();
    }
    let (hour, zone) = (dice.range(0, 2), *dice.pick(&["+00", "+01", "-03"]));
    dice.record_if(zone != "+00", Feature::TimeZone);
    format!("2024-02-29 2{hour}:30:00{zone}")
}

fn list(dice: &mut Draws, mut item: impl FnMut(&mut Draws) -> String) -> String {
    let items: Vec<String> = (0..dice.range(0, 3)).map(|_| item(dice)).collect();
    dice.record_if(items.is_empty(), Feature::EmptyArray);
    format!("{{{}}}", items.join(","))
}
