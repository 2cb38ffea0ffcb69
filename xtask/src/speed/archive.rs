//! `cargo xtask speed archive`: the rate of `archive follow` next to `follow` without a destination, and `bench archive`.

use std::path::Path;

use clap::Args;

use super::relay::{PreparedCommits, Relay};
use super::running::free_address;
use super::scraped;
use super::table::{Pass, Table, report};
use crate::process;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    load: PreparedCommits,
    /// Folder of captured data, whose frames of a PDS are archived too.
    #[arg(long, env = "WIREPROOF_FIXTURES")]
    fixtures: Option<String>,
    /// Write the tables into docs/measured.md.
    #[arg(long)]
    publish: bool,
}

/// Measures both in turn, and then forms, proofs and queries.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let (relay, commits) = (options.load.serve(program)?, options.load.commits);
    let mut table = Table::default();
    for _ in 0..options.load.passes {
        table.add("standard output", follow(&relay, program, commits)?);
        table.add("archive", archive(&relay, program, commits)?);
    }
    relay.end()?;
    table.finish("archive-follow", "into", options.publish)?;
    let mut bench = process::command(program, &["bench", "archive"]);
    if let Some(fixtures) = &options.fixtures {
        let pds = Path::new(fixtures).join("pds");
        bench.arg("--frames").arg(pds.join("frames.bin"));
        bench.arg("--keys").arg(pds.join("accounts.json"));
    }
    let text = process::output(&mut bench)?;
    report("archive", &format!("```text\n{text}```\n"), options.publish)
}

fn follow(relay: &Relay, program: &str, commits: u64) -> Result<Pass, String> {
    let (folder, metrics) = (process::empty_folder("speed")?, free_address()?);
    let mut follow = relay.follow(program);
    follow.args(["--cursor", "oldest", "--metrics", &metrics.to_string(), "--state"]);
    follow.arg(folder.join("state")).current_dir(&folder);
    scraped::pass(&mut follow, metrics, commits, |page| {
        scraped::value(page, "wireproof_lines_total")
    })
}

fn archive(relay: &Relay, program: &str, commits: u64) -> Result<Pass, String> {
    let (folder, metrics) = (process::empty_folder("speed")?, free_address()?);
    let mut follow = relay.archive_follow(program);
    follow.args(["--cursor", "oldest", "--metrics", &metrics.to_string(), "--to"]);
    follow.arg(folder.join("archive")).current_dir(&folder);
    scraped::pass(&mut follow, metrics, commits, |page| {
        scraped::value(page, "wireproof_archive_unsealed_events")
            + scraped::value(page, "wireproof_archive_sealed_events_total")
    })
}
