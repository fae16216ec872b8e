//! All rules together keep all properties, in every scenario; and each rule is needed.

use super::properties::*;
use super::reads::{Isolation::*, Session};
use super::*;
use stateright::{Checker, HasDiscoveries};
use std::time::Instant;

const A: Views = 1;
const B: Views = 2;
const BOTH: Views = A | B;

const NOTHING_ELSE: Left =
    Left { worker_ends: 0, launcher_ends: 0, crashes: 0, locks: 0, refreshes: 0, changes: 0 };

/// Two transactions, one of which changes the tables of both views, while a worker is running.
fn writers() -> Protocol {
    Protocol {
        rules: Rules::ALL,
        changes: vec![A, BOTH],
        stacked: false,
        readers: Vec::new(),
        is_running: true,
        slow: 0,
        large: 0,
        disturbed: 0,
        standby: false,
        left: NOTHING_ELSE,
    }
}

/// The same with somebody who reads.
fn reader(isolation: reads::Isolation, first: Views, second: Views) -> Protocol {
    Protocol { readers: vec![Session { isolation, first, second }], ..writers() }
}

fn slow_view() -> Protocol {
    Protocol { slow: B, ..reader(ReadCommitted, BOTH, 0) }
}

fn large_view() -> Protocol {
    Protocol { large: B, slow: A, ..reader(ReadCommitted, BOTH, 0) }
}

fn locked_view() -> Protocol {
    let left = Left { locks: 1, ..NOTHING_ELSE };
    Protocol { disturbed: B, left, ..reader(ReadCommitted, BOTH, 0) }
}

fn refreshed_view(isolation: reads::Isolation, first: Views, second: Views) -> Protocol {
    let left = Left { refreshes: 1, ..NOTHING_ELSE };
    Protocol { disturbed: B, left, ..reader(isolation, first, second) }
}

/// No worker has ever been, and transactions are in the middle when one comes.
fn starting() -> Protocol {
    Protocol { is_running: false, ..writers() }
}

fn launcher_ends() -> Protocol {
    let left = Left { launcher_ends: 1, worker_ends: 1, ..NOTHING_ELSE };
    one_writer(Protocol { left, ..starting() })
}

fn three_writers() -> Protocol {
    Protocol { changes: vec![A, BOTH, B], slow: B, standby: true, ..writers() }
}

fn worker_ends() -> Left {
    Left { worker_ends: 1, ..NOTHING_ELSE }
}

fn large_refreshed() -> Protocol {
    one_writer(Protocol { large: B, ..refreshed_view(ReadCommitted, 0, 0) })
}

fn large_attached_again() -> Protocol {
    let left = Left { changes: 1, ..NOTHING_ELSE };
    Protocol { left, readers: vec![], ..large_view() }
}

fn server_crashes() -> Left {
    Left { crashes: 1, ..NOTHING_ELSE }
}

/// Of the transactions, only the one that changes the tables of both views.
fn one_writer(protocol: Protocol) -> Protocol {
    Protocol { changes: vec![BOTH], ..protocol }
}

fn whole_statement() -> Protocol {
    reader(ReadCommitted, BOTH, 0)
}

/// The second view reads the first one.
fn stacked(protocol: Protocol) -> Protocol {
    let changes = protocol.changes.iter().map(|_| A).collect();
    Protocol { stacked: true, changes, ..protocol }
}

/// A view beneath that may take long, or is to be attached again.
fn stacked_slow() -> Protocol {
    stacked(Protocol { slow: A, ..reader(ReadCommitted, BOTH, 0) })
}

fn stacked_attached_again() -> Protocol {
    let left = Left { changes: 1, ..NOTHING_ELSE };
    stacked(Protocol { large: A, left, ..writers() })
}

/// The scenarios that are searched from end to end.
fn scenarios() -> Vec<(&'static str, Protocol)> {
    let other_first = |isolation| reader(isolation, 0, BOTH);
    let ends =
        Left { worker_ends: 1, crashes: 1, locks: 1, refreshes: 0, launcher_ends: 0, changes: 0 };
    let two = Session { isolation: RepeatableRead, first: A, second: BOTH };
    let readers = vec![whole_statement().readers[0], two];
    vec![
        ("one statement, a slow view", slow_view()),
        ("one statement, a view with much to be written", large_view()),
        (
            "REPEATABLE READ, much to be written",
            Protocol { large: B, ..reader(RepeatableRead, A, BOTH) },
        ),
        (
            "much to be written, worker ends",
            Protocol { left: worker_ends(), readers: vec![], ..large_view() },
        ),
        ("much to be written, REFRESH", large_refreshed()),
        ("much to be written, attached again", large_attached_again()),
        ("one statement, a lock, a standby", Protocol { standby: true, ..locked_view() }),
        ("REPEATABLE READ", reader(RepeatableRead, A, BOTH)),
        ("REPEATABLE READ, other tables first", other_first(RepeatableRead)),
        ("SERIALIZABLE", reader(Serializable, A, BOTH)),
        ("SERIALIZABLE, other tables first", other_first(Serializable)),
        ("two readers", one_writer(Protocol { readers, slow: B, ..writers() })),
        ("three writers, slow and standby", three_writers()),
        ("REFRESH", one_writer(refreshed_view(ReadCommitted, BOTH, 0))),
        ("REFRESH and REPEATABLE READ", one_writer(refreshed_view(RepeatableRead, A, BOTH))),
        ("REFRESH and SERIALIZABLE", one_writer(refreshed_view(Serializable, 0, BOTH))),
        ("first start", starting()),
        ("first start, read", one_writer(Protocol { is_running: false, ..whole_statement() })),
        ("worker ends", Protocol { left: worker_ends(), ..writers() }),
        ("worker ends, read", one_writer(Protocol { left: worker_ends(), ..whole_statement() })),
        (
            "worker ends, SERIALIZABLE",
            one_writer(Protocol { left: worker_ends(), ..other_first(Serializable) }),
        ),
        ("server crashes", Protocol { left: server_crashes(), ..writers() }),
        (
            "server crashes, read",
            one_writer(Protocol { left: server_crashes(), ..whole_statement() }),
        ),
        (
            "everything ends",
            one_writer(Protocol { left: ends, disturbed: B, slow: B, ..writers() }),
        ),
        ("launcher and worker end", launcher_ends()),
        ("stacked, the lower one slow", stacked_slow()),
        ("stacked, both slow", stacked(Protocol { slow: BOTH, ..writers() })),
        ("stacked, the upper one with much to be written", stacked(large_view())),
        ("stacked, the lower one attached again", stacked_attached_again()),
        ("stacked, REPEATABLE READ", stacked(reader(RepeatableRead, B, BOTH))),
        ("stacked, SERIALIZABLE", stacked(reader(Serializable, B, 0))),
        ("stacked, first start", stacked(starting())),
        ("stacked, worker ends", stacked(Protocol { left: worker_ends(), ..writers() })),
        ("stacked, a lock", stacked(Protocol { disturbed: A, ..locked_view() })),
        (
            "stacked, REFRESH",
            stacked(one_writer(Protocol {
                disturbed: A,
                ..refreshed_view(ReadCommitted, BOTH, 0)
            })),
        ),
    ]
}

/// Without a rule a property is broken, in a scenario.
fn needed() -> Vec<(&'static str, &'static str, Protocol)> {
    let ended = || one_writer(Protocol { left: worker_ends(), ..whole_statement() });
    let reads_slow = Protocol { slow: B, ..reader(ReadCommitted, B, 0) };
    let refreshed = one_writer(refreshed_view(RepeatableRead, A, BOTH));
    let left = Left { launcher_ends: 1, ..NOTHING_ELSE };
    let second_worker = Protocol { left, changes: vec![A], ..writers() };
    let restarted = || Protocol { left: worker_ends(), ..writers() };
    let readers = whole_statement().readers;
    vec![
        ("committing", FRESH, whole_statement()),
        ("note_commit_first", FRESH, whole_statement()),
        ("shows_changes", FRESH, whole_statement()),
        ("are_together", ONE_POINT, slow_view()),
        ("publish_after_commit", FRESH, whole_statement()),
        ("publish_views_first", FRESH, reads_slow),
        ("attach_is_a_change", FRESH, ended()),
        ("one_transaction", ONE_POINT, whole_statement()),
        ("states_with_views", ONE_POINT, slow_view()),
        ("wait_for_decoded", CRASH_PROOF, restarted()),
        ("already_read", CRASH_PROOF, starting()),
        ("whole_from", ONE_POINT, Protocol { is_running: false, ..whole_statement() }),
        ("wait_for_running", CRASH_PROOF, starting()),
        ("wait_for_committed_to_end", CRASH_PROOF, starting()),
        ("set_invisible_aside", NOT_AHEAD, reader(Serializable, A, 0)),
        ("set_computing_aside", INDEPENDENT, slow_view()),
        ("set_locked_aside", INDEPENDENT, locked_view()),
        ("claim", CRASH_PROOF, second_worker),
        ("compare_stored", CRASH_PROOF, restarted()),
        ("known_file", CRASH_PROOF, refreshed_view(ReadCommitted, 0, 0)),
        ("is_apart", ONE_POINT, large_view()),
        ("note_stored", FRESH, Protocol { large: B, ..reader(ReadCommitted, B, 0) }),
        ("may_still_write", CRASH_PROOF, large_attached_again()),
        ("receive_after_write", NOT_AHEAD, reader(Serializable, A, 0)),
        ("finished_position", FRESH, whole_statement()),
        ("still_present", FRESH, Protocol { readers, ..large_attached_again() }),
        ("readable_beneath", CRASH_PROOF, stacked(restarted())),
        ("take_unwritten", CRASH_PROOF, stacked(starting())),
        ("wait_beneath", FRESH, stacked(Protocol { slow: A, ..reader(ReadCommitted, B, 0) })),
        ("end_with_beneath", CRASH_PROOF, stacked_attached_again()),
        ("file", ONE_POINT, refreshed),
    ]
}

/// Counts the states of a scenario, up to the first in which a property of those named does not hold.
fn search(protocol: Protocol, properties: &[&'static str]) -> (usize, Option<String>) {
    let broken = HasDiscoveries::AnyOf(properties.iter().copied().collect());
    let checker = protocol.checker().threads(2).finish_when(broken).spawn_bfs().join();
    let found = properties.iter().find_map(|property| {
        let actions = checker.discovery(property)?.into_actions();
        let actions: Vec<String> = actions.iter().map(|action| format!("{action:?}")).collect();
        Some(format!("not so: {property}\nafter {}", actions.join(", ")))
    });
    (checker.unique_state_count(), found)
}

#[test]
fn all_rules_together_keep_every_property_in_every_state() {
    let properties: Vec<&str> = all().iter().map(|property| property.name).collect();
    let mut total = 0;
    for (scenario, protocol) in scenarios() {
        let began = Instant::now();
        let (states, broken) = search(protocol, &properties);
        println!("{scenario}: {states} states, {:.1?}", began.elapsed());
        if let Some(broken) = broken {
            panic!("{scenario}: {broken}");
        }
        total += states;
    }
    println!("{total} states in all");
}

#[test]
fn without_any_one_rule_a_property_is_broken() {
    let needed = needed();
    for (rule, rules) in Rules::BUT_ONE {
        let (_, property, protocol) = needed
            .iter()
            .find(|(name, ..)| name == rule)
            .unwrap_or_else(|| panic!("{rule} has no test"));
        let (states, broken) = search(Protocol { rules: *rules, ..protocol.clone() }, &[property]);
        let broken =
            broken.unwrap_or_else(|| panic!("{rule}: {states} states without it are right"));
        println!("without {rule}, {states} states: {broken}");
    }
}
