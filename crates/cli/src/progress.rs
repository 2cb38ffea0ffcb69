//! How far are we? A line on standard error for anything that takes longer than a moment, and none
//! where nobody looks.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that tells how far something is.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    since: Instant,
}

impl ProgressLine {
    /// Nothing is shown for the first moment, nor if standard error is no terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        Self { bar, since: Instant::now() }
    }

    /// Something without a known end is going on.
    pub(crate) fn step(&mut self, message: String) {
        self.show();
        self.bar.set_style(style("{spinner} {msg} {elapsed}"));
        self.bar.set_message(message);
    }

    /// `done` of `total` is done.
    pub(crate) fn at(&mut self, message: String, done: u64, total: u64) {
        self.show();
        self.bar.set_style(style("{spinner} [{bar:30}] {pos}/{len} {msg}"));
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(message);
    }

    /// A part of something is done: from 0 to 1.
    pub(crate) fn share(&mut self, message: String, done: f64) {
        self.show();
        self.bar.set_style(style("{spinner} [{bar:30}] {percent:>3} % {msg}"));
        self.bar.set_length(PARTS);
        self.bar.set_position((done * PARTS as f64) as u64);
        self.bar.set_message(message);
    }

    /// A line for a person, above the other one; where nobody looks too.
    pub(crate) fn say(&self, text: &str) {
        // If standard error is closed there is nobody to tell.
        self.bar.suspend(|| drop(writeln!(anstream::stderr(), "wireproof: {text}")));
    }

    /// Clears the line.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }

    fn show(&mut self) {
        if self.bar.is_hidden() && self.since.elapsed() >= QUIET {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template of ours")
}

/// As fine as a bar can show.
const PARTS: u64 = 1_000;
const QUIET: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(120);
