//! The tables of a company, filled with COPY.

use anyhow::Result;
use postgres::Client;

use super::company::Company;
use crate::copy::copy;

const SCHEMA: &str = include_str!("schema.sql");

pub fn create_tables(client: &mut Client, company: &Company) -> Result<()> {
    client.batch_execute(SCHEMA)?;
    let persons = company.sizes.persons;
    let principals = 1..=persons + company.sizes.groups;
    let name = |id| if id > persons { format!("group {id}") } else { format!("person {id}") };
    copy(
        client,
        "principal",
        principals.map(|id| format!("{id}\t{}\t{}", name(id), id > persons)),
    )?;
    let members = company.of_persons.held.iter().chain(&company.of_groups.held);
    copy(client, "member", members.map(pair))?;
    let folders = (1..).zip(&company.parents).map(|(id, parent)| match parent {
        0 => format!("{id}\t\\N\tfolder {id}"),
        parent => format!("{id}\t{parent}\tfolder {id}"),
    });
    copy(client, "folder", folders)?;
    let files = 1..=company.sizes.files;
    copy(client, "file", files.map(|id| format!("{id}\t{}\tfile {id}", company.folder_of(id))))?;
    copy(client, "rule", company.rules.iter().map(|rule| rule.columns("\\N").join("\t")))?;
    copy(client, "watched", company.watched.iter().map(pair))?;
    Ok(client.batch_execute("VACUUM ANALYZE")?)
}

fn pair((a, b): &(i32, i32)) -> String {
    format!("{a}\t{b}")
}
