//! The whole repository of an account, fetched from its server, verified and stored, so that its records name blobs.

use archive::{Archive, ArchivedRepository};
use atproto::syntax::{Did, Tid};
use crypto::PublicKey;
use mapping::MappedFile;
use net::http::{Limits, Url};
use net::xrpc::PacedClient;
use program::clock::now_micros;
use verify::repository::{self, Options};
use verify::sync::{FutureWindow, Policy};

/// Fetches and stores a repository; the error is in words.
pub(super) async fn store_repository(
    archive: &Archive,
    client: &PacedClient,
    did: Did<'_>,
    key: &PublicKey,
    host: &Url,
) -> Result<(), String> {
    let fetched = client.fetch_repo(host, did, &Limits::REPOSITORY).await;
    let (fetched, file) = fetched.map_err(|error| error.to_string())?;
    let (file, _space) = file.into_parts();
    let bytes = MappedFile::of(&file).map_err(|error| error.to_string())?;
    let whole = repository::verify(&bytes, Some(did.as_str()), key, &Options::default());
    let whole = whole.map_err(|error| format!("{} ({})", error, error.code()))?;
    let (rev, now) = (Tid::parse(whole.commit().rev), now_micros());
    let is_admitted = |rev| FutureWindow::new(now.max(0) as u64, &Policy::default()).admits(rev);
    if !rev.is_ok_and(is_admitted) {
        return Err("the repository is at a revision that is ahead of the clock".to_owned());
    }
    let host = &*fetched.host;
    let archived = ArchivedRepository { repository: &whole, key, host, fetched: now };
    let stored = archive.seal_repositories(vec![archived], None).await;
    stored.map(drop).map_err(|error| error.to_string())
}
