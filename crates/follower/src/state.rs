//! The state file: its path, and its use as the journal of a run.

use std::env;
use std::fmt::Display;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use net::firehose::{Journal, JournalError, RunError, RunMetrics};
use store::{Options, Store};
use tempfile::TempDir;
use verify::sync::AccountState;

use super::args::FollowArgs;
use super::keys::StoredKeys;
use super::recheck::Recheck;
use super::repetition_marks::RepetitionMarks;
use super::stats::RunStats;
use crate::failure::Failure;

/// Opens the state file in the given folder, or in the default one.
pub(super) fn open(args: &FollowArgs) -> Result<Store, Failure> {
    let mut options = Options::default();
    options.max_bytes = args.state_bytes;
    Ok(Store::open(&folder(args)?.join("state.sqlite"), options)?)
}

/// Refuses a number of `--cursor` that differs from the stored cursor of one of these streams: it would have no effect.
pub(super) fn check_cursor(
    args: &FollowArgs,
    streams: &[String],
    store: &Store,
) -> Result<(), Failure> {
    let Some(given) = args.cursor.cursor().filter(|_| args.restart.is_none()) else {
        return Ok(());
    };
    for stream in streams {
        if let Some(stored) = store.cursor(stream)?.filter(|stored| *stored != given) {
            return Err(Failure::Usage(format!(
                "--cursor {given}: the state has the cursor {stored} of {stream}: leave out --cursor to resume after it, or \
                 start again with --restart {given}"
            )));
        }
    }
    Ok(())
}

/// Maximum time until a host is reached, for a run that has no cursor of any of these streams.
pub(super) fn first_contact_limit(
    args: &FollowArgs,
    streams: &[String],
    store: &Store,
) -> Result<Option<Duration>, Failure> {
    for stream in streams {
        if store.cursor(stream)?.is_some() {
            return Ok(None);
        }
    }
    Ok(args.stream.first_contact_limit())
}

/// Gives a run that prints to a terminal a state folder of its own, which is removed with the returned value, unless its arguments
/// name or need a state.
pub(super) fn temporary_at_terminal(args: &mut FollowArgs) -> Result<Option<TempDir>, Failure> {
    let needs_state = args.state.is_some()
        || args.admin.is_served()
        || args.restart.is_some()
        || args.delivery.uses_outbox()
        || !args.reset_account.is_empty();
    if needs_state || !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    let folder = tempfile::Builder::new().prefix("wireproof-follow-").tempdir();
    let folder = folder.map_err(|error| {
        Failure::Local(format!(
            "a folder for the state of this run: {error}; name one with --state"
        ))
    })?;
    args.state = Some(folder.path().to_owned());
    Ok(Some(folder))
}

/// Forgets the cursors of these streams for `--restart`. With destinations it comes after their histories are outdated, so that an end
/// between the two misses nothing.
pub(super) fn forget_cursors(
    args: &FollowArgs,
    streams: &[String],
    store: &Store,
) -> Result<(), Failure> {
    if args.restart.is_some() {
        for stream in streams {
            store.forget_cursor(stream)?;
        }
    }
    Ok(())
}

/// The state folder.
pub(super) fn folder(args: &FollowArgs) -> Result<PathBuf, Failure> {
    state_folder(args.state.as_deref())
}

/// The folder for repositories while they are in use, unless `TMPDIR` names one: the state folder, as the folder for temporary
/// files can be in memory.
pub(super) fn archive_folder(args: &FollowArgs) -> Option<PathBuf> {
    let is_named = env::var_os("TMPDIR").is_some_and(|folder| !folder.is_empty());
    folder(args).ok().filter(|_| !is_named)
}

/// The given state folder, or the default one.
pub fn state_folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    given.map_or_else(default_folder, |folder| Ok(folder.to_owned()))
}

fn default_folder() -> Result<PathBuf, Failure> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_home = || variable("HOME").map(|home| home.join(".local").join("state"));
    let folder = variable("XDG_STATE_HOME").or_else(in_home);
    let no_home =
        || Failure::Usage("HOME is not set: name the state folder with --state".to_owned());
    Ok(folder.ok_or_else(no_home)?.join("wireproof"))
}

/// Why a run failed; if it was the state file, with the place where the next run continues without it.
pub(super) fn failure(error: RunError, stats: &RunStats, metrics: &RunMetrics) -> Failure {
    match error {
        RunError::Journal(_) | RunError::State(_) => {
            state_failure(&error, stats, &metrics.snapshot().cursors)
        }
        other => other.into(),
    }
}

/// A failure of the state file, after which the lines up to `cursors` of the hosts are written.
pub(super) fn state_failure(
    error: &impl Display,
    stats: &RunStats,
    cursors: &[Option<u64>],
) -> Failure {
    let known = cursors.iter().enumerate().filter_map(|(host, cursor)| Some((host, (*cursor)?)));
    let hint = |(host, cursor)| {
        format!(
            "\nwireproof: every line of {} up to {cursor} is written: if the state is lost, start the next \
             run with --cursor {cursor}",
            stats.host(host)
        )
    };
    let hints: String = known.map(hint).collect();
    Failure::Local(format!("{error}{hints}"))
}

/// The journal of a run: stores keys, reserves numbers of events to print, then stores cursors and account states in one
/// transaction.
pub(super) struct StateJournal {
    pub(super) store: Store,
    pub(super) keys: Arc<StoredKeys>,
    /// The marks of printed lines; `None` for lines that are stored.
    pub(super) marks: Option<Arc<RepetitionMarks>>,
    /// Counts the checkpoints.
    pub(super) recheck: Arc<Recheck>,
    /// The cursor of a stream without a stored one.
    pub(super) initial_cursor: Option<u64>,
}

impl Journal for StateJournal {
    fn cursor(&self, stream: &str) -> Result<Option<u64>, JournalError> {
        let stored = self.store.cursor(stream).map_err(JournalError::new)?;
        Ok(stored.or(self.initial_cursor))
    }

    fn checkpoint(
        &self,
        cursors: &[(&str, u64)],
        accounts: &[(Box<str>, AccountState)],
    ) -> Result<(), JournalError> {
        // First: a key must be removed before the cursor passes the `#identity` that invalidated it.
        self.keys.flush().map_err(JournalError::new)?;
        if let Some(marks) = &self.marks {
            marks.reserve().map_err(JournalError::new)?;
        }
        self.store.checkpoint(cursors, accounts).map_err(JournalError::new)?;
        self.recheck.checkpointed();
        Ok(())
    }
}
