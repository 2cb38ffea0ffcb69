//! `wireproof resolve`: who is behind a handle or a DID?

use std::io::{self, Write};

use serde::Serialize;

use crate::account::{self, Told};
use crate::args::resolve::ResolveArgs;
use crate::failure::Failure;
use crate::network::{self, Network};
use crate::output::Output;
use crate::stage::Stages;

pub(crate) fn run(args: &ResolveArgs, output: Output) -> Result<(), Failure> {
    let who = account::identifier(&args.who)?;
    let network = Network::open(&args.network)?;
    let mut stages = Stages::default();
    let found = account::find(&network.resolver, who, &mut stages);
    let found = network::runtime()?.block_on(found)?;
    let resolved = Resolved { account: Told::of(&found), stages };
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &resolved).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}\n{}", resolved.account.to_text(), resolved.stages.to_table())?;
    }
    found.must_claim(who)
}

#[derive(Serialize)]
struct Resolved {
    #[serde(flatten)]
    account: Told,
    stages: Stages,
}
