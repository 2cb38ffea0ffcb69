//! Mutation testing with one build.
//!
//! A mutant is a small change of the program that tests should notice. Here one build contains all of them, each
//! behind a switch that an environment variable sets when a test starts: a mutant costs a run of the tests that reach
//! it, and no compilation.

#![forbid(unsafe_code)]

mod configuration;
mod harness;
mod report;
mod schemata;
mod sites;
mod subjects;
mod tree;
mod values;

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Parser;

use harness::{Outcome, Reaching};
use report::Results;
use subjects::{SUBJECTS, Subject};
use tree::{Numbered, Source, Tree};

/// Run the tests against every mutant of the crates that decide verdicts.
///
/// Results are kept in target/mutants/results.jsonl: mutants that were caught are not run again until their file
/// changes. Fails if a mutant survives that mutants/README.md does not argue.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask mutants")]
struct Options {
    /// Parts to mutate: codec, verify, crypto, mst, firehose [default: all]
    parts: Vec<String>,
    /// Run only mutants whose name contains this text, or one of several.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Run one of N shares of the mutants, such as 1/4.
    #[arg(long, value_name = "K/N", value_parser = parse_shard)]
    shard: Option<(usize, usize)>,
    /// Print the mutants and end.
    #[arg(long)]
    list: bool,
    /// Print the results of earlier runs and end.
    #[arg(long)]
    report: bool,
    /// Forget the results of earlier runs.
    #[arg(long)]
    fresh: bool,
    /// Test processes at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(open) => {
            eprintln!("{open} mutants survive and are not argued in {PAGE}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the number of survivors that are not argued.
fn run(options: &Options) -> Result<usize, String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
    let subjects = chosen(&options.parts)?;
    let folder = repository.join("target/mutants");
    std::fs::create_dir_all(&folder).map_err(|error| tree::at_path(&folder, &error))?;
    let file = folder.join("results.jsonl");
    if options.fresh {
        let _ = std::fs::remove_file(&file);
    }
    let mut results = Results::open(&file)?;
    let mut all = Vec::new();
    for subject in subjects {
        let sources = tree::read(repository, subject)?;
        let mutants = tree::mutants(&sources);
        if !options.list && !options.report {
            let part = Part { subject, sources: &sources, mutants: &mutants };
            results = part.run(repository, &folder, options, results)?;
        }
        all.extend(mutants);
    }
    if options.list {
        all.iter().for_each(|mutant| println!("{}", mutant.key));
        return Ok(0);
    }
    let page = std::fs::read_to_string(repository.join(PAGE)).unwrap_or_default();
    Ok(report::print(&all, &results, &report::argued(&page)))
}

fn chosen(parts: &[String]) -> Result<Vec<&'static Subject>, String> {
    if parts.is_empty() {
        return Ok(SUBJECTS.iter().collect());
    }
    let find = |part: &String| {
        let found = SUBJECTS.iter().find(|subject| subject.name == part);
        found.ok_or_else(|| format!("unknown part `{part}`: see `cargo xtask mutants --help`"))
    };
    parts.iter().map(find).collect()
}

/// A part and its mutants.
struct Part<'a> {
    subject: &'static Subject,
    sources: &'a [Source],
    mutants: &'a [Numbered],
}

impl Part<'_> {
    /// Builds the part with its mutants in a copy of its own, and runs them.
    fn run(
        &self,
        repository: &Path,
        folder: &Path,
        options: &Options,
        mut results: Results,
    ) -> Result<Results, String> {
        let name = self.subject.name;
        let tree = Tree::create(repository, folder.join(name), self.sources)?;
        let is_unviable = |mutant: &&Numbered| results.get(mutant) == Some(Outcome::Unviable);
        let mut dropped = self.mutants.iter().filter(is_unviable).map(|mutant| mutant.id).collect();
        let programs = tree.build(self.subject, self.sources, &mut dropped)?;
        self.note_unviable(&dropped, &mut results)?;
        let reached = folder.join(format!("{name}-reached.json"));
        let recorded = harness::record(&programs, &reached, options.jobs)?;
        let wanted = self.selected(options, &results);
        run_mutants(&wanted, &Reaching::new(&recorded), results, options.jobs)
    }

    fn note_unviable(&self, dropped: &HashSet<u32>, results: &mut Results) -> Result<(), String> {
        for mutant in self.mutants.iter().filter(|mutant| dropped.contains(&mutant.id)) {
            if results.get(mutant) != Some(Outcome::Unviable) {
                results.set(mutant, Outcome::Unviable)?;
            }
        }
        Ok(())
    }

    /// The mutants to run.
    fn selected(&self, options: &Options, results: &Results) -> Vec<&Numbered> {
        let (share, shares) = options.shard.unwrap_or((1, 1));
        let is_named = |mutant: &&Numbered| {
            let has = |text: &String| mutant.key.contains(text.as_str());
            options.only.is_empty() || options.only.iter().any(has)
        };
        let open = self.mutants.iter().filter(is_named).filter(|mutant| results.is_open(mutant));
        open.filter(|mutant| mutant.id as usize % shares == share - 1).collect()
    }
}

fn run_mutants(
    wanted: &[&Numbered],
    reaching: &Reaching<'_>,
    results: Results,
    jobs: usize,
) -> Result<Results, String> {
    let progress = Mutex::new((results, 0));
    let run = |mutant: &&Numbered| -> Result<(), String> {
        let outcome = reaching.outcome(mutant.id)?;
        let mut progress = progress.lock().map_err(|error| error.to_string())?;
        progress.0.set(mutant, outcome)?;
        progress.1 += 1;
        if progress.1 % 100 == 0 {
            eprintln!("{} of {} mutants", progress.1, wanted.len());
        }
        Ok(())
    };
    harness::in_parallel(wanted, jobs, run).into_iter().collect::<Result<(), String>>()?;
    Ok(progress.into_inner().map_err(|error| error.to_string())?.0)
}

fn parse_shard(text: &str) -> Result<(usize, usize), String> {
    let rule = || "the shard must be K/N with 1 <= K <= N".to_owned();
    let (share, shares) = text.split_once('/').ok_or_else(rule)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| rule());
    let (share, shares) = (number(share)?, number(shares)?);
    if (1..=shares).contains(&share) { Ok((share, shares)) } else { Err(rule()) }
}

const PAGE: &str = "mutants/README.md";
