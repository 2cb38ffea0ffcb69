//! How much of a run is done, and how long will the rest take?
//!
//! A run goes through four stages, each of a known number of steps: corpora, builds, rows, hostile cases. What
//! a step takes is what the steps of its stage took so far. Rows are better known: a pass takes as long as its
//! row's last one, or as its proof before there is any. For what has not begun stands a usual time. Whoever
//! asks says what time it is.

use std::time::Duration;

use crate::plan::Plan;
use crate::{Progress, Task};

/// An estimate that follows a run from its first step to its last.
#[derive(Clone, Debug)]
pub struct Forecast {
    stages: [Stage; 4],
    /// The stage that is under way, as a place in `stages`.
    now: usize,
    /// How often a row does its work: to prove it, and in each pass.
    goes: u32,
    /// Empty until it is known which there are.
    rows: Vec<Row>,
    /// The file that is being made.
    file: Option<String>,
    /// The row at work, and since when.
    at_work: Option<(usize, Duration)>,
    /// What was said to be done, which never shrinks.
    told: f64,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The part of the run's time that is over: from 0 to 1, never less than before.
    pub done: f64,
    /// What is left of it.
    pub left: Duration,
}

/// Steps of a kind.
#[derive(Clone, Copy, Debug)]
struct Stage {
    steps: u64,
    done: f64,
    began: Duration,
    /// What a step takes before one was seen.
    usual: Duration,
}

/// What is known of a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// How long it last took to do its work.
    took: Option<Duration>,
    goes_left: u32,
}

impl Forecast {
    /// Of a run by this plan that begins at the time 0.
    pub fn of(plan: &Plan) -> Self {
        let timed = plan.tasks.iter().filter(|task| **task != Task::Hostile).count() as u64;
        let hostile = u64::from(plan.tasks.contains(&Task::Hostile));
        let peers = plan.peers.as_ref().map_or(USUAL_PEERS, |peers| peers.len() as u64);
        let goes = 1 + plan.warmup + plan.passes;
        let size = if plan.quick { 10 } else { 1 };
        let stage = |steps, usual| Stage { steps, done: 0.0, began: Duration::ZERO, usual };
        Self {
            stages: [
                stage(timed, USUAL_CORPUS / size),
                stage(peers, USUAL_BUILD),
                stage(timed * peers * USUAL_ROWS, USUAL_PASS / size * goes),
                stage(hostile * peers * USUAL_CASES, USUAL_CASE),
            ],
            now: CORPORA,
            goes,
            rows: Vec::new(),
            file: None,
            at_work: None,
            told: 0.0,
        }
    }

    /// Takes in what the run says of itself at the time `now`.
    pub fn observe(&mut self, progress: &Progress<'_>, now: Duration) {
        match *progress {
            Progress::Waiting => {}
            Progress::Corpus { name, done, total } => self.make(name, done, total, now),
            Progress::Building { done, total, .. } => {
                self.step(BUILDS, done as f64, total, now);
            }
            Progress::Known { rows, cases } => {
                self.step(ROWS, 0.0, rows, now);
                self.rows = vec![Row { took: None, goes_left: self.goes }; rows as usize];
                self.stages[CASES].steps = cases;
            }
            Progress::Proving { row, .. } | Progress::Pass { row, .. } => {
                self.end_of_turn(now);
                self.at_work = Some((row as usize, now));
            }
            Progress::Case { done, total, .. } => {
                self.end_of_turn(now);
                self.step(CASES, done as f64, total, now);
            }
        }
    }

    /// What is left at the time `now`.
    pub fn estimate(&mut self, now: Duration) -> Estimate {
        let left: Duration = (self.now..self.stages.len()).map(|stage| self.left(stage, now)).sum();
        let all = (now + left).as_secs_f64();
        let done = if all > 0.0 { now.as_secs_f64() / all } else { 0.0 };
        self.told = self.told.max(done);
        Estimate { done: self.told, left }
    }

    /// A file that is made is one step, and is whole when the next one begins.
    fn make(&mut self, name: &str, done: u64, total: u64, now: Duration) {
        let Stage { steps, done: before, .. } = self.stages[CORPORA];
        let is_next = self.file.as_ref().is_some_and(|file| file != name);
        let whole = before.floor() + f64::from(u8::from(is_next));
        self.file = Some(name.to_owned());
        let part = done as f64 / total.max(1) as f64;
        self.step(CORPORA, whole + part.min(ALMOST), steps, now);
    }

    /// `done` of the `steps` of a stage are over at the time `now`, and all stages before it.
    fn step(&mut self, stage: usize, done: f64, steps: u64, now: Duration) {
        if stage > self.now {
            (self.now, self.stages[stage].began) = (stage, now);
        }
        (self.stages[stage].done, self.stages[stage].steps) = (done, steps);
    }

    /// The row at work has done its work once more.
    fn end_of_turn(&mut self, now: Duration) {
        let Some((row, since)) = self.at_work.take() else { return };
        if let Some(row) = self.rows.get_mut(row) {
            row.took = Some(now.saturating_sub(since));
            row.goes_left = row.goes_left.saturating_sub(1);
        }
    }

    fn left(&self, stage: usize, now: Duration) -> Duration {
        let known: Vec<Duration> = self.rows.iter().filter_map(|row| row.took).collect();
        if stage != ROWS || known.is_empty() {
            return self.stages[stage].left(now, stage == self.now);
        }
        let mean = known.iter().sum::<Duration>() / known.len() as u32;
        let left = |row: &Row| row.took.unwrap_or(mean).saturating_mul(row.goes_left);
        let since = self.at_work.map_or(Duration::ZERO, |(_, since)| now.saturating_sub(since));
        self.rows.iter().map(left).sum::<Duration>().saturating_sub(since)
    }
}

impl Stage {
    fn left(&self, now: Duration, is_under_way: bool) -> Duration {
        let steps = (self.steps as f64 - self.done).max(0.0);
        let since = now.saturating_sub(self.began);
        if !is_under_way {
            self.usual.mul_f64(steps)
        } else if self.done > 0.0 && !since.is_zero() {
            since.div_f64(self.done).mul_f64(steps)
        } else {
            self.usual.mul_f64(steps).saturating_sub(since)
        }
    }
}

// Places in the stages of a run.
const CORPORA: usize = 0;
const BUILDS: usize = 1;
const ROWS: usize = 2;
const CASES: usize = 3;

/// Of a file that is not written yet.
const ALMOST: f64 = 0.99;

// What stands for what nobody has said yet.
const USUAL_PEERS: u64 = 14;
/// Of a peer that does a task.
const USUAL_ROWS: u64 = 2;
/// Of a peer, over both paths.
const USUAL_CASES: u64 = 460;
const USUAL_CORPUS: Duration = Duration::from_secs(3);
/// Most peers are built already.
const USUAL_BUILD: Duration = Duration::from_secs(2);
const USUAL_PASS: Duration = Duration::from_millis(300);
const USUAL_CASE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
