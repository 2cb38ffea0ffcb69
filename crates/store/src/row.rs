//! How does an account become a row, and back?

use atproto::syntax::Tid;
use codec::Cid;
use rusqlite::{Connection, OptionalExtension, Row, params};
use verify::sync::{AccountState, Head, SyncState};

use crate::error::StoreFault;

/// The account with this DID, if there is a row of it.
pub(crate) fn read(connection: &Connection, did: &str) -> Result<Option<AccountState>, StoreFault> {
    let mut select = connection.prepare_cached(SELECT)?;
    let columns = select.query_row([did], Columns::of).optional()?;
    let account = columns.map(|columns| columns.into_account()).transpose();
    account.map_err(|what| StoreFault::Damaged(format!("{what} of {did}")))
}

/// Writes what is known of the account with this DID.
pub(crate) fn write(
    connection: &Connection,
    did: &str,
    account: &AccountState,
) -> Result<(), StoreFault> {
    let AccountState { head, sync, is_active } = account;
    let rev = head.map(|head| head.rev.to_bytes());
    let rev = rev.as_ref().map(|rev| str::from_utf8(rev).expect("the alphabet is ASCII"));
    let data = head.as_ref().map(|head| head.data.as_bytes().as_slice());
    let commit = head.as_ref().map(|head| head.commit.as_bytes().as_slice());
    let mut upsert = connection.prepare_cached(UPSERT)?;
    upsert.execute(params![did, rev, data, commit, *sync as u8, is_active])?;
    Ok(())
}

/// A row as SQLite gives it.
struct Columns {
    rev: Option<String>,
    data: Option<Vec<u8>>,
    commit: Option<Vec<u8>>,
    sync: u8,
    is_active: bool,
}

impl Columns {
    fn of(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            rev: row.get(0)?,
            data: row.get(1)?,
            commit: row.get(2)?,
            sync: row.get(3)?,
            is_active: row.get(4)?,
        })
    }

    /// Refused is what was never written, with its name.
    fn into_account(self) -> Result<AccountState, &'static str> {
        let head = match (&self.rev, &self.data, &self.commit) {
            (None, None, None) => None,
            (Some(rev), Some(data), Some(commit)) => Some(Head {
                rev: Tid::parse(rev).map_err(|_| "rev")?,
                data: Cid::from_bytes(data).ok_or("data")?,
                commit: Cid::from_bytes(commit).ok_or("commit")?,
            }),
            _ => return Err("head"),
        };
        let sync = STATES.into_iter().find(|state| *state as u8 == self.sync).ok_or("sync")?;
        Ok(AccountState { head, sync, is_active: self.is_active })
    }
}

const STATES: [SyncState; 3] =
    [SyncState::Synchronized, SyncState::Desynchronized, SyncState::InProgress];

const SELECT: &str = r#"SELECT rev, data, "commit", sync, active FROM account WHERE did = ?1"#;

const UPSERT: &str = r#"
INSERT INTO account (did, rev, data, "commit", sync, active) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (did) DO UPDATE SET rev = ?2, data = ?3, "commit" = ?4, sync = ?5, active = ?6
"#;
