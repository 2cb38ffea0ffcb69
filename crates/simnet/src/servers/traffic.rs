//! Counts of the servers' requests and answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::fault::UNPOISONED;
use super::spec::Server;

/// Counts of requests, answers, connections and frames.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    servers: Mutex<BTreeMap<Server, ServerCounts>>,
    /// Frames sent on all streams.
    pub(super) frames: AtomicU64,
    /// Accepted connections.
    pub(super) connections: AtomicU64,
}

/// The requests and answers of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTraffic {
    /// The numbers of requests by path, of 10,000 paths.
    pub requests: BTreeMap<String, u64>,
    /// The numbers of answers by HTTP status.
    pub answers: BTreeMap<u16, u64>,
    /// The largest number of requests within any second.
    pub peak_per_s: u64,
}

#[derive(Debug, Default)]
struct ServerCounts {
    traffic: ServerTraffic,
    /// The times of the requests of the last second.
    recent: VecDeque<Instant>,
}

impl Traffic {
    /// Counts a request for `path` of `server`.
    pub(super) fn count_request(&self, server: Server, path: &str) {
        let mut servers = self.servers.lock().expect(UNPOISONED);
        servers.entry(server).or_default().count_request(path, Instant::now());
    }

    /// Counts an answer of `server` with this status.
    pub(super) fn count_answer(&self, server: Server, status: u16) {
        let mut servers = self.servers.lock().expect(UNPOISONED);
        *servers.entry(server).or_default().traffic.answers.entry(status).or_default() += 1;
    }

    /// The requests and answers of `server`.
    pub(super) fn of(&self, server: Server) -> ServerTraffic {
        let servers = self.servers.lock().expect(UNPOISONED);
        servers.get(&server).map(|counts| counts.traffic.clone()).unwrap_or_default()
    }

    pub(super) fn count_frames(&self, frames: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
    }
}

impl ServerCounts {
    fn count_request(&mut self, path: &str, now: Instant) {
        let paths = &mut self.traffic.requests;
        if paths.len() < MAX_PATHS || paths.contains_key(path) {
            *paths.entry(path.to_owned()).or_default() += 1;
        }
        let is_over = |time: &Instant| now.duration_since(*time) >= SECOND;
        while self.recent.front().is_some_and(is_over) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.traffic.peak_per_s = self.traffic.peak_per_s.max(self.recent.len() as u64);
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The maximum number of counted paths of a server.
const MAX_PATHS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_largest_number_of_requests_within_any_second() {
        let (mut counts, start) = (ServerCounts::default(), Instant::now());
        for millis in [0, 900, 950, 1_000, 1_899, 3_000] {
            counts.count_request("/", start + Duration::from_millis(millis));
        }
        assert_eq!(counts.traffic.peak_per_s, 4);
        assert_eq!(counts.traffic.requests["/"], 6);
        assert_eq!(counts.recent.len(), 1);
    }
}
