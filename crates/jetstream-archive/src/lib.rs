//! Hosted Jetstream archives, checked instead of trusted.
//!
//! ```text
//! plan ── segments, blocks ── fold: present records by account ── rebuilt tree ─┐
//!                                                                               ├─ verdict ── archive, ledger
//! DID document ── key, host ── signed commit ── nodes that the rebuilt tree lacks ─┘
//! ```
//!
//! The records of such an archive are unsigned. The account's own host has the signed commit, which names the root of the tree of all
//! records. An account is proved if the tree of its archived records has that root. If not, the differences are found by hash, and
//! named by path.
//!
//! [`import`] is the library call; `wireproof archive import-jetstream` is the same with arguments. [`segment`] reads the files.

#![forbid(unsafe_code)]

mod account;
mod download;
mod fold;
mod plan;
mod run;
mod sampling;
pub mod segment;
mod signed;
mod summary;
mod verdict;

pub use download::ReadError;
pub use plan::PlanError;
pub use run::{ImportOptions, MAX_TEMPORARY_BYTES, OnVerdict, import};
pub use sampling::SampleReport;
pub use summary::Summary;
pub use verdict::{AccountVerdict, Differences, Paths, Verdict};
