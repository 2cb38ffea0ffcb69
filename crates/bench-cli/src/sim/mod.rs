//! `wireproof sim serve`: serves a simulated network until SIGINT or SIGTERM.

mod args;
mod labeler;
mod nostr;
mod summary;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use simnet::hostile::{Case, CaseSet, Spec};
use simnet::servers::{AccountChange, AccountChanges, Attack, Simulation};
use tokio::runtime::Builder;
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::Failure;
use crate::interrupt::Signals;
use crate::output::Output;
use crate::progress::ProgressLine;
use args::ServeArgs;
use summary::{NetworkSummary, TrafficSummary};

pub(crate) use args::SimCommand;

pub(crate) fn run(command: &SimCommand, output: Output) -> Result<(), Failure> {
    match command {
        SimCommand::Serve(args) => serve_network(args, output),
        SimCommand::Labeler(args) => labeler::run(args, output),
        SimCommand::Nostr(args) => nostr::run(args, output),
    }
}

fn serve_network(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    check_faults(args)?;
    let network = open(args)?;
    for fault in &args.faults {
        network.faults().enable(fault.server, fault.fault, fault.schedule);
    }
    let since = Instant::now();
    // From here on a signal is the regular end.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _runtime = runtime.enter();
        Signals::listen()?
    };
    print(args.json, &NetworkSummary::new(&network), NetworkSummary::to_text, output)?;
    let hostility = args.hostile.then(|| Hostility::new(args));
    let mut changes = Changes::new(args);
    runtime.block_on(serve(&network, hostility, &mut changes, signals));
    let traffic = TrafficSummary::new(&network, since.elapsed(), &changes.made);
    print(args.json, &traffic, TrafficSummary::to_text, output)
}

fn check_faults(args: &ServeArgs) -> Result<(), Failure> {
    let servers = args.to_spec().servers();
    match args.faults.iter().find(|fault| !servers.contains(&fault.server)) {
        Some(fault) => Err(Failure::Usage(format!("--fault: there is no {}", fault.server))),
        None => Ok(()),
    }
}

fn open(args: &ServeArgs) -> Result<Simulation, Failure> {
    let mut line = ProgressLine::new();
    line.step(format!("generating {} accounts and {} commits", args.accounts, args.prepared));
    let network = Simulation::start(args.to_spec());
    line.end();
    network.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            let port = args.port;
            Failure::Local(format!("a port from {port} on is in use; --port 0 takes free ports"))
        }
        _ => Failure::Local(format!("opening the servers: {error}")),
    })
}

/// Serves until a signal. Once a second it is hostile if requested, and an account changes while there are changes left.
async fn serve(
    network: &Simulation,
    mut hostility: Option<Hostility>,
    changes: &mut Changes,
    mut signals: Signals,
) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = signals.next() => return,
            _ = ticks.tick(), if hostility.is_some() || changes.left > 0 => {
                hostility.iter_mut().for_each(|hostility| hostility.next(network));
                changes.next(network);
            }
        }
    }
}

/// The changes of `--changes`: one change of an account at a time.
struct Changes {
    sequence: AccountChanges,
    left: u32,
    made: BTreeMap<AccountChange, u64>,
}

impl Changes {
    fn new(args: &ServeArgs) -> Self {
        let sequence = AccountChanges::new(args.seed);
        Self { sequence, left: args.changes, made: BTreeMap::new() }
    }

    fn next(&mut self, network: &Simulation) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        if let Some(change) = self.sequence.make_next(network) {
            *self.made.entry(change).or_default() += 1;
        }
    }
}

/// The attacks of `--hostile`: a hostile case and an attack at a time.
struct Hostility {
    cases: HostileCases,
    attacks: std::iter::Cycle<std::slice::Iter<'static, Attack>>,
    attack_events: u64,
}

impl Hostility {
    fn new(args: &ServeArgs) -> Self {
        let (cases, attacks) = (HostileCases::new(args.seed), Attack::ALL.iter().cycle());
        Self { cases, attacks, attack_events: args.attack_events.into() }
    }

    fn next(&mut self, network: &Simulation) {
        network.serve_case(&self.cases.next());
        self.attacks.next().iter().for_each(|attack| network.attack(**attack, self.attack_events));
    }
}

/// An endless sequence of hostile cases: one set after another, with their own accounts.
struct HostileCases {
    seed: u64,
    cases: std::vec::IntoIter<Case>,
}

impl HostileCases {
    fn new(seed: u64) -> Self {
        Self { seed, cases: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Case {
        loop {
            if let Some(case) = self.cases.next() {
                return case;
            }
            self.cases = CaseSet::generate(&Spec { seed: self.seed }).cases().to_vec().into_iter();
            self.seed = self.seed.wrapping_add(1);
        }
    }
}

/// Prints one line of JSON, or text, and flushes it.
fn print<T: Serialize>(
    json: bool,
    value: &T,
    to_text: impl FnOnce(&T) -> String,
    output: Output,
) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string(value).map_err(io::Error::from)? + "\n"
    } else {
        to_text(value)
    };
    output.text(&text)?;
    Ok(output.stdout().flush()?)
}

const TICK: Duration = Duration::from_secs(1);
