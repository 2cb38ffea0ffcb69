//! The states of accounts as JSON, to be stored and judged from later.

use atproto::syntax::Tid;
use codec::Cid;
use serde::{Deserialize, Serialize};
use serde_json::json;
use verify::sync::{AccountState, Head, MemoryState, SyncState};

use crate::fault::Fault;

/// The states of all accounts as JSON, in the order of their DIDs.
#[must_use]
pub fn export(state: &MemoryState) -> String {
    let mut accounts: Vec<(String, AccountState)> = state.iter().collect();
    accounts.sort_by(|(a, _), (b, _)| a.cmp(b));
    let accounts = accounts.into_iter().map(|(did, account)| StoredAccount::new(did, &account));
    json!({ "version": VERSION, "accounts": accounts.collect::<Vec<_>>() }).to_string()
}

/// Adds the states of a JSON text that [`export`] made, all or none.
///
/// # Errors
/// If the text is of another form or version.
pub fn import(state: &mut MemoryState, json: &str) -> Result<(), Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault::argument("state", error);
    let stored: StoredState = serde_json::from_str(json).map_err(|error| wrong(&error))?;
    if stored.version != VERSION {
        return Err(wrong(&format!("version {} is not {VERSION}", stored.version)));
    }
    let read = |account: StoredAccount| account.read().map_err(|error| wrong(&error));
    let accounts = stored.accounts.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for (did, account) in accounts {
        state.put(&did, account);
    }
    Ok(())
}

/// The states of accounts in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredState {
    version: u32,
    accounts: Vec<StoredAccount>,
}

/// The state of an account in JSON.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredAccount {
    did: String,
    active: bool,
    sync: StoredSync,
    head: Option<StoredHead>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredSync {
    Synchronized,
    Desynchronized,
    InProgress,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredHead {
    rev: String,
    data: String,
    commit: String,
}

impl StoredAccount {
    fn new(did: String, account: &AccountState) -> Self {
        let sync = match account.sync {
            SyncState::Synchronized => StoredSync::Synchronized,
            SyncState::Desynchronized => StoredSync::Desynchronized,
            SyncState::InProgress => StoredSync::InProgress,
        };
        let head = account.head.map(|head| StoredHead {
            rev: head.rev.to_string(),
            data: head.data.to_string(),
            commit: head.commit.to_string(),
        });
        Self { did, active: account.is_active, sync, head }
    }

    fn read(self) -> Result<(String, AccountState), String> {
        let sync = match self.sync {
            StoredSync::Synchronized => SyncState::Synchronized,
            StoredSync::Desynchronized => SyncState::Desynchronized,
            StoredSync::InProgress => SyncState::InProgress,
        };
        let head = self.head.map(StoredHead::read).transpose()?;
        Ok((self.did, AccountState { head, sync, is_active: self.active }))
    }
}

impl StoredHead {
    fn read(self) -> Result<Head, String> {
        let cid = |text: &str| text.parse::<Cid>().map_err(|error| format!("{text:?}: {error}"));
        let rev = Tid::parse(&self.rev).map_err(|error| format!("{:?}: {error}", self.rev))?;
        Ok(Head { rev, data: cid(&self.data)?, commit: cid(&self.commit)? })
    }
}

/// The version of the exported state.
const VERSION: u32 = 1;
