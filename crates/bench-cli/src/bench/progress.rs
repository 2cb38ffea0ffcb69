//! The progress of a benchmark run: the current step, the finished part, and the time left. A bar on a terminal, plain
//! lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use ::bench::{Estimate, Forecast, Plan, Progress, Task};

use super::step_log::{Moment, StepLog};
use crate::progress::ProgressLine;

/// The progress of a run on standard error.
pub(super) struct RunProgress {
    view: View,
    forecast: Forecast,
    /// The task that is being measured.
    task: Option<Task>,
    since: Instant,
}

/// How progress is shown.
enum View {
    Bar(ProgressLine),
    Lines(StepLog),
}

impl RunProgress {
    /// The progress of a run that begins now.
    pub(super) fn new(plan: &Plan) -> Self {
        let view = if io::stderr().is_terminal() {
            View::Bar(ProgressLine::new())
        } else {
            View::Lines(StepLog::new(io::stderr(), LINE_INTERVAL))
        };
        Self { view, forecast: Forecast::of(plan), task: None, since: Instant::now() }
    }

    /// Shows a step.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        if let Progress::Task { task, .. } = progress {
            self.task = Some(*task);
        }
        let elapsed = self.since.elapsed();
        self.forecast.observe(progress, elapsed);
        let Some((step, detail)) = texts(self.task, progress) else { return };
        match &mut self.view {
            View::Bar(line) if matches!(progress, Progress::Waiting) => line.step(detail),
            View::Bar(line) => {
                let Estimate { done, left } = self.forecast.estimate(elapsed);
                line.fraction(format!("{}, {detail}", time_left(left)), done);
            }
            View::Lines(log) => log.show(Moment { step, detail, forecast: self.forecast.clone() }),
        }
    }

    /// Calls `print`, which writes to standard output, while the bar is cleared.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        match &self.view {
            View::Bar(line) => line.suspend(print),
            View::Lines(_) => print(),
        }
    }

    /// Clears the bar, or waits until the lines are printed.
    pub(super) fn end(self) {
        match self.view {
            View::Bar(line) => line.end(),
            View::Lines(log) => log.end(),
        }
    }
}

/// A step, and the same with how far it is; `None` for steps that take no time.
fn texts(task: Option<Task>, progress: &Progress<'_>) -> Option<(String, String)> {
    let task = task.map_or("", Task::name);
    Some(match progress {
        Progress::Waiting => same("wait for another run to end".to_owned()),
        Progress::Corpus { name, done, total } => {
            (format!("generate {name}"), format!("generate {name}, {done} of {total}"))
        }
        Progress::Building { peers, done, total } => {
            let number = done + peers.len() as u64;
            same(format!("build {} ({number} of {total})", peers.join(" and ")))
        }
        // It has no rows that are proved or measured.
        Progress::Task { task: Task::NostrSize, .. } => {
            same(format!("{task}: encode and compress"))
        }
        Progress::Proving { peer, variant, row, rows } => (
            format!("{task}: prove {rows} rows"),
            format!("{task}: prove {peer} {variant}, row {} of {rows}", row + 1),
        ),
        Progress::Pass { peer, variant, done, total, .. } => (
            format!("{task}: measure {total} passes"),
            format!("{task}: measure {peer} {variant}, pass {} of {total}", done + 1),
        ),
        Progress::Case { peer, case, done, total } => (
            format!("{task}: judge {total} cases"),
            format!("{task}: judge {peer} {case}, case {done} of {total}"),
        ),
        _ => return None,
    })
}

fn same(text: String) -> (String, String) {
    (text.clone(), text)
}

/// The time left, rounded to the precision of a forecast.
fn time_left(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..10 => "a moment left".to_owned(),
        10..100 => format!("{} s left", seconds / 10 * 10),
        100..6_000 => format!("{} min left", (seconds + 30) / 60),
        _ => format!("{} h {} min left", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Maximum time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

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
    fn passes_of_a_task_are_one_step_and_each_has_its_number() {
        let pass = Progress::Pass { peer: "a", variant: "v", row: 0, done: 2, total: 9 };
        let (step, detail) = texts(Some(Task::Decode), &pass).unwrap();
        assert_eq!(step, "decode: measure 9 passes");
        assert_eq!(detail, "decode: measure a v, pass 3 of 9");
    }

    #[test]
    fn builds_at_once_are_one_step_that_counts_all_of_them() {
        let building = Progress::Building { peers: &["a", "b"], done: 1, total: 22 };
        assert_eq!(texts(None, &building).unwrap().0, "build a and b (3 of 22)");
        assert_eq!(texts(None, &Progress::Planned { builds: 1 }), None);
    }
}
