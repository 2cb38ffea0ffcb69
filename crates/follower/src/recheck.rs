//! The check of all accounts of the state file after events were lost: every repository is fetched again, regardless
//! of its account's next events.
//!
//! ```text
//! notice of a loss ── recheck.json ── accounts in order ── permit ── request ── resync
//!                          ▲                                            │
//!                          └──── after a page and its checkpoint ───────┘
//! ```
//!
//! The file of the state folder says after which account a run that ended goes on. It is written before the first event
//! after the loss is read.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::{Outbox, OutboxError};
use net::firehose::ResyncRequests;
use serde::{Deserialize, Serialize};
use store::{Store, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;

use super::selection::Selection;
use super::status::Status;
use crate::failure::Failure;
use crate::files;

/// The check of a state folder.
pub(super) struct Recheck {
    path: PathBuf,
    state: Mutex<State>,
    begun: Notify,
    /// Number of checkpoints of the run.
    checkpoints: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// The account after which the check goes on; `None` if none is due.
    after: Option<String>,
    /// Number of checks that have begun in the run.
    begun: u64,
    /// The accounts that are being fetched.
    running: HashMap<Box<str>, OwnedSemaphorePermit>,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    v: u64,
    after: String,
}

/// The parts of a check.
pub(super) struct RecheckParts {
    pub(super) store: Store,
    pub(super) outbox: Option<Outbox>,
    pub(super) selection: Selection,
    pub(super) requests: ResyncRequests,
    pub(super) status: Status,
}

impl Recheck {
    /// The check that is due in a state folder, if one is.
    pub(super) fn load(folder: &Path) -> Result<Arc<Self>, Failure> {
        let path = folder.join(FILE);
        let after = match std::fs::metadata(&path) {
            Ok(_) => {
                let bytes = files::read_document(&path, MAX_FILE_BYTES)?;
                let content = serde_json::from_slice::<Content>(&bytes).ok();
                // Of another version, or cut off by another program: all accounts are checked.
                Some(content.filter(|of| of.v == VERSION).map_or(String::new(), |of| of.after))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::file(&path)(error)),
        };
        let state = Mutex::new(State { after, ..State::default() });
        let (begun, checkpoints) = (Notify::new(), watch::Sender::new(0));
        Ok(Arc::new(Self { path, state, begun, checkpoints }))
    }

    /// Whether a check is due.
    #[cfg(test)]
    pub(super) fn is_due(&self) -> bool {
        self.lock().after.is_some()
    }

    /// Begins with the first account. On return that is durable.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        self.write("")?;
        let mut state = self.lock();
        state.after = Some(String::new());
        state.begun += 1;
        drop(state);
        self.begun.notify_one();
        Ok(())
    }

    /// The resync of an account ended, or is repeated later: its state says that it is desynchronized then.
    pub(super) fn ended(&self, did: &str) {
        drop(self.lock().running.remove(did));
    }

    /// A checkpoint was stored.
    pub(super) fn checkpointed(&self) {
        self.checkpoints.send_modify(|count| *count += 1);
    }

    /// Makes the checks that are due, forever.
    pub(super) async fn run(&self, parts: RecheckParts) -> Infallible {
        let window = Arc::new(Semaphore::new(WINDOW));
        loop {
            let (after, begun) = {
                let state = self.lock();
                (state.after.clone(), state.begun)
            };
            match after {
                None => self.begun.notified().await,
                Some(after) => {
                    if let Err(error) = self.check_page(&parts, &window, &after, begun).await {
                        let why = error.message().unwrap_or_default().to_owned();
                        parts.status.warn("recheck", || format!("the check of accounts: {why}"));
                        tokio::time::sleep(RETRY_EVERY).await;
                    }
                }
            }
        }
    }

    async fn check_page(
        &self,
        parts: &RecheckParts,
        window: &Arc<Semaphore>,
        after: &str,
        begun: u64,
    ) -> Result<(), Failure> {
        let page = read_page(parts, after).await?;
        let Some(last) = page.last.clone() else {
            return self.finish(begun, &parts.status);
        };
        for did in page.selected {
            let permit = window.clone().acquire_owned().await;
            let permit = permit.map_err(|error| Failure::Local(error.to_string()))?;
            self.lock().running.insert(did.clone(), permit);
            parts.requests.request(&did);
        }
        // Every one has ended then, or is stored as desynchronized by the second checkpoint from now on.
        let all = u32::try_from(WINDOW).unwrap_or(u32::MAX);
        drop(window.acquire_many(all).await);
        let mut checkpoints = self.checkpoints.subscribe();
        let next = *checkpoints.borrow() + 2;
        let _ = checkpoints.wait_for(|count| *count >= next).await;
        let mut state = self.lock();
        if state.begun == begun {
            self.write(&last)?;
            state.after = Some(last);
        }
        Ok(())
    }

    fn finish(&self, begun: u64, status: &Status) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.begun == begun {
            std::fs::remove_file(&self.path).map_err(Failure::file(&self.path))?;
            state.after = None;
            status.print("all accounts were checked after the loss of events");
        }
        Ok(())
    }

    fn write(&self, after: &str) -> Result<(), Failure> {
        let content = Content { v: VERSION, after: after.to_owned() };
        let mut file = files::create_sibling(&self.path)?;
        let written = file.write_all(&files::to_json(&content));
        let written = written.and_then(|()| file.as_file().sync_all());
        written.map_err(Failure::file(&self.path))?;
        files::persist(file, &self.path)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accounts in order.
struct Page {
    /// The last of them; `None` if there are none.
    last: Option<String>,
    /// Those to fetch.
    selected: Vec<Box<str>>,
}

/// The accounts after one. Those with a history are left out: it is outdated, and fetched as such.
async fn read_page(parts: &RecheckParts, after: &str) -> Result<Page, Failure> {
    let store = parts.store.clone();
    let outbox = parts.outbox.clone();
    let after = after.to_owned();
    let selection = parts.selection.clone();
    let read = move || -> Result<Page, Failure> {
        let dids =
            store.accounts_after(&after, PAGE).map_err(|error: StoreError| Failure::from(error))?;
        let last = dids.last().cloned();
        let histories = outbox.as_ref().map(Outbox::histories).transpose()?;
        let is_wanted = |did: &String| -> Result<bool, OutboxError> {
            let was_complete = match &histories {
                Some(histories) => histories.was_complete(did)?,
                None => false,
            };
            Ok(selection.has_account(Some(did)) && !was_complete)
        };
        let mut selected = Vec::new();
        for did in dids {
            if is_wanted(&did)? {
                selected.push(did.into_boxed_str());
            }
        }
        Ok(Page { last, selected })
    };
    let read = spawn_blocking(read).await;
    read.map_err(|error| Failure::Local(error.to_string()))?
}

/// Name of the file in the state folder.
const FILE: &str = "recheck.json";
const VERSION: u64 = 1;
const MAX_FILE_BYTES: usize = 64 << 10;

/// Accounts that are fetched at a time, and accounts that are read at a time. The firehose limits the rate per host.
const WINDOW: usize = 32;
const PAGE: usize = 256;

/// Time after which a page that could not be read is read again.
const RETRY_EVERY: std::time::Duration = std::time::Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_goes_on_in_the_next_run_and_begins_anew_with_another_loss() {
        let dir = tempfile::tempdir().unwrap();
        let load = || Recheck::load(dir.path()).unwrap();
        assert!(!load().is_due());
        load().begin().unwrap();
        assert_eq!(load().lock().after.as_deref(), Some(""));
        load().write("did:web:a.test").unwrap();
        let recheck = load();
        assert_eq!(recheck.lock().after.as_deref(), Some("did:web:a.test"));
        recheck.begin().unwrap();
        assert_eq!(load().lock().after.as_deref(), Some(""));
        recheck.finish(0, &Status::new()).unwrap();
        assert!(load().is_due(), "another loss was noticed meanwhile");
        recheck.finish(1, &Status::new()).unwrap();
        assert!(!load().is_due() && !recheck.is_due());
    }

    #[test]
    fn a_file_that_cannot_be_understood_checks_all_accounts() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{}", r#"{"v":2,"after":"did:web:a.test"}"#] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert_eq!(Recheck::load(dir.path()).unwrap().lock().after.as_deref(), Some(""));
        }
    }
}
