//! Random values for property tests. A failure prints the seed; set PLANNER_SEED to run it again.

mod random;

use plan::numeric::Numeric;
use plan::types::{Scalar, Type};
use plan::value::{Array, Datum, Dimension};
pub use random::Random;

/// Every scalar type.
pub const SCALARS: [Scalar; 15] = [
    Scalar::Bool,
    Scalar::Int2,
    Scalar::Int4,
    Scalar::Int8,
    Scalar::Float4,
    Scalar::Float8,
    Scalar::Numeric,
    Scalar::Text,
    Scalar::Varchar,
    Scalar::Char,
    Scalar::Date,
    Scalar::Timestamp,
    Scalar::Timestamptz,
    Scalar::Uuid,
    Scalar::Bytea,
];

impl Random {
    /// Seeded from the environment, or fixed; printed for a failing test's output.
    pub fn seeded() -> Random {
        let seed = std::env::var("PLANNER_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(20_240_229);
        eprintln!("PLANNER_SEED={seed}");
        Random::new(seed)
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }

    fn integer(&mut self) -> i64 {
        match self.below(4) {
            0 => self.pick(&[i64::MIN, i64::MAX, 0, -1]),
            1 => self.next() as i64 >> self.below(64),
            _ => self.below(7) as i64 - 3,
        }
    }

    fn float(&mut self) -> f64 {
        match self.below(6) {
            0 => self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0]),
            1 => f64::from_bits(self.next()),
            2 => self.pick(&[1e300, -1e300, 5e-324, 1.797_693_134_862_315_7e308]),
            _ => self.integer() as i32 as f64 / self.pick(&[1.0, 4.0, 10.0, 3.0]),
        }
    }

    fn numeric(&mut self) -> Numeric {
        match self.below(12) {
            0 => self.pick(&[Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY]),
            1 => {
                let bytes: Vec<u8> = (0..20).map(|_| self.next() as u8).collect();
                Numeric::from_magnitude(self.below(2) == 0, &bytes, self.below(30) as u16)
            }
            2..=5 => {
                let zeros = 10i64.pow(self.below(5) as u32);
                Numeric::from_small(self.integer() % 100 * zeros, self.below(5) as u16)
            }
            _ => Numeric::from_small(self.integer(), self.below(6) as u16),
        }
    }

    fn text(&mut self) -> String {
        let length = self.below(6);
        (0..length).map(|_| self.pick(&['a', 'b', 'A', ' ', 'ß', '%', '_', '\\'])).collect()
    }

    pub fn scalar(&mut self, ty: Scalar) -> Datum {
        match ty {
            Scalar::Bool => Datum::Bool(self.below(2) == 0),
            Scalar::Int2 => Datum::Int2(self.integer() as i16),
            Scalar::Int4 => Datum::Int4(self.integer() as i32),
            Scalar::Int8 => Datum::Int8(self.integer()),
            Scalar::Float4 => Datum::Float4(self.float() as f32),
            Scalar::Float8 => Datum::Float8(self.float()),
            Scalar::Numeric => Datum::Numeric(self.numeric()),
            Scalar::Text | Scalar::Varchar | Scalar::Char => Datum::text(self.text()),
            Scalar::Date => Datum::Date(self.integer() as i32),
            Scalar::Timestamp | Scalar::Timestamptz => Datum::Timestamp(self.integer()),
            Scalar::Uuid => Datum::Uuid([self.below(3) as u8; 16]),
            Scalar::Bytea | Scalar::Host(_) => Datum::Bytea(self.text().into_bytes().into()),
        }
    }

    /// A value of the type, sometimes NULL.
    pub fn datum(&mut self, ty: Type) -> Datum {
        match ty {
            _ if self.below(8) == 0 => Datum::Null,
            Type::Scalar(scalar) => self.scalar(scalar),
            Type::Array(element) => {
                let length = self.below(4);
                let elements = (0..length).map(|_| self.datum(element.into())).collect();
                let lower_bound = if length == 0 || self.below(4) > 0 { 1 } else { 2 };
                let inner = match length % 2 {
                    0 if length > 0 && self.below(3) == 0 => {
                        vec![Dimension { length: 2, lower_bound: self.below(2) as i32 }]
                    }
                    _ => vec![],
                };
                Array { lower_bound, inner, elements }.into()
            }
        }
    }

    #[allow(dead_code, reason = "not every user of this module draws types")]
    pub fn ty(&mut self) -> Type {
        let scalar = self.pick(&SCALARS);
        if self.below(4) == 0 {
            Type::Array(scalar)
        } else {
            Type::Scalar(scalar)
        }
    }
}
