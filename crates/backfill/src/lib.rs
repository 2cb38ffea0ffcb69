//! The repositories of all accounts of hosts, verified, into an archive; and the blobs that their records name.
//!
//! ```text
//! hosts ── lists.rs: pages of accounts ── account.rs: key, host, download ── repository_batch.rs: proof, tables ── ledger
//! ```
//!
//! A page of a list is the unit of work: its repositories are in the tables of the archive before its row is in the ledger, which
//! lies next to them. So a run that ends at any time goes on with the page after the last row, and takes from that page the
//! repositories that the tables lack.
//!
//! [`Backfill`] is the library call; `wireproof backfill` is the same with arguments.

#![forbid(unsafe_code)]

mod account;
mod backfill_run;
mod blobs;
mod holder;
mod identities;
mod lease;
mod lists;
mod options;
mod page;
mod place;
mod progress;
mod repository_batch;
mod selection;
mod summary;
mod sweeps;

pub use account::class_of;
pub use blobs::{BlobFetch, BlobFetchOptions, BlobFinding, BlobSummary, check_blobs};
pub use identities::{Identities, Identity};
pub use lists::{read_hosts, relay_hosts};
pub use options::{Backfill, BackfillOptions};
pub use selection::Selection;
pub use summary::{AccountCounts, Summary};
