//! What `wireproof sim serve` prints: the network at the start, its traffic at the end.

use std::cmp::Reverse;
use std::time::Duration;

use serde::Serialize;
use simnet::servers::{Server, Simulation};

use super::args::server_name;

/// The servers and accounts of the network, and commands to try.
#[derive(Serialize)]
pub(super) struct NetworkSummary {
    seed: u64,
    servers: Vec<ServerSummary>,
    account_count: usize,
    /// The first accounts.
    accounts: Vec<AccountSummary>,
    commands: Vec<String>,
}

#[derive(Serialize)]
struct ServerSummary {
    /// The name, as in `--fault`.
    server: String,
    host: String,
    #[serde(skip)]
    title: String,
}

#[derive(Serialize)]
struct AccountSummary {
    did: String,
    handle: String,
    signing_key: String,
}

impl NetworkSummary {
    pub(super) fn new(network: &Simulation) -> Self {
        let server = |server: Server| ServerSummary {
            server: server_name(server),
            host: network.url(server),
            title: server.to_string(),
        };
        let account = |number: usize| {
            let account = network.account(number);
            let (did, handle) = (account.did, account.handle);
            AccountSummary { did, handle, signing_key: account.signing_key }
        };
        let account_count = network.account_count();
        Self {
            seed: network.spec().seed,
            servers: network.spec().servers().into_iter().map(server).collect(),
            account_count,
            accounts: (0..account_count.min(SHOWN)).map(account).collect(),
            commands: commands(network),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let line = |server: &ServerSummary| format!("{:<13}  {}\n", server.title, server.host);
        let mut text: String = self.servers.iter().map(line).collect();
        let handles: Vec<&str> = self.accounts.iter().map(|account| &*account.handle).collect();
        let (count, handles) = (self.account_count, handles.join(" "));
        let more = if count > self.accounts.len() { " …" } else { "" };
        text += &format!("{:<13}  {count}: {handles}{more}\n", "accounts");
        text += "\nTo try in another terminal:\n";
        self.commands.iter().for_each(|command| text += &format!("  {command}\n"));
        text + "\nCtrl-C ends the network.\n"
    }
}

/// Commands that work against this network.
fn commands(network: &Simulation) -> Vec<String> {
    let handle = network.account(0).handle;
    let (plc, port) = (network.url(Server::Plc), network.port(Server::Pds(0)));
    let options = format!("--plc {plc} --development-port {port}");
    let spec = network.spec();
    let mut commands = vec![
        format!("wireproof resolve {handle} {options}"),
        format!("wireproof verify {handle} {options}"),
    ];
    if spec.relays > 0 {
        let hosts = (0..spec.relays).map(|number| network.url(Server::Relay(number)));
        let hosts: String = hosts.map(|url| format!(" --host {url}")).collect();
        commands.push(format!("wireproof capture --seconds 5 --out captured{hosts} {options}"));
        commands.push(format!("wireproof follow --verify --state state{hosts} {options}"));
    }
    if spec.jetstreams > 0 {
        let url = network.url(Server::Jetstream(0));
        commands.push(format!("wireproof follow --jetstream --host {url} {options}"));
    }
    commands
}

/// The traffic of the whole run.
#[derive(Serialize)]
pub(super) struct TrafficSummary {
    seconds: f64,
    connections: u64,
    /// Frames sent on all streams.
    #[serde(rename = "frame_count")]
    frames: u64,
    servers: Vec<ServerTraffic>,
    faults: Vec<FaultCount>,
}

#[derive(Serialize)]
struct ServerTraffic {
    server: String,
    #[serde(skip)]
    title: String,
    /// Events emitted.
    events: u64,
    /// Requests by path, the most frequent first.
    requests: Vec<PathCount>,
}

#[derive(Serialize)]
struct PathCount {
    path: String,
    count: u64,
}

#[derive(Serialize)]
struct FaultCount {
    server: String,
    #[serde(skip)]
    title: String,
    fault: &'static str,
    count: u64,
}

impl TrafficSummary {
    pub(super) fn new(network: &Simulation, time: Duration) -> Self {
        let fault = |(server, fault, count): (Server, simnet::servers::Fault, u64)| FaultCount {
            server: server_name(server),
            title: server.to_string(),
            fault: fault.name(),
            count,
        };
        Self {
            seconds: (time.as_secs_f64() * 10.0).round() / 10.0,
            connections: network.connection_count(),
            frames: network.frames_sent(),
            servers: { network.spec().servers().into_iter() }
                .map(|server| ServerTraffic::new(network, server))
                .collect(),
            faults: network.faults().counts().into_iter().map(fault).collect(),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let Self { seconds, connections, frames, servers, faults } = self;
        let mut text =
            format!("\n{seconds:.1} s, {connections} connections, {frames} frames sent\n");
        for ServerTraffic { title, events, requests, .. } in servers {
            let total: u64 = requests.iter().map(|path| path.count).sum();
            text += &format!("{title:<13}  {events} events, {total} requests\n");
            for PathCount { path, count } in requests.iter().take(SHOWN) {
                text += &format!("{count:>13}  {path}\n");
            }
        }
        for FaultCount { title, fault, count, .. } in faults {
            text += &format!("{title:<13}  {fault} happened {count} times\n");
        }
        text
    }
}

impl ServerTraffic {
    fn new(network: &Simulation, server: Server) -> Self {
        let requests = network.request_counts(server).into_iter();
        let mut requests: Vec<_> =
            requests.map(|(path, count)| PathCount { path, count }).collect();
        requests.sort_by(|a, b| (Reverse(a.count), &a.path).cmp(&(Reverse(b.count), &b.path)));
        let (title, events) = (server.to_string(), network.sent_count(server));
        Self { server: server_name(server), title, events, requests }
    }
}

/// Accounts and paths of a server that are shown.
const SHOWN: usize = 5;
