//! Whom can we ask? The clients that the arguments make.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use wireproof::net::dns::{DnsResolver, LoopbackDns, SystemDns};
use wireproof::net::egress::EgressPolicy;
use wireproof::net::{http, identity, xrpc};

use crate::args::network::NetworkArgs;
use crate::failure::Failure;

/// The clients, and where they connect.
pub(crate) struct Network {
    pub(crate) http: http::Client,
    pub(crate) resolver: identity::Resolver,
    pub(crate) xrpc: xrpc::Client,
}

impl Network {
    /// Makes the clients; nobody is asked yet.
    pub(crate) fn open(args: &NetworkArgs) -> Result<Self, Failure> {
        let (reach, names) = names(args)?;
        let http = client(args, reach, &names)?;
        let usual = identity::Options::default();
        let options = identity::Options {
            directory: args.plc.clone().unwrap_or(usual.directory),
            development_port: args.development_port,
            ..usual
        };
        let resolver = identity::Resolver::new(http.clone(), names, options);
        Ok(Self { xrpc: xrpc::Client::new(http.clone()), http, resolver })
    }
}

fn client(
    args: &NetworkArgs,
    reach: EgressPolicy,
    names: &Arc<dyn DnsResolver>,
) -> Result<http::Client, Failure> {
    let Some(path) = &args.development_trust_only else {
        return Ok(http::Client::new(reach, Arc::clone(names))?);
    };
    let authorities = std::fs::read(path).map_err(Failure::file(path))?;
    let client = http::Client::on_loopback_trusting_only(&authorities, Arc::clone(names));
    client.map_err(|error| {
        Failure::Usage(format!("--development-trust-only {}: {}", path.display(), error.fault))
    })
}

fn names(args: &NetworkArgs) -> Result<(EgressPolicy, Arc<dyn DnsResolver>), Failure> {
    if args.is_development() {
        return Ok((EgressPolicy::Loopback, Arc::new(LoopbackDns)));
    }
    match SystemDns::new() {
        Ok(names) => Ok((EgressPolicy::Public, Arc::new(names))),
        Err(error) => Err(Failure::Local(format!("this system's DNS: {error}"))),
    }
}

/// What runs questions to the network, on this thread.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Local(format!("this system's sockets: {error}")))
}
