//! The stream of changes: transactions of a few submissions, likes and friendships that come, and of likes
//! and friendships that go.

use std::fmt::Write;

use super::network::{Network, Submission};

/// Most events of a transaction; the contest's have between two and three on average.
const EVENTS: i64 = 4;

/// What happens, as often as it stands here.
const KINDS: [Kind; 20] = [
    Kind::Comment,
    Kind::Comment,
    Kind::Comment,
    Kind::Comment,
    Kind::Comment,
    Kind::Comment,
    Kind::Comment,
    Kind::Post,
    Kind::Like,
    Kind::Like,
    Kind::Like,
    Kind::Like,
    Kind::Unlike,
    Kind::Unlike,
    Kind::Befriend,
    Kind::Befriend,
    Kind::Befriend,
    Kind::Unfriend,
    Kind::Unfriend,
    Kind::Unfriend,
];

#[derive(Clone, Copy)]
enum Kind {
    Post,
    Comment,
    Like,
    Unlike,
    Befriend,
    Unfriend,
}

/// The statements of the next transaction.
pub fn next_transaction(network: &mut Network) -> String {
    let events = network.dice.range(1, EVENTS);
    let mut sql = String::from("BEGIN");
    for _ in 0..events {
        // What is drawn may be there already; then something else is drawn.
        let event = std::iter::repeat_with(|| next_event(network)).flatten().next();
        let _ = write!(sql, "; {}", event.expect("the iterator does not end"));
    }
    sql + "; COMMIT"
}

fn next_event(network: &mut Network) -> Option<String> {
    let kind = *network.dice.pick(&KINDS);
    Some(match kind {
        Kind::Post => insertion("post", &quoted(network.post())),
        Kind::Comment => insertion("comment", &quoted(network.comment())),
        Kind::Like => {
            let (person, comment) = network.like()?;
            insertion("likes", &format!("({person}, {comment})"))
        }
        Kind::Unlike => {
            let (person, comment) = network.unlike()?;
            format!("DELETE FROM likes WHERE person = {person} AND comment = {comment}")
        }
        Kind::Befriend => {
            let (a, b) = network.befriend()?;
            insertion("friend", &format!("({a}, {b}), ({b}, {a})"))
        }
        Kind::Unfriend => {
            let (a, b) = network.unfriend()?;
            format!("DELETE FROM friend WHERE (a, b) IN (({a}, {b}), ({b}, {a}))")
        }
    })
}

fn insertion(table: &str, rows: &str) -> String {
    format!("INSERT INTO {table} VALUES {rows}")
}

/// The columns of a post or a comment.
pub fn columns(submission: &Submission) -> Vec<String> {
    let Submission { id, author, parent, words } = submission;
    let mut columns = vec![id.to_string(), written(*id), author.to_string()];
    columns.extend(parent.map(|parent| parent.to_string()));
    columns.push("word ".repeat(*words));
    columns
}

/// Later numbers are of later times, a minute apart.
fn written(id: u64) -> String {
    let (day, minute) = (id / 1440, id % 1440);
    let (year, day) = (2010 + day / 336, day % 336);
    let (month, day) = (1 + day / 28, 1 + day % 28);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:00+00", minute / 60, minute % 60)
}

fn quoted(submission: &Submission) -> String {
    let columns: Vec<String> =
        columns(submission).iter().map(|column| format!("'{column}'")).collect();
    format!("({})", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::network::SIZES;
    use super::*;

    #[test]
    fn each_network_goes_on_in_one_way() {
        let network = Network::new(SIZES[0], 1);
        let (mut one, mut other) = (network.clone(), network);
        let mut all = String::new();
        for _ in 0..200 {
            let transaction = next_transaction(&mut one);
            assert_eq!(transaction, next_transaction(&mut other));
            all += &transaction;
        }
        for word in
            ["INTO post", "INTO comment", "INTO likes", "INTO friend", "FROM likes", "FROM friend"]
        {
            assert!(all.contains(word), "{word} never comes");
        }
    }

    #[test]
    fn later_submissions_are_newer() {
        let times: Vec<String> = (1..1_000_000).step_by(977).map(written).collect();
        assert!(times.is_sorted());
    }
}
