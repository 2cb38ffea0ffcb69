//! The output of `wireproof sim serve`: the network at the start, its traffic at the end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use simnet::servers::{AccountChange, HostConditions, Server, Simulation};

use super::args::server_name;

/// The servers and accounts of the network, and commands to try.
#[derive(Serialize)]
pub(super) struct NetworkSummary {
    seed: u64,
    servers: Vec<ServerSummary>,
    account_count: usize,
    /// The first accounts.
    accounts: Vec<AccountSummary>,
    /// The accounts whose repositories are of the hostile set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hostile_accounts: Vec<HostileAccount>,
    commands: Vec<String>,
}

#[derive(Serialize)]
struct ServerSummary {
    /// The name, as in `--fault`.
    server: String,
    host: String,
    #[serde(skip)]
    title: String,
    /// The condition of a PDS, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'static str>,
}

#[derive(Serialize)]
struct HostileAccount {
    did: String,
    /// The code of the rule that its repository breaks.
    code: &'static str,
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
            condition: condition(network, server),
        };
        let hostile = network.hostile_repositories().iter();
        let hostile = hostile.filter_map(|case| {
            let (did, code) = (case.did.clone(), case.code?);
            Some(HostileAccount { did, code })
        });
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
            hostile_accounts: hostile.collect(),
            commands: commands(network),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let line = |server: &ServerSummary| {
            let condition = server.condition.map(|name| format!("  {name}")).unwrap_or_default();
            format!("{:<13}  {}{condition}\n", server.title, server.host)
        };
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

/// The condition of a PDS, where they differ.
fn condition(network: &Simulation, server: Server) -> Option<&'static str> {
    match (server, network.spec().conditions) {
        (Server::Pds(number), HostConditions::Varied) => {
            Some(network.host_conditions()[number].name())
        }
        _ => None,
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
    /// Changes of accounts.
    changes: Vec<ChangeCount>,
}

#[derive(Serialize)]
struct ServerTraffic {
    server: String,
    #[serde(skip)]
    title: String,
    /// Events emitted.
    events: u64,
    /// The condition of a PDS, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'static str>,
    /// Requests by path, the most frequent first.
    requests: Vec<PathCount>,
    /// Answers by HTTP status.
    answers: Vec<StatusCount>,
    /// The largest number of requests within any second.
    peak_per_s: u64,
}

#[derive(Serialize)]
struct StatusCount {
    status: u16,
    count: u64,
}

#[derive(Serialize)]
struct ChangeCount {
    change: &'static str,
    count: u64,
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
    pub(super) fn new(
        network: &Simulation,
        time: Duration,
        changes: &BTreeMap<AccountChange, u64>,
    ) -> Self {
        let change = |(change, count): (&AccountChange, &u64)| ChangeCount {
            change: change.name(),
            count: *count,
        };
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
            changes: changes.iter().map(change).collect(),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let Self { seconds, connections, frames, servers, faults, changes } = self;
        let mut text =
            format!("\n{seconds:.1} s, {connections} connections, {frames} frames sent\n");
        for ServerTraffic { title, events, requests, answers, peak_per_s, condition, .. } in servers
        {
            let total: u64 = answers.iter().map(|answer| answer.count).sum();
            text += &format!("{title:<13}  {events} events, {total} requests");
            if total > 0 {
                text += &format!(", at most {peak_per_s} a second");
            }
            text += &condition.map_or_else(String::new, |name| format!(" ({name})"));
            text.push('\n');
            for StatusCount { status, count } in answers.iter().filter(|of| of.status != 200) {
                text += &format!("{count:>13}  answers {status}\n");
            }
            for PathCount { path, count } in requests.iter().take(SHOWN) {
                text += &format!("{count:>13}  {path}\n");
            }
        }
        for FaultCount { title, fault, count, .. } in faults {
            text += &format!("{title:<13}  {fault} happened {count} times\n");
        }
        for ChangeCount { change, count } in changes {
            text += &format!("{count:>13}  accounts {change}\n");
        }
        text
    }
}

impl ServerTraffic {
    fn new(network: &Simulation, server: Server) -> Self {
        let traffic = network.server_traffic(server);
        let mut requests: Vec<_> =
            traffic.requests.into_iter().map(|(path, count)| PathCount { path, count }).collect();
        requests.sort_by(|a, b| (Reverse(a.count), &a.path).cmp(&(Reverse(b.count), &b.path)));
        let (title, events) = (server.to_string(), network.sent_count(server));
        let answers = traffic.answers.into_iter();
        Self {
            server: server_name(server),
            title,
            events,
            condition: condition(network, server),
            requests,
            answers: answers.map(|(status, count)| StatusCount { status, count }).collect(),
            peak_per_s: traffic.peak_per_s,
        }
    }
}

/// Accounts and paths of a server that are shown.
const SHOWN: usize = 5;
