//! Whose stream is followed?

use wireproof::net::firehose::Upstream;
use wireproof::net::hosts::parse_host_url;
use wireproof::net::http::Url;

use crate::failure::Failure;

/// The hosts, and what they are called in lines: as they were given.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    pub(crate) names: Vec<String>,
    pub(crate) urls: Vec<Url>,
}

impl Hosts {
    /// Those that were given, or the usual one.
    pub(crate) fn new(given: &[String], usual: &str) -> Result<Self, Failure> {
        let usual = [usual.to_owned()];
        let names = if given.is_empty() { &usual } else { given };
        let url = |name: &String| match parse_host_url(name) {
            Ok(url) => Ok(url),
            Err(error) => Err(Failure::Usage(format!("--host {name}: {error}"))),
        };
        let urls = names.iter().map(url).collect::<Result<_, _>>()?;
        Ok(Self { names: names.to_vec(), urls })
    }

    /// The same, of which nothing is known.
    pub(crate) fn origins(&self) -> Vec<Upstream> {
        self.urls.iter().cloned().map(Upstream::new).collect()
    }
}

/// Who tells everything.
pub(crate) const RELAY: &str = "bsky.network";
