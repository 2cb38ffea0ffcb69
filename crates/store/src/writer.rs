//! The writer thread: it takes all waiting requests, writes them in one transaction and replies to them.
//! If the transaction fails, the requests are retried one by one, so that every request gets its own result.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use base::crash_point;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction};
use verify::sync::AccountState;

use crate::database::{self, StoreError, StoreFault};
use crate::files::StateFiles;
use crate::keys::{self, StoredKey};
use crate::streams::{self, Streams};

/// A change of the file.
#[derive(Debug)]
pub(crate) enum Change {
    /// Cursors, and the states of accounts at them.
    Checkpoint {
        /// Streams and their `seq`.
        cursors: Vec<(String, u64)>,
        /// Accounts by their DID.
        accounts: Vec<(Box<str>, AccountState)>,
    },
    /// Deletes the cursor of a stream.
    ForgetCursor(String),
    /// A stream and the bound of its printed events.
    Printed(String, u64),
    /// A stream and the hashes of its last printed events.
    Recent(String, Vec<[u8; 16]>),
    /// Keys by DID; `None` deletes one.
    Keys(Vec<(Box<str>, Option<StoredKey>)>),
}

/// A handle of the writer thread.
#[derive(Debug)]
pub(crate) struct Writer {
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
    files: Arc<StateFiles>,
}

type Request = (Change, SyncSender<Result<(), StoreError>>);

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(
        connection: Connection,
        files: Arc<StateFiles>,
    ) -> Result<Self, StoreError> {
        let (requests, receiver) = sync_channel(MAX_WAITING);
        let of_thread = files.clone();
        let run = move || write_all(connection, &receiver, &of_thread);
        let thread = std::thread::Builder::new().name("state file".to_owned()).spawn(run);
        let thread = thread.map_err(StoreError::at(files.path()))?;
        Ok(Self { requests: Some(requests), thread: Some(thread), files })
    }

    /// Writes `change`, and returns when it is on disk.
    pub(crate) fn write(&self, change: Change) -> Result<(), StoreError> {
        let (reply, written) = sync_channel(1);
        let requests = self.requests.as_ref().expect("open until it is dropped");
        let closed = || StoreError::new(self.files.path(), StoreFault::Closed);
        requests.send((change, reply)).map_err(|_| closed())?;
        written.recv().map_err(|_| closed())?
    }
}

impl Drop for Writer {
    /// Waits until everything is written and the file is closed.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // After a panic all waiting callers have received `Closed`.
            let _ = thread.join();
        }
    }
}

fn write_all(mut connection: Connection, requests: &Receiver<Request>, files: &StateFiles) {
    while let Ok(first) = requests.recv() {
        let group: Vec<Request> =
            std::iter::once(first).chain(requests.try_iter().take(MAX_WAITING)).collect();
        let all = write_group(&mut connection, &group, files);
        let is_shared = all.is_ok() || group.len() == 1;
        for request in &group {
            let result = if is_shared {
                all.clone()
            } else {
                write_group(&mut connection, std::slice::from_ref(request), files)
            };
            // The caller may have been dropped.
            let _ = request.1.send(result);
        }
    }
    if files.check().is_err() {
        // A file that was emptied must not be filled in part from the log.
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
    crash_point("state/closing");
    // Best effort: SQLite replays a remaining log at the next start.
    let _ = connection.close();
    crash_point("state/closed");
}

fn write_group(
    connection: &mut Connection,
    group: &[Request],
    files: &StateFiles,
) -> Result<(), StoreError> {
    files.check()?;
    let mut write = || {
        let transaction = connection.transaction()?;
        // Damaged rows must not get a new checksum.
        Streams::read(&transaction)?;
        group.iter().try_for_each(|(change, _)| change.write(&transaction))?;
        streams::seal(&transaction)?;
        group.iter().for_each(|(change, _)| change.pass_written());
        transaction.commit()?;
        group.iter().for_each(|(change, _)| change.pass_committed());
        Ok(())
    };
    write().map_err(|fault: StoreFault| StoreError::new(files.path(), fault))
}

impl Change {
    /// Passes the crash point before it is committed.
    fn pass_written(&self) {
        match self {
            Self::Checkpoint { .. } | Self::ForgetCursor(_) => crash_point("checkpoint/written"),
            Self::Printed(..) | Self::Recent(..) => crash_point("printed/written"),
            Self::Keys(_) => crash_point("keys/written"),
        }
    }

    /// Passes the crash point after it is committed.
    fn pass_committed(&self) {
        match self {
            Self::Checkpoint { .. } | Self::ForgetCursor(_) => crash_point("checkpoint/committed"),
            Self::Printed(..) | Self::Recent(..) => crash_point("printed/committed"),
            Self::Keys(_) => crash_point("keys/committed"),
        }
    }

    fn write(&self, transaction: &Transaction<'_>) -> Result<(), StoreFault> {
        match self {
            Self::Checkpoint { cursors, accounts } => {
                for (stream, seq) in cursors {
                    streams::set_cursor(transaction, stream, *seq)?;
                }
                database::write_accounts(transaction, accounts)
            }
            Self::ForgetCursor(stream) => streams::forget_cursor(transaction, stream),
            Self::Printed(stream, seq) => streams::set_printed(transaction, stream, *seq),
            Self::Recent(stream, hashes) => streams::set_recent(transaction, stream, hashes),
            Self::Keys(keys) => {
                let write = |(did, key): &(Box<str>, Option<StoredKey>)| {
                    keys::write(transaction, did, key.as_ref())
                };
                keys.iter().try_for_each(write)
            }
        }
    }
}

/// Maximum number of waiting requests; further callers block.
const MAX_WAITING: usize = 1024;
