//! The hosts that relays list, which are followed at the same time.

use std::convert::Infallible;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use ::serve::{AcceptedDomain, Crawl};
use clap::Args;
use net::egress::EgressPolicy;
use net::firehose::{AddedHost, HostRole, MoreHosts};
use net::hosts::parse_host_url;
use net::http::Url;
use net::xrpc::{ListedHost, PaceOptions, PacedClient};
use tokio::time::sleep;

use crate::failure::Failure;
use crate::log::{self, Level};
use crate::network::Network;
use crate::stream::{SOURCE, StreamArgs};

/// Several hosts at the same time.
#[derive(Debug, Args)]
pub(crate) struct CrawlArgs {
    /// Follow all hosts of --host at the same time, not one of them.
    #[arg(long, help_heading = SOURCE)]
    all_hosts: bool,
    /// Follow the hosts that this relay lists (listHosts), at the same time, and ask for its list again every hour. Without
    /// --host, they alone are followed. May be repeated.
    #[arg(long, value_name = "URL", help_heading = SOURCE)]
    crawl: Vec<String>,
    /// Follow hosts of this domain that ask for it (requestCrawl); * for all domains. May be repeated [default: none].
    #[arg(long, value_name = "DOMAIN", help_heading = SOURCE)]
    accept_crawl: Vec<String>,
    /// Maximum number of events a second that are read from each of these hosts.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RATE, help_heading = SOURCE)]
    host_events: NonZero<u32>,
}

/// The hosts that are added to a run.
pub(super) struct Crawler {
    pub(super) more: MoreHosts,
    pub(super) crawl: Arc<Crawl>,
    relays: Vec<Url>,
    client: PacedClient,
    policy: EgressPolicy,
}

impl CrawlArgs {
    /// The crawler, if there is anything to add. Of the hosts of the stream, the first stays in its arguments.
    pub(super) fn crawler(&self, stream: &mut StreamArgs) -> Result<Option<Crawler>, Failure> {
        if !self.all_hosts && self.crawl.is_empty() && self.accept_crawl.is_empty() {
            return Ok(None);
        }
        let relays = self.crawl.iter().map(|host| url("--crawl", host));
        let relays: Vec<Url> = relays.collect::<Result<_, _>>()?;
        let domain = |name: &String| {
            let failure = || Failure::Usage(format!("--accept-crawl {name}: no domain, and not *"));
            AcceptedDomain::parse(name).ok_or_else(failure)
        };
        let accepted = self.accept_crawl.iter().map(domain).collect::<Result<_, _>>()?;
        let network = Network::open(&stream.network, &relays)?;
        let more = MoreHosts::new(self.host_events);
        if self.all_hosts {
            for host in stream.host.drain(stream.host.len().min(1)..) {
                more.add(AddedHost { url: url("--host", &host)?, role: HostRole::Relay });
            }
        }
        if relays.is_empty() && self.accept_crawl.is_empty() {
            more.complete();
        }
        let policy = network.http.egress_policy();
        let crawl = Arc::new(Crawl::new(more.clone(), policy, accepted));
        let client = PacedClient::new(network.xrpc, &PaceOptions::default());
        Ok(Some(Crawler { more, crawl, relays, client, policy }))
    }
}

impl Crawler {
    /// Asks the relays for their hosts, every hour; one that does not answer, again after a minute.
    pub(super) async fn run(&self) -> Infallible {
        loop {
            let mut interval = INTERVAL;
            for relay in &self.relays {
                match backfill::relay_hosts(&self.client, relay, self.policy).await {
                    Ok(hosts) => self.add(relay, hosts),
                    Err(failure) => {
                        interval = RETRY_INTERVAL;
                        let why = failure.message().unwrap_or_default();
                        let _ = log::print(Level::Warning, &format!("no list of hosts: {why}"));
                    }
                }
            }
            sleep(interval).await;
        }
    }

    fn add(&self, relay: &Url, hosts: Vec<(Url, ListedHost)>) {
        let hosts = hosts.iter().filter(|(_, host)| host.status.as_deref() != Some("banned"));
        let added = hosts.filter(|(url, _)| self.crawl.add_listed(url)).count();
        if added > 0 {
            let all = self.crawl.len();
            let text = format!("{relay}: {added} hosts added, {all} are followed at the same time");
            let _ = log::print(Level::Info, &text);
        }
    }
}

fn url(option: &str, host: &str) -> Result<Url, Failure> {
    parse_host_url(host).map_err(|error| Failure::Usage(format!("{option} {host}: {error}")))
}

/// Events a second of one host.
const DEFAULT_RATE: NonZero<u32> = NonZero::new(2_000).expect("it is not 0");

/// Time after which relays are asked again.
const INTERVAL: Duration = Duration::from_secs(3_600);
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
