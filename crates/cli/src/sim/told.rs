//! What is told of a network: where its servers are and what to try when they open, and in the end
//! what they were asked and did.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use simnet::servers::{Server, Simulation};

/// What is told when the servers are open.
#[derive(Serialize)]
pub(crate) struct Opening {
    seed: u64,
    plc: String,
    pds: Vec<String>,
    relays: Vec<String>,
    jetstreams: Vec<String>,
    /// How many accounts there are; a few of them follow.
    account_count: usize,
    accounts: Vec<Account>,
    /// What to try in another terminal.
    commands: Vec<String>,
}

#[derive(Serialize)]
struct Account {
    handle: String,
    did: String,
    signing_key: String,
}

impl Opening {
    pub(crate) fn of(sim: &Simulation) -> Self {
        let spec = sim.spec();
        let urls = |count: usize, server: fn(usize) -> Server| {
            (0..count).map(|number| sim.url(server(number))).collect()
        };
        let account_count = sim.account_count();
        Self {
            seed: spec.seed,
            plc: sim.url(Server::Plc),
            pds: urls(spec.pds, Server::Pds),
            relays: urls(spec.relays, Server::Relay),
            jetstreams: urls(spec.jetstreams, Server::Jetstream),
            account_count,
            accounts: (0..account_count.min(SHOWN)).map(|at| Account::of(sim, at)).collect(),
            commands: commands(sim),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("PLC directory  {}\n", self.plc);
        let servers =
            [("PDS", &self.pds), ("relay", &self.relays), ("Jetstream", &self.jetstreams)];
        for (name, urls) in servers {
            for (number, url) in urls.iter().enumerate() {
                text += &format!("{:<13}  {url}\n", format!("{name} {number}"));
            }
        }
        let handles: Vec<&str> = self.accounts.iter().map(|account| &*account.handle).collect();
        let more = if self.account_count > handles.len() { " …" } else { "" };
        text +=
            &format!("{:<13}  {}: {}{more}\n", "accounts", self.account_count, handles.join(" "));
        text += "\nTo try in another terminal:\n";
        self.commands.iter().for_each(|command| text += &format!("  {command}\n"));
        text + "\nCtrl-C ends the network.\n"
    }
}

impl Account {
    fn of(sim: &Simulation, number: usize) -> Self {
        let account = sim.account(number);
        Self { handle: account.handle, did: account.did, signing_key: account.signing_key }
    }
}

/// Commands that work against this network.
fn commands(sim: &Simulation) -> Vec<String> {
    let handle = sim.account(0).handle;
    let (plc, port) = (sim.url(Server::Plc), sim.port(Server::Pds(0)));
    let network = format!("--plc {plc} --development-port {port}");
    let spec = sim.spec();
    let mut commands = vec![
        format!("wireproof resolve {handle} {network}"),
        format!("wireproof verify {handle} {network}"),
    ];
    if spec.relays > 0 {
        let hosts = (0..spec.relays).map(|number| sim.url(Server::Relay(number)));
        let hosts: String = hosts.map(|url| format!(" --host {url}")).collect();
        commands.push(format!("wireproof capture --seconds 5 --out captured{hosts} {network}"));
        commands.push(format!("wireproof follow --verify --state state{hosts} {network}"));
    }
    if spec.jetstreams > 0 {
        let url = sim.url(Server::Jetstream(0));
        commands.push(format!("wireproof follow --jetstream --host {url} {network}"));
    }
    commands
}

/// What is told in the end.
#[derive(Serialize)]
pub(crate) struct Counts {
    seconds: f64,
    connections: u64,
    /// Frames that went to readers, of all streams.
    frames: u64,
    servers: Vec<Served>,
    faults: Vec<Fired>,
}

#[derive(Serialize)]
struct Served {
    server: String,
    /// How many events it told, to whoever listened.
    told: u64,
    /// How often each path was asked for.
    requests: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Fired {
    server: String,
    fault: &'static str,
    fired: u64,
}

impl Counts {
    pub(crate) fn of(sim: &Simulation, time: Duration) -> Self {
        let served = |server: Server| Served {
            server: server.to_string(),
            told: sim.sent_count(server),
            requests: sim.request_counts(server),
        };
        let faults = sim.faults().counts().into_iter();
        Self {
            seconds: (time.as_secs_f64() * 10.0).round() / 10.0,
            connections: sim.connection_count(),
            frames: sim.frames_sent(),
            servers: sim.spec().servers().into_iter().map(served).collect(),
            faults: faults
                .map(|(server, fault, fired)| Fired {
                    server: server.to_string(),
                    fault: fault.name(),
                    fired,
                })
                .collect(),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let Self { seconds, connections, frames, servers, faults } = self;
        let mut text =
            format!("\n{seconds:.1} s, {connections} connections, {frames} frames sent\n");
        for Served { server, told, requests } in servers {
            let asked: u64 = requests.values().sum();
            text += &format!("{server:<13}  {told} events, {asked} requests\n");
            // Repositories and documents are of many paths; the most asked for say enough.
            let mut most: Vec<_> = requests.iter().collect();
            most.sort_by_key(|(path, count)| (std::cmp::Reverse(**count), *path));
            most.into_iter()
                .take(SHOWN)
                .for_each(|(path, count)| text += &format!("{count:>13}  {path}\n"));
        }
        for Fired { server, fault, fired } in faults {
            text += &format!("{server:<13}  {fault} happened {fired} times\n");
        }
        text
    }
}

/// How many accounts, and how many paths of a server, are shown.
const SHOWN: usize = 5;
