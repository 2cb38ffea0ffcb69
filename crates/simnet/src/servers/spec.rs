//! Which network to start, and how do its servers behave?

use std::time::Duration;

/// A network on loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything but ports and wall-clock times follows from this number.
    pub seed: u64,
    /// How many accounts there are at first.
    pub accounts: usize,
    /// How many records each of them has then; at least one, the profile.
    pub records: usize,
    /// How many PDSs the accounts are spread over.
    pub pds: usize,
    /// How many relays read all of those, each with sequence numbers of its own.
    pub relays: usize,
    /// How many Jetstreams do.
    pub jetstreams: usize,
    /// Where each kind of server listens.
    pub ports: Ports,
    /// How many events have been told when the servers open: what a cursor of 0 replays.
    pub initial_commits: usize,
    /// How fast accounts go on writing by themselves.
    pub write_rate: WriteRate,
    /// How many events each server keeps for those who come back.
    pub retained_events: usize,
    /// How many events a reader may be behind before it is too slow.
    pub max_backlog: u64,
    /// The ways of the PDSs with cursors.
    pub pds_cursor_policy: CursorPolicy,
    /// The ways of the relays with cursors.
    pub relay_cursor_policy: CursorPolicy,
    /// How often each reader of a stream is pinged.
    pub ping_interval: Duration,
}

impl Default for Spec {
    /// 20 accounts with 60 records each on two PDSs, a relay and a Jetstream, on any ports; nobody
    /// writes before being told to.
    fn default() -> Self {
        Self {
            seed: 4_621_332_152,
            accounts: 20,
            records: 60,
            pds: 2,
            relays: 1,
            jetstreams: 1,
            ports: Ports::default(),
            initial_commits: 0,
            write_rate: WriteRate::Off,
            retained_events: 20_000,
            max_backlog: 20_000,
            pds_cursor_policy: CursorPolicy::REFERENCE_PDS,
            relay_cursor_policy: CursorPolicy::SPECIFIED,
            ping_interval: Duration::from_secs(30),
        }
    }
}

/// The port of the first server of each kind; the next ones have the ports behind it. 0 for any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The PLC directory's.
    pub plc: u16,
    /// The first PDS's.
    pub pds: u16,
    /// The first relay's.
    pub relay: u16,
    /// The first Jetstream's.
    pub jetstream: u16,
}

/// How fast accounts write by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRate {
    /// Not at all.
    Off,
    /// So many commits a second, as far as this machine manages.
    PerSecond(u32),
    /// As fast as every reader reads, and not at all while there is none.
    MatchReaders,
}

/// What a server makes of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorPolicy {
    /// Whether a reader is told the event of its cursor once more.
    pub inclusive: bool,
    /// Whether a cursor that is ahead of the stream ends it with `FutureCursor`. If not, the reader
    /// joins the stream where it is.
    pub rejects_future_cursor: bool,
    /// Whether a cursor that is older than what is kept is answered by `#info` of the name
    /// `OutdatedCursor`. If not, the stream begins with the oldest event, without a word.
    pub reports_outdated_cursor: bool,
}

impl CursorPolicy {
    /// As the specification has it.
    pub const SPECIFIED: Self =
        Self { inclusive: true, rejects_future_cursor: true, reports_outdated_cursor: true };
    /// As the reference PDS does it.
    pub const REFERENCE_PDS: Self = Self { inclusive: false, ..Self::SPECIFIED };
    /// As the relays in use do it.
    pub const DEPLOYED_RELAY: Self =
        Self { inclusive: false, rejects_future_cursor: false, reports_outdated_cursor: false };
}

/// One server of the network; those of a kind are counted from 0.
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

    /// The port that is asked for.
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
