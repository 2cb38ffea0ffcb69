//! What must be known of an account between its events, and who keeps it.

use codec::Cid;

use atproto::syntax::Tid;

/// What is known of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Its newest valid commit; `None` before the first.
    pub head: Option<Head>,
    /// Whether what the caller holds of the repository is that of `head`.
    pub sync: SyncState,
    /// Whether events of the account are wanted: what the upstream and the operator say of it.
    pub is_active: bool,
}

impl AccountState {
    /// An account of which nothing is known.
    pub const UNKNOWN: Self = Self { head: None, sync: SyncState::Synchronized, is_active: true };
}

impl Default for AccountState {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// An account's newest valid commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The revision.
    pub rev: Tid,
    /// The root of the tree.
    pub data: Cid,
    /// The commit object.
    pub commit: Cid,
}

/// Whether what a consumer holds of a repository is that of the newest commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SyncState {
    /// It is.
    #[default]
    Synchronized,
    /// Something is missing; only the caller can mend that, and says so by storing another state.
    Desynchronized,
    /// The caller is mending it.
    InProgress,
}

/// Keeps what is known of accounts, by DID.
///
/// A batch loads each of its accounts once, before anything is judged, and stores those that changed
/// once, before any verdict is given out. Nobody else may change them in between: accounts may be
/// divided among several judges, but one account belongs to one judge at a time.
pub trait ChainState {
    /// Why something could not be loaded or stored.
    type Error;

    /// Writes what is known of each account to the place of the same index, and
    /// [`AccountState::UNKNOWN`] where nothing is. The DIDs are distinct.
    ///
    /// # Errors
    /// If the accounts cannot be read. Nothing is judged then.
    fn load_many(
        &mut self,
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), Self::Error>;

    /// Keeps what is now known of these accounts, all or none. The DIDs are distinct.
    ///
    /// # Errors
    /// If the accounts cannot be written. No verdict is given out then, and the batch can be judged
    /// again.
    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), Self::Error>;
}
