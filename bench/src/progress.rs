//! The steps that a run reports, and a forecast of its remaining time made from them.

use std::time::Duration;

use crate::Task;
use crate::plan::Plan;

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Another run uses the same folder; this run waits for it.
    Waiting,
    /// A corpus is being made.
    Corpus {
        /// Its name.
        name: &'a str,
        /// Units made.
        done: u64,
        /// Units to make.
        total: u64,
    },
    /// A peer is being built.
    Building {
        /// Its name.
        peer: &'a str,
        /// Peers built.
        done: u64,
        /// Peers to build.
        total: u64,
    },
    /// All peers were built and described, so the amount of work is known.
    Known {
        /// Rows to measure.
        rows: u64,
        /// Hostile cases to run, over all peers and paths.
        cases: u64,
    },
    /// A row does its work once and is counted.
    Proving {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
        /// Index of the row.
        row: u64,
        /// Rows of all tasks.
        rows: u64,
    },
    /// A pass is about to start, warm-up included.
    Pass {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
        /// Index of the row.
        row: u64,
        /// Passes finished, over all rows.
        done: u64,
        /// Passes over all rows.
        total: u64,
    },
    /// A hostile case was run.
    Case {
        /// The peer.
        peer: &'a str,
        /// The case.
        case: &'a str,
        /// Cases finished, over all peers.
        done: u64,
        /// Cases over all peers.
        total: u64,
    },
}

/// Estimates the remaining time of a run from the steps it reports.
///
/// A run has four stages with known numbers of steps: corpora, builds, rows, hostile cases. A step is expected to take
/// as long as the finished steps of its stage. A pass is expected to take as long as its row's last one, or as its
/// proof before there is one. Stages that have not begun use typical durations. The caller supplies the time.
#[derive(Clone, Debug)]
pub struct Forecast {
    stages: [Stage; 4],
    /// Index of the current stage.
    stage: usize,
    /// Executions of each row: one proof, and each pass.
    executions: u32,
    /// Empty until the rows are known.
    rows: Vec<Row>,
    /// The corpus file being made.
    file: Option<String>,
    /// The running row and its start time.
    running: Option<(usize, Duration)>,
    /// The largest share reported as done so far.
    reported: f64,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Share of the run's time that has passed, from 0 to 1; never decreases.
    pub done: f64,
    /// Remaining time.
    pub left: Duration,
}

/// Steps of one kind.
#[derive(Clone, Copy, Debug)]
struct Stage {
    steps: u64,
    done: f64,
    began: Duration,
    /// Typical duration of a step.
    typical: Duration,
}

/// The state of a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Duration of its last execution.
    took: Option<Duration>,
    executions_left: u32,
}

impl Forecast {
    /// Estimates a run of this plan that starts at time 0.
    pub fn of(plan: &Plan) -> Self {
        let timed = plan.tasks.iter().filter(|task| **task != Task::Hostile).count() as u64;
        let hostile = u64::from(plan.tasks.contains(&Task::Hostile));
        let peers = plan.peers.as_ref().map_or(TYPICAL_PEERS, |peers| peers.len() as u64);
        let executions = 1 + plan.warmup + plan.passes;
        let size = if plan.quick { 10 } else { 1 };
        let stage = |steps, typical| Stage { steps, done: 0.0, began: Duration::ZERO, typical };
        Self {
            stages: [
                stage(timed, TYPICAL_CORPUS / size),
                stage(peers, TYPICAL_BUILD),
                stage(timed * peers * TYPICAL_ROWS, TYPICAL_PASS / size * executions),
                stage(hostile * peers * TYPICAL_CASES, TYPICAL_CASE),
            ],
            stage: CORPORA,
            executions,
            rows: Vec::new(),
            file: None,
            running: None,
            reported: 0.0,
        }
    }

    /// Updates the estimate with a step reported at time `now`.
    pub fn observe(&mut self, progress: &Progress<'_>, now: Duration) {
        match *progress {
            Progress::Waiting => {}
            Progress::Corpus { name, done, total } => self.make_corpus(name, done, total, now),
            Progress::Building { done, total, .. } => {
                self.record(BUILDS, done as f64, total, now);
            }
            Progress::Known { rows, cases } => {
                self.record(ROWS, 0.0, rows, now);
                self.rows =
                    vec![Row { took: None, executions_left: self.executions }; rows as usize];
                self.stages[CASES].steps = cases;
            }
            Progress::Proving { row, .. } | Progress::Pass { row, .. } => {
                self.finish_execution(now);
                self.running = Some((row as usize, now));
            }
            Progress::Case { done, total, .. } => {
                self.finish_execution(now);
                self.record(CASES, done as f64, total, now);
            }
        }
    }

    /// The estimate at time `now`.
    pub fn estimate(&mut self, now: Duration) -> Estimate {
        let left: Duration =
            (self.stage..self.stages.len()).map(|stage| self.remaining(stage, now)).sum();
        let all = (now + left).as_secs_f64();
        let done = if all > 0.0 { now.as_secs_f64() / all } else { 0.0 };
        self.reported = self.reported.max(done);
        Estimate { done: self.reported, left }
    }

    /// A corpus file is one step; it is finished when the next file begins.
    fn make_corpus(&mut self, name: &str, done: u64, total: u64, now: Duration) {
        let Stage { steps, done: before, .. } = self.stages[CORPORA];
        let is_next = self.file.as_ref().is_some_and(|file| file != name);
        let whole = before.floor() + f64::from(u8::from(is_next));
        self.file = Some(name.to_owned());
        let part = done as f64 / total.max(1) as f64;
        self.record(CORPORA, whole + part.min(UNFINISHED), steps, now);
    }

    /// Records that `done` of the `steps` of a stage are finished at time `now`, and all stages before it.
    fn record(&mut self, stage: usize, done: f64, steps: u64, now: Duration) {
        if stage > self.stage {
            (self.stage, self.stages[stage].began) = (stage, now);
        }
        (self.stages[stage].done, self.stages[stage].steps) = (done, steps);
    }

    /// Records that the running row has finished an execution.
    fn finish_execution(&mut self, now: Duration) {
        let Some((row, since)) = self.running.take() else { return };
        if let Some(row) = self.rows.get_mut(row) {
            row.took = Some(now.saturating_sub(since));
            row.executions_left = row.executions_left.saturating_sub(1);
        }
    }

    fn remaining(&self, stage: usize, now: Duration) -> Duration {
        let known: Vec<Duration> = self.rows.iter().filter_map(|row| row.took).collect();
        if stage != ROWS || known.is_empty() {
            return self.stages[stage].remaining(now, stage == self.stage);
        }
        let mean = known.iter().sum::<Duration>() / known.len() as u32;
        let left = |row: &Row| row.took.unwrap_or(mean).saturating_mul(row.executions_left);
        let since = self.running.map_or(Duration::ZERO, |(_, since)| now.saturating_sub(since));
        self.rows.iter().map(left).sum::<Duration>().saturating_sub(since)
    }
}

impl Stage {
    fn remaining(&self, now: Duration, is_current: bool) -> Duration {
        let steps = (self.steps as f64 - self.done).max(0.0);
        let since = now.saturating_sub(self.began);
        if !is_current {
            self.typical.mul_f64(steps)
        } else if self.done > 0.0 && !since.is_zero() {
            since.div_f64(self.done).mul_f64(steps)
        } else {
            self.typical.mul_f64(steps).saturating_sub(since)
        }
    }
}

// Indices of the stages of a run.
const CORPORA: usize = 0;
const BUILDS: usize = 1;
const ROWS: usize = 2;
const CASES: usize = 3;

/// The largest share of a file that is not written yet.
const UNFINISHED: f64 = 0.99;

// Typical values until the run reports its own.
const TYPICAL_PEERS: u64 = 14;
/// Rows of a peer in one task.
const TYPICAL_ROWS: u64 = 2;
/// Cases of a peer over both paths.
const TYPICAL_CASES: u64 = 487;
const TYPICAL_CORPUS: Duration = Duration::from_secs(3);
/// Most peers are built already.
const TYPICAL_BUILD: Duration = Duration::from_secs(2);
const TYPICAL_PASS: Duration = Duration::from_millis(300);
const TYPICAL_CASE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn forecast(passes: u32) -> Forecast {
        let peers = Some(vec!["a".to_owned(), "b".to_owned()]);
        let tasks = vec![Task::Decode, Task::Hostile];
        Forecast::of(&Plan { tasks, peers, warmup: 0, passes, ..Plan::default() })
    }

    fn building(done: u64) -> Progress<'static> {
        Progress::Building { peer: "a", done, total: 2 }
    }

    fn proving(row: u64) -> Progress<'static> {
        Progress::Proving { peer: "a", variant: "v", row, rows: 2 }
    }

    fn pass(row: u64) -> Progress<'static> {
        Progress::Pass { peer: "a", variant: "v", row, done: 0, total: 0 }
    }

    fn case(done: u64) -> Progress<'static> {
        Progress::Case { peer: "a", case: "c", done, total: 10 }
    }

    /// A run whose two rows take one and nine seconds, proved after 20 seconds.
    fn proved(passes: u32, cases: u64) -> Forecast {
        let mut forecast = forecast(passes);
        forecast.observe(&building(0), s(0));
        forecast.observe(&building(1), s(5));
        forecast.observe(&Progress::Known { rows: 2, cases }, s(10));
        forecast.observe(&proving(0), s(10));
        forecast.observe(&proving(1), s(11));
        forecast.observe(&pass(0), s(20));
        forecast
    }

    #[test]
    fn a_step_is_expected_to_take_as_long_as_finished_steps_of_its_stage() {
        let mut forecast = forecast(1);
        forecast.observe(&building(0), s(0));
        forecast.observe(&building(1), s(30));
        assert_eq!(forecast.remaining(BUILDS, s(30)), s(30));
    }

    #[test]
    fn a_pass_is_expected_to_take_as_long_as_its_own_rows_proof() {
        let mut forecast = proved(3, 0);
        assert_eq!(forecast.estimate(s(20)), Estimate { done: 0.4, left: s(30) });
        forecast.observe(&pass(1), s(21));
        assert_eq!(forecast.estimate(s(21)).left, s(29));
    }

    #[test]
    fn a_pass_faster_than_the_proof_shortens_the_remaining_time() {
        let mut forecast = proved(3, 0);
        forecast.observe(&pass(1), s(21));
        forecast.observe(&pass(0), s(25));
        assert_eq!(forecast.estimate(s(25)).left, s(10), "two more rounds of one and four seconds");
    }

    #[test]
    fn a_row_of_a_later_task_is_expected_to_take_as_long_as_the_others() {
        let mut forecast = forecast(1);
        forecast.observe(&Progress::Known { rows: 2, cases: 0 }, s(0));
        forecast.observe(&proving(0), s(0));
        forecast.observe(&pass(0), s(10));
        assert_eq!(forecast.estimate(s(10)).left, s(10) + s(20));
        forecast.observe(&proving(1), s(20));
        assert_eq!(forecast.estimate(s(20)).left, s(20), "its proof, and its pass");
    }

    #[test]
    fn the_remaining_time_shrinks_within_a_pass() {
        let mut forecast = proved(1, 0);
        forecast.observe(&pass(1), s(21));
        assert_eq!(forecast.estimate(s(24)).left, s(6));
        assert_eq!(forecast.estimate(s(60)).left, s(0), "it takes longer than expected");
    }

    #[test]
    fn hostile_cases_count_before_they_begin() {
        assert_eq!(proved(1, 100).estimate(s(20)).left, s(10) + 100 * TYPICAL_CASE);
        let mut forecast = proved(1, 10);
        forecast.observe(&pass(1), s(21));
        forecast.observe(&case(1), s(30));
        forecast.observe(&case(5), s(40));
        assert_eq!(forecast.remaining(CASES, s(40)), s(10));
        forecast.observe(&case(10), s(50));
        assert_eq!(forecast.estimate(s(50)), Estimate { done: 1.0, left: s(0) });
    }

    #[test]
    fn the_share_done_never_decreases() {
        let mut forecast = proved(1, 10);
        let before = forecast.estimate(s(21)).done;
        forecast.observe(&case(1), s(22));
        assert!(forecast.remaining(CASES, s(2_000)) > s(1_000));
        assert!(forecast.estimate(s(2_000)).done >= before);
    }

    #[test]
    fn a_run_that_has_reported_nothing_is_at_zero() {
        let Estimate { done, left } = forecast(5).estimate(s(0));
        assert_eq!(done, 0.0);
        assert!(left > s(1));
    }

    #[test]
    fn each_corpus_file_is_one_step_whatever_its_length() {
        let tasks = vec![Task::Decode, Task::Mst, Task::Repo];
        let mut forecast = Forecast::of(&Plan { tasks, ..Plan::default() });
        for (name, done) in [("a", 0), ("a", 50), ("b", 0), ("b", 100), ("c", 0), ("c", 50)] {
            forecast.observe(&Progress::Corpus { name, done, total: 100 }, s(10));
        }
        assert_eq!(forecast.stages[CORPORA].done, 2.5);
    }
}
