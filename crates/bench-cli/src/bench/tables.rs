//! Prints the table of a task as soon as it was measured.

use ::bench::terminal::{self, Baseline};
use ::bench::{Row, Unavailable};

use crate::failure::Failure;
use crate::output::Output;

/// The tables of a run.
pub(super) struct Tables {
    baseline: Option<Baseline>,
    output: Output,
    /// Whether nothing is printed yet.
    is_first: bool,
    /// The first failure to print; nothing is printed after it.
    outcome: Result<(), Failure>,
}

impl Tables {
    pub(super) fn new(baseline: Option<Baseline>, output: Output) -> Self {
        Self { baseline, output, is_first: true, outcome: Ok(()) }
    }

    /// Prints the table of a task's rows; if peers are `missing`, with their names and that the table comes again.
    pub(super) fn print(&mut self, rows: &[Row], missing: &[Unavailable]) {
        let mut text = terminal::of_task(rows, self.baseline.as_ref());
        if let (Some(row), false) = (rows.first(), missing.is_empty()) {
            let title = format!("{} is measured again when all of its peers are built", row.task);
            text += &format!("\n{}", terminal::unavailable(&title, missing));
        }
        self.section(&text);
    }

    /// Prints the peers that were not measured.
    pub(super) fn finish(mut self, unavailable: &[Unavailable]) -> Result<(), Failure> {
        self.section(&terminal::unavailable("not available", unavailable));
        self.outcome
    }

    /// Prints a text after an empty line, if it is not the first.
    fn section(&mut self, text: &str) {
        if text.is_empty() || self.outcome.is_err() {
            return;
        }
        let gap = if self.is_first { "" } else { "\n" };
        self.is_first = false;
        self.outcome = self.output.styled(&format!("{gap}{text}"));
    }
}
