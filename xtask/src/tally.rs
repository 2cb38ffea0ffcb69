//! How many tests passed, failed and were left out?

use std::fmt;

/// A count of checks by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Not run: ignored, or without the files that they need.
    pub(crate) skipped: u64,
}

impl Tally {
    /// Adds what a line of test output sums up, if it does:
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    pub(crate) fn add_line(&mut self, line: &str) {
        let Some(sums) = line.trim_start().strip_prefix("test result: ") else { return };
        self.passed += sum(sums, "passed");
        self.failed += sum(sums, "failed");
        self.skipped += sum(sums, "ignored");
    }

    /// Notes tests that returned early for want of files: they are no longer passed, but skipped.
    pub(crate) fn move_left_out(&mut self, left_out: u64) {
        self.passed = self.passed.saturating_sub(left_out);
        self.skipped += left_out;
    }
}

/// The number that stands in front of `name`.
fn sum(sums: &str, name: &str) -> u64 {
    let words: Vec<&str> = sums.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let found = words.array_windows().find(|[_, word]| *word == name);
    found.and_then(|[number, _]| number.parse().ok()).unwrap_or(0)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// What became of the tests that need other people's files or programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FixtureLog {
    pub(crate) ran: u64,
    /// The names of the tests that were left out.
    pub(crate) left_out: Vec<String>,
}

impl FixtureLog {
    /// Reads the log that the tests wrote, a line each: `ran NAME` or `left out NAME`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("left out ") {
                log.left_out.push(name.to_owned());
            } else if line.starts_with("ran ") {
                log.ran += 1;
            }
        }
        log.left_out.sort();
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_summary_lines_are_added() {
        let mut tally = Tally::default();
        tally.add_line("test a_test_result: ok ... ok");
        tally.add_line("7 passed");
        assert_eq!(tally, Tally::default());
        tally.add_line(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s",
        );
        tally.add_line("test result: FAILED. 44 passed; 3 failed; 0 ignored; 0 measured");
        assert_eq!(tally, Tally { passed: 47, failed: 3, skipped: 1 });
    }

    #[test]
    fn a_test_that_was_left_out_has_not_passed() {
        let mut tally = Tally { passed: 10, failed: 0, skipped: 0 };
        tally.move_left_out(4);
        assert_eq!(tally.to_string(), "6 passed, 0 failed, 4 skipped");
        assert_eq!(Tally { passed: 6, failed: 1, skipped: 0 }.to_string(), "6 passed, 1 failed");
    }

    #[test]
    fn the_fixture_log_tells_what_ran_and_what_did_not() {
        let log = FixtureLog::parse("ran a::b\nleft out z\nleft out c\nran d\n");
        assert_eq!(log, FixtureLog { ran: 2, left_out: vec!["c".to_owned(), "z".to_owned()] });
    }
}
