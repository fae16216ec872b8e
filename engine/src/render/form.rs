//! How a dataflow represents rows and times.

use crate::layout::infer::{source_columns, widths_of, Split};
use crate::layout::{ColumnType, Fields};
use plan::expr::Expr;
use plan::{Source, ViewPlan, MAX_NESTED_LOOPS};
use serde::{Deserialize, Serialize};

/// Words of rows, keys and values of the layouts of fixed width, the smallest first.
const WIDTHS: [(usize, usize, usize); 4] = [(2, 1, 1), (6, 1, 1), (4, 2, 2), (8, 4, 6)];

/// How a dataflow represents rows and times. Dataflows of one form can read each other's indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Form {
    /// Which of [`WIDTHS`]; `None` for rows that describe themselves.
    words: Option<usize>,
    /// Loops that its times count.
    pub(super) loops: usize,
}

impl Form {
    /// The first that a plan fits: what is in arrangements counts more than rows on their way.
    pub fn of(plan: &ViewPlan) -> Form {
        let widths = widths_of(plan);
        let fits = |(row, key, val): &(usize, usize, usize)| {
            widths.is_some_and(|w| w.row <= *row && w.key <= *key && w.val <= *val)
        };
        // Stamps and rows are copied and compared all the time: they should be no larger than the plan needs.
        match plan.root.nested_loops() {
            loops @ (0 | 1) => Form { words: WIDTHS.iter().position(fits), loops },
            _ => Form { words: None, loops: MAX_NESTED_LOOPS },
        }
    }

    /// Whether dataflows of this form can have a plan.
    pub fn fits(self, plan: &ViewPlan) -> bool {
        let least = Form::of(plan);
        let is_wide = match (self.widths(), least.widths()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(has), Some(needs)) => has.0 >= needs.0 && has.1 >= needs.1 && has.2 >= needs.2,
        };
        self.loops >= least.loops && is_wide
    }

    /// The first that dataflows of either can be of.
    pub fn and(self, other: Form) -> Form {
        let (one, two) = (self.widths(), other.widths());
        let widest = one.zip(two).map(|(a, b)| (a.0.max(b.0), a.1.max(b.1), a.2.max(b.2)));
        let fits = |needs: (usize, usize, usize)| {
            let is_wide = |has: &(usize, usize, usize)| {
                has.0 >= needs.0 && has.1 >= needs.1 && has.2 >= needs.2
            };
            WIDTHS.iter().position(is_wide)
        };
        Form { words: widest.and_then(fits), loops: self.loops.max(other.loops) }
    }

    /// The first behind this one that also has the rows of a source, arranged by some of its columns.
    pub fn with(self, source: &Source, key: &[usize]) -> Form {
        let wider = self.words.map_or(WIDTHS.len(), |words| words)..WIDTHS.len();
        let mut wider = wider.map(|words| Form { words: Some(words), ..self });
        let is_wide = |form: &Form| {
            let (has, needs) =
                (form.widths().unwrap_or_default(), self.widths().unwrap_or_default());
            has.0 >= needs.0 && has.1 >= needs.1 && has.2 >= needs.2 && form.holds(source, key)
        };
        wider.find(is_wide).unwrap_or(Form { words: None, ..self })
    }

    /// A number that no other form has.
    pub fn number(self) -> u32 {
        let words = self.words.map_or(0, |words| words + 1);
        (words * (MAX_NESTED_LOOPS + 1) + self.loops) as u32
    }

    /// Whether dataflows of this form can have the rows of a source, arranged by some of its columns.
    pub(super) fn holds(self, source: &Source, key: &[usize]) -> bool {
        let Some((row, key_words, val)) = self.widths() else {
            return true;
        };
        let columns = source_columns(source);
        let key: Vec<Expr> = key.iter().copied().map(Expr::Column).collect();
        let split = Split::of(&columns, &key);
        let fits = |columns: &[ColumnType], words: usize| {
            Fields::of(columns).is_some_and(|fields| fields.words() <= words)
        };
        fits(&columns, row) && fits(&split.key, key_words) && fits(&split.val, val)
    }

    /// Words of rows, keys and values; `None` for rows that describe themselves.
    pub(super) fn widths(self) -> Option<(usize, usize, usize)> {
        self.words.map(|words| WIDTHS[words])
    }
}
