//! The default corpora: simulated from a seed, the same bytes on every machine, and kept between runs.

use std::path::{Path, PathBuf};

use nostr::OwnedEvent;
use serde::Serialize;
use simnet::nostr_events::{self, EventCounts};
use simnet::nostr_sampling::{self, EventGroup};
use simnet::{
    corpus, firehose, hostile, repository_corpus, schnorr_events, signed_commits, tree_records,
};

use super::sidecar::ACCOUNTS_FILE;
use super::{MANY_ACCOUNTS, MIXED};
use crate::plan::Plan;
use crate::{BenchError, Progress, Task};

/// The name of a file of frames.
pub const FRAMES_FILE: &str = "firehose-frames.bin";

/// Writes a corpus and its manifest.
fn write(path: &Path, file: &[u8], manifest: &impl Serialize) -> Result<(), BenchError> {
    Ok(corpus::write(path, file, manifest)?)
}

/// The default corpus `name` of `task` in the work folder, made if it is missing.
pub(super) fn cached(
    task: Task,
    name: &str,
    suffix: &str,
    plan: &Plan,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BenchError> {
    let spec = Spec::of(task, suffix, plan.quick);
    let dir = plan.work_dir.join("corpora").join(spec.folder());
    let path = dir.join(name);
    if !path.with_extension("json").is_file() {
        spec.make(&path, &mut |done, total| {
            let (done, total) = (done as u64, total as u64);
            progress(Progress::Corpus { name, done, total });
        })?;
    }
    Ok(path)
}

/// The specification of a default corpus.
enum Spec {
    Frames(firehose::Spec),
    ManyAccounts(firehose::many::Spec),
    Commits(signed_commits::Spec),
    Events(schnorr_events::Spec),
    Records(tree_records::Spec),
    Repository(repository_corpus::Spec),
    Hostile(hostile::Spec),
    Nostr(Task, nostr_events::Spec),
}

impl Spec {
    fn of(task: Task, suffix: &str, quick: bool) -> Self {
        match task {
            Task::Commit if suffix == MANY_ACCOUNTS => Self::ManyAccounts(many_accounts(quick)),
            Task::Decode | Task::Commit => Self::Frames(frames(quick)),
            Task::Sigs => Self::Commits(commits(suffix, quick)),
            Task::Schnorr => Self::Events(events(quick)),
            Task::Mst => Self::Records(records(quick)),
            Task::Repo => Self::Repository(repository(quick)),
            Task::Hostile => Self::Hostile(hostile::Spec::default()),
            _ => Self::Nostr(task, nostr(quick)),
        }
    }

    fn make(&self, path: &Path, progress: &mut dyn FnMut(usize, usize)) -> Result<(), BenchError> {
        match self {
            Self::Frames(spec) => {
                let corpus = firehose::Corpus::generate(spec, progress);
                let file = corpus.to_file();
                corpus::write_json(&path.with_file_name(ACCOUNTS_FILE), &corpus.account_keys())?;
                write(path, &file, &corpus.manifest(&file))
            }
            Self::ManyAccounts(spec) => {
                let corpus = firehose::many::Corpus::generate(spec, progress);
                let file = corpus.to_file();
                corpus::write_json(&path.with_file_name(ACCOUNTS_FILE), corpus.account_keys())?;
                write(path, &file, &corpus.manifest(&file))
            }
            Self::Commits(spec) => {
                let of_each = spec.accounts * spec.commits_per_account;
                progress(0, spec.drawn_commits.unwrap_or(of_each));
                let corpus = signed_commits::Corpus::generate(spec);
                let file = corpus.to_file();
                write(path, &file, &corpus.manifest(&file))
            }
            Self::Events(spec) => {
                progress(0, spec.events);
                let corpus = schnorr_events::Corpus::generate(spec);
                let file = corpus.to_file();
                let manifest = corpus.manifest(&file);
                write(path, file.as_bytes(), &manifest)
            }
            Self::Nostr(task, spec) => {
                progress(0, spec.events);
                let corpus = nostr_events::Corpus::generate(spec);
                let (file, counts) = of_nostr(*task, &corpus);
                let manifest = corpus.manifest(counts, &file);
                write(path, file.as_bytes(), &manifest)
            }
            Self::Records(spec) => {
                progress(0, spec.records);
                let corpus = tree_records::Corpus::generate(spec);
                let file = corpus.to_file();
                write(path, &file, &corpus.manifest(&file))
            }
            Self::Repository(spec) => {
                progress(0, spec.records);
                let corpus = repository_corpus::Corpus::generate(spec);
                let file = corpus.to_file();
                write(path, &file, &corpus.manifest(&file))
            }
            Self::Hostile(spec) => Ok(hostile::CaseSet::generate(spec).write(path)?),
        }
    }

    /// The name of the corpus's folder, one per specification and version of the generator.
    fn folder(&self) -> String {
        let name = match self {
            Self::Frames(firehose::Spec { seed, frames, max_height }) => {
                format!("frames-{seed}-{frames}-{max_height}")
            }
            Self::ManyAccounts(firehose::many::Spec { stream, accounts, copies, p256_percent }) => {
                let firehose::Spec { seed, frames, max_height } = stream;
                format!("many-{seed}-{frames}-{max_height}-{accounts}-{copies}-{p256_percent}")
            }
            Self::Commits(spec) => {
                let signed_commits::Spec {
                    seed,
                    accounts,
                    commits_per_account,
                    drawn_commits,
                    p256_percent,
                } = spec;
                let commits = drawn_commits.unwrap_or(*commits_per_account);
                format!("commits-{seed}-{accounts}-{commits}-{p256_percent}")
            }
            Self::Events(schnorr_events::Spec { seed, authors, events }) => {
                format!("events-{seed}-{authors}-{events}")
            }
            Self::Records(tree_records::Spec { seed, records, lookups, operations }) => {
                format!("records-{seed}-{records}-{lookups}-{operations}")
            }
            Self::Repository(repository_corpus::Spec { seed, records, order: _ }) => {
                format!("repository-{seed}-{records}")
            }
            Self::Nostr(_, nostr_events::Spec { seed, authors, events }) => {
                format!("nostr-{seed}-{authors}-{events}")
            }
            Self::Hostile(hostile::Spec { seed }) => format!("hostile-{seed}"),
        };
        format!("{name}-{}", corpus::GENERATOR)
    }
}

fn frames(quick: bool) -> firehose::Spec {
    use firehose::Spec;
    if quick { Spec { frames: QUICK_FRAMES, ..Spec::quick() } } else { Spec::default() }
}

fn commits(suffix: &str, quick: bool) -> signed_commits::Spec {
    use signed_commits::Spec;
    let spec = match suffix {
        MIXED => Spec::mixed(),
        MANY_ACCOUNTS => Spec::many_accounts(),
        _ => Spec::default(),
    };
    match (quick, spec.drawn_commits) {
        (false, _) => spec,
        (true, None) => Spec { accounts: QUICK_ACCOUNTS, ..spec },
        (true, Some(commits)) => {
            Spec { accounts: spec.accounts / 10, drawn_commits: Some(commits / 10), ..spec }
        }
    }
}

fn many_accounts(quick: bool) -> firehose::many::Spec {
    use firehose::many::Spec;
    if quick { Spec::quick() } else { Spec::default() }
}

fn events(quick: bool) -> schnorr_events::Spec {
    use schnorr_events::Spec;
    if quick { Spec { events: QUICK_EVENTS, ..Spec::quick() } } else { Spec::default() }
}

fn nostr(quick: bool) -> nostr_events::Spec {
    if quick { nostr_events::Spec::quick() } else { nostr_events::Spec::default() }
}

/// The file of a task on Nostr events, and its counts.
fn of_nostr(task: Task, corpus: &nostr_events::Corpus) -> (String, EventCounts) {
    let grouped = |groups: &[EventGroup<'_, OwnedEvent>]| {
        let events = groups.iter().flat_map(|group| group.events.iter().copied());
        (nostr_sampling::grouped_lines(groups), EventCounts::of(events))
    };
    match task {
        Task::NostrByKind => grouped(&corpus.by_kind()),
        Task::NostrByCategory => grouped(&corpus.by_category()),
        _ => (corpus.to_file(), corpus.counts()),
    }
}

fn records(quick: bool) -> tree_records::Spec {
    use tree_records::Spec;
    let quick_spec = || Spec {
        records: QUICK_RECORDS,
        lookups: QUICK_LOOKUPS,
        operations: QUICK_RECORDS,
        ..Spec::quick()
    };
    if quick { quick_spec() } else { Spec::default() }
}

fn repository(quick: bool) -> repository_corpus::Spec {
    if quick { repository_corpus::Spec::quick() } else { repository_corpus::Spec::default() }
}

/// Enough frames for a pass of milliseconds.
const QUICK_FRAMES: usize = 320;

/// Accounts with eight commits each: more than one batch of our own runner.
const QUICK_ACCOUNTS: usize = 40;

/// More than one batch of our own runner.
const QUICK_EVENTS: usize = 400;

/// A tenth of the default numbers.
const QUICK_RECORDS: usize = 5_000;
const QUICK_LOOKUPS: usize = 50_000;
