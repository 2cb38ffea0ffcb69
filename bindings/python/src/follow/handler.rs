//! The handler of a run, which puts selected events into the queue.

use std::io::{Read, Seek};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use atproto::event::Event;
use atproto::repo::Repository;
use atproto::syntax::CollectionPatternBuf;
use bytes::Bytes;
use codec::car;
use net::DurationText;
use net::firehose::{
    AccountSet, Ack, DeliveredEvent, Handler, Notice, ResyncError, ResyncedRepo, Warning,
};
use net::http::Url;

use super::queue::Queue;
use crate::judged::{Facts, FrameBytes, Judged, OpFacts, created};
use crate::logging::{DEBUG, ERROR, INFO, WARNING};

/// Selected accounts and collections. Events without an account are selected, and collections select commits only.
pub(super) struct Selection {
    /// `None` for all accounts.
    pub(super) accounts: Option<AccountSet>,
    /// Selected collections; empty for all.
    pub(super) collections: Vec<CollectionPatternBuf>,
}

impl Selection {
    fn has_account(&self, did: Option<&str>) -> bool {
        let is_selected = |accounts: &AccountSet| did.is_none_or(|did| accounts.contains(did));
        self.accounts.as_ref().is_none_or(is_selected)
    }

    fn has_path(&self, path: &str) -> bool {
        let name = path.split_once('/').map_or(path, |(name, _)| name);
        self.collections.is_empty() || self.collections.iter().any(|of| of.matches(name))
    }

    fn has_event(&self, event: &DeliveredEvent<'_>) -> bool {
        let has_ops = match event.event {
            Some(Event::Commit(commit)) if !self.collections.is_empty() => {
                commit.ops.iter().any(|op| self.has_path(op.path))
            }
            _ => true,
        };
        has_ops && self.has_account(event.did)
    }
}

/// Puts events into a queue.
pub(super) struct QueueHandler {
    queue: Arc<Queue>,
    /// The origins of the hosts.
    hosts: Vec<Arc<str>>,
    selection: Selection,
}

impl QueueHandler {
    pub(super) fn new(queue: Arc<Queue>, hosts: &[Url], selection: Selection) -> Self {
        Self { queue, hosts: hosts.iter().map(origin).collect(), selection }
    }

    /// The archive and the facts of a repository.
    fn read(&self, resynced: &ResyncedRepo) -> Result<Judged, String> {
        let (mut file, mut archive) = (resynced.file(), Vec::new());
        file.rewind().map_err(|error| error.to_string())?;
        file.read_to_end(&mut archive).map_err(|error| error.to_string())?;
        let mut facts = Facts::of_resynced(resynced);
        facts.ops = self.records(&archive)?;
        Ok(Judged { frame: FrameBytes::Shared(Bytes::from(archive)), facts })
    }

    /// The selected records of an archive, as operations.
    fn records(&self, archive: &[u8]) -> Result<Box<[OpFacts]>, String> {
        let mut options = car::Options::default();
        options.trust_hashes = true;
        let repository = Repository::read(archive, &options).map_err(|error| error.to_string())?;
        let mut ops = Vec::new();
        for record in repository.records() {
            let record = record.map_err(|error| error.to_string())?;
            if self.selection.has_path(&record.path) {
                ops.push(created(archive, &record));
            }
        }
        Ok(ops.into())
    }
}

impl Handler for QueueHandler {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        if !self.selection.has_event(event) {
            return ack.skip();
        }
        let facts = Facts::of_delivered(event, |path| self.selection.has_path(path));
        let judged = Judged { frame: FrameBytes::Shared(event.frame.clone()), facts };
        self.queue.push(judged, &self.hosts[event.host.0], event.received, ack);
    }

    fn batch_end(&self) {
        self.queue.wake();
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        if !self.selection.has_account(Some(&resynced.did)) {
            return ack.done();
        }
        match self.read(resynced) {
            Ok(judged) => {
                self.queue.push(judged, &Arc::from(&*resynced.host), SystemTime::now(), ack);
                self.queue.wake();
            }
            Err(error) => {
                let did = &resynced.did;
                self.queue
                    .log(ERROR, format!("{did}: the fetched repository is not read: {error}"));
                // Dropped without use: the run ends, and the next one fetches the repository again.
                drop(ack);
            }
        }
    }

    fn resync_failed(&self, did: &str, error: &ResyncError) {
        self.queue.log(WARNING, format!("{did}: the repository is not fetched: {error}"));
    }

    fn resync_delayed(&self, did: &str, error: &ResyncError, delay: Duration) {
        let delay = DurationText(delay);
        let text = format!("{did}: the repository is not fetched, next in {delay}: {error}");
        self.queue.log(WARNING, text);
    }

    fn warning(&self, warning: &Warning<'_>) {
        self.queue.log(WARNING, warning.to_string());
    }

    fn notice(&self, notice: &Notice) {
        let host = &self.hosts[notice.host().0];
        let (level, text) = match notice {
            Notice::Connected { cursor: Some(cursor), .. } => {
                (INFO, format!("connected, resuming after {cursor}"))
            }
            Notice::Connected { cursor: None, .. } => (INFO, "connected".to_owned()),
            Notice::Disconnected { reason, .. } => (WARNING, reason.to_string()),
            Notice::ConnectFailed { error, .. } => (WARNING, error.to_string()),
            Notice::HostExcluded { error, .. } => (WARNING, format!("excluded: {error}")),
            Notice::RetryScheduled { time, .. } => {
                (INFO, format!("retrying in {}", DurationText(*time)))
            }
            Notice::Gap { after, .. } => {
                let skipped = notice.skipped_seqs();
                (DEBUG, format!("sequence numbers skipped after {after}: {skipped}"))
            }
            Notice::Repeated { seq, .. } => (DEBUG, format!("sequence number {seq} again")),
            other => (WARNING, other.name().to_owned()),
        };
        self.queue.log(level, format!("{host}: {text}"));
    }
}

/// The origin of a URL with the scheme of HTTP, even for `wss://` and `ws://`.
fn origin(url: &Url) -> Arc<str> {
    let mut url = url.clone();
    let scheme = if matches!(url.scheme(), "wss" | "https") { "https" } else { "http" };
    // The scheme of a URL with a host can be changed to another one of the web.
    let _ = url.set_scheme(scheme);
    url.origin().ascii_serialization().into()
}
