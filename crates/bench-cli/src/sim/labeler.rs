//! `wireproof sim labeler`: serves a labeler until SIGINT or SIGTERM.

use std::io::{self, Write};

use clap::Args;
use simnet::labeler::Labeler;
use tokio::runtime::Builder;

use crate::failure::Failure;
use crate::interrupt::Signals;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct LabelerArgs {
    /// Seed of the labeler's keys.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of labels. The labeler retracts every tenth one.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    labels: u32,
    /// Port of the labeler; 0 takes a free port.
    #[arg(long, value_name = "PORT", default_value_t = 4498)]
    port: u16,
}

pub(super) fn run(args: &LabelerArgs, output: Output) -> Result<(), Failure> {
    let labeler = open(args)?;
    // From here on a signal is the regular end.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _runtime = runtime.enter();
        Signals::listen()?
    };
    let (did, url) = (labeler.did(), labeler.url());
    output.text(&format!(
        "labeler  {did}\nservice  {url}\nlabels   {}\n\nTo try in another terminal:\n  wireproof labels follow {did} --development\n\
         \nCtrl-C ends the labeler.\n",
        args.labels
    ))?;
    output.stdout().flush()?;
    runtime.block_on(signals.next());
    output.text(&format!("{} connections\n", labeler.connection_count()))
}

fn open(args: &LabelerArgs) -> Result<Labeler, Failure> {
    let labeler = Labeler::start_at(args.seed, args.port).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::Local(format!("port {} is in use; --port 0 takes a free port", args.port))
        }
        _ => Failure::Local(format!("opening the labeler: {error}")),
    })?;
    for number in 0..args.labels {
        let (uri, at) = (subject(number), u64::from(number));
        labeler.publish(&[labeler.label(&uri, VALUES[number as usize % VALUES.len()], at)]);
    }
    for number in (0..args.labels).step_by(10) {
        let (uri, at) = (subject(number), u64::from(args.labels + number));
        labeler.publish(&[labeler.negation(&uri, VALUES[number as usize % VALUES.len()], at)]);
    }
    Ok(labeler)
}

/// A record of one of a hundred accounts.
fn subject(number: u32) -> String {
    format!("at://did:web:account{}.example/app.bsky.feed.post/{number}", number % 100)
}

const VALUES: [&str; 3] = ["spam", "rude", "!warn"];
