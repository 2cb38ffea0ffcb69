//! The hosts that the events come from.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The hosts of the source, with the greatest sequence number of each.
#[derive(Debug, Default)]
pub(crate) struct SourceHosts(Mutex<BTreeMap<Box<str>, i64>>);

impl SourceHosts {
    /// Records an event of a host, by the host's URL. Threads record the events of a host in any order.
    pub(crate) fn note(&self, url: &str, seq: Option<i64>) {
        let name = url.split_once("://").map_or(url, |(_, name)| name);
        let mut hosts = self.lock();
        if let Some(last) = hosts.get_mut(name) {
            *last = seq.map_or(*last, |seq| seq.max(*last));
        } else if hosts.len() < MAX_HOSTS {
            hosts.insert(name.into(), seq.unwrap_or(0));
        }
    }

    /// The hosts after a name, in alphabetical order, with their last sequence numbers.
    pub(crate) fn after(&self, name: &str, max: usize) -> Vec<(Box<str>, i64)> {
        let hosts = self.lock();
        let later = hosts.iter().filter(|(host, _)| ***host > *name);
        later.take(max).map(|(host, seq)| (host.clone(), *seq)).collect()
    }

    /// Whether all events come from one host.
    pub(crate) fn is_one(&self) -> bool {
        self.lock().len() == 1
    }

    /// The last sequence number of a host.
    pub(crate) fn seq(&self, name: &str) -> Option<i64> {
        self.lock().get(name).copied()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of hosts: the operator names them.
const MAX_HOSTS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_host_stays_when_an_earlier_event_is_recorded_after_it() {
        let hosts = SourceHosts::default();
        for seq in [Some(7), Some(9), Some(8), None] {
            hosts.note("https://relay.test", seq);
        }
        assert_eq!(hosts.seq("relay.test"), Some(9));
        assert_eq!(hosts.after("", 2), [("relay.test".into(), 9)]);
    }
}
