//! `cargo xtask speed serve`: `serve` next to the relay of indigo and the official Jetstream, for the same clients of networks of
//! the same seed.
//!
//! | row | source | clients |
//! |---|---|---|
//! | relay, `serve` frames | all PDSs at the same time | `subscribeRepos` |
//! | Jetstream, `serve` JSON | a relay | `/subscribe` |
//!
//! Last, `serve` with one client and `follow --verify` read prepared commits as fast as they can, in turn, from an empty state.
//!
//! The network makes commits at a constant rate. Measured is the processor time of the server alone, while every client receives
//! a number of messages, after a warm-up in which it looks up the keys of accounts.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use super::relay::Relay;
use super::running::{Running, free_address};
use super::table;
use crate::interop;
use crate::process::{self, Usage};

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Number of accounts.
    #[arg(long, default_value_t = 20_000)]
    accounts: u32,
    /// Numbers of clients, with commits a second, and messages for every client. The others are not measured with `:alone`.
    #[arg(long, value_delimiter = ',')]
    #[arg(default_values = ["1:1000:20000", "100:600:6000", "1000:60:1000", "1000:1000:8000:alone"])]
    loads: Vec<String>,
    /// Number of passes of each row.
    #[arg(long, default_value_t = 3)]
    passes: u32,
    /// Seconds before the measurement.
    #[arg(long, default_value_t = 10)]
    warm_up: u64,
    /// Measure only how fast prepared commits are read.
    #[arg(long)]
    intake: bool,
    /// Write the tables into docs/measured.md.
    #[arg(long)]
    publish: bool,
}

/// Measures all servers in turn, by load.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let programs = Programs {
        wireproof: program.to_owned(),
        relay: interop::build_relay()?,
        jetstream: interop::build_jetstream()?,
        client: super::example_of("wireproof-serve", "stream_clients")?,
    };
    if !options.intake {
        let rows = programs.rows(options)?;
        table::report("serve", &to_markdown(&rows), options.publish)?;
    }
    table::report("serve-intake", &programs.intakes(options)?, options.publish)
}

/// How many clients receive how many messages, at a rate of commits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    clients: u64,
    rate: u64,
    messages: u64,
    /// Whether the other servers cannot keep up on this machine.
    is_alone: bool,
}

impl Load {
    fn parse(text: &str) -> Result<Self, String> {
        let (numbers, is_alone) = match text.strip_suffix(":alone") {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let numbers: Option<Vec<u64>> = numbers.split(':').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[clients, rate, messages]) => Ok(Self { clients, rate, messages, is_alone }),
            _ => Err(format!("{text}: CLIENTS:RATE:MESSAGES or CLIENTS:RATE:MESSAGES:alone")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Server {
    Relay,
    Frames,
    Jetstream,
    Json,
}

impl Server {
    const ALL: [Self; 4] = [Self::Relay, Self::Frames, Self::Jetstream, Self::Json];

    fn name(self) -> &'static str {
        match self {
            Self::Relay => "indigo's relay, frames",
            Self::Frames => "`serve`, frames",
            Self::Jetstream => "Jetstream, JSON",
            Self::Json => "`serve`, JSON",
        }
    }

    fn is_ours(self) -> bool {
        self.other().is_some()
    }

    /// The row that it is compared with.
    fn other(self) -> Option<Self> {
        match self {
            Self::Frames => Some(Self::Relay),
            Self::Json => Some(Self::Jetstream),
            Self::Relay | Self::Jetstream => None,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Relay | Self::Frames => "/xrpc/com.atproto.sync.subscribeRepos",
            Self::Jetstream | Self::Json => "/subscribe",
        }
    }
}

/// The costs of one pass.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// Processor seconds of the server for a million messages.
    cost: f64,
    peak_bytes: u64,
    median_ms: f64,
    p99_ms: f64,
}

struct Row {
    load: Load,
    server: Server,
    passes: Vec<Pass>,
}

impl Row {
    fn median(&self, of: impl Fn(&Pass) -> f64) -> f64 {
        median(self.passes.iter().map(of).collect())
    }
}

/// Paths of programs.
struct Programs {
    wireproof: String,
    relay: PathBuf,
    jetstream: PathBuf,
    client: String,
}

impl Programs {
    /// The passes of all servers, in turn.
    fn rows(&self, options: &Options) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        for load in &options.loads {
            let load = Load::parse(load)?;
            let servers = Server::ALL.into_iter().filter(|of| !load.is_alone || of.is_ours());
            let mut costs: Vec<_> = servers.map(|server| (server, Vec::new())).collect();
            for _ in 0..options.passes {
                for (server, passes) in &mut costs {
                    let pass = self.pass(*server, &load, options)?;
                    eprintln!("{} clients, {}: {pass:?}", load.clients, server.name());
                    passes.push(pass);
                }
            }
            rows.extend(costs.into_iter().map(|(server, passes)| Row { load, server, passes }));
        }
        Ok(rows)
    }

    fn pass(&self, server: Server, load: &Load, options: &Options) -> Result<Pass, String> {
        let (accounts, rate) = (options.accounts.to_string(), load.rate.to_string());
        let size = ["--prepared", "0", "--accounts", &accounts, "--records", "5", "--rate", &rate];
        // Without handles, which the relay would look up in a DNS that does not know them.
        let faults = ["--fault", "plc:no-handle:always"];
        let network = Relay::start(&self.wireproof, &[&size[..], &faults].concat())?;
        let folder = process::empty_folder("speed")?;
        let address = free_address()?.to_string();
        let mut command = match server {
            Server::Relay => self.relay(&network, &folder, &address)?,
            Server::Frames => {
                let mut serve = self.serve(&address);
                serve.arg("--all-hosts").args(["--host", &network.pds.join(",")]);
                serve
            }
            Server::Json => {
                let mut serve = self.serve(&address);
                serve.args(["--host", &network.host]);
                serve
            }
            Server::Jetstream => self.jetstream(&network, &folder, &address),
        };
        if matches!(server, Server::Frames | Server::Json) {
            network.add_directory(&mut command);
        }
        command.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(process::start(&mut command)?);
        std::thread::sleep(Duration::from_secs(options.warm_up));
        running.check()?;
        let pass = self.clients(&mut running, &address, server, load)?;
        process::terminate(&mut running.0)?;
        network.end()?;
        Ok(pass)
    }

    /// Events a second from the start of a process to the last of the prepared commits, in a table.
    fn intakes(&self, options: &Options) -> Result<String, String> {
        let (accounts, commits) = (options.accounts.to_string(), PREPARED.to_string());
        let size =
            ["--prepared", &commits, "--accounts", &accounts, "--records", "5", "--rate", "none"];
        let network = Relay::start(&self.wireproof, &size)?;
        let (mut follow, mut serve) = (Vec::new(), Vec::new());
        for _ in 0..options.passes {
            follow.push(self.follow_all(&network)?);
            serve.push(self.serve_all(&network)?);
            eprintln!("follow {follow:.0?}, serve {serve:.0?} events/s");
        }
        network.end()?;
        let ratio = median(serve.clone()) / median(follow.clone());
        let rows = [("`follow --verify`", follow, 1.0), ("`serve`", serve, ratio)];
        let rows = rows.map(|(name, rates, ratio)| {
            let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            format!("| {name} | {} | {ratio:.2} |\n", rates.join(", "))
        });
        Ok(format!("| intake | events/s per pass | ratio |\n|---|---:|---:|\n{}", rows.concat()))
    }

    fn follow_all(&self, network: &Relay) -> Result<f64, String> {
        let folder = process::empty_folder("speed")?;
        let mut follow = network.follow(&self.wireproof);
        follow.args(["--cursor", "oldest", "--state", "state"]).current_dir(&folder);
        follow.stdout(Stdio::piped()).stderr(Stdio::null());
        let since = Instant::now();
        let mut follow = Running(process::start(&mut follow)?);
        let output = follow.0.stdout.take().ok_or("no pipe")?;
        let lines = BufReader::new(output).split(b'\n').take(PREPARED as usize).count();
        // It is killed: at its output, nobody reads any more.
        rate(lines as u64, since)
    }

    fn serve_all(&self, network: &Relay) -> Result<f64, String> {
        let (folder, address) = (process::empty_folder("speed")?, free_address()?.to_string());
        let mut serve = self.serve(&address);
        serve.args(["--host", &network.host, "--cursor", "oldest"]).current_dir(&folder);
        network.add_directory(&mut serve);
        let since = Instant::now();
        let mut serve = Running(process::start(serve.stdout(Stdio::null()).stderr(Stdio::null()))?);
        let path = format!("{}?cursor=0", Server::Frames.path());
        let commits = PREPARED.to_string();
        process::run(&mut process::command(&self.client, &[&address, &path, "1", &commits]))?;
        process::terminate(&mut serve.0)?;
        rate(PREPARED, since)
    }

    /// Runs the clients, and measures the server meanwhile.
    fn clients(
        &self,
        server: &mut Running,
        address: &str,
        of: Server,
        load: &Load,
    ) -> Result<Pass, String> {
        let (clients, messages) = (load.clients.to_string(), load.messages.to_string());
        let mut client = process::command(&self.client, &[address, of.path(), &clients, &messages]);
        let mut client = Running(process::start(client.stdout(Stdio::piped()))?);
        let output = client.0.stdout.take().ok_or("no pipe")?;
        let mut lines = BufReader::new(output).lines();
        let mut line = || lines.next().transpose().ok().flatten().ok_or("the clients ended early");
        line()?;
        let before = Usage::of(server.0.id());
        let result: Value = serde_json::from_str(&line()?).map_err(|error| error.to_string())?;
        server.check()?;
        let after = Usage::of(server.0.id());
        let time = after.processor_time().saturating_sub(before.processor_time());
        let millis = |name: &str| result[name].as_f64().unwrap_or(f64::NAN);
        Ok(Pass {
            cost: time.as_secs_f64() * 1e6 / (load.clients * load.messages) as f64,
            peak_bytes: after.peak_bytes,
            median_ms: millis("median_ms"),
            p99_ms: millis("p99_ms"),
        })
    }

    fn serve(&self, address: &str) -> Command {
        let mut serve = process::command(&self.wireproof, &["serve", "--state", "state"]);
        serve.args(["--listen", address, "--clients", "2000", "--clients-per-address", "2000"]);
        serve
    }

    /// The relay of indigo, with the PDSs in its database: it connects to no private address that a request names.
    fn relay(&self, network: &Relay, folder: &Path, address: &str) -> Result<Command, String> {
        let database = folder.join("relay.sqlite");
        let command = || {
            let mut relay = Command::new(&self.relay);
            relay.args(["--plc-host", &network.plc, "serve", "--bind", address]);
            relay.args(["--db-url", &format!("sqlite://{}", database.display())]);
            relay.args(["--metrics-listen", "127.0.0.1:0", "--persist-dir", "events"]);
            relay.current_dir(folder);
            relay
        };
        let mut first = command();
        let mut running =
            Running(process::start(first.stdout(Stdio::null()).stderr(Stdio::null()))?);
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(address).is_err() {
            running.check()?;
            if std::time::Instant::now() > deadline {
                return Err("the relay does not open its port".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        process::terminate(&mut running.0)?;
        let mut introduce = process::command("python3", &["-c", INTRODUCE]);
        let hosts = network.pds.iter().filter_map(|url| url.split_once("://"));
        process::run(introduce.arg(&database).args(hosts.map(|(_, host)| host)))?;
        Ok(command())
    }

    fn jetstream(&self, network: &Relay, folder: &Path, address: &str) -> Command {
        let source = network.host.replacen("http", "ws", 1);
        let mut jetstream = Command::new(&self.jetstream);
        jetstream.env("JETSTREAM_WS_URL", format!("{source}/xrpc/com.atproto.sync.subscribeRepos"));
        jetstream.env("JETSTREAM_LISTEN_ADDR", address);
        jetstream.env("JETSTREAM_METRICS_LISTEN_ADDR", "127.0.0.1:0");
        jetstream.env("JETSTREAM_DATA_DIR", folder.join("data"));
        jetstream.env("JETSTREAM_MAX_SUB_RATE", "100000").env("JETSTREAM_WORKER_COUNT", "2");
        jetstream
    }
}

/// The table in Markdown.
fn to_markdown(rows: &[Row]) -> String {
    let mut text =
        "| clients | commits a second | server | processor seconds for 1,000,000 messages | ratio | memory at most, MiB | delay: median; 99 % within, ms |\n\
         |---:|---:|---|---:|---:|---:|---:|\n"
            .to_owned();
    for row in rows {
        let of = |server| rows.iter().find(|of| of.load == row.load && of.server == server);
        let cost = row.median(|pass| pass.cost);
        let other = row.server.other().and_then(of);
        let ratio = other.map(|other| {
            format!("{:.2} × {}", cost / other.median(|pass| pass.cost), other.server.name())
        });
        let delays = match row.server {
            Server::Relay => "–".to_owned(),
            _ => format!(
                "{:.1}; {:.1}",
                row.median(|pass| pass.median_ms),
                row.median(|pass| pass.p99_ms)
            ),
        };
        text += &format!(
            "| {} | {} | {} | {cost:.2} | {} | {:.0} | {delays} |\n",
            row.load.clients,
            row.load.rate,
            row.server.name(),
            ratio.unwrap_or_else(|| "–".to_owned()),
            row.median(|pass| (pass.peak_bytes >> 20) as f64),
        );
    }
    text
}

fn rate(events: u64, since: Instant) -> Result<f64, String> {
    if events < PREPARED {
        return Err(format!("{events} of {PREPARED} events"));
    }
    Ok(events as f64 / since.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Number of commits that are read as fast as possible.
const PREPARED: u64 = 200_000;

/// Adds hosts to a database of the relay: DATABASE HOST…
const INTRODUCE: &str = "\
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
for host in sys.argv[2:]:
    database.execute(\"INSERT INTO host (created_at, updated_at, hostname, no_ssl, account_limit, trusted) \
VALUES (datetime('now'), datetime('now'), ?, 1, 1000000, 1)\", (host,))
database.commit()";
