//! Accounts whose revisions go back, as after a migration that lost them: their events are ignored as stale, for as long
//! as no revision is later than the known one.
//!
//! An old event is usually one that is received again. That an account goes back is told by one of three:
//!
//! | evidence | |
//! |---|---|
//! | order | the host sent an event with a later revision before it, in this run |
//! | time | a commit says that it was made an hour or more after its revision |
//! | repository | the account's own server serves an older one |
//!
//! The first two are claims of the host, and only reported; nothing else depends on them.

use atproto::syntax::{Datetime, Tid};

use crate::bounded_map::BoundedMap;
use crate::hosts::HostId;

/// The revisions of a worker's accounts in this run.
#[derive(Debug)]
pub(super) struct Revisions {
    /// The last accepted event of every account.
    accepted: BoundedMap<u64, Accepted>,
    /// The accounts that go back.
    behind: BoundedMap<u64, ()>,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    host: HostId,
    seq: u64,
    rev: Tid,
}

/// A commit or `#sync` that is ignored as stale.
#[derive(Clone, Copy, Debug)]
pub(super) struct StaleEvent<'e> {
    pub(super) host: HostId,
    pub(super) seq: Option<u64>,
    pub(super) rev: Tid,
    /// The known revision.
    pub(super) known: Tid,
    /// When the event says that it was made; only of a commit, as a `#sync` names the last one.
    pub(super) time: Option<&'e str>,
}

impl Revisions {
    pub(super) fn new() -> Self {
        Self { accepted: BoundedMap::new(MAX_ACCOUNTS), behind: BoundedMap::new(MAX_ACCOUNTS) }
    }

    /// Records an accepted event, which ends that its account goes back.
    pub(super) fn accepted(&mut self, account: u64, host: HostId, seq: Option<u64>, rev: &str) {
        self.end(account);
        if let (Some(seq), Ok(rev)) = (seq, Tid::parse(rev)) {
            self.accepted.insert(account, Accepted { host, seq, rev });
        }
    }

    /// Records an ignored event. Whether it is the first to show that its account goes back.
    pub(super) fn ignored(&mut self, account: u64, event: &StaleEvent<'_>) -> bool {
        let is_later =
            |of: &Accepted| of.host == event.host && event.seq > Some(of.seq) && event.rev < of.rev;
        let is_after = self.accepted.peek(&account).is_some_and(is_later);
        event.rev < event.known
            && (is_after || event.is_older_than_its_time())
            && self.note(account)
    }

    /// Notes an account that goes back. Whether it is not noted yet.
    pub(super) fn note(&mut self, account: u64) -> bool {
        let is_new = self.behind.peek(&account).is_none();
        self.behind.insert(account, ());
        is_new
    }

    /// An event or a repository of the account was accepted.
    pub(super) fn end(&mut self, account: u64) {
        if self.behind.len() > 0 {
            self.behind.remove(&account);
        }
    }

    /// Number of accounts that go back.
    pub(super) fn len(&self) -> usize {
        self.behind.len()
    }
}

impl StaleEvent<'_> {
    fn is_older_than_its_time(&self) -> bool {
        let time = self.time.and_then(|time| Datetime::parse(time).ok());
        let made = time.and_then(|time| u64::try_from(time.unix_micros()).ok());
        made.is_some_and(|made| made.saturating_sub(self.rev.micros()) > MAX_AGE_MICROS)
    }
}

/// Time from a revision to the time of its event.
const MAX_AGE_MICROS: u64 = 3_600_000_000;

/// Maximum number of accounts that are remembered.
const MAX_ACCOUNTS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId(0);

    /// Noon of 1 July 2026, in microseconds.
    const NOON: u64 = 1_782_907_200_000_000;

    fn stale(seq: u64, rev_seconds: i64, known_seconds: i64) -> StaleEvent<'static> {
        let rev = |seconds: i64| Tid::new(NOON.saturating_add_signed(seconds * 1_000_000), 0);
        let (rev, known) = (rev(rev_seconds), rev(known_seconds));
        StaleEvent { host: HOST, seq: Some(seq), rev, known, time: Some("2026-07-01T12:00:00Z") }
    }

    fn accept(revisions: &mut Revisions, seq: u64, rev_seconds: i64) {
        let rev = stale(seq, rev_seconds, 0).rev.to_string();
        revisions.accepted(7, HOST, Some(seq), &rev);
    }

    #[test]
    fn an_account_goes_back_once_where_the_host_sent_a_later_revision_before() {
        let mut revisions = Revisions::new();
        accept(&mut revisions, 10, 5);
        assert!(!revisions.ignored(7, &stale(9, 4, 5)), "it comes again");
        assert!(!revisions.ignored(7, &stale(11, 5, 5)), "with another number");
        assert!(!revisions.ignored(8, &stale(11, 4, 5)), "another account");
        let elsewhere = StaleEvent { host: HostId(1), ..stale(11, 4, 5) };
        assert!(!revisions.ignored(7, &elsewhere), "another host");
        assert!(revisions.ignored(7, &stale(11, 4, 5)));
        assert!(!revisions.ignored(7, &stale(12, 4, 5)), "once");
        assert_eq!(revisions.len(), 1);
        accept(&mut revisions, 13, 6);
        assert_eq!(revisions.len(), 0, "a later revision ends it");
        assert!(revisions.ignored(7, &stale(14, 1, 6)));
    }

    #[test]
    fn what_a_repository_covers_does_not_go_back() {
        let mut revisions = Revisions::new();
        accept(&mut revisions, 10, 5);
        // Events between the accepted one and the repository that was fetched meanwhile.
        assert!(!revisions.ignored(7, &stale(11, 6, 60)));
        assert!(!revisions.ignored(7, &stale(12, 7, 60)));
    }

    #[test]
    fn a_commit_that_is_made_long_after_its_revision_goes_back() {
        let mut revisions = Revisions::new();
        assert!(!revisions.ignored(7, &stale(1, -3_600, 0)));
        assert!(revisions.ignored(7, &stale(2, -3_601, 0)));
        let sync = StaleEvent { time: None, ..stale(3, -999_999, 0) };
        assert!(!revisions.ignored(8, &sync), "it names the last commit");
        let odd = StaleEvent { time: Some("yesterday"), ..stale(3, -999_999, 0) };
        assert!(!revisions.ignored(8, &odd));
    }

    #[test]
    fn the_number_of_remembered_accounts_is_bounded() {
        let mut revisions = Revisions::new();
        for account in 0..2 * MAX_ACCOUNTS as u64 {
            revisions.accepted(account, HOST, Some(1), "3jzfcijpj2z2a");
            revisions.note(account);
        }
        assert!(revisions.len() <= MAX_ACCOUNTS && revisions.accepted.len() <= MAX_ACCOUNTS);
    }
}
