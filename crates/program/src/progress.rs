//! A progress line on standard error, for work that takes longer than half a second; where that is not a
//! terminal, a plain line every ten seconds for downloads.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::log::{self, Level};

/// A line that shows the progress of one task.
pub struct ProgressLine {
    bar: ProgressBar,
    since: Instant,
    /// When the last plain line was printed.
    printed: Instant,
    is_silent: bool,
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self::new()
    }
}

impl ProgressLine {
    /// A line that stays hidden for the first half second, where standard error is not a terminal, and without
    /// progress output.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let now = Instant::now();
        Self { bar, since: now, printed: now, is_silent: !log::shows_progress() }
    }

    /// A line that is never shown.
    pub fn silent() -> Self {
        Self { is_silent: true, ..Self::new() }
    }

    /// Shows work without a known end.
    pub fn step(&mut self, message: String) {
        self.show("{spinner} {msg} {elapsed}", message);
    }

    /// Shows `done` of `total`.
    pub fn at(&mut self, message: String, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.show("{spinner} [{bar:30}] {pos}/{len} {msg}", message);
    }

    /// Shows the received bytes of a download, and their rate.
    pub fn bytes(&mut self, host: &str, received: u64, stated: Option<u64>) {
        if self.is_silent {
            return;
        }
        self.bar.set_position(received);
        match stated {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
        self.show(if stated.is_some() { BYTES_OF_TOTAL } else { BYTES }, format!("from {host}"));
        if !io::stderr().is_terminal() && self.printed.elapsed() >= PLAIN_INTERVAL {
            self.printed = Instant::now();
            let rate = received as f64 / self.since.elapsed().as_secs_f64();
            let (received, rate) = (BinaryBytes(received), BinaryBytes(rate as u64));
            self.print(&format!("{received} from {host}, {rate}/s"));
        }
    }

    /// Shows the finished part, from 0 to 1.
    pub fn fraction(&mut self, message: String, done: f64) {
        self.bar.set_length(RESOLUTION);
        self.bar.set_position((done * RESOLUTION as f64) as u64);
        self.show("{spinner} [{bar:30}] {percent:>3} % {msg}", message);
    }

    /// Waits for work that shows no progress of its own: the line appears when it takes long.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(HIDDEN_FOR) => self.reveal(),
        }
        work.await
    }

    /// Prints a line of its own above this one, even where this one is hidden.
    pub fn print(&self, text: &str) {
        self.suspend(|| drop(log::print(Level::Info, text)));
    }

    /// Calls `print`, which writes lines of its own, while this line is cleared.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Clears the line.
    pub fn end(self) {
        self.bar.finish_and_clear();
    }

    /// Shows the line, once it has been hidden for long enough.
    fn reveal(&mut self) {
        if !self.is_silent && self.bar.is_hidden() && self.since.elapsed() >= HIDDEN_FOR {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn show(&mut self, template: &str, message: String) {
        if self.is_silent {
            return;
        }
        self.reveal();
        self.bar.set_style(style(template));
        self.bar.set_message(message);
    }
}

/// The style of a template that is known to be valid.
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a valid template")
}

/// Steps of a bar that shows a fraction.
const RESOLUTION: u64 = 1_000;
const BYTES: &str = "{spinner} {binary_bytes} {msg}, {binary_bytes_per_sec} {elapsed}";
const BYTES_OF_TOTAL: &str =
    "{spinner} [{bar:30}] {binary_bytes}/{binary_total_bytes} {msg}, {binary_bytes_per_sec}";
/// Interval of plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
const HIDDEN_FOR: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(120);
