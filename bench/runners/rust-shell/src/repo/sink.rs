//! Where does a repository go that is being verified? In `pass` to a stopwatch and an optimisation
//! barrier, in `prove` to the counts.

use std::fmt::Display;
use std::hint::black_box;
use std::time::Instant;

use serde_json::{Map, Value};

use super::{Sink, Stage};
use crate::Stages;

/// Times the stages and makes the optimiser believe that someone reads everything.
pub(super) struct Stopwatch {
    since: Instant,
    stages: Stages,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Stopwatch { since: Instant::now(), stages: Stages::new() }
    }

    /// What follows the last stage, such as freeing what was built, belongs to it.
    pub(super) fn stop(mut self) -> Stages {
        if let Some((_, ns)) = self.stages.last_mut() {
            *ns += self.since.elapsed().as_nanos() as u64;
        }
        self.stages
    }
}

impl Sink for Stopwatch {
    fn is_counting(&self) -> bool {
        false
    }

    fn ended(&mut self, stage: Stage) {
        let now = Instant::now();
        self.stages.push((stage.name().into(), (now - self.since).as_nanos() as u64));
        self.since = now;
    }

    #[inline]
    fn blocks(&mut self, _: usize) {}

    #[inline]
    fn valid(&mut self) {}

    #[inline]
    fn record(&mut self, block: &[u8]) {
        black_box(block);
    }

    fn root(&mut self, _: &impl Display) {}

    fn rebuilt_root(&mut self, _: &impl Display) {}
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Parse => "parse",
            Stage::Signature => "signature",
            Stage::Walk => "walk",
            Stage::Rebuild => "rebuild",
        }
    }
}

/// The counts of the task, by the names of the protocol. What was not handed over is left out.
pub(super) struct Counts(Map<String, Value>);

impl Counts {
    pub(super) fn of_one() -> Self {
        let start = [("repositories", 1), ("records", 0), ("record_bytes", 0)];
        Counts(start.map(|(name, count)| (name.to_owned(), count.into())).into_iter().collect())
    }

    pub(super) fn into_json(self) -> Value {
        Value::Object(self.0)
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn add(&mut self, name: &str, more: usize) {
        let before = self.0.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.set(name, before + more as u64);
    }
}

impl Sink for Counts {
    fn is_counting(&self) -> bool {
        true
    }

    fn ended(&mut self, _: Stage) {}

    fn blocks(&mut self, count: usize) {
        self.add("blocks", count);
    }

    fn valid(&mut self) {
        self.add("valid", 1);
    }

    fn record(&mut self, block: &[u8]) {
        self.add("records", 1);
        self.add("record_bytes", block.len());
    }

    fn root(&mut self, data: &impl Display) {
        self.set("root", data.to_string());
    }

    fn rebuilt_root(&mut self, root: &impl Display) {
        self.set("rebuilt_root", root.to_string());
    }
}
