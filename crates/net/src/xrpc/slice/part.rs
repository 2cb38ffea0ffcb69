//! A part of a repository in the place of the whole, written as a repository would be.

use std::io::Write;

use atproto::syntax::Did;
use reqwest::Url;

use super::{FetchedPart, RequestTurn, SliceError, WantedPart};
use crate::http::{HttpFault, Limits};
use crate::xrpc::client::Client;
use crate::xrpc::error::{ErrorName, XrpcError, XrpcFault};
use crate::xrpc::response::{FetchError, FetchedRepo};

/// The part that was written; or, for the whole repository instead, why the answers of the host were refused, if they were.
pub(crate) type WrittenPart = Result<FetchedRepo, Option<SliceError>>;

impl Client {
    /// Writes the wanted part of a repository to `out`, unless the whole repository is to be fetched.
    pub(crate) async fn write_part(
        &self,
        host: &Url,
        did: Did<'_>,
        wanted: WantedPart<'_>,
        limits: &Limits,
        turn: &dyn RequestTurn,
        out: &mut (dyn Write + Send),
    ) -> Result<WrittenPart, FetchError> {
        let max_bytes = limits.max_bytes.min(MAX_PART_BYTES);
        let limits = Limits { max_bytes, ..*limits };
        match self.fetch_part(host, did, wanted, &limits, turn).await {
            Ok(FetchedPart::Slice(slice)) => {
                out.write_all(&slice.archive)?;
                let (bytes, wire_bytes) = (slice.archive.len() as u64, slice.received);
                let host = host.origin().ascii_serialization().into();
                Ok(Ok(FetchedRepo { host, bytes, wire_bytes }))
            }
            Ok(FetchedPart::Whole(_)) | Err(SliceError::Size(_)) => Ok(Err(None)),
            Err(SliceError::Xrpc(error)) if !is_of_part(&error) => Err(error.into()),
            Err(error) => Ok(Err(Some(error))),
        }
    }
}

/// Whether an error is about the requests for a part, so that the whole repository may be served.
fn is_of_part(error: &XrpcError) -> bool {
    match &error.fault {
        XrpcFault::Named(named) => {
            !error.is_retryable()
                && named.name != ErrorName::RepoNotFound
                && named.name.account_status().is_none()
        }
        XrpcFault::Status(_) => !error.is_retryable(),
        XrpcFault::Http(HttpFault::TooLarge(_)) => true,
        _ => false,
    }
}

/// Maximum bytes of a part, which is in memory until all of it is received. A larger one is fetched as a whole repository.
const MAX_PART_BYTES: u64 = 16 << 20;
