//! How far is a run, over all its stages, and how long will it go on?

use std::time::{Duration, Instant};

use ::bench::{Estimate, Forecast, Plan, Progress};

use crate::progress::ProgressLine;

/// A line that follows a run from its first step to its last.
pub(super) struct RunLine {
    line: ProgressLine,
    forecast: Forecast,
    since: Instant,
}

impl RunLine {
    /// Of a run by this plan that begins now.
    pub(super) fn of(plan: &Plan) -> Self {
        Self { line: ProgressLine::new(), forecast: Forecast::of(plan), since: Instant::now() }
    }

    /// Shows a step.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        let Some(message) = message(progress) else { return self.forecast_from(progress) };
        if matches!(progress, Progress::Waiting) {
            return self.line.step(message);
        }
        self.forecast_from(progress);
        let Estimate { done, left } = self.forecast.estimate(self.since.elapsed());
        self.line.share(format!("{}, {message}", time_left(left)), done);
    }

    /// Clears the line.
    pub(super) fn end(self) {
        self.line.end();
    }

    fn forecast_from(&mut self, progress: &Progress<'_>) {
        self.forecast.observe(progress, self.since.elapsed());
    }
}

/// What is being done; `None` if nothing new is.
fn message(progress: &Progress<'_>) -> Option<String> {
    Some(match progress {
        Progress::Waiting => "another run is under way, waiting for it".to_owned(),
        Progress::Corpus { name, .. } => format!("making {name}"),
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

/// As exactly as anybody can know it.
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
    fn time_is_told_in_seconds_then_minutes_then_hours() {
        let told = |seconds| time_left(Duration::from_secs(seconds));
        assert_eq!(told(3), "a moment left");
        assert_eq!(told(99), "90 s left");
        assert_eq!(told(100), "2 min left");
        assert_eq!(told(3_600 * 2 + 60 * 5), "2 h 5 min left");
    }

    #[test]
    fn every_step_that_takes_time_is_told_with_its_place_in_its_stage() {
        let pass = Progress::Pass { peer: "a", variant: "v", row: 0, done: 2, total: 9 };
        assert_eq!(message(&pass).unwrap(), "measuring a v, pass 3 of 9");
        let building = Progress::Building { peer: "a", done: 0, total: 2 };
        assert_eq!(message(&building).unwrap(), "building a, 1 of 2");
        assert_eq!(message(&Progress::Known { rows: 1, cases: 0 }), None);
    }
}
