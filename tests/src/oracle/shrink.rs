//! Delta debugging: the part of a list that still shows a failure.

/// Leaves out as much of `items` as it can while `fails` holds of what is left, which it holds of `items`: runs of
/// items of halving lengths, single ones until none can go. What is left is minimal in the sense that leaving out
/// any single item makes the failure go away, unless `fails` gave up meanwhile: it may always say no.
pub fn minimize<T: Clone>(items: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = items;
    let mut length = kept.len();
    while length > 0 {
        let before = kept.len();
        // From the end: what is late depends on what is early, seldom the other way round.
        let mut end = kept.len();
        while end > 0 {
            let start = end.saturating_sub(length);
            let rest = [&kept[..start], &kept[end..]].concat();
            if fails(&rest) {
                kept = rest;
            }
            end = start;
        }
        length = match (length, kept.len() < before) {
            (1, true) => 1,
            (1, false) => 0,
            _ => (length / 2).min(kept.len().max(1)),
        };
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_in_its_order() {
        let items: Vec<u32> = (0..100).collect();
        let mut tries = 0;
        let kept = minimize(items, |rest| {
            tries += 1;
            [7, 8, 63].iter().all(|needed| rest.contains(needed))
        });
        assert_eq!(kept, [7, 8, 63]);
        assert!(tries < 100, "{tries} tries");
    }

    #[test]
    fn nothing_is_needed_of_what_fails_by_itself() {
        assert!(minimize((0..10).collect(), |_: &[u32]| true).is_empty());
        assert!(minimize(Vec::new(), |_: &[u32]| true).is_empty());
    }

    #[test]
    fn the_result_is_minimal_though_parts_depend_on_each_other() {
        // A number counts only behind its predecessor, and 9 is needed: the chain stays.
        let fails = |rest: &[u32]| {
            let mut next = 0;
            rest.iter().for_each(|item| next += u32::from(*item == next));
            next == 10
        };
        let items = [0, 5, 1, 2, 9, 3, 4, 5, 6, 7, 8, 9, 9];
        assert_eq!(minimize(items.to_vec(), fails), (0..10).collect::<Vec<u32>>());
    }

    #[test]
    fn no_single_item_can_go_though_two_together_might() {
        let fails = |rest: &[u32]| rest.contains(&4) && rest.len() % 2 == 1;
        let kept = minimize((0..9).collect(), fails);
        assert!(fails(&kept));
        for left_out in 0..kept.len() {
            assert!(!fails(&[&kept[..left_out], &kept[left_out + 1..]].concat()));
        }
    }

    #[test]
    fn a_test_that_gives_up_leaves_what_failed_last() {
        let mut tries = 0;
        let kept = minimize((0..8).collect::<Vec<u32>>(), |rest| {
            tries += 1;
            tries <= 3 && rest.contains(&0)
        });
        assert!(kept.contains(&0) && kept.len() < 8);
    }
}
