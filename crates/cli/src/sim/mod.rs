//! `wireproof sim serve`: a whole network on this machine, until Ctrl-C.

mod guests;
mod told;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use simnet::servers::Simulation;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::sim::{ServeArgs, SimCommand};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ProgressLine;
use guests::Guests;
use told::{Counts, Opening};

pub(crate) fn run(command: &SimCommand, output: Output) -> Result<(), Failure> {
    let SimCommand::Serve(args) = command;
    serve(args, output)
}

fn serve(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    check_faults(args)?;
    let sim = open(args)?;
    for wanted in &args.faults {
        sim.faults().enable(wanted.server, wanted.fault, wanted.dose);
    }
    let since = Instant::now();
    // From here on an interrupt is the usual end.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = Signals::new(&runtime)?;
    let opening = Opening::of(&sim);
    print(args.json, &opening, Opening::to_text, output)?;
    runtime.block_on(until_interrupted(
        &sim,
        args.hostile.then(|| Guests::new(args.seed)),
        signals,
    ));
    let counts = Counts::of(&sim, since.elapsed());
    print(args.json, &counts, Counts::to_text, output)
}

fn check_faults(args: &ServeArgs) -> Result<(), Failure> {
    let servers = args.to_spec().servers();
    match args.faults.iter().find(|wanted| !servers.contains(&wanted.server)) {
        Some(wanted) => Err(Failure::Usage(format!("--fault: there is no {}", wanted.server))),
        None => Ok(()),
    }
}

fn open(args: &ServeArgs) -> Result<Simulation, Failure> {
    let mut line = ProgressLine::new();
    line.step(format!("making {} accounts and {} commits", args.accounts, args.prepared));
    let sim = Simulation::start(args.to_spec());
    line.end();
    sim.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            let port = args.port;
            Failure::Local(format!("a port from {port} on is taken; --port 0 takes any"))
        }
        _ => Failure::Local(format!("the servers cannot be opened: {error}")),
    })
}

/// Serves, and lets the hostile send what they have, a case at a time.
async fn until_interrupted(sim: &Simulation, mut guests: Option<Guests>, mut signals: Signals) {
    let mut turns = interval(GUEST_EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = signals.next() => return,
            _ = turns.tick(), if guests.is_some() => {
                guests.iter_mut().for_each(|guests| sim.serve_case(&guests.next()));
            }
        }
    }
}

fn print<T: Serialize>(
    json: bool,
    value: &T,
    to_text: impl FnOnce(&T) -> String,
    output: Output,
) -> Result<(), Failure> {
    let text = match json {
        true => serde_json::to_string(value).map_err(io::Error::from)? + "\n",
        false => to_text(value),
    };
    let mut out = output.stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// What asks us to end.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new(runtime: &Runtime) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = runtime.enter();
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    fn new(_: &Runtime) -> io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        // Without a way to be asked, only the end of the process ends it.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// How often an account of the hostile set sends something.
const GUEST_EVERY: Duration = Duration::from_secs(1);
