//! What somebody has of a network who applies every event that is proved.

use std::collections::BTreeMap;
use std::fs;

use net::firehose::{DeliveredEvent, Notice, ResyncedRepo, Verdict};
use wireproof::atproto::event::{Commit, Event};
use wireproof::atproto::repo::{Options, Repository};
use wireproof::verify::sync::{Chain, Ignored, Outcome, SyncEffect};

/// Records by path.
pub(crate) type Records = BTreeMap<String, String>;

/// Accounts, and what happened on the way.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) replicas: BTreeMap<String, Replica>,
    /// Everything that nobody should send.
    pub(crate) faults: Vec<String>,
    pub(crate) connections: u64,
}

/// What is known of an account.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Replica {
    pub(crate) rev: String,
    pub(crate) records: Records,
    /// `None` while it is active.
    pub(crate) status: Option<String>,
    /// Whether something is missing, until the repository has come.
    is_broken: bool,
    /// The revision of the repository that was fetched last.
    fetched: Option<String>,
}

impl Mirror {
    /// Enters an event.
    pub(crate) fn enter(&mut self, event: &DeliveredEvent<'_>) {
        let Verdict::Judged(outcome) = &event.verdict else {
            return self.faults.push(format!("{event:?}"));
        };
        match outcome {
            Outcome::Commit(commit, Chain::Intact | Chain::FirstSeen) => {
                self.replica(commit.repo).apply(commit);
            }
            Outcome::Commit(commit, Chain::Broken(_) | Chain::StillDesynchronized) => {
                self.replica(commit.repo).is_broken = true;
            }
            Outcome::Sync(sync, SyncEffect::Unchanged | SyncEffect::FirstSeen) => {
                self.replica(sync.did).rev = sync.rev.to_string();
            }
            Outcome::Sync(sync, SyncEffect::Desynchronized) => {
                self.replica(sync.did).is_broken = true;
            }
            Outcome::Unjudged(Event::Account(account)) => {
                let status = account.status.unwrap_or("unknown").to_owned();
                self.replica(account.did).become_of(account.active, status);
            }
            Outcome::Unjudged(Event::Identity(_)) => {}
            // A server tells where a repository is when an account begins and when it comes back.
            Outcome::Ignored(Ignored::Stale { rev, stored })
                if rev == stored && matches!(event.event, Some(Event::Sync(_))) => {}
            // What a repository had when it was fetched is told as well.
            Outcome::Ignored(Ignored::Stale { rev, .. })
                if self.was_fetched(event.did.unwrap_or_default(), &rev.to_string()) => {}
            _ => self.faults.push(format!("{event:?}")),
        }
    }

    /// Takes over a repository that was fetched, all of it.
    pub(crate) fn replace(&mut self, resynced: &ResyncedRepo) {
        let export = fs::read(resynced.path()).expect("an archive");
        let repository = Repository::read(&export, &Options::default()).expect("it was proved");
        let replica = self.replica(&resynced.did);
        replica.records = records(&repository);
        replica.rev = resynced.head.rev.to_string();
        replica.fetched = Some(replica.rev.clone());
        replica.is_broken = false;
    }

    /// Notes what happened to the connection.
    pub(crate) fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::Connected { .. } => self.connections += 1,
            // A server that was killed is not there for a while, and need not use every number.
            Notice::Disconnected { .. }
            | Notice::ConnectFailed { .. }
            | Notice::RetryScheduled { .. }
            | Notice::Gap { .. } => {}
            _ => self.faults.push(format!("{notice:?}")),
        }
    }

    /// Whether everything of an account up to a revision is there.
    pub(crate) fn has(&self, did: &str, rev: &str) -> bool {
        self.replicas.get(did).is_some_and(|replica| replica.rev == rev && !replica.is_broken)
    }

    fn was_fetched(&self, did: &str, rev: &str) -> bool {
        let fetched = self.replicas.get(did).and_then(|replica| replica.fetched.as_deref());
        // Revisions sort as texts.
        fetched.is_some_and(|fetched| rev <= fetched)
    }

    fn replica(&mut self, did: &str) -> &mut Replica {
        self.replicas.entry(did.to_owned()).or_default()
    }
}

impl Replica {
    fn apply(&mut self, commit: &Commit<'_>) {
        self.rev = commit.rev.to_string();
        for op in commit.ops {
            match op.cid {
                Some(cid) => self.records.insert(op.path.to_owned(), cid.to_string()),
                None => self.records.remove(op.path),
            };
        }
    }

    fn become_of(&mut self, is_active: bool, status: String) {
        if status == "deleted" {
            self.records.clear();
        }
        self.status = (!is_active).then_some(status);
    }
}

/// What a repository holds.
pub(crate) fn records(repository: &Repository<'_>) -> Records {
    let records = repository.records().map(|record| record.expect("the tree is sound"));
    records.map(|record| (record.path, record.cid.to_string())).collect()
}
