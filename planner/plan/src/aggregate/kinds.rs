//! Which aggregates there are, and what SQL calls them.

use crate::types::Type;
use serde::{Deserialize, Serialize};

/// PostgreSQL's names of the aggregates that are computed from what arguments add up to, or that pick one.
pub const SUMMING: [&str; 29] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "var_pop",
    "var_samp",
    "variance",
    "stddev_pop",
    "stddev_samp",
    "stddev",
    "regr_count",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "corr",
    "covar_pop",
    "covar_samp",
];

/// Those of the aggregates that are made of all values in an order.
pub const COLLECTING: [&str; 5] =
    ["array_agg", "string_agg", "mode", "percentile_cont", "percentile_disc"];

/// The aggregates with incremental implementations. Types are those of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AggregateFunc {
    /// `count(*)` or `count(x)`: bigint
    Count,
    /// `sum(smallint|integer)`: bigint, 22003 on overflow
    SumInt,
    /// `sum(bigint)`: numeric
    SumInt8,
    /// `sum(numeric)`
    SumNumeric,
    /// `sum(real)`: real
    SumFloat4,
    /// `sum(double precision)`
    SumFloat8,
    /// `avg(smallint|integer|bigint)`: numeric
    AvgInt,
    /// `avg(numeric)`
    AvgNumeric,
    /// `avg(real|double precision)`: double precision
    AvgFloat,
    /// `min(x)` in the order of the type
    Min(Type),
    /// `max(x)` in the order of the type
    Max(Type),
    /// Variance or standard deviation of `smallint|integer|bigint`: numeric
    SpreadInt(Spread),
    /// Variance or standard deviation of `numeric`
    SpreadNumeric(Spread),
    /// Variance or standard deviation of `real|double precision`: double precision
    SpreadFloat(Spread),
    /// A figure of pairs of double precision ([`Func::Pair`](crate::func::Func::Pair)), the dependent variable first:
    /// double precision
    Regression(Regression),
    /// `bool_and`, `every`
    BoolAnd,
    /// `bool_or`
    BoolOr,
    /// `bit_and(x)` of integers of the type
    BitAnd(Type),
    /// `bit_or(x)` of integers of the type
    BitOr(Type),
    /// `bit_xor(x)` of integers of the type
    BitXor(Type),
    /// An aggregate of all values in an order; the argument is an entry
    /// ([`Func::Entry`](crate::func::Func::Entry)), the type that of the result.
    Collect(Collect, Type),
    /// Some value of the group, NULLs included, the same for the same group: the least as bytes.
    Any,
}

/// What is made of all values of a group in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Collect {
    /// `array_agg(value)`, NULLs included
    Array { distinct: bool },
    /// `array_agg(array)`: an array of one more dimension
    Arrays { distinct: bool },
    /// `string_agg(text, delimiter)`
    Text { distinct: bool },
    /// `string_agg(bytea, delimiter)`
    Bytes { distinct: bool },
    /// The first value that is not NULL: `min`, `max` in an order of the host's
    First,
    /// `mode()`
    Mode,
    /// `percentile_disc(fraction)`: the bits of a double
    PercentileDisc(u64),
    /// `percentile_cont(fraction)` of double precision
    PercentileCont(u64),
}

/// How far values are from their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Spread {
    /// `var_pop`
    VarPop,
    /// `var_samp`, `variance`: NULL for a single value
    VarSamp,
    /// `stddev_pop`
    StddevPop,
    /// `stddev_samp`, `stddev`: NULL for a single value
    StddevSamp,
}

/// What is computed from pairs (y, x).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Regression {
    /// `regr_avgx`
    AvgX,
    /// `regr_avgy`
    AvgY,
    /// `regr_sxx`
    Sxx,
    /// `regr_syy`
    Syy,
    /// `regr_sxy`
    Sxy,
    /// `covar_pop`
    CovarPop,
    /// `covar_samp`: NULL for a single pair
    CovarSamp,
    /// `regr_slope`: NULL if x does not vary
    Slope,
    /// `regr_intercept`: NULL if x does not vary
    Intercept,
    /// `regr_r2`: NULL if x does not vary, otherwise 1 if y does not
    R2,
    /// `corr`: NULL if x or y does not vary
    Corr,
}

impl AggregateFunc {
    /// Whether it makes a difference how often a value is there.
    pub fn counts_duplicates(self) -> bool {
        use AggregateFunc as A;
        !matches!(
            self,
            A::Min(_) | A::Max(_) | A::BoolAnd | A::BoolOr | A::BitAnd(_) | A::BitOr(_) | A::Any
        )
    }
}
impl AggregateFunc {
    /// What SQL calls it.
    pub fn name(self) -> &'static str {
        use AggregateFunc as A;
        match self {
            A::Count => "count",
            A::SumInt | A::SumInt8 | A::SumNumeric | A::SumFloat4 | A::SumFloat8 => "sum",
            A::AvgInt | A::AvgNumeric | A::AvgFloat => "avg",
            A::Min(_) => "min",
            A::Max(_) => "max",
            A::BoolAnd => "bool_and",
            A::BoolOr => "bool_or",
            A::BitAnd(_) => "bit_and",
            A::BitOr(_) => "bit_or",
            A::BitXor(_) => "bit_xor",
            A::SpreadInt(spread) | A::SpreadNumeric(spread) | A::SpreadFloat(spread) => {
                match spread {
                    Spread::VarPop => "var_pop",
                    Spread::VarSamp => "var_samp",
                    Spread::StddevPop => "stddev_pop",
                    Spread::StddevSamp => "stddev_samp",
                }
            }
            A::Regression(regression) => regression.name(),
            A::Collect(collect, _) => match collect {
                Collect::Array { .. } | Collect::Arrays { .. } => "array_agg",
                Collect::Text { .. } | Collect::Bytes { .. } => "string_agg",
                Collect::First => "first",
                Collect::Mode => "mode",
                Collect::PercentileDisc(_) => "percentile_disc",
                Collect::PercentileCont(_) => "percentile_cont",
            },
            A::Any => "any",
        }
    }
}

impl Regression {
    /// All of them.
    pub const ALL: [Regression; 11] = [
        Regression::AvgX,
        Regression::AvgY,
        Regression::Sxx,
        Regression::Syy,
        Regression::Sxy,
        Regression::CovarPop,
        Regression::CovarSamp,
        Regression::Slope,
        Regression::Intercept,
        Regression::R2,
        Regression::Corr,
    ];

    /// The one that SQL calls so.
    pub fn named(name: &str) -> Option<Regression> {
        Regression::ALL.into_iter().find(|regression| regression.name() == name)
    }

    /// What SQL calls the aggregate.
    pub fn name(self) -> &'static str {
        match self {
            Regression::AvgX => "regr_avgx",
            Regression::AvgY => "regr_avgy",
            Regression::Sxx => "regr_sxx",
            Regression::Syy => "regr_syy",
            Regression::Sxy => "regr_sxy",
            Regression::CovarPop => "covar_pop",
            Regression::CovarSamp => "covar_samp",
            Regression::Slope => "regr_slope",
            Regression::Intercept => "regr_intercept",
            Regression::R2 => "regr_r2",
            Regression::Corr => "corr",
        }
    }
}
