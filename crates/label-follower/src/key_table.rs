//! The keys of sources: from DID documents, looked up when a source is first seen and when a signature is wrong.
//!
//! Strangers choose the sources of labels. So the lookups of sources that are not followed are limited, and delay only the labeler
//! that names them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atproto::syntax::Did;
use crypto::CompressedKey;
use follower::Status;
use futures_util::future::join_all;
use net::identity::{IdentityError, IdentityFault, Resolver};
use program::failure::Failure;
use program::files;
use tokio::time::{Instant, sleep, sleep_until};
use verify::labels::{SourceKeys, label_key};

/// The keys of sources.
pub(crate) struct KeyTable {
    resolver: Resolver,
    min_refresh: Duration,
    status: Status,
    entries: Mutex<HashMap<Box<str>, Entry>>,
    /// File with the keys of labelers that are followed, the newest first.
    file: Option<PathBuf>,
    /// Whether the file lacks a change.
    is_changed: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    keys: SourceKeys,
    /// Whether its keys are stored.
    is_followed: bool,
    /// The time of the last answer.
    answered: Option<Instant>,
    /// The start of the last lookup that used no earlier answer.
    looked_up: Option<Instant>,
}

/// The keys of the sources of a batch.
pub(crate) type BatchKeys = HashMap<Box<str>, SourceKeys>;

impl KeyTable {
    /// The table of a run, with the keys that an earlier run has stored in `folder`.
    pub(crate) fn open(
        resolver: Resolver,
        min_refresh: Duration,
        folder: Option<&Path>,
        status: Status,
    ) -> Result<Self, Failure> {
        let file = folder.map(|folder| folder.join("keys.json"));
        let mut entries = HashMap::new();
        if let Some(path) = file.as_ref().filter(|path| path.exists()) {
            let text = files::read_at_most(path, MAX_FILE_BYTES)?;
            let stored: BTreeMap<String, Vec<String>> = serde_json::from_slice(&text)
                .map_err(|error| Failure::Local(format!("{}: {error}", path.display())))?;
            for (did, keys) in stored {
                let read = |key: &String| CompressedKey::from_did_key(key);
                let keys: Result<Vec<_>, _> = keys.iter().map(read).collect();
                let mut keys = keys.map_err(|error| {
                    Failure::Local(format!("{}: a key of {did}: {error}", path.display()))
                })?;
                let current = (!keys.is_empty()).then(|| keys.remove(0));
                let keys = SourceKeys { current, earlier: keys };
                entries.insert(did.into(), Entry { keys, is_followed: true, ..Entry::default() });
            }
        }
        let (entries, is_changed) = (Mutex::new(entries), AtomicBool::new(false));
        Ok(Self { resolver, min_refresh, status, entries, file, is_changed })
    }

    /// The keys of the sources of a batch. Waits while the document of `service` cannot be had.
    pub(crate) async fn of_batch(&self, service: Did<'_>, sources: BTreeSet<&str>) -> BatchKeys {
        let is_new =
            |src: &&&str| self.lock().get(**src).is_none_or(|entry| entry.answered.is_none());
        let new: Vec<Did<'_>> =
            sources.iter().filter(is_new).filter_map(|src| Did::parse(src).ok()).collect();
        if new.contains(&service) {
            self.look_up_service(service, false).await;
        }
        let foreign: Vec<_> = new.into_iter().filter(|src| *src != service).collect();
        for some in foreign[..foreign.len().min(MAX_NEW_SOURCES)].chunks(CONCURRENT_LOOKUPS) {
            join_all(some.iter().map(|src| self.look_up(*src, false))).await;
        }
        let entries = self.lock();
        let known = |src: &&str| Some(((*src).into(), entries.get(*src)?.keys.clone()));
        sources.iter().filter_map(known).collect()
    }

    /// Looks up sources again whose labels, received at `received`, are not proved. Whether a key has changed.
    pub(crate) async fn refresh(
        &self,
        service: Did<'_>,
        sources: &BTreeSet<Box<str>>,
        received: Instant,
    ) -> bool {
        let mut has_changed = false;
        for src in sources.iter().filter_map(|src| Did::parse(src).ok()) {
            let entry = self.lock().get(src.as_str()).cloned().unwrap_or_default();
            if src == service {
                if entry.looked_up.is_none_or(|looked_up| looked_up <= received) {
                    if let Some(looked_up) = entry.looked_up {
                        sleep_until(looked_up + self.min_refresh).await;
                    }
                    has_changed |= self.look_up_service(src, true).await;
                }
            } else if entry.answered.is_some_and(|answered| answered.elapsed() > FOREIGN_REFRESH) {
                has_changed |= self.look_up(src, true).await.unwrap_or(false);
            }
        }
        has_changed
    }

    /// Looks up the keys of a labeler that is followed, until there is an answer. Whether its key has changed.
    async fn look_up_service(&self, did: Did<'_>, mut is_forced: bool) -> bool {
        let mut delay = self.min_refresh;
        loop {
            match self.look_up(did, is_forced).await {
                Ok(has_changed) => return has_changed,
                Err(error) => {
                    self.status.warn("keys", || format!("the keys of a labeler: {error}"));
                }
            }
            // The failure is cached.
            is_forced = true;
            sleep(delay).await;
            delay = (delay * 2).min(MAX_RETRY_DELAY);
        }
    }

    /// Looks up the keys of a source. Whether its key has changed.
    ///
    /// # Errors
    /// If there is no answer.
    async fn look_up(&self, did: Did<'_>, is_forced: bool) -> Result<bool, IdentityError> {
        let start = Instant::now();
        let account = match is_forced {
            true => self.resolver.refresh(did).await,
            false => self.resolver.account(did).await,
        };
        let current = match account {
            Ok(account) => label_key(&account.document).ok().flatten(),
            Err(error) if error.fault == IdentityFault::Deleted => None,
            // Its labels would be lost. A document of its own host can be missing for a moment.
            Err(error) if error.is_outage() || self.is_followed(did) => return Err(error),
            Err(_) => None,
        };
        let current = current.map(|key| *key.as_compressed());
        let mut entries = self.lock();
        if entries.len() >= MAX_SOURCES && !entries.contains_key(did.as_str()) {
            return Ok(false);
        }
        let entry = entries.entry(did.as_str().into()).or_default();
        entry.answered = Some(Instant::now());
        if is_forced {
            entry.looked_up = Some(start);
        }
        let before = std::mem::replace(&mut entry.keys.current, current);
        if before == current {
            return Ok(false);
        }
        let earlier = &mut entry.keys.earlier;
        earlier.retain(|key| Some(*key) != current && Some(*key) != before);
        earlier.splice(..0, before);
        earlier.truncate(MAX_EARLIER_KEYS);
        self.is_changed.fetch_or(entry.is_followed, Relaxed);
        Ok(true)
    }

    fn is_followed(&self, did: Did<'_>) -> bool {
        self.lock().get(did.as_str()).is_some_and(|entry| entry.is_followed)
    }

    /// Stores the keys of a labeler that is followed, from now on.
    pub(crate) fn follow(&self, did: Did<'_>) {
        self.lock().entry(did.as_str().into()).or_default().is_followed = true;
    }

    /// Stores the keys of labelers that are followed, if any has changed.
    pub(crate) fn store(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        if !self.is_changed.swap(false, Relaxed) {
            return Ok(());
        }
        let keys = |keys: &SourceKeys| {
            let all = keys.current.iter().chain(&keys.earlier);
            all.map(CompressedKey::to_did_key).collect::<Vec<_>>()
        };
        let entries = self.lock();
        let stored: BTreeMap<String, Vec<String>> = entries
            .iter()
            .filter(|(_, entry)| entry.is_followed)
            .map(|(did, entry)| (did.to_string(), keys(&entry.keys)))
            .collect();
        drop(entries);
        files::replace_json(path, &stored)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of new sources that are looked up for a batch; labels of others are refused.
const MAX_NEW_SOURCES: usize = 64;

/// Lookups at a time for a labeler.
const CONCURRENT_LOOKUPS: usize = 8;

/// Maximum number of sources in memory.
const MAX_SOURCES: usize = 100_000;

/// Earlier keys of a source.
const MAX_EARLIER_KEYS: usize = 16;

/// Minimum time between two lookups of a source that is not followed.
const FOREIGN_REFRESH: Duration = Duration::from_secs(300);

/// Maximum time between two lookups while there is no answer.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

const MAX_FILE_BYTES: usize = 16 << 20;
