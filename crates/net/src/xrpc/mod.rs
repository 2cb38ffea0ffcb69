//! XRPC client: the methods of `com.atproto.sync`, of any host that the egress policy allows.
//!
//! Responses are claims of the host: archives must be checked by [`verify::repository`] or [`verify::record`].
//!
//! Errors are identified by name. After a rate limit, a request is retried a few times, with the delay that the
//! host requests (see [`rate_limit`](crate::rate_limit)). A redirect, as relays return for
//! `getRepo`, becomes a request to another host, with every check of the first.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::atproto::syntax::Did;
//! use wireproof::net::http::{self, Limits};
//! use wireproof::net::{dns::SystemDns, egress::EgressPolicy, xrpc};
//!
//! let dns = Arc::new(SystemDns::new()?);
//! let client = xrpc::Client::new(http::Client::new(EgressPolicy::Public, dns)?);
//! let did = Did::parse("did:plc:ewvi7nxzyoun6zhxrhs64oiz")?;
//! let mut file = std::fs::File::create("repository.car")?;
//! let host = "https://pds.example.com".parse()?;
//! let fetched = client.fetch_repo(&host, did, &mut file, &Limits::REPOSITORY).await?;
//! println!("{} bytes from {}", fetched.bytes, fetched.host);
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod paced;
mod request;
mod response;
mod slice;
#[cfg(test)]
mod tests;
mod unsigned;

#[cfg(feature = "jetstream")]
pub(crate) use request::read_error;

pub use client::Client;
pub use error::{ErrorName, NamedError, XrpcError, XrpcFault};
pub use paced::{PaceOptions, PacedClient, PacedPart};
pub use response::{
    FetchError, FetchedRepo, LatestCommit, ListPage, ListedHost, ListedRepo, PageOptions, Pages,
    RepoStatus, RepoStream,
};
pub(crate) use slice::WrittenPart;
pub use slice::{
    FetchedPart, FetchedSlice, RequestTurn, SliceError, TurnWait, WantedPart, WholeReason,
};
pub use unsigned::{MAX_CURSOR_BYTES, OddEntries};
