//! Whom can we ask? The clients that the arguments make.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use wireproof::net::names::{LoopbackNames, Names, SystemNames};
use wireproof::net::reach::Reach;
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
        let http = http::Client::new(reach, Arc::clone(&names))?;
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

fn names(args: &NetworkArgs) -> Result<(Reach, Arc<dyn Names>), Failure> {
    if args.development || args.development_port.is_some() {
        return Ok((Reach::Loopback, Arc::new(LoopbackNames)));
    }
    match SystemNames::new() {
        Ok(names) => Ok((Reach::Public, Arc::new(names))),
        Err(error) => Err(Failure::Local(format!("this system's DNS: {error}"))),
    }
}

/// What runs questions to the network, on this thread.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Local(format!("this system's sockets: {error}")))
}
