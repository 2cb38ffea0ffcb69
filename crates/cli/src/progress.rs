//! A progress line on standard error, for work that takes longer than half a second.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that shows the progress of one piece of work.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    since: Instant,
}

impl ProgressLine {
    /// A line that stays hidden for the first half second, and where standard error is no terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, since: Instant::now() }
    }

    /// Shows work without a known end.
    pub(crate) fn step(&mut self, message: String) {
        self.show("{spinner} {msg} {elapsed}", message);
    }

    /// Shows `done` of `total`.
    pub(crate) fn at(&mut self, message: String, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.show("{spinner} [{bar:30}] {pos}/{len} {msg}", message);
    }

    /// Shows the finished part, from 0 to 1.
    pub(crate) fn fraction(&mut self, message: String, done: f64) {
        self.bar.set_length(RESOLUTION);
        self.bar.set_position((done * RESOLUTION as f64) as u64);
        self.show("{spinner} [{bar:30}] {percent:>3} % {msg}", message);
    }

    /// Prints a line of its own above this one, also where this one is hidden.
    pub(crate) fn print(&self, text: &str) {
        self.bar.suspend(|| drop(writeln!(anstream::stderr(), "wireproof: {text}")));
    }

    /// Clears the line.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self, template: &str, message: String) {
        if self.bar.is_hidden() && self.since.elapsed() >= HIDDEN_FOR {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
        self.bar.set_style(style(template));
        self.bar.set_message(message);
    }
}

/// The style of a template that is known to be valid.
pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
}

/// Steps of a bar that shows a fraction.
const RESOLUTION: u64 = 1_000;
const HIDDEN_FOR: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(120);
