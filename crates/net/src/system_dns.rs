//! The DNS resolver that the system is configured to use.

use std::net::IpAddr;

use hickory_resolver::TokioResolver;
use hickory_resolver::net::NetError;
use hickory_resolver::proto::rr::RData;

use crate::dns::{DnsError, DnsResolver, Lookup};

/// The resolver that the system is configured to use.
#[derive(Clone, Debug)]
pub struct SystemDns(TokioResolver);

impl SystemDns {
    /// Reads the system's configuration.
    ///
    /// # Errors
    /// If there is no valid configuration.
    pub fn new() -> Result<Self, DnsError> {
        let resolver = TokioResolver::builder_tokio().and_then(|builder| builder.build());
        resolver.map(Self).map_err(|error| DnsError::new("any name", error))
    }
}

impl DnsResolver for SystemDns {
    fn addresses<'a>(&'a self, host: &'a str) -> Lookup<'a, Vec<IpAddr>> {
        Box::pin(async move {
            let found = self.0.lookup_ip(absolute(host)).await;
            or_none(host, found.map(|found| found.iter().collect()))
        })
    }

    fn texts<'a>(&'a self, name: &'a str) -> Lookup<'a, Vec<Vec<u8>>> {
        Box::pin(async move {
            let found = self.0.txt_lookup(absolute(name)).await;
            let texts = found.map(|found| {
                let data = found.answers().iter().map(|record| &record.data);
                data.filter_map(text).collect()
            });
            or_none(name, texts)
        })
    }
}

/// The name with a final dot, so that no search domain is appended.
fn absolute(name: &str) -> String {
    format!("{}.", name.trim_end_matches('.'))
}

fn text(data: &RData) -> Option<Vec<u8>> {
    match data {
        RData::TXT(txt) => Some(txt.txt_data.concat()),
        _ => None,
    }
}

fn or_none<T>(name: &str, found: Result<Vec<T>, NetError>) -> Result<Vec<T>, DnsError> {
    match found {
        Err(error) if error.is_no_records_found() => Ok(Vec::new()),
        found => found.map_err(|error| DnsError::new(name, error)),
    }
}

impl DnsError {
    fn new(name: &str, reason: impl ToString) -> Self {
        Self { name: name.to_owned(), reason: reason.to_string() }
    }
}
