//! Messages for a person on standard error: a status line and notices.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use delivery::DeliveryMetrics;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget};
use net::firehose::{MetricsSnapshot, Notice, RunMetrics};
use tracing::Level;

use super::delivery_progress::DeliveryProgress;
use super::gaps::Gaps;
use super::stats::RunStats;
use super::warnings::{self, Warnings};
use crate::log;
use crate::messages;
use crate::progress::style;
use crate::stream::notice_text;

/// The status line. Clones share it.
#[derive(Clone, Debug)]
pub struct Status {
    bar: ProgressBar,
    warnings: Arc<Warnings>,
    gaps: Arc<Gaps>,
    deliveries: Arc<DeliveryProgress>,
}

impl Default for Status {
    fn default() -> Self {
        Self::new()
    }
}

impl Status {
    /// The status line of a run that prints lines: shown if standard error is a terminal, standard output is not, and progress is
    /// to be shown.
    pub fn new() -> Self {
        Self::shown_if(!std::io::stdout().is_terminal())
    }

    /// The status line of a run that delivers to destinations: shown if standard error is a terminal, and progress is to be shown.
    pub fn of_deliveries() -> Self {
        Self::shown_if(true)
    }

    /// A status line that is never shown.
    pub fn hidden() -> Self {
        Self::with_bar(ProgressBar::hidden())
    }

    fn shown_if(is_wanted: bool) -> Self {
        let is_shown = is_wanted && log::shows_progress() && std::io::stderr().is_terminal();
        let target =
            if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self::with_bar(bar.with_style(style("{spinner} {wide_msg}")))
    }

    fn with_bar(bar: ProgressBar) -> Self {
        let (warnings, gaps) = (Arc::default(), Arc::default());
        Self { bar, warnings, gaps, deliveries: Arc::default() }
    }

    /// Sets the destinations that the status line counts for.
    pub(super) fn set_destinations(&self, destinations: &[(String, Arc<DeliveryMetrics>)]) {
        self.deliveries.set_destinations(destinations);
    }

    /// Reports that a history is stored; `all` are to be stored.
    pub(super) fn finished_history(&self, did: &str, all: u64) {
        if self.bar.is_hidden() {
            return;
        }
        if let Some(line) = self.deliveries.finished_history(did, all, Instant::now()) {
            self.print(&line);
        }
    }

    /// Shows a text and the counts of the destinations as the status line, where it is shown.
    pub fn show(&self, text: impl FnOnce() -> String) {
        if self.bar.is_hidden() {
            return;
        }
        let mut text = text();
        self.deliveries.append_to(&mut text);
        self.bar.set_message(text);
        self.bar.tick();
    }

    /// Prints every destination's received events, at a terminal.
    pub fn print_totals(&self) {
        if !self.bar.is_hidden() {
            self.deliveries.totals().iter().for_each(|line| self.print(line));
        }
    }

    /// Updates the status line, and prints the warnings that are due, forever.
    pub(super) async fn update(&self, stats: &RunStats, metrics: &RunMetrics) -> Infallible {
        let mut tick = tokio::time::interval(UPDATE_EVERY);
        let mut last = (Instant::now(), metrics.snapshot().delivered);
        loop {
            tick.tick().await;
            self.print_due_warnings();
            let is_due = last.0.elapsed() >= DETAIL_INTERVAL && messages::has_details();
            if self.bar.is_hidden() && !is_due {
                continue;
            }
            let snapshot = metrics.snapshot();
            let seconds = last.0.elapsed().as_secs_f64().max(0.001);
            let rate = (snapshot.delivered - last.1) as f64 / seconds;
            last = (Instant::now(), snapshot.delivered);
            let mut text = text(stats, &snapshot, rate);
            self.deliveries.append_to(&mut text);
            if self.bar.is_hidden() {
                self.print_at(Level::DEBUG, &text);
            }
            self.bar.set_message(text);
            self.bar.tick();
        }
    }

    /// Prints a notice. Notices that a host can repeat at will are warnings.
    pub(super) fn notice(&self, stats: &RunStats, notice: &Notice) {
        let text = || notice_text(stats.host(notice.host().0), notice);
        match notice {
            Notice::Gap { .. } => {
                let is_unusual =
                    self.gaps.record(notice.host().0, notice.skipped_seqs(), Instant::now());
                let level = if is_unusual { Level::WARN } else { Level::DEBUG };
                if is_unusual || messages::has_details() {
                    self.print_at(level, &text());
                }
            }
            Notice::Repeated { .. }
            | Notice::Regressed { .. }
            | Notice::Reused { .. }
            | Notice::ServerInfo { .. } => self.warn(notice.name(), text),
            Notice::HostAdded { .. } => {}
            // There can be thousands of them.
            _ if stats.is_added(notice.host().0) => self.warn(notice.name(), text),
            Notice::Connected { .. } | Notice::Rotated { .. } | Notice::RetryScheduled { .. } => {
                self.print(&text());
            }
            _ => self.print_warning(&text()),
        }
    }

    /// Prints a warning at once if it is the first of its kind in a minute or every one is to be printed, else with the
    /// later ones.
    pub fn warn(&self, kind: &'static str, text: impl FnOnce() -> String) {
        if messages::has_details() {
            return self.print_warning(&warnings::shorten(text()));
        }
        if let Some(line) = self.warnings.record(kind, text, Instant::now()) {
            self.print_warning(&line);
        }
    }

    /// Prints the warnings whose minute is over.
    pub fn print_due_warnings(&self) {
        self.warnings.due(Instant::now()).iter().for_each(|line| self.print_warning(line));
    }

    /// Says that a stop was requested.
    pub fn announce_stop(&self, limit: Duration) {
        let limit = limit.as_secs();
        self.print(&format!("finishing within {limit} s; once more to end at once"));
    }

    /// Prints a line above the status line.
    pub fn print(&self, text: &str) {
        self.print_at(Level::INFO, text);
    }

    /// Prints a warning above the status line.
    pub fn print_warning(&self, text: &str) {
        self.print_at(Level::WARN, text);
    }

    fn print_at(&self, level: Level, text: &str) {
        self.bar.suspend(|| messages::print(level, text));
    }

    /// Prints how many sequence numbers every host skipped.
    pub(super) fn print_skipped(&self, stats: &RunStats, metrics: &MetricsSnapshot) {
        for (host, skipped) in metrics.skipped_seqs.iter().enumerate() {
            if *skipped > 0 {
                let host = stats.host(host);
                let text = format!("{host}: sequence numbers skipped in this run: {skipped}");
                self.print(&text);
            }
        }
    }

    /// Clears the status line, and prints the warnings that are not printed yet.
    pub fn end(&self) {
        self.warnings.rest().iter().for_each(|line| self.print_warning(line));
        self.bar.finish_and_clear();
    }
}

fn text(stats: &RunStats, metrics: &MetricsSnapshot, rate: f64) -> String {
    let mut text = format!("{}/s", HumanCount(rate.round() as u64));
    if let Some(lag) = stats.lag_seconds() {
        let _ = write!(text, " · lag {lag:.1} s");
    }
    if let Some(history) = stats.histories.text() {
        let _ = write!(text, " · {history}");
    }
    if metrics.resyncs_delayed > 0 {
        let _ = write!(text, " · {} resyncs delayed", HumanCount(metrics.resyncs_delayed));
    }
    let mut groups = [("verified", 0), ("refused", 0), ("without a key", 0), ("other", 0)];
    for (code, count) in &metrics.verdicts {
        let group = match *code {
            "verified" | "verified/broken" | "verified/unmended" | "verified/unproved" => 0,
            "signature/no-key" => 2,
            "unchecked" | "not-asked" | "event/inactive" | "event/stale-rev" => 3,
            _ => 1,
        };
        groups[group].1 += count;
    }
    for (name, count) in groups.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(text, " · {} {name}", HumanCount(count));
    }
    let _ = write!(text, " · {} lines", HumanCount(stats.lines.load(Relaxed)));
    let skipped = metrics.skipped_seqs.iter().fold(0, |sum: u64, host| sum.saturating_add(*host));
    for (name, count) in [
        ("accounts behind", metrics.accounts_behind as u64),
        ("in flight", metrics.in_flight as u64),
        ("in resync", metrics.awaiting_repo as u64),
        ("sequence numbers skipped", skipped),
    ] {
        if count > 0 {
            let _ = write!(text, " · {} {name}", HumanCount(count));
        }
    }
    text
}

/// Interval of the rates where the status line is not shown.
const DETAIL_INTERVAL: Duration = Duration::from_secs(10);

const UPDATE_EVERY: Duration = Duration::from_millis(500);
