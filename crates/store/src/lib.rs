//! Persistent state: the cursors of streams, and the keys and chain states of accounts.
//!
//! [`Store`] is one SQLite file. One thread writes it; requests that arrive while it writes share the
//! next transaction. [`StoreState`] is its [`ChainState`](verify::sync::ChainState):
//! the states that a judge stores stay in memory until [`Store::checkpoint`] reports their events as
//! handled, and are then written in the same transaction as the cursors. So the file never holds a
//! state that its cursor has not reached, nor a cursor without its states.
//!
//! [`PlcMirror`] is a file of its own: the verified operations of a did:plc directory.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("state.sqlite");
//! use wireproof::verify::sync::{AccountState, ChainState, SyncState::Desynchronized};
//! use wireproof::store::{Options, Store};
//!
//! let store = Store::open(&path, Options::default())?;
//! let mut accounts = store.chain_state()?;
//!
//! // A judge stores states:
//! let (did, account) = ("did:web:example.com", AccountState { sync: Desynchronized, ..AccountState::UNKNOWN });
//! accounts.store_many(&[(did, account)])?;
//!
//! // After their events were handled:
//! store.checkpoint(&[("wss://relay.example.com", 4711)], &[(did, account)])?;
//! assert_eq!(store.cursor("wss://relay.example.com")?, Some(4711));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod checksum;
mod database;
#[doc(hidden)]
pub mod files;
mod keys;
mod overlay;
mod plc_mirror;
mod plc_rows;
mod reader;
#[doc(hidden)]
pub mod sqlite_file;
mod store;
mod streams;
#[cfg(test)]
mod tests;
mod writer;

pub use database::{StoreError, StoreFault};
pub use keys::StoredKey;
pub use plc_mirror::{AppliedPage, MirrorTotals, PlcMirror, PlcMirrorReader, RefusedOperation};
pub use plc_rows::{MirrorRow, MirroredOperation};
pub use reader::StateReader;
pub use store::{Options, Store, StoreState};

/// Both error types can be boxed, sent to another thread and returned from `main`.
#[cfg(test)]
const _: fn() = || {
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<StoreError>();
    is_error::<StoreFault>();
};
