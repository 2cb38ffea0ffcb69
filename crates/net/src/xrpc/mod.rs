//! Which repository, record or list does a server give?
//!
//! The methods of `com.atproto.sync`, asked of any host that may be reached. What comes is what the
//! host says: archives go to [`verify::repository`] and [`verify::record`] before anybody believes
//! them.
//!
//! Errors are told by their names. A host that asks for patience is left alone for as long as it says
//! (see [`gate`](crate::rate_limit)), and then asked again a few times; a redirect, as relays answer
//! `getRepo`, is a request to another host, with every check that the first one passed.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use wireproof::atproto::syntax::Did;
//! use wireproof::net::http::{self, Limits};
//! use wireproof::net::{dns::SystemDns, egress::EgressPolicy, xrpc};
//!
//! let names = Arc::new(SystemDns::new()?);
//! let client = xrpc::Client::new(http::Client::new(EgressPolicy::Public, names)?);
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
