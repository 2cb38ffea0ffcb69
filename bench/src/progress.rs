//! The steps that a run reports, and a forecast of its remaining time made from them.

use std::time::Duration;

use crate::plan::Plan;
use crate::{Row, Task, Unavailable};

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// It is known which peers are built already.
    Planned {
        /// Peers to build.
        builds: u64,
    },
    /// Peers are being built.
    Building {
        /// Their names.
        peers: &'a [&'a str],
        /// Peers built in this run.
        done: u64,
        /// Peers to build in this run.
        total: u64,
    },
    /// A task begins.
    Task {
        /// The task.
        task: Task,
        /// Its rows to measure.
        rows: u64,
        /// Its hostile cases to run, over all peers and paths.
        cases: u64,
        /// Its peers that are not built yet. If there are any, the task is measured again after their builds.
        missing: u64,
    },
    /// A row does its work once and is counted.
    Proving {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
        /// Index of the row.
        row: u64,
        /// Rows of the task.
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
        /// Passes of the task finished, over all rows.
        done: u64,
        /// Passes of the task, over all rows.
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
    /// A task was measured.
    Measured {
        /// Its rows, sorted as in the results.
        rows: &'a [Row],
        /// The peers that its rows lack, with the builds they wait for. If there are any, the task is measured again, and
        /// these rows are not in the results.
        missing: &'a [Unavailable],
    },
}

/// Estimates the remaining time of a run from the steps it reports.
///
/// The rest of a run is the builds that are left, the rest of the current task, and the tasks that have not begun. A build
/// is expected to take as long as the others so far on average, at first a typical time. A pass is expected to take as long as its row's
/// last one, or as its proof before there is one. A task that has not begun is expected to take its typical time, corrected
/// by the times of the finished tasks. The caller supplies the time.
#[derive(Clone, Debug)]
pub struct Forecast {
    plan: Plan,
    builds: Builds,
    /// Tasks that have not begun.
    tasks: Vec<Task>,
    current: Option<CurrentTask>,
    /// Typical and actual time of the finished tasks.
    finished: (Duration, Duration),
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

/// The builds of a run, of which some run at once.
#[derive(Clone, Copy, Debug, Default)]
struct Builds {
    total: u64,
    done: u64,
    /// Builds that run now.
    running: u64,
    /// Time in which builds ran, up to the last change.
    spent: Duration,
    /// When the last change was, while builds run.
    running_since: Option<Duration>,
}

/// The task that is being measured.
#[derive(Clone, Debug)]
struct CurrentTask {
    task: Task,
    began: Duration,
    is_complete: bool,
    rows: Vec<RowState>,
    /// The running row and its start time.
    running: Option<(usize, Duration)>,
    /// Hostile cases finished and in all.
    cases: (u64, u64),
}

/// The state of a row.
#[derive(Clone, Copy, Debug)]
struct RowState {
    /// Duration of its last execution.
    took: Option<Duration>,
    executions_left: u32,
}

impl Forecast {
    /// Estimates a run of this plan that starts at time 0.
    pub fn of(plan: &Plan) -> Self {
        let (plan, builds) = (plan.clone(), Builds::default());
        let tasks = plan.tasks.clone();
        Self { plan, builds, tasks, current: None, finished: Default::default(), reported: 0.0 }
    }

    /// Updates the estimate with a step reported at time `now`.
    pub fn observe(&mut self, progress: &Progress<'_>, now: Duration) {
        match *progress {
            Progress::Waiting | Progress::Corpus { .. } => {}
            Progress::Planned { builds } => self.builds.total = builds,
            Progress::Building { peers, done, total } => {
                return self.builds.observe(peers.len() as u64, done, total, now);
            }
            Progress::Task { task, rows, cases, missing } => {
                self.begin(task, (rows, cases), missing == 0, now);
            }
            Progress::Proving { row, .. } | Progress::Pass { row, .. } => {
                let Some(current) = &mut self.current else { return };
                current.finish_execution(self.plan.one_pass_over, now);
                current.running = Some((row as usize, now));
            }
            Progress::Case { done, total, .. } => {
                let Some(current) = &mut self.current else { return };
                current.cases = (done, total);
            }
            Progress::Measured { .. } => self.end_task(now),
        }
        self.builds.stop(now);
    }

    /// The estimate at time `now`.
    pub fn estimate(&mut self, now: Duration) -> Estimate {
        let current = self.current.as_ref().map_or(Duration::ZERO, |task| task.left(now));
        let typical: Duration = self.tasks.iter().map(|task| self.typical(*task)).sum();
        let left = self.builds.left(now) + current + typical.mul_f64(self.slowdown());
        let all = (now + left).as_secs_f64();
        let done = if all > 0.0 { now.as_secs_f64() / all } else { 0.0 };
        self.reported = self.reported.max(done);
        Estimate { done: self.reported, left }
    }

    fn begin(&mut self, task: Task, (rows, cases): (u64, u64), is_complete: bool, now: Duration) {
        let executions_left = 1 + self.plan.warmup + self.plan.passes;
        let rows = vec![RowState { took: None, executions_left }; rows as usize];
        let began = now;
        let cases = (0, cases);
        let running = None;
        self.current = Some(CurrentTask { task, began, is_complete, rows, running, cases });
        if is_complete {
            self.tasks.retain(|later| *later != task);
        }
    }

    fn end_task(&mut self, now: Duration) {
        let Some(CurrentTask { task, began, is_complete: true, .. }) = self.current.take() else {
            return;
        };
        self.finished.0 += self.typical(task);
        self.finished.1 += now.saturating_sub(began);
    }

    /// The time of the finished tasks in parts of their typical time.
    fn slowdown(&self) -> f64 {
        let (typical, actual) = self.finished;
        if typical.is_zero() { 1.0 } else { actual.div_duration_f64(typical) }
    }

    /// The typical time of a task: its corpus is made, its rows start a process each, and its work is done once for the proof and
    /// in every pass.
    fn typical(&self, task: Task) -> Duration {
        let Typical { rows, quick_s, slow_s } = Typical::of(task);
        let executions = f64::from(1 + self.plan.warmup + self.plan.passes);
        let of_slow = if self.plan.one_pass_over.is_some() { 2.0 } else { executions };
        let size = if self.plan.quick { 0.1 } else { 1.0 };
        let corpus = Duration::from_secs_f64(CORPUS_S * size);
        let work = (quick_s * executions + slow_s * of_slow) * size;
        let peers =
            self.plan.peers.as_ref().map_or(1.0, |peers| peers.len() as f64 / TYPICAL_PEERS);
        corpus + Duration::from_secs_f64((f64::from(rows) * ROW_START_S + work) * peers.min(1.0))
    }
}

impl Builds {
    fn observe(&mut self, running: u64, done: u64, total: u64, now: Duration) {
        self.stop(now);
        (self.running, self.done, self.total) = (running, done, total);
        self.running_since = Some(now);
    }

    /// Records that the running builds have ended.
    fn stop(&mut self, now: Duration) {
        if let Some(since) = self.running_since.take() {
            self.spent += now.saturating_sub(since);
            self.done += self.running;
        }
    }

    fn left(&self, now: Duration) -> Duration {
        let since = self.running_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let known = self.spent + since + TYPICAL_BUILDS * TYPICAL_BUILD;
        let mean = known / (self.done as u32 + TYPICAL_BUILDS);
        mean * self.total.saturating_sub(self.done) as u32
    }
}

impl CurrentTask {
    /// Records that the running row has finished an execution.
    fn finish_execution(&mut self, one_pass_over: Option<Duration>, now: Duration) {
        let Some((row, since)) = self.running.take() else { return };
        let Some(row) = self.rows.get_mut(row) else { return };
        let took = now.saturating_sub(since);
        let is_slow_proof = row.took.is_none() && one_pass_over.is_some_and(|limit| took > limit);
        let left = row.executions_left.saturating_sub(1);
        (row.took, row.executions_left) =
            (Some(took), if is_slow_proof { left.min(1) } else { left });
    }

    fn left(&self, now: Duration) -> Duration {
        let known: Vec<Duration> = self.rows.iter().filter_map(|row| row.took).collect();
        let mean = match known.len() {
            0 => TYPICAL_EXECUTION,
            some => known.iter().sum::<Duration>() / some as u32,
        };
        let left = |row: &RowState| row.took.unwrap_or(mean).saturating_mul(row.executions_left);
        let since = self.running.map_or(Duration::ZERO, |(_, since)| now.saturating_sub(since));
        let rows: Duration = self.rows.iter().map(left).sum();
        rows.saturating_sub(since) + self.cases_left(now)
    }

    fn cases_left(&self, now: Duration) -> Duration {
        let (done, total) = self.cases;
        let left = total.saturating_sub(done) as u32;
        match done {
            0 => TYPICAL_CASE * left,
            done => now.saturating_sub(self.began).div_f64(done as f64) * left,
        }
    }
}

/// The typical work of a task with all peers: its rows, and seconds of one execution of all rows under two seconds, and
/// of the others.
struct Typical {
    rows: u32,
    quick_s: f64,
    slow_s: f64,
}

impl Typical {
    fn of(task: Task) -> Self {
        let (rows, quick_s, slow_s) = match task {
            Task::Decode => (28, 2.0, 0.0),
            Task::Sigs => (25, 6.0, 15.0),
            Task::Schnorr => (4, 0.5, 0.0),
            Task::Mst => (21, 8.0, 13.0),
            Task::Repo => (12, 4.0, 28.0),
            Task::Commit => (5, 2.0, 0.0),
            Task::NostrValidated => (37, 8.0, 19.0),
            Task::NostrFields => (120, 0.5, 0.0),
            Task::NostrBatch => (35, 2.0, 0.0),
            Task::NostrSize => (0, 1.0, 0.0),
            Task::Hostile => (0, 15.0, 0.0),
            _ => (35, 0.5, 0.0),
        };
        Self { rows, quick_s, slow_s }
    }
}

// Typical values until the run reports its own.
const TYPICAL_PEERS: f64 = 22.0;
const TYPICAL_BUILD: Duration = Duration::from_secs(20);
/// The weight of the typical time, in builds.
const TYPICAL_BUILDS: u32 = 4;
const TYPICAL_EXECUTION: Duration = Duration::from_millis(300);
const TYPICAL_CASE: Duration = Duration::from_millis(10);
/// Seconds in which a row's process starts and loads its corpus.
const ROW_START_S: f64 = 0.2;
/// Seconds in which a corpus is made.
const CORPUS_S: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A run of two tasks with this many passes, without warm-up.
    fn forecast(passes: u32) -> Forecast {
        let tasks = vec![Task::Decode, Task::Commit];
        Forecast::of(&Plan {
            tasks,
            warmup: 0,
            passes,
            one_pass_over: Some(s(20)),
            ..Plan::default()
        })
    }

    fn building(done: u64) -> Progress<'static> {
        Progress::Building { peers: &["p"], done, total: 3 }
    }

    fn task(rows: u64, cases: u64, missing: u64) -> Progress<'static> {
        Progress::Task { task: Task::Decode, rows, cases, missing }
    }

    fn proving(row: u64) -> Progress<'static> {
        Progress::Proving { peer: "p", variant: "v", row, rows: 2 }
    }

    fn pass(row: u64) -> Progress<'static> {
        Progress::Pass { peer: "p", variant: "v", row, done: 0, total: 0 }
    }

    fn case(done: u64) -> Progress<'static> {
        Progress::Case { peer: "p", case: "c", done, total: 10 }
    }

    /// The current task alone.
    fn task_left(forecast: &Forecast, now: Duration) -> Duration {
        forecast.current.as_ref().unwrap().left(now)
    }

    /// A run whose first row was proved in 1 second and whose second in 9.
    fn proved(passes: u32) -> Forecast {
        let mut forecast = forecast(passes);
        forecast.observe(&task(2, 0, 0), s(10));
        forecast.observe(&proving(0), s(10));
        forecast.observe(&proving(1), s(11));
        forecast.observe(&pass(0), s(20));
        forecast
    }

    #[test]
    fn a_build_is_expected_to_take_as_long_as_the_others_and_at_first_a_typical_time() {
        let mut forecast = forecast(1);
        forecast.observe(&Progress::Planned { builds: 3 }, s(0));
        assert_eq!(forecast.builds.left(s(0)), 3 * TYPICAL_BUILD);
        forecast.observe(&building(0), s(0));
        forecast.observe(&building(1), s(70));
        assert_eq!(forecast.builds.left(s(70)), 2 * s(30), "four of 20 s and one of 70 s");
    }

    #[test]
    fn a_build_that_takes_long_is_never_expected_to_end_at_once() {
        let mut forecast = forecast(1);
        forecast.observe(&building(2), s(0));
        assert!(forecast.builds.left(s(600)) > s(60));
    }

    #[test]
    fn builds_have_ended_when_another_step_begins() {
        let mut forecast = forecast(1);
        forecast.observe(&building(2), s(0));
        forecast.observe(&task(1, 0, 0), s(30));
        assert_eq!(forecast.builds.left(s(30)), s(0));
    }

    #[test]
    fn the_time_between_builds_is_not_counted_as_theirs() {
        let mut forecast = forecast(1);
        forecast.observe(&building(0), s(0));
        forecast.observe(&building(1), s(30));
        forecast.observe(&task(1, 0, 0), s(50));
        forecast.observe(&building(2), s(500));
        let mean = (s(50) + TYPICAL_BUILDS * TYPICAL_BUILD) / (2 + TYPICAL_BUILDS);
        assert_eq!(forecast.builds.left(s(500)), mean);
    }

    #[test]
    fn a_pass_is_expected_to_take_as_long_as_its_own_rows_proof() {
        let mut forecast = proved(3);
        assert_eq!(task_left(&forecast, s(20)), s(30));
        forecast.observe(&pass(1), s(21));
        assert_eq!(task_left(&forecast, s(21)), s(29));
    }

    #[test]
    fn a_pass_faster_than_the_proof_shortens_the_remaining_time() {
        let mut forecast = proved(3);
        forecast.observe(&pass(1), s(21));
        forecast.observe(&pass(0), s(25));
        assert_eq!(task_left(&forecast, s(25)), s(10), "two more rounds of one and four seconds");
    }

    #[test]
    fn a_row_that_is_not_proved_is_expected_to_take_as_long_as_the_others() {
        let mut forecast = forecast(1);
        forecast.observe(&task(2, 0, 0), s(0));
        forecast.observe(&proving(0), s(0));
        forecast.observe(&proving(1), s(10));
        assert_eq!(task_left(&forecast, s(10)), s(10) + s(20));
        forecast.observe(&pass(0), s(20));
        assert_eq!(task_left(&forecast, s(20)), s(20), "a pass of each");
    }

    #[test]
    fn a_row_with_a_slow_proof_is_expected_to_make_one_pass() {
        let mut forecast = forecast(5);
        forecast.observe(&task(1, 0, 0), s(0));
        forecast.observe(&proving(0), s(0));
        forecast.observe(&pass(0), s(30));
        assert_eq!(task_left(&forecast, s(30)), s(30));
    }

    #[test]
    fn the_remaining_time_shrinks_within_a_pass() {
        let mut forecast = proved(1);
        forecast.observe(&pass(1), s(21));
        assert_eq!(task_left(&forecast, s(24)), s(6));
        assert_eq!(task_left(&forecast, s(60)), s(0), "it takes longer than expected");
    }

    #[test]
    fn hostile_cases_count_before_they_begin() {
        let mut forecast = forecast(1);
        forecast.observe(&task(0, 10, 0), s(20));
        assert_eq!(task_left(&forecast, s(20)), 10 * TYPICAL_CASE);
        forecast.observe(&case(5), s(40));
        assert_eq!(task_left(&forecast, s(40)), s(20));
    }

    #[test]
    fn tasks_that_have_not_begun_are_corrected_by_what_finished_ones_took() {
        let mut forecast = forecast(1);
        let later = forecast.typical(Task::Commit);
        let all = forecast.estimate(s(0)).left;
        assert_eq!(all, forecast.typical(Task::Decode) + later);
        forecast.observe(&task(1, 0, 0), s(0));
        let twice = 2 * forecast.typical(Task::Decode);
        forecast.observe(&Progress::Measured { rows: &[], missing: &[] }, twice);
        assert_eq!(forecast.estimate(twice).left, 2 * later);
    }

    #[test]
    fn a_task_that_is_measured_again_is_still_to_come() {
        let mut forecast = forecast(1);
        let all = forecast.estimate(s(0)).left;
        forecast.observe(&task(1, 0, 2), s(0));
        forecast.observe(&Progress::Measured { rows: &[], missing: &[] }, s(5));
        assert_eq!(forecast.estimate(s(5)).left, all);
    }

    #[test]
    fn the_share_done_never_decreases() {
        let mut forecast = proved(1);
        forecast.observe(&building(2), s(21));
        let before = forecast.estimate(s(21)).done;
        forecast.observe(&building(0), s(2_000));
        assert!(forecast.estimate(s(2_000)).done >= before);
    }

    #[test]
    fn a_run_that_has_reported_nothing_is_at_zero() {
        let Estimate { done, left } = forecast(5).estimate(s(0));
        assert_eq!(done, 0.0);
        assert!(left > s(1));
    }
}
