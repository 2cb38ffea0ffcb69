//! The specification of a network: its servers, accounts and behaviour.

use std::time::Duration;

use crate::random::DEFAULT_SEED;

/// The specification of a network on loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The seed of everything but ports and wall-clock times.
    pub seed: u64,
    /// The number of initial accounts.
    pub accounts: usize,
    /// The number of initial records of an account, or the most that one has; at least one, the profile.
    pub records: usize,
    /// How many of these records an account has.
    pub sizes: RepositorySizes,
    /// The number of PDSs.
    pub pds: usize,
    /// The assignment of accounts to PDSs.
    pub placement: Placement,
    /// The conditions of the PDSs.
    pub conditions: HostConditions,
    /// The number of relays, which have their own sequence numbers.
    pub relays: usize,
    /// The number of Jetstreams.
    pub jetstreams: usize,
    /// The ports of the servers.
    pub ports: Ports,
    /// The number of commits before the servers start, which a cursor of 0 replays.
    pub initial_commits: usize,
    /// The rate at which accounts write by themselves.
    pub write_rate: WriteRate,
    /// The number of events that a server retains for replay.
    pub retained_events: usize,
    /// The maximum backlog of a reader in events; beyond it the reader is disconnected.
    pub max_backlog: u64,
    /// Whether version 1 of Jetstreams has times of whole seconds, so that several events have the same one.
    pub jetstream_shared_times: bool,
    /// How far the clocks of all servers and accounts are ahead of this machine's: commits then have
    /// the revisions of this time, not of the simulated one. `None` for revisions of the simulated time.
    pub clock_skew: Option<Duration>,
    /// The handling of cursors by PDSs.
    pub pds_cursor_policy: CursorPolicy,
    /// The handling of cursors by relays.
    pub relay_cursor_policy: CursorPolicy,
    /// The interval of pings to every reader.
    pub ping_interval: Duration,
    /// The limit on requests to every PDS, beyond which it answers 429 until the next window. `None` for no limit.
    pub request_limit: Option<RequestLimit>,
    /// Whether PDSs with a limit say in every answer how many requests it leaves, and until when, as the reference PDS does.
    pub announces_limit: bool,
    /// The hosted archives of the Jetstreams.
    pub archive: HostedArchive,
}

/// The hosted archive of a Jetstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedArchive {
    /// The number of events in a block.
    pub events_per_block: usize,
    /// The number of blocks in a segment.
    pub blocks_per_segment: usize,
    /// The number of ranges of blocks on a page of a plan.
    pub plan_entries: usize,
    /// The token without which requests are refused. `None` if none is needed.
    pub token: Option<String>,
}

impl Default for HostedArchive {
    /// 8 blocks of 64 events in a segment, 100 ranges on a page, no token.
    fn default() -> Self {
        Self { events_per_block: 64, blocks_per_segment: 8, plan_entries: 100, token: None }
    }
}

/// The sizes of repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositorySizes {
    /// All have the same number of records.
    Equal,
    /// Most are small, and a few are large: half of them have fewer than 16 records, one in a hundred more than 4,096. An
    /// account is derived from the seed whenever it is asked for, and kept only from its first change on.
    Realistic,
}

/// The assignment of accounts to PDSs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In turn, so that all have as many.
    InTurn,
    /// At random, with the weight 1/n for the n-th PDS: a few have many accounts, and many have few.
    Uneven,
}

/// The conditions of PDSs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostConditions {
    /// All are [`HostCondition::Steady`](super::HostCondition::Steady).
    Alike,
    /// Every PDS has a [`HostCondition`](super::HostCondition) of its own, by the seed.
    Varied,
}

/// A limit on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit {
    /// The number of requests in a window.
    pub requests: u32,
    /// The length of a window.
    pub window: Duration,
}

impl Default for Spec {
    /// 20 accounts with 60 records each on two PDSs, a relay and a Jetstream, on any free ports; accounts
    /// write only on request.
    fn default() -> Self {
        Self {
            seed: DEFAULT_SEED,
            accounts: 20,
            records: 60,
            sizes: RepositorySizes::Equal,
            pds: 2,
            placement: Placement::InTurn,
            conditions: HostConditions::Alike,
            relays: 1,
            jetstreams: 1,
            ports: Ports::default(),
            initial_commits: 0,
            write_rate: WriteRate::Off,
            retained_events: 20_000,
            max_backlog: 20_000,
            jetstream_shared_times: false,
            clock_skew: None,
            pds_cursor_policy: CursorPolicy::REFERENCE_PDS,
            relay_cursor_policy: CursorPolicy::SPECIFIED,
            ping_interval: Duration::from_secs(30),
            request_limit: None,
            announces_limit: false,
            archive: HostedArchive::default(),
        }
    }
}

/// The port of the first server of every kind; the others have the following ports. 0 for any free port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The port of the PLC directory.
    pub plc: u16,
    /// The port of the first PDS.
    pub pds: u16,
    /// The port of the first relay.
    pub relay: u16,
    /// The port of the first Jetstream.
    pub jetstream: u16,
}

/// The rate at which accounts write by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRate {
    /// No writes.
    Off,
    /// Commits a second, if the machine can sustain it.
    PerSecond(u32),
    /// As fast as the slowest reader reads; no writes without readers.
    MatchReaders,
}

/// The handling of cursors by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorPolicy {
    /// Whether the event at the cursor is sent again.
    pub inclusive: bool,
    /// Whether a cursor ahead of the stream ends it with `FutureCursor`; if not, the stream starts with
    /// the next event.
    pub rejects_future_cursor: bool,
    /// Whether a cursor older than the retained events is answered by `#info` with `OutdatedCursor`; the
    /// stream starts with the oldest retained event in any case.
    pub reports_outdated_cursor: bool,
}

impl CursorPolicy {
    /// The behaviour of the specification.
    pub const SPECIFIED: Self =
        Self { inclusive: true, rejects_future_cursor: true, reports_outdated_cursor: true };
    /// The behaviour of the reference PDS.
    pub const REFERENCE_PDS: Self = Self { inclusive: false, ..Self::SPECIFIED };
    /// The behaviour of deployed relays.
    pub const DEPLOYED_RELAY: Self =
        Self { inclusive: false, rejects_future_cursor: false, reports_outdated_cursor: false };
}

/// One server of the network; servers of a kind are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Server {
    /// The PLC directory.
    Plc,
    /// A PDS.
    Pds(usize),
    /// A relay.
    Relay(usize),
    /// A Jetstream.
    Jetstream(usize),
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plc => write!(f, "PLC directory"),
            Self::Pds(number) => write!(f, "PDS {number}"),
            Self::Relay(number) => write!(f, "relay {number}"),
            Self::Jetstream(number) => write!(f, "Jetstream {number}"),
        }
    }
}

impl Spec {
    /// All servers.
    pub fn servers(&self) -> Vec<Server> {
        let mut servers = vec![Server::Plc];
        servers.extend((0..self.pds).map(Server::Pds));
        servers.extend((0..self.relays).map(Server::Relay));
        servers.extend((0..self.jetstreams).map(Server::Jetstream));
        servers
    }

    /// The requested port.
    pub(super) fn port(&self, server: Server) -> u16 {
        let (first, number) = match server {
            Server::Plc => (self.ports.plc, 0),
            Server::Pds(number) => (self.ports.pds, number),
            Server::Relay(number) => (self.ports.relay, number),
            Server::Jetstream(number) => (self.ports.jetstream, number),
        };
        if first == 0 { 0 } else { first.saturating_add(number as u16) }
    }
}
