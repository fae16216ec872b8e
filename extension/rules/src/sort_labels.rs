//! Labels: bytes that are in the order of what they stand for, with room between any two.
//!
//! A label is a fraction between 0 and 1, written as words of eight bytes without the zeros at its end. A new one goes a
//! step beside the younger of its neighbours, as values often come in their order, or in its reverse: so hundreds of
//! millions that follow each other share a word, wherever they do. Values that come in no order need a word or two.

/// How far apart labels are that follow each other.
const STEP: u128 = 1 << 36;

/// What there is of a word.
const WORD: usize = 8;

/// A label, with its number among all labels that were given.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour<'a> {
    pub label: &'a [u8],
    pub number: u64,
}

/// Bytes between those of two labels, or beyond the last one on a side. Labels do not end in zero, so that there is always room.
pub fn between(before: Option<Neighbour<'_>>, after: Option<Neighbour<'_>>) -> Box<[u8]> {
    let is_ascending = match (before, after) {
        (Some(before), Some(after)) => before.number > after.number,
        (before, _) => before.is_some(),
    };
    let is_first = before.is_none() && after.is_none();
    let low_label = before.map_or(&[][..], |before| before.label);
    let mut high_label = after.map(|after| after.label);
    let mut label = Vec::new();
    loop {
        let low = word(low_label, label.len());
        let high = high_label.map_or(1 << 64, |label_after| word(label_after, label.len()));
        let gap = high - low;
        if gap > 1 {
            let step = if is_first { gap / 2 } else { STEP.min(gap / 2) };
            let chosen = if is_ascending { low + step } else { high - step };
            label.extend_from_slice(&(chosen as u64).to_be_bytes());
            let end = label.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            label.truncate(end);
            return label.into();
        }
        label.extend_from_slice(&(low as u64).to_be_bytes());
        if gap == 1 {
            // Whatever follows is less than the label after.
            high_label = None;
        }
    }
}

/// The word of a label from a byte on.
fn word(label: &[u8], from: usize) -> u128 {
    let mut bytes = [0; WORD];
    let rest = label.get(from..).unwrap_or_default();
    let len = rest.len().min(WORD);
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The length of the longest label of numbers that come in this order; all are in order.
    fn longest(numbers: impl Iterator<Item = u64>) -> usize {
        let mut labels: BTreeMap<u64, (Box<[u8]>, u64)> = BTreeMap::new();
        for (count, number) in (0..).zip(numbers) {
            if labels.contains_key(&number) {
                continue;
            }
            fn neighbour<'a>((_, (label, number)): (&u64, &'a (Box<[u8]>, u64))) -> Neighbour<'a> {
                Neighbour { label, number: *number }
            }
            let before = labels.range(..number).next_back().map(neighbour);
            let after = labels.range(number..).next().map(neighbour);
            let label = between(before, after);
            assert!(label.last() != Some(&0));
            assert!(before.is_none_or(|before| before.label < &*label));
            assert!(after.is_none_or(|after| &*label < after.label));
            labels.insert(number, (label, count));
        }
        labels.values().map(|(label, _)| label.len()).max().unwrap_or(0)
    }

    #[test]
    fn labels_are_short() {
        const MANY: u64 = 100_000;
        let below_one = std::iter::once(MANY * 9).chain(0..MANY);
        let above_one = std::iter::once(0).chain((1..MANY).rev());
        assert!(longest(0..MANY) <= 8);
        assert!(longest((0..MANY).rev()) <= 8);
        assert!(longest(below_one) <= 24);
        assert!(longest(above_one) <= 24);
        let runs = (0..MANY).map(|i| i % 10 * MANY + i);
        assert!(longest(runs.clone()) <= 32, "{}", longest(runs));
        let falling = (0..MANY).map(|i| i % 10 * MANY + (MANY - i));
        assert!(longest(falling.clone()) <= 32, "{}", longest(falling));
        let mixed = (0..MANY).map(|i| i * 7_919_777 % 1_000_003);
        assert!(longest(mixed.clone()) <= 40, "{}", longest(mixed));
        let ends = (0..MANY).map(|i| if i % 2 == 0 { MANY + i } else { MANY - i });
        assert!(longest(ends) <= 8);
    }

    #[test]
    fn there_is_always_room() {
        // From both sides towards the middle: a bit each time.
        assert!(longest((0..2000).map(|i| if i % 2 == 0 { i } else { 4000 - i })) <= 500);
    }
}
