//! The simulated network, and clients that connect to this machine only.

use std::sync::Arc;

use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::http::{Client, Url};
use net::identity::{self, Resolver};
use simnet::servers::{Server, Simulation, Spec};

use crate::Failure;

/// A network of accounts, two PDSs, a directory and a relay.
pub(crate) struct Network {
    pub(crate) simulation: Simulation,
    pub(crate) http: Client,
    pub(crate) resolver: Resolver,
}

impl Network {
    pub(crate) fn start() -> Result<Self, Failure> {
        let simulation = Simulation::start(Spec {
            accounts: ACCOUNTS,
            records: RECORDS,
            initial_commits: COMMITS,
            jetstreams: 0,
            ..Spec::default()
        })?;
        let dns = Arc::new(LoopbackDns);
        let http = Client::new(EgressPolicy::Loopback, dns.clone())?;
        let mut options = identity::Options::default();
        options.directory = simulation.url(Server::Plc).parse()?;
        options.development_port = Some(simulation.port(Server::Pds(0)));
        let resolver = Resolver::new(http.clone(), dns, options);
        Ok(Self { simulation, http, resolver })
    }

    /// The accounts and servers, for a person.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{ACCOUNTS} accounts with {RECORDS} records each on {} servers, and a relay with {COMMITS} commits",
            self.simulation.spec().pds
        )
    }

    /// The URL of the relay.
    pub(crate) fn relay(&self) -> Result<Url, Failure> {
        Ok(self.simulation.url(RELAY).parse()?)
    }
}

/// The relay whose stream is followed.
pub(crate) const RELAY: Server = Server::Relay(0);

const ACCOUNTS: usize = 100;
const RECORDS: usize = 200;
const COMMITS: usize = 10_000;
