//! The statements of a round, as a script for psql.

/// Statements in the order of their transactions' ends: two interleaved transactions are written
/// one after the other, which leads to the same contents.
#[derive(Default)]
pub struct Script {
    lines: Vec<String>,
    open: [Vec<String>; 2],
}

impl Script {
    pub fn statement(&mut self, session: usize, sql: &str, failed: bool) {
        let mark = if failed { " -- fails" } else { "" };
        self.open[session].push(format!("{sql};{mark}"));
    }

    /// The session is outside any transaction now.
    pub fn end(&mut self, session: usize) {
        let lines = std::mem::take(&mut self.open[session]);
        self.lines.extend(lines);
    }

    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}
