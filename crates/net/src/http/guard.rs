//! Egress checks of the HTTP client: at name resolution and at redirects.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Action, Attempt, Policy};

use crate::dns::DnsResolver;
use crate::egress::EgressPolicy;

/// DnsResolver become addresses here, and only those leave that may be connected to. The library connects
/// to no other, so what is checked is what is used.
pub(crate) struct Guard {
    reach: EgressPolicy,
    names: Arc<dyn DnsResolver>,
}

/// A name without any address.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the name has no address")]
pub(crate) struct NoAddress;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Guard {
    pub(crate) fn new(reach: EgressPolicy, names: Arc<dyn DnsResolver>) -> Self {
        Self { reach, names }
    }

    /// The allowed addresses of `host`.
    pub(crate) async fn addresses(
        reach: EgressPolicy,
        names: &dyn DnsResolver,
        host: &str,
    ) -> Result<Vec<SocketAddr>, BoxError> {
        let found = names.addresses(host).await?;
        let mut refusal = None;
        let mut allowed = Vec::new();
        for address in found {
            match reach.check_address(address) {
                // Port 0 stands for the port of the URL.
                Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                Err(forbidden) => refusal = Some(forbidden),
            }
        }
        match (allowed.is_empty(), refusal) {
            (false, _) => Ok(allowed),
            (true, Some(forbidden)) => Err(forbidden.into()),
            (true, None) => Err(NoAddress.into()),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, names) = (self.reach, Arc::clone(&self.names));
        Box::pin(async move {
            let addresses = Self::addresses(reach, &*names, name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Follows a few redirects, each checked like the first request.
pub(super) fn redirects(reach: EgressPolicy) -> Policy {
    Policy::custom(move |attempt| follow(reach, attempt))
}

fn follow(reach: EgressPolicy, attempt: Attempt<'_>) -> Action {
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error(TooManyRedirects);
    }
    match reach.check_url(attempt.url()) {
        Ok(()) => attempt.follow(),
        Err(forbidden) => attempt.error(forbidden),
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many redirects")]
struct TooManyRedirects;

pub(crate) const MAX_REDIRECTS: usize = 5;
