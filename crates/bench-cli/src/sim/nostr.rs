//! `wireproof sim nostr`: serves a Nostr relay until SIGINT or SIGTERM.

use std::io::{self, Write};

use clap::Args;
use simnet::nostr_events::{Corpus, Spec};
use simnet::nostr_relay::{NostrRelay, Options};
use tokio::runtime::Builder;

use crate::failure::Failure;
use crate::interrupt::Signals;
use crate::output::Output;
use crate::progress::ProgressLine;

#[derive(Debug, Args)]
pub(crate) struct NostrRelayArgs {
    /// Seed of the events.
    #[arg(long, value_name = "N", default_value_t = Spec::default().seed)]
    seed: u64,
    /// Number of stored events.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    events: u32,
    /// Maximum number of stored events in answer to a request.
    #[arg(long, value_name = "N", default_value_t = 500)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,
    /// Port of the relay; 0 takes a free port.
    #[arg(long, value_name = "PORT", default_value_t = 4499)]
    port: u16,
}

pub(super) fn run(args: &NostrRelayArgs, output: Output) -> Result<(), Failure> {
    let relay = open(args)?;
    // From here on a signal is the regular end.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _runtime = runtime.enter();
        Signals::listen()?
    };
    let url = relay.url();
    output.text(&format!(
        "Nostr relay  {url}\nevents       {}\n\nTo try in another terminal:\n  wireproof nostr follow {url} --stored\n\
         \nCtrl-C ends the relay.\n",
        args.events
    ))?;
    output.stdout().flush()?;
    runtime.block_on(signals.next());
    let (connections, messages) = (relay.connection_count(), relay.requests().len());
    output.text(&format!("{connections} connections, {messages} messages received\n"))
}

fn open(args: &NostrRelayArgs) -> Result<NostrRelay, Failure> {
    let mut line = ProgressLine::new();
    line.step(format!("generating {} events", args.events));
    let events = args.events as usize;
    let spec = Spec { seed: args.seed, events, authors: (events * 2 / 5).max(1) };
    let options =
        Options { port: args.port, page_events: args.page as usize, ..Options::default() };
    let relay = NostrRelay::start(Corpus::generate(&spec).events(), options);
    line.end();
    relay.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::Local(format!("port {} is in use; --port 0 takes a free port", args.port))
        }
        _ => Failure::Local(format!("opening the relay: {error}")),
    })
}
