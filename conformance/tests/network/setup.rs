//! A simulated network, and a feed that follows it with short delays.

use std::sync::Arc;
use std::time::Duration;

use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::firehose::{
    Feed, FeedError, FeedItem as Item, FeedOptions as Options, Notice, ReceivedFrame, StartFrom,
    Upstream,
};
use net::hosts::{BackoffOptions, Jitter};
use net::http::{Client, Url};
use net::websocket::{Dialer, SocketOptions};
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

pub(crate) const RELAY: Server = Server::Relay(0);

/// A small network with 40 events to replay.
pub(crate) fn sim(change: impl FnOnce(&mut Spec)) -> Simulation {
    let mut spec = Spec { accounts: 6, records: 20, initial_commits: 40, ..Spec::default() };
    change(&mut spec);
    Simulation::start(spec).expect("ports for a small network")
}

/// The same network with a fault at the relay.
pub(crate) fn sim_with(fault: Fault, schedule: FaultSchedule) -> Simulation {
    let sim = sim(|_| ());
    sim.faults().enable(RELAY, fault, schedule);
    sim
}

pub(crate) fn dialer(reach: EgressPolicy) -> Dialer {
    Dialer::new(Client::new(reach, Arc::new(LoopbackDns)).expect("TLS"))
}

pub(crate) fn url(sim: &Simulation, server: Server, path: &str) -> Url {
    format!("{}{path}", sim.url(server)).parse().expect("a URL")
}

/// Attempts follow each other at once.
pub(crate) const BACKOFF: BackoffOptions = BackoffOptions {
    initial: Duration::from_millis(1),
    max: Duration::from_millis(4),
    reset_after: Duration::from_secs(60),
    max_requested: Duration::from_millis(10),
};

/// From the oldest event on, with little patience.
pub(crate) fn options() -> Options {
    let socket = SocketOptions {
        idle_timeout: Duration::from_millis(500),
        ping_interval: Duration::from_millis(150),
        ..SocketOptions::default()
    };
    let mut options = Options::default();
    options.start = StartFrom::Oldest;
    options.backoff = BACKOFF;
    options.socket = socket;
    options
}

pub(crate) fn feed(sim: &Simulation, servers: &[(Server, Option<u64>)], options: Options) -> Feed {
    let origin = |(server, cursor): &(Server, Option<u64>)| Upstream {
        url: url(sim, *server, ""),
        cursor: *cursor,
    };
    let origins: Vec<Upstream> = servers.iter().map(origin).collect();
    Feed::new(dialer(EgressPolicy::Loopback), &origins, options, Jitter::seeded(7))
}

/// The received frames and notices, and the error that ended the feed.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) arrivals: Vec<ReceivedFrame>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) failure: Option<FeedError>,
}

impl Received {
    /// Follows `feed` until `is_enough`, or it fails.
    pub(crate) async fn until(
        &mut self,
        feed: &mut Feed,
        mut is_enough: impl FnMut(&Self) -> bool,
    ) {
        while !is_enough(self) {
            let next = tokio::time::timeout(PATIENCE, feed.next()).await;
            match next.unwrap_or_else(|_| panic!("nothing more came: {self:?}")) {
                Ok(Item::Frame(arrival)) => self.arrivals.push(arrival),
                Ok(Item::Notice(notice)) => self.notices.push(notice),
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            }
        }
    }

    /// The received sequence numbers.
    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.arrivals.iter().filter_map(|arrival| arrival.seq).collect()
    }

    /// How many notices are such.
    pub(crate) fn count(&self, is_such: impl Fn(&Notice) -> bool) -> usize {
        self.notices.iter().filter(|notice| is_such(notice)).count()
    }

    /// The connections that were made, by their cursors.
    pub(crate) fn cursors(&self) -> Vec<Option<u64>> {
        let cursor = |notice: &Notice| match notice {
            Notice::Connected { cursor, .. } => Some(*cursor),
            _ => None,
        };
        self.notices.iter().filter_map(cursor).collect()
    }
}

/// The sequence numbers that a server has sent.
pub(crate) fn sent(sim: &Simulation, server: Server) -> Vec<u64> {
    sim.sent_events(server).iter().map(|line| line.seq as u64).collect()
}

/// Follows the relay from its oldest event until its last one is received.
pub(crate) async fn follow_to_the_end(sim: &Simulation) -> Received {
    let last = sim.last_seq(RELAY) as u64;
    let mut received = Received::default();
    let mut feed = feed(sim, &[(RELAY, None)], options());
    received.until(&mut feed, |received| received.seqs().contains(&last)).await;
    received
}

/// The timeout for expected events.
const PATIENCE: Duration = Duration::from_secs(30);
