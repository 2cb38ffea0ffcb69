//! How much came of a Jetstream, and of what kinds?

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wireproof::net::jetstream::{Event, Notice};

/// Counts what a run reads.
#[derive(Debug, Default)]
pub(in super::super) struct Tally(Mutex<Counts>);

/// What came so far.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Counts {
    /// For each host, the number of the last event that came.
    pub(in super::super) last_seqs: Vec<Option<u64>>,
    /// How many events of each kind came, as it stands in lines.
    pub(in super::super) events: BTreeMap<&'static str, u64>,
    /// How many got which verdict, by code.
    pub(in super::super) verdicts: BTreeMap<&'static str, u64>,
    /// What the connections did.
    pub(in super::super) notices: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Nothing came yet of any of so many hosts.
    pub(super) fn new(hosts: usize) -> Self {
        Self(Mutex::new(Counts { last_seqs: vec![None; hosts], ..Counts::default() }))
    }

    /// An event came.
    pub(super) fn event(&self, event: &Event) {
        let mut counts = self.lock();
        counts.last_seqs[event.host.0] = Some(event.cursor);
        *counts.events.entry(event.kind().name()).or_default() += 1;
        *counts.verdicts.entry(super::line::NOT_ASKED).or_default() += 1;
    }

    /// A message came that is no event.
    pub(super) fn strange(&self) {
        let mut counts = self.lock();
        *counts.events.entry(super::line::UNDECODABLE).or_default() += 1;
        *counts.verdicts.entry(super::line::MESSAGE).or_default() += 1;
    }

    /// A connection did something.
    pub(super) fn notice(&self, notice: &Notice) {
        *self.lock().notices.entry(notice.name()).or_default() += 1;
    }

    /// What came so far.
    pub(in super::super) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
