//! `wireproof bench collections`: what one collection takes of many repositories.

mod fetched;
mod paced;
mod table;
#[cfg(test)]
mod tests;

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use simnet::sampled_repositories::Spec;

use super::collections_args::CollectionsArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ProgressLine;
use fetched::{Fetched, Fetcher};
use table::CollectionsResults;

pub(super) fn run(args: &CollectionsArgs, output: Output) -> Result<(), Failure> {
    let (repositories, most_records) = match args.quick {
        true => (400, 20_000),
        false => (args.repositories, args.most_records),
    };
    let spec = Spec { seed: args.seed, most_records: most_records as usize };
    let mut progress = ProgressLine::new();
    progress.step("one collection under the limit of a server".to_owned());
    let spec_of_paced = Spec { most_records: 6_000, ..spec };
    let paced = paced::measure(&spec_of_paced, PACED.min(repositories.into()))?;
    progress.step(format!("one collection of {repositories} repositories"));
    let fetched = fetch_all(&spec, repositories.into())?;
    progress.end();
    let results = CollectionsResults::new(&fetched, Some(paced));
    output.document(&results, args.json, CollectionsResults::to_text)
}

/// Most repositories that are fetched under a limit.
const PACED: u64 = 700;

/// The costs of the first repositories, in order of their numbers. Every thread has one repository at a time.
fn fetch_all(spec: &Spec, repositories: u64) -> Result<Vec<Fetched>, Failure> {
    let next = AtomicU64::new(0);
    let fetch = || {
        let (fetcher, mut fetched) = (Fetcher::start()?, Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= repositories {
                return Ok(fetched);
            }
            fetched.push((number, fetcher.fetch(spec, number)?));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut fetched = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(fetch)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a worker's result"));
        ended.collect::<Result<Vec<Vec<(u64, Fetched)>>, Failure>>()
    })?
    .concat();
    fetched.sort_unstable_by_key(|(number, _)| *number);
    Ok(fetched.into_iter().map(|(_, fetched)| fetched).collect())
}
