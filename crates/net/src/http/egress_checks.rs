//! Egress checks of the HTTP client: at name resolution and at redirects.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Action, Attempt, Policy};

use crate::dns::DnsResolver;
use crate::egress::{AllowedPorts, EgressPolicy};

/// A resolver that returns only addresses that the policy allows. The HTTP library connects to no others.
pub(super) struct CheckedResolver {
    policy: EgressPolicy,
    dns: Arc<dyn DnsResolver>,
}

/// A name without any address.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the name has no address")]
pub(super) struct NoAddress;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl CheckedResolver {
    pub(super) fn new(policy: EgressPolicy, dns: Arc<dyn DnsResolver>) -> Self {
        Self { policy, dns }
    }

    /// The allowed addresses of `host`.
    async fn addresses(
        policy: EgressPolicy,
        dns: &dyn DnsResolver,
        host: &str,
    ) -> Result<Vec<SocketAddr>, BoxError> {
        let addresses = dns.addresses(host).await?;
        let mut denied = None;
        let mut allowed = Vec::new();
        for address in addresses {
            match policy.check_address(address) {
                // Port 0 stands for the port of the URL.
                Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                Err(error) => denied = Some(error),
            }
        }
        match (allowed.is_empty(), denied) {
            (false, _) => Ok(allowed),
            (true, Some(error)) => Err(error.into()),
            (true, None) => Err(NoAddress.into()),
        }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, dns) = (self.policy, Arc::clone(&self.dns));
        Box::pin(async move {
            let addresses = Self::addresses(policy, &*dns, name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Follows up to [`MAX_REDIRECTS`] redirects, checked like the first request.
pub(super) fn redirects(policy: EgressPolicy, ports: Arc<AllowedPorts>) -> Policy {
    Policy::custom(move |attempt| follow(policy, &ports, attempt))
}

fn follow(policy: EgressPolicy, ports: &AllowedPorts, attempt: Attempt<'_>) -> Action {
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error(TooManyRedirects);
    }
    match policy.check_url(attempt.url(), ports) {
        Ok(()) => attempt.follow(),
        Err(error) => attempt.error(error),
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many redirects")]
struct TooManyRedirects;

/// Maximum number of redirects per request.
pub(crate) const MAX_REDIRECTS: usize = 5;
