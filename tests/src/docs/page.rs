//! A page of the book as blocks: SQL that runs, and what it prints.
//!
//! A block of SQL begins with a line "```sql". The block "```text" that follows it, with nothing but empty lines
//! between, is what it prints; without such a block it prints nothing.

use anyhow::{bail, ensure, Result};

/// Where a fenced block begins and ends, as lines, its fences included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fenced {
    first: usize,
    last: usize,
}

/// One block of SQL and the block of its output, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    sql: Fenced,
    output: Option<Fenced>,
}

/// The lines of a page and the blocks among them.
pub struct Page<'a> {
    lines: Vec<&'a str>,
    pub blocks: Vec<Block>,
}

impl<'a> Page<'a> {
    /// Fails for a block that would look like SQL to a reader and not to us.
    pub fn parse(text: &'a str) -> Result<Page<'a>> {
        let lines: Vec<&str> = text.lines().collect();
        let mut blocks: Vec<Block> = Vec::new();
        let mut next = 0;
        while let Some((tag, fenced)) = next_fenced(&lines, next)? {
            let waits = blocks.last().filter(|block| block.output.is_none());
            let follows =
                waits.is_some_and(|block| are_empty(&lines[block.sql.last + 1..fenced.first]));
            match (tag, blocks.last_mut()) {
                ("sql", _) => blocks.push(Block { sql: fenced, output: None }),
                ("text", Some(block)) if follows => block.output = Some(fenced),
                _ => {}
            }
            next = fenced.last + 1;
        }
        Ok(Page { lines, blocks })
    }

    /// What psql is given for a block.
    pub fn sql(&self, block: Block) -> String {
        self.inside(block.sql)
    }

    /// What the page says that a block prints.
    fn expected(&self, block: Block) -> String {
        block.output.map_or_else(String::new, |output| self.inside(output))
    }

    fn inside(&self, fenced: Fenced) -> String {
        self.lines[fenced.first + 1..fenced.last].iter().map(|line| format!("{line}\n")).collect()
    }

    /// The first block that printed something else than the page says.
    pub fn compare(&self, outputs: &[String]) -> Result<()> {
        for (block, output) in self.blocks.iter().zip(outputs) {
            let expected = self.expected(*block);
            ensure!(
                expected == *output,
                "the block of line {} should print\n{expected}but prints\n{output}",
                block.sql.first + 1
            );
        }
        Ok(())
    }

    /// The page with other outputs; a block that prints nothing has no block of output.
    pub fn with_outputs(&self, outputs: &[String]) -> String {
        let mut text = String::new();
        let mut next = 0;
        for (block, output) in self.blocks.iter().zip(outputs) {
            push_lines(&mut text, &self.lines[next..=block.sql.last]);
            next = block.output.map_or(block.sql.last, |output| output.last) + 1;
            if !output.is_empty() {
                text.push_str(&format!("\n```text\n{output}```\n"));
            }
        }
        push_lines(&mut text, &self.lines[next..]);
        text
    }
}

fn push_lines(text: &mut String, lines: &[&str]) {
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}

fn are_empty(lines: &[&str]) -> bool {
    lines.iter().all(|line| line.trim().is_empty())
}

/// The tag and the lines of the first fenced block from line `from` on.
fn next_fenced<'a>(lines: &[&'a str], from: usize) -> Result<Option<(&'a str, Fenced)>> {
    let Some(first) = (from..lines.len()).find(|line| lines[*line].trim_start().starts_with("```"))
    else {
        return Ok(None);
    };
    let Some(tag) = lines[first].strip_prefix("```") else {
        bail!("line {}: a fence is not at the beginning of its line", first + 1);
    };
    let Some(last) = (first + 1..lines.len()).find(|line| lines[*line] == "```") else {
        bail!("line {}: the block does not end", first + 1);
    };
    Ok(Some((tag, Fenced { first, last })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Title\n\n```sql\nSELECT 1;\n```\n\n```text\n1\n```\n\nWords.\n\n```sql\nSELECT;\n```\n\nMore.\n\n```text\nnot an output\n```\n";

    #[test]
    fn a_block_of_text_right_behind_sql_is_its_output() {
        let page = Page::parse(PAGE).unwrap();
        let [first, second] = page.blocks[..] else { panic!("{:?}", page.blocks) };
        assert_eq!((page.sql(first), page.expected(first)), ("SELECT 1;\n".into(), "1\n".into()));
        assert_eq!((page.sql(second), second.output), ("SELECT;\n".into(), None));
    }

    #[test]
    fn another_output_is_a_failure_that_names_the_line() {
        let page = Page::parse(PAGE).unwrap();
        assert!(page.compare(&["1\n".into(), String::new()]).is_ok());
        let error = page.compare(&["1\n".into(), "2\n".into()]).unwrap_err();
        assert!(error.to_string().starts_with("the block of line 13 "), "{error}");
    }

    #[test]
    fn accepted_outputs_replace_what_the_page_had() {
        let page = Page::parse(PAGE).unwrap();
        assert_eq!(page.with_outputs(&["1\n".into(), String::new()]), PAGE);
        let text = page.with_outputs(&[String::new(), "2\n".into()]);
        let page = Page::parse(&text).unwrap();
        assert!(page.compare(&[String::new(), "2\n".into()]).is_ok(), "{text}");
    }

    #[test]
    fn fences_that_would_be_overlooked_are_failures() {
        assert!(Page::parse("- item\n\n  ```sql\n  SELECT 1;\n  ```\n").is_err());
        assert!(Page::parse("```sql\nSELECT 1;\n").is_err());
    }
}
