//! The blobs of accounts, by the records of an archive: fetched, checked, and reported by the record that names them.
//!
//! ```text
//! archive: whole repository ── named.rs: CID, record ──┬── fetch.rs: getBlob, hash ── archive: blobs
//!                                                      └── check.rs: missing, other bytes
//! ```

mod check;
mod fetch;
mod named;
mod report;
mod repository;

pub use fetch::{BlobFetch, BlobFetchOptions};
pub use report::{BlobFinding, BlobSummary};

use archive::Archive;
use atproto::syntax::DidBuf;
use program::failure::Failure;

/// Reports the blobs that records of an archive name and that the archive does not have; with `hashes`, it hashes the others again.
/// Without accounts, it checks all accounts of the archive.
///
/// # Errors
/// If the archive cannot be read.
pub async fn check_blobs(
    archive: &Archive,
    accounts: Vec<DidBuf>,
    hashes: bool,
    on_finding: impl FnMut(BlobFinding),
) -> Result<BlobSummary, Failure> {
    check::check(archive, accounts, hashes, on_finding).await
}
