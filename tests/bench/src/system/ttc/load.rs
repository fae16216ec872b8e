//! The tables of a network, filled with COPY.

use anyhow::Result;
use postgres::Client;

use super::change::columns;
use super::network::{Network, Submission};
use crate::copy::copy;

const SCHEMA: &str = include_str!("schema.sql");

pub fn create_tables(client: &mut Client, network: &Network) -> Result<()> {
    client.batch_execute(SCHEMA)?;
    let persons = (1..=network.persons).map(|id| format!("{id}\tperson {id}"));
    copy(client, "person", persons)?;
    copy(client, "post", network.posts.iter().map(line))?;
    copy(client, "comment", network.comments.iter().map(line))?;
    copy(client, "likes", network.likes.all.iter().map(|(a, b)| format!("{a}\t{b}")))?;
    let both = |(a, b): &(u32, u32)| [format!("{a}\t{b}"), format!("{b}\t{a}")];
    copy(client, "friend", network.friendships.all.iter().flat_map(both))?;
    Ok(client.batch_execute("VACUUM ANALYZE")?)
}

fn line(submission: &Submission) -> String {
    columns(submission).join("\t")
}
