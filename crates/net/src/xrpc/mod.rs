//! XRPC client: the methods of `com.atproto.sync`, of any host that the egress policy allows.
//!
//! Responses are what the host claims: archives must be checked by [`verify::repository`] or
//! [`verify::record`].
//!
//! Errors are identified by name. A host that limits requests is asked again after the delay that it
//! requests, a few times (see [`rate_limit`](crate::rate_limit)). A redirect, as relays return for
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

mod answers;
mod client;
mod error;
mod pages;
mod request;
mod stream;
#[cfg(test)]
mod tests;

pub use answers::{LatestCommit, ListPage, ListedHost, ListedRepo, RepoStatus};
pub use client::Client;
pub use error::{ErrorName, NamedError, XrpcError, XrpcFault};
pub use pages::{PageOptions, Pages};
pub use stream::{FetchError, FetchedRepo, RepoStream};
