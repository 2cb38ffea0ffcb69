//! What survives a restart: how far each stream was read, which key each account had, and what is
//! known of its chain.
//!
//! [`Store`] is one SQLite file. One thread writes it; what comes while it writes goes into the next
//! transaction together. [`StoreState`] is the [`ChainState`](verify::sync::ChainState) upon it: what a
//! judge changes stays in memory until [`Store::checkpoint`] says that the events behind it were
//! handled, and goes to the file in the same transaction as the cursors. So the file never holds a
//! state that its cursor has not reached, nor a cursor without its states.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! use verify::sync::{AccountState, ChainState};
//! use wireproof_store::{Options, Store};
//!
//! let store = Store::open(&dir.path().join("state.sqlite"), Options::default())?;
//! let mut accounts = store.chain_state()?;
//!
//! // A judge does this:
//! let (did, account) = ("did:web:example.com", AccountState { is_active: false, ..AccountState::UNKNOWN });
//! accounts.store_many(&[(did, account)])?;
//!
//! // And when its events were handled:
//! store.checkpoint(&[("wss://relay.example.com", 4711)], &[(did, account)])?;
//! assert_eq!(store.cursor("wss://relay.example.com")?, Some(4711));
//! # Ok(())
//! # }
//! ```
//!
//! | file | question |
//! |---|---|
//! | `store` | the front door: what can be kept and asked? |
//! | `accounts` | what is known of an account, in memory or in the file? |
//! | `overlay` | which accounts are in memory, and which of them only there? |
//! | `writer` | who writes, and when? |
//! | `database` | is this our file, and how is it opened? |
//! | `row` | how does an account become a row and back? |

#![forbid(unsafe_code)]

mod accounts;
mod database;
mod error;
mod overlay;
mod row;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use accounts::StoreState;
pub use error::{StoreError, StoreFault};
pub use store::{Options, Store, StoredKey};
