//! How does a person see how it goes? A line on a terminal, and a line for what is out of the ordinary.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use wireproof::net::firehose::{MetricsSnapshot, Notice, RunMetrics};

use super::watch::Watch;

/// What is told on standard error. Clones tell on the same line.
#[derive(Clone, Debug)]
pub(super) struct Status {
    bar: ProgressBar,
    rare: Arc<Mutex<Option<Instant>>>,
}

impl Status {
    /// The line is shown where standard error is a terminal that the lines of standard output do not
    /// go to.
    pub(super) fn new() -> Self {
        let is_seen = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let target =
            if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("one of ours");
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        Self { bar, rare: Arc::default() }
    }

    /// Tells how it goes, for ever.
    pub(super) async fn tell(&self, watch: &Watch, counters: &RunMetrics) -> Infallible {
        let mut tick = tokio::time::interval(TICK);
        let mut before = (Instant::now(), counters.snapshot().delivered);
        loop {
            tick.tick().await;
            if self.bar.is_hidden() {
                continue;
            }
            let counts = counters.snapshot();
            let seconds = before.0.elapsed().as_secs_f64().max(0.001);
            let rate = (counts.delivered - before.1) as f64 / seconds;
            before = (Instant::now(), counts.delivered);
            self.bar.set_message(text(watch, &counts, rate));
            self.bar.tick();
        }
    }

    /// Tells what a connection did, if a person wants to know.
    pub(super) fn notice(&self, watch: &Watch, notice: &Notice) {
        let host = watch.host(notice.host().0);
        let Some(text) = super::notices::text(host, notice) else { return };
        match super::notices::may_be_many(notice) {
            true => self.say_sometimes(&text),
            false => self.say(&text),
        }
    }

    /// A line for a person, unless there was one like this a moment ago: of what strangers can make as
    /// much as they like.
    pub(super) fn say_sometimes(&self, text: &str) {
        if self.is_turn() {
            self.say(text);
        }
    }

    /// A line for a person, above the other one.
    pub(super) fn say(&self, text: &str) {
        self.bar.suspend(|| {
            // If standard error is closed there is nobody to tell.
            let _ = writeln!(anstream::stderr(), "wireproof: {text}");
        });
    }

    /// Clears the line.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Whether something that may come often may be told again.
    fn is_turn(&self) -> bool {
        let mut last = self.rare.lock().unwrap_or_else(PoisonError::into_inner);
        let is_turn = last.is_none_or(|last| last.elapsed() >= SILENCE);
        if is_turn {
            *last = Some(Instant::now());
        }
        is_turn
    }
}

fn text(watch: &Watch, counts: &MetricsSnapshot, rate: f64) -> String {
    let mut text = format!("{}/s", HumanCount(rate.round() as u64));
    if let Some(lag) = watch.lag_seconds() {
        let _ = write!(text, " · lag {lag:.1} s");
    }
    let mut groups = [("verified", 0), ("refused", 0), ("without a key", 0), ("other", 0)];
    for (code, count) in &counts.verdicts {
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
    let _ = write!(text, " · {} lines", HumanCount(watch.lines.load(Relaxed)));
    for (name, count) in [("waiting", counts.in_flight), ("in resync", counts.awaiting_repo)] {
        if count > 0 {
            let _ = write!(text, " · {} {name}", HumanCount(count as u64));
        }
    }
    text
}

const TICK: Duration = Duration::from_millis(500);
const SILENCE: Duration = Duration::from_secs(5);
