//! How long did each step take, and whose time was it: the network's or ours?

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::table;

/// A step on the way to a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    ResolveHandle,
    ResolveDid,
    CheckHandle,
    Fetch,
    Parse,
    Signature,
    Tree,
    Rebuild,
    Records,
    Record,
}

/// The steps that were made, in their order.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Stages(Vec<Timed>);

#[derive(Debug, Serialize)]
struct Timed {
    stage: Stage,
    seconds: f64,
}

impl Stages {
    pub(crate) fn add(&mut self, stage: Stage, time: Duration) {
        self.0.push(Timed { stage, seconds: time.as_secs_f64() });
    }

    /// How long the network took, in seconds.
    pub(crate) fn network_s(&self) -> f64 {
        self.sum(Stage::is_network)
    }

    /// How long we took, in seconds.
    pub(crate) fn compute_s(&self) -> f64 {
        self.sum(|stage| !stage.is_network())
    }

    fn sum(&self, which: impl Fn(Stage) -> bool) -> f64 {
        let seconds = self.0.iter().filter(|timed| which(timed.stage)).map(|timed| timed.seconds);
        // An empty sum of floats is -0.
        seconds.sum::<f64>() + 0.0
    }

    /// A table, with columns of their own for the network and for us if both had to do.
    pub(crate) fn to_table(&self) -> String {
        let networked = self.0.iter().filter(|timed| timed.stage.is_network()).count();
        match networked {
            0 => self.to_narrow_table("ms", self.compute_s()),
            all if all == self.0.len() => self.to_narrow_table("network ms", self.network_s()),
            _ => self.to_wide_table(),
        }
    }

    fn to_narrow_table(&self, title: &str, total_s: f64) -> String {
        let total = ["total".to_owned(), table::ms(total_s)];
        let row = |timed: &Timed| [timed.stage.described().to_owned(), table::ms(timed.seconds)];
        table::of(["stage", title], self.0.iter().map(row).chain([total]))
    }

    fn to_wide_table(&self) -> String {
        let [network, compute] = [self.network_s(), self.compute_s()].map(table::ms);
        let row = |timed: &Timed| {
            let (name, ms) = (timed.stage.described().to_owned(), table::ms(timed.seconds));
            match timed.stage.is_network() {
                true => [name, ms, String::new()],
                false => [name, String::new(), ms],
            }
        };
        let rows = self.0.iter().map(row).chain([["total".to_owned(), network, compute]]);
        table::of(["stage", "network ms", "compute ms"], rows)
    }
}

impl Stage {
    fn is_network(self) -> bool {
        matches!(self, Self::ResolveHandle | Self::ResolveDid | Self::CheckHandle | Self::Fetch)
    }

    fn described(self) -> &'static str {
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
        }
    }
}

/// Takes the time of steps that follow each other.
pub(crate) struct Watch<'s> {
    stages: &'s mut Stages,
    since: Instant,
}

impl<'s> Watch<'s> {
    pub(crate) fn start(stages: &'s mut Stages) -> Self {
        Self { stages, since: Instant::now() }
    }

    /// What went on since the last step was this one.
    pub(crate) fn ended(&mut self, stage: Stage) {
        self.stages.add(stage, self.since.elapsed());
        self.since = Instant::now();
    }
}
