//! The progress of a benchmark run: the current step, the finished part, and the time left.

use std::time::{Duration, Instant};

use ::bench::{Estimate, Forecast, Plan, Progress};

use crate::progress::ProgressLine;

/// The progress line of a run.
pub(super) struct RunProgress {
    line: ProgressLine,
    forecast: Forecast,
    since: Instant,
}

impl RunProgress {
    /// The progress of a run that begins now.
    pub(super) fn new(plan: &Plan) -> Self {
        Self { line: ProgressLine::new(), forecast: Forecast::of(plan), since: Instant::now() }
    }

    /// Shows a step.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        let Some(message) = message(progress) else { return self.observe(progress) };
        if matches!(progress, Progress::Waiting) {
            return self.line.step(message);
        }
        self.observe(progress);
        let Estimate { done, left } = self.forecast.estimate(self.since.elapsed());
        self.line.fraction(format!("{}, {message}", time_left(left)), done);
    }

    /// Clears the line.
    pub(super) fn end(self) {
        self.line.end();
    }

    fn observe(&mut self, progress: &Progress<'_>) {
        self.forecast.observe(progress, self.since.elapsed());
    }
}

/// The description of a step; `None` for steps that take no time.
fn message(progress: &Progress<'_>) -> Option<String> {
    Some(match progress {
        Progress::Waiting => "waiting for another run to end".to_owned(),
        Progress::Corpus { name, .. } => format!("generating {name}"),
        Progress::Building { peer, done, total } => {
            format!("building {peer}, {} of {total}", done + 1)
        }
        Progress::Proving { peer, variant, row, rows } => {
            format!("proving {peer} {variant}, row {} of {rows}", row + 1)
        }
        Progress::Pass { peer, variant, done, total, .. } => {
            format!("measuring {peer} {variant}, pass {} of {total}", done + 1)
        }
        Progress::Case { peer, case, done, total } => {
            format!("judging {peer} {case}, {done} of {total}")
        }
        _ => return None,
    })
}

/// The time left, rounded to what a forecast can tell.
fn time_left(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..10 => "a moment left".to_owned(),
        10..100 => format!("{} s left", seconds / 10 * 10),
        100..6_000 => format!("{} min left", (seconds + 30) / 60),
        _ => format!("{} h {} min left", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_in_seconds_then_minutes_then_hours() {
        let text = |seconds| time_left(Duration::from_secs(seconds));
        assert_eq!(text(3), "a moment left");
        assert_eq!(text(99), "90 s left");
        assert_eq!(text(100), "2 min left");
        assert_eq!(text(3_600 * 2 + 60 * 5), "2 h 5 min left");
    }

    #[test]
    fn every_step_that_takes_time_is_shown_with_its_number_in_its_stage() {
        let pass = Progress::Pass { peer: "a", variant: "v", row: 0, done: 2, total: 9 };
        assert_eq!(message(&pass).unwrap(), "measuring a v, pass 3 of 9");
        let building = Progress::Building { peer: "a", done: 0, total: 2 };
        assert_eq!(message(&building).unwrap(), "building a, 1 of 2");
        assert_eq!(message(&Progress::Known { rows: 1, cases: 0 }), None);
    }
}
