//! The stages of a proof and their times, network and compute apart.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::output::table;

/// A stage of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A handle, to a DID.
    ResolveHandle,
    /// A DID, to its document.
    ResolveDid,
    /// Whether the handle of a document leads back to the DID.
    CheckHandle,
    /// The download.
    Fetch,
    /// The archive.
    Parse,
    /// The signature of the commit.
    Signature,
    /// The tree.
    Tree,
    /// The tree, built again from its records.
    Rebuild,
    /// All records.
    Records,
    /// One record.
    Record,
    /// Archive, tree and records of a stream, in one pass.
    Stream,
}

/// The stages that have run, in their order.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Stages(Vec<StageTime>);

#[derive(Debug, Serialize)]
struct StageTime {
    stage: Stage,
    seconds: f64,
}

impl Stages {
    /// Adds the time of a stage.
    pub fn add(&mut self, stage: Stage, time: Duration) {
        self.0.push(StageTime { stage, seconds: time.as_secs_f64() });
    }

    /// Time of the network stages in seconds.
    pub fn network_seconds(&self) -> f64 {
        self.sum(Stage::is_network)
    }

    /// Time of all other stages in seconds.
    pub fn compute_seconds(&self) -> f64 {
        self.sum(|stage| !stage.is_network())
    }

    fn sum(&self, which: impl Fn(Stage) -> bool) -> f64 {
        let seconds = self.0.iter().filter(|timed| which(timed.stage)).map(|timed| timed.seconds);
        // An empty sum of floats is -0.
        seconds.sum::<f64>() + 0.0
    }

    /// A table with a column for network and one for compute, or with one column if all stages are
    /// of one kind.
    pub fn to_table(&self) -> String {
        let networked = self.0.iter().filter(|timed| timed.stage.is_network()).count();
        match networked {
            0 => self.to_narrow_table("ms", self.compute_seconds()),
            all if all == self.0.len() => {
                self.to_narrow_table("network ms", self.network_seconds())
            }
            _ => self.to_wide_table(),
        }
    }

    fn to_narrow_table(&self, title: &str, total_seconds: f64) -> String {
        let total = ["total".to_owned(), ms(total_seconds)];
        let row = |timed: &StageTime| [timed.stage.name().to_owned(), ms(timed.seconds)];
        table(["stage", title], self.0.iter().map(row).chain([total]))
    }

    fn to_wide_table(&self) -> String {
        let [network, compute] = [self.network_seconds(), self.compute_seconds()].map(ms);
        let row = |timed: &StageTime| {
            let (name, ms) = (timed.stage.name().to_owned(), ms(timed.seconds));
            if timed.stage.is_network() {
                [name, ms, String::new()]
            } else {
                [name, String::new(), ms]
            }
        };
        let rows = self.0.iter().map(row).chain([["total".to_owned(), network, compute]]);
        table(["stage", "network ms", "compute ms"], rows)
    }
}

impl Stage {
    fn is_network(self) -> bool {
        matches!(self, Self::ResolveHandle | Self::ResolveDid | Self::CheckHandle | Self::Fetch)
    }

    fn name(self) -> &'static str {
        match self {
            Self::ResolveHandle => "resolve handle",
            Self::ResolveDid => "resolve DID",
            Self::CheckHandle => "check handle",
            Self::Fetch => "fetch",
            Self::Parse => "CAR and hashes",
            Self::Signature => "signature",
            Self::Tree => "tree",
            Self::Rebuild => "rebuild",
            Self::Records => "records",
            Self::Record => "record",
            Self::Stream => "CAR, tree, records",
        }
    }
}

fn ms(seconds: f64) -> String {
    format!("{:.3}", seconds * 1e3)
}

/// Measures consecutive stages.
pub struct StageTimer<'s> {
    stages: &'s mut Stages,
    since: Instant,
}

impl<'s> StageTimer<'s> {
    /// Starts the clock of the first stage.
    pub fn start(stages: &'s mut Stages) -> Self {
        Self { stages, since: Instant::now() }
    }

    /// Records `of_first`, a part of the time since the last stage, as `first`'s, and the rest as `second`'s.
    pub fn finish_both(&mut self, first: Stage, of_first: Duration, second: Stage) {
        self.stages.add(first, of_first);
        self.stages.add(second, self.since.elapsed().saturating_sub(of_first));
        self.since = Instant::now();
    }

    /// Records the time since the last stage as `stage`'s.
    pub fn finish(&mut self, stage: Stage) {
        self.stages.add(stage, self.since.elapsed());
        self.since = Instant::now();
    }
}
