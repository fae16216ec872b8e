//! Texts that mean the present time where they become dates and times: `now`, `today`, `tomorrow` and `yesterday`.
//!
//! What is made of one changes without a change of a table, so it is an error of its row. Such a word may also be a part of a
//! text that means something else; whether it matters is seen by evaluating the row as if it were another time.

use crate::errors::Error;
use crate::pg::code::Times;
use crate::pg::evaluate::{Answer, PRESENT};
use crate::pg::xact;
use plan::row::Row;

/// Parts of all of these words, as lower case.
const WORDS: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];

/// Puts errors in place of answers that would be others at another time, and leaves out those for which there is no time to
/// find out. `run` answers rows, the first of them if time is over.
pub fn refuse(
    times: Times,
    rows: &[Row],
    answers: &mut Vec<Answer>,
    run: impl Fn(&[Row]) -> Vec<Answer>,
) {
    let is_doubtful = |row: &Row| match times {
        Times::None => false,
        Times::OfArguments => has_word(row.as_bytes()),
        Times::OfTexts => true,
    };
    let answered = rows.iter().take(answers.len()).enumerate();
    let doubtful: Vec<usize> =
        answered.filter(|(_, row)| is_doubtful(row)).map(|(index, _)| index).collect();
    if doubtful.is_empty() {
        return;
    }
    let again: Vec<Row> = doubtful.iter().map(|index| rows[*index].clone()).collect();
    for time in [PRESENT.start, PRESENT.end] {
        let others = xact::at_time(time, || run(&again));
        if let Some(first_left) = doubtful.get(others.len()) {
            answers.truncate(*first_left);
        }
        for (index, other) in doubtful.iter().zip(others) {
            match answers.get_mut(*index) {
                Some(answer) if !is_same(answer, &other) => {
                    *answer = Err(Error::present_word().into());
                }
                _ => {}
            }
        }
    }
}

fn is_same(answer: &Answer, other: &Answer) -> bool {
    match (answer, other) {
        (Ok(answer), Ok(other)) => Row::pack([answer]) == Row::pack([other]),
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

/// Whether a text may be such a word, or have one in it.
pub fn has_word(bytes: &[u8]) -> bool {
    WORDS.iter().any(|word| bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}
