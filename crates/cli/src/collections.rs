//! Collections of accounts by name, and the download of the part of a repository that proves them.

use atproto::syntax::{AtIdentifier, CollectionPatternBuf, Did};
use net::http::{Limits, Url};
use net::xrpc::{FetchedSlice, SliceError};

use crate::download::download_failure;
use crate::failure::Failure;
use crate::network::{self, Online};

/// The collections of `--collection`.
pub(crate) fn parse<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<CollectionPatternBuf>, Failure> {
    let parse = |name: &str| {
        let name = name.trim();
        name.parse().map_err(|error| Failure::Usage(format!("--collection {name}: {error}")))
    };
    names.into_iter().map(parse).collect()
}

/// Downloads the part of a repository that proves these collections, which is not yet verified.
pub(crate) fn download(
    who: AtIdentifier<'_>,
    did: Did<'_>,
    host: &Url,
    collections: &[CollectionPatternBuf],
    limits: &Limits,
    Online { network, runtime, .. }: &Online,
) -> Result<FetchedSlice, Failure> {
    let fetched = network.xrpc.fetch_collections(host, did, collections, limits);
    runtime.block_on(fetched).map_err(|error| slice_failure(error, who, &network::origin(host)))
}

fn slice_failure(error: SliceError, who: AtIdentifier<'_>, from: &str) -> Failure {
    let option = match error {
        SliceError::Xrpc(error) => return download_failure(error),
        SliceError::Size(_) => "--max-bytes",
        SliceError::Time(_) => "--max-seconds",
        _ => {
            let code = error.code().unwrap_or_default();
            return Failure::Refused(format!("{who}: refused ({code}): {error} (from {from})"));
        }
    };
    Failure::Network(format!("{who}: {error} from {from} (the limit of {option})"))
}
