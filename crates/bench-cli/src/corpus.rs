//! `wireproof corpus`: writes simulated data to files.

use std::path::PathBuf;

use ::bench::corpora::{ACCOUNTS_FILE, FRAMES_FILE};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use simnet::corpus::FileError;
use simnet::hostile::{CaseSet, Expect, Spec};
use simnet::nostr_events::{self, EventCounts};
use simnet::nostr_sampling::{EventGroup, grouped_lines};
use simnet::{firehose, repository_corpus, tree_records};

use crate::corpus_file::CorpusFile;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::progress::ProgressLine;

/// Generate files for tests and measurements.
#[derive(Debug, Subcommand)]
pub(crate) enum CorpusCommand {
    /// Generate firehose frames, the records of a tree, or a repository; the same seed gives the same
    /// bytes.
    ///
    /// Next to every file is a description of the same name that ends in .json: seed, SHA-256, content, signers. The
    /// frames (firehose-frames.bin: a 32-bit big-endian count, then every frame after its 32-bit length) come with
    /// accounts.json, an object of DID to did:key.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArgs),
    /// Generate malformed repositories and streams with one broken rule per file, and valid edge cases.
    ///
    /// hostile.json lists the cases: file, rule, expected verdict, and the layer that must return it. Next to every
    /// file is a .json with the verifier's input: account, key, time.
    #[command(after_help = HOSTILE_EXAMPLES)]
    Hostile(HostileArgs),
    /// Generate Nostr events with valid ids and signatures; the same seed gives the same bytes.
    ///
    /// nostr-events.jsonl has all events, one per line. nostr-by-kind.jsonl has up to 100 events of every one of seven
    /// kinds, and nostr-by-category.jsonl of every class of size and of tags, after lines that name the class (#kind-1,
    /// #tiny). Next to every file is a description of the same name that ends in .json.
    #[command(after_help = NOSTR_EXAMPLES)]
    Nostr(NostrArgs),
}

/// The seed and the folder of every generator.
#[derive(Debug, Args)]
struct CommonArgs {
    /// Seed of the generator [default: the seed of the benchmark or the published set].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder to write to, created if missing.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    out: PathBuf,
}

/// Files to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CorpusKind {
    /// firehose-frames.bin and accounts.json: a stream of commits.
    Frames,
    /// mst-records.bin: keys and CIDs for a tree, and the keys to look up.
    Records,
    /// repository.car: a whole repository.
    Repository,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Files to generate.
    #[arg(value_name = "WHAT", value_enum, default_value = "frames")]
    kinds: Vec<CorpusKind>,
    /// Number of frames, all of them commits [default: 3298, as in the benchmark].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    frames: Option<u32>,
    /// Number of records of a tree or a repository [default: 50000 and 192000, as in the benchmark].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    records: Option<u32>,
    /// Shuffle the blocks of the repository [default: the order in which a tree is read].
    #[arg(long)]
    shuffled: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HostileArgs {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NostrArgs {
    /// Number of events [default: 10000, as in the benchmark].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    events: Option<u32>,
    #[command(flatten)]
    common: CommonArgs,
}

pub(crate) fn run(command: &CorpusCommand, output: Output) -> Result<(), Failure> {
    match command {
        CorpusCommand::Generate(args) => generate(args, output),
        CorpusCommand::Hostile(args) => hostile(args, output),
        CorpusCommand::Nostr(args) => nostr(args, output),
    }
}

fn generate(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    files::create_folder(&args.common.out)?;
    args.kinds.iter().try_for_each(|kind| match kind {
        CorpusKind::Frames => frames(args, output),
        CorpusKind::Records => records(args, output),
        CorpusKind::Repository => repository(args, output),
    })
}

fn frames(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    let default = firehose::Spec::default();
    let spec = firehose::Spec {
        seed: args.common.seed.unwrap_or(default.seed),
        frames: args.frames.map_or(default.frames, |frames| frames as usize),
        ..default
    };
    let mut line = ProgressLine::new();
    let corpus = firehose::Corpus::generate(&spec, &mut |done, total| {
        line.at(format!("generating {FRAMES_FILE}"), done as u64, total as u64);
    });
    line.end();
    let file = corpus.to_file();
    let manifest = corpus.manifest(&file);
    files::replace_json(&args.common.out.join(ACCOUNTS_FILE), &corpus.account_keys())?;
    let content = format!("{} frames", manifest.counts.frames);
    let file = CorpusFile { name: FRAMES_FILE, bytes: &file, sha256: &manifest.sha256, content };
    file.write(&args.common.out, &manifest, output)
}

fn records(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    let default = tree_records::Spec::default();
    let spec = tree_records::Spec {
        seed: args.common.seed.unwrap_or(default.seed),
        records: args.records.map_or(default.records, |records| records as usize),
        ..default
    };
    let corpus = tree_records::Corpus::generate(&spec);
    let file = corpus.to_file();
    let manifest = corpus.manifest(&file);
    let content = format!("{} records", manifest.counts.records);
    let (name, sha256) = ("mst-records.bin", &*manifest.sha256);
    CorpusFile { name, bytes: &file, sha256, content }.write(&args.common.out, &manifest, output)
}

fn repository(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    use repository_corpus::BlockOrder;
    let default = repository_corpus::Spec::default();
    let spec = repository_corpus::Spec {
        seed: args.common.seed.unwrap_or(default.seed),
        records: args.records.map_or(default.records, |records| records as usize),
        order: if args.shuffled { BlockOrder::Shuffled } else { BlockOrder::Streamable },
    };
    let corpus = repository_corpus::Corpus::generate(&spec);
    let file = corpus.to_file();
    let manifest = corpus.manifest(&file);
    let content = format!("{} records", manifest.counts.records);
    let (name, sha256) = ("repository.car", &*manifest.sha256);
    CorpusFile { name, bytes: &file, sha256, content }.write(&args.common.out, &manifest, output)
}

fn hostile(args: &HostileArgs, output: Output) -> Result<(), Failure> {
    let CommonArgs { seed, out } = &args.common;
    let set = CaseSet::generate(&seed.map_or(Spec::default(), |seed| Spec { seed }));
    let path = out.join("hostile.json");
    set.write(&path).map_err(|FileError { path, error }| Failure::file(&path)(error))?;
    let count = |expect| set.cases().iter().filter(|case| case.expect == expect).count();
    let [refused, invalid, accepted] =
        [Expect::Refuse, Expect::InvalidRecord, Expect::Accept].map(count);
    output.text(&format!(
        "{}: {refused} cases to refuse, {invalid} to accept without an invalid record, {accepted} to accept\n",
        path.display()
    ))
}

fn nostr(args: &NostrArgs, output: Output) -> Result<(), Failure> {
    let CommonArgs { seed, out } = &args.common;
    files::create_folder(out)?;
    let default = nostr_events::Spec::default();
    let spec = nostr_events::Spec {
        seed: seed.unwrap_or(default.seed),
        events: args.events.map_or(default.events, |events| events as usize),
        ..default
    };
    let corpus = nostr_events::Corpus::generate(&spec);
    let counts = |groups: Vec<EventGroup<'_, _>>| {
        EventCounts::of(groups.into_iter().flat_map(|group| group.events))
    };
    for (name, file, counts) in [
        ("nostr-events.jsonl", corpus.to_file(), corpus.counts()),
        ("nostr-by-kind.jsonl", grouped_lines(&corpus.by_kind()), counts(corpus.by_kind())),
        (
            "nostr-by-category.jsonl",
            grouped_lines(&corpus.by_category()),
            counts(corpus.by_category()),
        ),
    ] {
        let manifest = corpus.manifest(counts, &file);
        let content = format!("{} events", manifest.counts.events);
        let (bytes, sha256) = (file.as_bytes(), &*manifest.sha256);
        CorpusFile { name, bytes, sha256, content }.write(out, &manifest, output)?;
    }
    Ok(())
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  wireproof corpus generate --out corpus            the stream of the benchmark
  wireproof corpus generate --seed 7 --frames 100   a small stream
  wireproof corpus generate records repository      a tree and a repository
  wireproof corpus generate repository --records 1000 --shuffled";

const HOSTILE_EXAMPLES: &str = "\
Examples:
  wireproof corpus hostile --out hostile
  jq -r '.cases[] | select(.expect == \"accept\") | .file' hostile/hostile.json

To run another verifier on it: docs/formats/hostile-set.md.";

const NOSTR_EXAMPLES: &str = "\
Examples:
  wireproof corpus nostr --out corpus && wireproof bench nostr --corpus corpus
  wireproof corpus nostr --events 1000 --seed 7";
