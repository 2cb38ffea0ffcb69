//! Which of several hosts is asked next, and when?
//!
//! [`Hosts`] stays with one host until three attempts in a row have failed, and then goes to the next;
//! a host that will not have us at all is left out for good. [`Backoff`] says how long to wait before
//! an attempt: a random part of a time that doubles, so that the readers of a server that comes back
//! do not come back together.

mod backoff;

use crate::http::Url;

pub use backoff::{Backoff, BackoffOptions, Jitter};

/// A host: its place in the list that the caller gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

/// The hosts of a list, of which one is the current one.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Which of them are left out.
    excluded: Vec<bool>,
    // current < excluded.len(), and excluded[current] only if all are
    current: usize,
    failures: u32,
}

impl Hosts {
    /// So many hosts, beginning with the first.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(count: usize) -> Self {
        assert!(count > 0, "at least one host");
        Self { excluded: vec![false; count], current: 0, failures: 0 }
    }

    /// The one to ask.
    pub fn current(&self) -> HostId {
        HostId(self.current)
    }

    /// How many attempts have failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// An attempt brought something.
    pub fn record_success(&mut self) {
        self.failures = 0;
    }

    /// An attempt brought nothing. Gives the next host if this one has had its attempts and there is
    /// another.
    pub fn record_failure(&mut self) -> Option<HostId> {
        self.failures += 1;
        if self.failures < MAX_FAILURES { None } else { self.advance() }
    }

    /// The current host is asked no more. Gives the next one, if there is one.
    pub fn exclude(&mut self) -> Option<HostId> {
        self.excluded[self.current] = true;
        self.advance()
    }

    /// Goes to the next host, if there is one.
    pub fn advance(&mut self) -> Option<HostId> {
        let count = self.excluded.len();
        let others = (1..count).map(|step| (self.current + step) % count);
        self.current = { others }.find(|at| !self.excluded[*at])?;
        self.failures = 0;
        Some(self.current())
    }
}

/// The URL that a host is given by: as it stands, or a bare name, which is asked over TLS.
///
/// # Errors
/// If it is neither.
pub fn parse_host_url(host: &str) -> Result<Url, InvalidHost> {
    let url = if host.contains("://") { host.parse() } else { format!("wss://{host}").parse() };
    let url: Option<Url> = url.ok().filter(Url::has_host);
    url.ok_or_else(|| InvalidHost(host.to_owned()))
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a host nor the URL of one")]
pub struct InvalidHost(pub String);

/// Attempts before the next host is asked.
pub const MAX_FAILURES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_three_attempts_in_a_row() {
        let mut hosts = Hosts::new(3);
        assert_eq!([hosts.record_failure(), hosts.record_failure()], [None, None]);
        hosts.record_success();
        assert_eq!(
            [hosts.record_failure(), hosts.record_failure(), hosts.record_failure()],
            [None, None, Some(HostId(1))]
        );
        assert_eq!(
            [hosts.record_failure(), hosts.record_failure(), hosts.record_failure()],
            [None, None, Some(HostId(2))]
        );
        assert_eq!(
            [hosts.record_failure(), hosts.record_failure(), hosts.record_failure()],
            [None, None, Some(HostId(0))]
        );
    }

    #[test]
    fn a_single_host_is_asked_for_ever() {
        let mut hosts = Hosts::new(1);
        assert!((0..10).all(|_| hosts.record_failure().is_none()));
        assert_eq!((hosts.current(), hosts.failures()), (HostId(0), 10));
    }

    #[test]
    fn a_host_that_is_left_out_is_not_come_back_to() {
        let mut hosts = Hosts::new(3);
        assert_eq!(hosts.exclude(), Some(HostId(1)));
        assert_eq!(hosts.advance(), Some(HostId(2)));
        assert_eq!(hosts.advance(), Some(HostId(1)));
        assert_eq!(hosts.exclude(), Some(HostId(2)));
        assert_eq!(hosts.exclude(), None);
    }

    #[test]
    fn hosts_are_names_or_urls() {
        let text = |host| parse_host_url(host).map(|url| url.to_string());
        assert_eq!(text("bsky.network").unwrap(), "wss://bsky.network/");
        assert_eq!(text("localhost:2470").unwrap(), "wss://localhost:2470/");
        assert_eq!(text("http://localhost:2470").unwrap(), "http://localhost:2470/");
        assert!(["", "a b", "://", "data://"].into_iter().all(|host| text(host).is_err()));
    }
}
