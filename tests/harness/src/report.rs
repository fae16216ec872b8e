//! Counts of passed and failed tests, per layer and in total, with what is known of the failures.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

/// Result of one layer of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    /// Of the failed ones that have names, the name and the reason. The report repeats them at its end, because
    /// whoever reads the log of a long run sees its end first.
    failures: Vec<String>,
    /// What could not be run here, and why.
    left_out: Vec<String>,
}

impl Counts {
    pub fn new(passed: usize, failed: usize) -> Counts {
        Counts { passed, failed, ..Counts::default() }
    }

    pub fn add(&mut self, other: &Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend_from_slice(&other.failures);
        self.left_out.extend_from_slice(&other.left_out);
    }

    pub fn record(&mut self, success: bool) {
        if success {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Records the test `name` and prints how it ended.
    pub fn check(&mut self, name: &str, result: Result<()>) {
        match &result {
            Ok(()) => println!("{name}: ok"),
            Err(error) => {
                let failure = format!("{name}: {error:#}");
                println!("{failure}");
                self.note(&failure);
            }
        }
        self.record(result.is_ok());
    }

    /// Says that the test `name` is not run here, where something that it needs is not there. It counts as neither passed nor
    /// failed; the report has it.
    pub fn leave_out(&mut self, name: &str, reason: &str) {
        let left_out = format!("{name}: not run here: {reason}");
        println!("{left_out}");
        self.left_out.push(left_out);
    }

    /// Keeps what is known of a failure that is counted elsewhere.
    pub fn note(&mut self, failure: &str) {
        self.failures.push(failure.trim().to_owned());
    }

    /// Counts that a program has written.
    pub fn parse(line: &str) -> Option<Counts> {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some(Counts::new(passed.parse().ok()?, failed.parse().ok()?))
    }

    /// A layer that passed nothing proved nothing.
    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// Prints the counts, as the last line of a program; whether it succeeded.
    pub fn verdict(self) -> bool {
        println!("{self}");
        self.is_success()
    }
}

/// How a program ends that has succeeded, failed, or could not do what it was asked for, which it says.
pub fn exit_code(program: &str, outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Counts and duration by layer, in the order in which the layers ran.
#[derive(Debug, Default)]
pub struct Report {
    layers: Vec<(String, Counts, Duration)>,
}

impl Report {
    pub fn push(&mut self, layer: &str, counts: Counts, duration: Duration) {
        self.layers.push((layer.to_string(), counts, duration));
    }

    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, counts, _) in &self.layers {
            total.add(counts);
        }
        total
    }

    pub fn is_success(&self) -> bool {
        self.layers.iter().all(|(_, counts, _)| counts.is_success())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (layer, counts, duration) in &self.layers {
            writeln!(f, "{layer:<12} {counts}, {} s", duration.as_secs())?;
            for left_out in &counts.left_out {
                writeln!(f, "    {left_out}")?;
            }
            for failure in &counts.failures {
                writeln!(f, "    {}", failure.replace('\n', "\n    "))?;
            }
        }
        write!(f, "{}", self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_are_written() {
        let counts = Counts::new(12, 3);
        assert_eq!(Counts::parse(&counts.to_string()), Some(counts));
        assert_eq!(Counts::parse("running 12 tests"), None);
    }

    #[test]
    fn the_report_repeats_failures_under_their_layer() {
        let mut counts = Counts::new(2, 0);
        counts.check("dumps", Err(anyhow::anyhow!("a row is missing")));
        let mut report = Report::default();
        report.push("server", counts, Duration::from_secs(5));
        report.push("crash", Counts::new(1, 0), Duration::ZERO);
        let expected = "server       2 passed, 1 failed, 5 s\n    dumps: a row is missing\n\
                        crash        1 passed, 0 failed, 0 s\n3 passed, 1 failed";
        assert_eq!(report.to_string(), expected);
        assert!(!report.is_success());
    }

    #[test]
    fn the_report_has_what_is_not_run() {
        let mut counts = Counts::new(2, 0);
        counts.leave_out("vectors", "extension vector is not there");
        let mut report = Report::default();
        report.push("neighbours", counts, Duration::ZERO);
        let expected = "neighbours   2 passed, 0 failed, 0 s\n    vectors: not run here: extension vector is not \
                        there\n2 passed, 0 failed";
        assert_eq!(report.to_string(), expected);
        assert!(report.is_success());
    }

    #[test]
    fn a_layer_without_tests_is_no_success() {
        let mut report = Report::default();
        report.push("oracle", Counts::default(), Duration::ZERO);
        assert!(!report.is_success());
    }
}
