//! `wireproof bench claims`: proves the checks that peers claim.

use std::time::Duration;

use ::bench::{Claims, Plan, RunnerCommand, VariantClaims, prove_claims};

use super::args::ClaimsArgs;
use super::progress::RunProgress;
use crate::failure::Failure;
use crate::failures;
use crate::output::Output;

pub(super) fn run(args: &ClaimsArgs, own: RunnerCommand, output: Output) -> Result<(), Failure> {
    let plan = plan(args, own);
    let mut progress = RunProgress::new(&plan);
    let claims = prove_claims(&plan, &mut |step| progress.show(&step));
    progress.end();
    let claims = claims.map_err(failures::of_bench)?;
    output.text(&report(&claims))?;
    if claims.has_faults() {
        Err(Failure::Refused("a claim is false; the lines above name it".to_owned()))
    } else {
        Ok(())
    }
}

fn plan(args: &ClaimsArgs, own: RunnerCommand) -> Plan {
    let default = Plan::default();
    Plan {
        peers: args.peers.clone(),
        runners: args.runners.clone().or(default.runners),
        work_dir: args.work_dir.clone().unwrap_or(default.work_dir),
        case_limit: Duration::from_secs(args.case_limit.into()),
        own: Some(own),
        ..default
    }
}

fn report(claims: &Claims) -> String {
    let unavailable = claims
        .unavailable
        .iter()
        .map(|peer| format!("not available: {}: {}\n", peer.peer, peer.reason));
    claims.variants.iter().map(lines).chain(unavailable).collect()
}

fn lines(claims: &VariantClaims) -> String {
    let VariantClaims { peer, task, variant, proved, faults, .. } = claims;
    let mut lines = format!("{peer} {} {variant}: {proved} proved\n", task.name());
    for fault in faults {
        lines.push_str(&format!("  fault: {fault}\n"));
    }
    lines
}
