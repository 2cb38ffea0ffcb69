//! `wireproof nostr`: verifies, converts and measures Nostr events in files.

mod convert;
mod filter;
mod seen;
mod statistics;
mod verify;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ::bench::nostr::{Input, Layout};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use wireproof::nostr::IdSerialization;
use wireproof::nostr::formats::Format;

use self::filter::FilterArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{files, standard_streams};

/// Verify, convert and measure Nostr events in files.
///
/// A file has JSON lines, plain or compressed (.jsonl.gz, .jsonl.zst), or, if its name ends in .gz otherwise, the layout of
/// archives: gzip of Protocol Buffers, each event after its length. A line has an event, or a message of a relay or client
/// with one: ["EVENT",…]. Of a folder all files that end in .gz, .zst or .jsonl are read, in the order of their names.
#[derive(Debug, Subcommand)]
pub(crate) enum NostrCommand {
    /// Verify the id and the signature of every event.
    ///
    /// Ids and signatures are verified in batches, on all cores. Exit code 0 if all events are valid. `id: escaped` counts the
    /// valid events whose id is the hash of the form with escaped control characters. With --emit, events go to standard
    /// output as JSON lines, in order, and the findings and counts to standard error.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Convert events to another format.
    ///
    /// jsonl and pb.gz are read and written group by group. The name of a format stands for its list of
    /// events, which is held in memory. An event that the format cannot hold is refused.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Show how many bytes events take in each format.
    ///
    /// The sizes are raw, each event alone under gzip at level 6 and under Zstandard at level 3, and all
    /// events after their 32-bit lengths in one Zstandard frame at level 3. An event that a format cannot hold
    /// is named, with the reason, and stays in the sums of the other formats.
    #[command(after_help = SIZES_EXAMPLES)]
    Sizes(SizesArgs),
    /// Show the kinds of events, their lengths and their tags.
    #[command(after_help = ANALYZE_EXAMPLES)]
    Analyze(AnalyzeArgs),
    /// Rank the formats by the results of `wireproof bench nostr`.
    ///
    /// A format has up to 100 points for speed, size, validated events per second, and tooling. The options
    /// set the weight of each; 0 leaves it out.
    #[command(after_help = RECOMMEND_EXAMPLES)]
    Recommend(RecommendArgs),
}

/// The events to read.
#[derive(Debug, Args)]
struct EventsArgs {
    /// Files, and folders of files; `-` for standard input.
    #[arg(value_name = "FILE|DIR|-", value_hint = ValueHint::AnyPath, required = true)]
    files: Vec<PathBuf>,
    /// The layout of the files [default: pb.gz if a name ends in .gz and not in .jsonl.gz, else jsonl].
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    from: Option<Layout>,
    /// Maximum number of events; of several files the first ones of each, in equal parts [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// Verify each event alone [default: in batches].
    #[arg(long)]
    one_by_one: bool,
    /// The form of control characters in the hashed event: `verbatim` is the text of NIP-01, `escaped` as \u00XX is
    /// what the clients in use write.
    #[arg(long, value_name = "FORM", value_parser = id_serialization(), default_value = "either")]
    ids: IdSerialization,
    #[command(flatten)]
    filter: FilterArgs,
    /// Write these events to standard output as JSON lines, each with its text if it was read from JSON.
    #[arg(long, value_name = "WHICH", conflicts_with = "json")]
    emit: Option<Emit>,
    /// Exit with code 0 although events are refused.
    #[arg(long)]
    skip_invalid: bool,
    /// Write a valid event once, and count its repetitions; the last 500,000 ids or more are remembered.
    #[arg(long)]
    dedupe: bool,
    /// Verify on this many threads [default: the number of cores].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Show every refused event [default: the first 10].
    #[arg(long)]
    all: bool,
    /// Print one JSON document with every refused event.
    #[arg(long)]
    json: bool,
}

/// Which events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// Those with the right id and signature.
    Valid,
    /// All others, lines that are no event too.
    Invalid,
    /// Valid and invalid ones.
    All,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// The layout to write.
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    to: Layout,
    /// The file to write; an existing file is replaced once the new one is complete [default: `-`, standard
    /// output].
    #[arg(long, short, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SizesArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// Event kinds to include [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    kind: Vec<u16>,
    /// Formats to include [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = format())]
    formats: Vec<Format>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// Show every kind and every tag name [default: the 20 most frequent].
    #[arg(long)]
    all: bool,
    /// Print one JSON document with every kind and tag name.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecommendArgs {
    /// The results of a run, as `wireproof bench --json` writes them.
    #[arg(value_name = "RESULTS.json|-", value_hint = ValueHint::FilePath)]
    results: PathBuf,
    /// Weight of encoding and decoding.
    #[arg(long, value_name = "WEIGHT", default_value_t = 20)]
    speed: u32,
    /// Weight of the size, raw and framed under Zstandard.
    #[arg(long, value_name = "WEIGHT", default_value_t = 25)]
    size: u32,
    /// Weight of the events decoded, hashed and verified per second.
    #[arg(long, value_name = "WEIGHT", default_value_t = 40)]
    validated: u32,
    /// Weight of libraries and languages, by our judgement.
    #[arg(long, value_name = "WEIGHT", default_value_t = 15)]
    tooling: u32,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &NostrCommand, output: Output) -> Result<(), Failure> {
    match command {
        NostrCommand::Verify(args) => verify::run(args, output),
        NostrCommand::Convert(args) => convert::run(args),
        NostrCommand::Sizes(args) => statistics::sizes(args, output),
        NostrCommand::Analyze(args) => statistics::analyze(args, output),
        NostrCommand::Recommend(args) => statistics::recommend(args, output),
    }
}

impl EventsArgs {
    fn open(&self) -> Result<Input, Failure> {
        // Standard input is one input.
        for _ in self.files.iter().filter(|file| files::is_standard_stream(file)) {
            standard_streams::stdin()?;
        }
        Ok(Input::open(&self.files, self.from, self.limit)?)
    }

    /// What was read, for messages.
    fn name(&self) -> String {
        match &self.files[..] {
            [file] => file.display().to_string(),
            files => format!("{} inputs", files.len()),
        }
    }
}

fn id_serialization() -> impl TypedValueParser<Value = IdSerialization> {
    let names = PossibleValuesParser::new(IdSerialization::ALL.map(IdSerialization::name));
    names.map(|name| {
        let named = IdSerialization::ALL.into_iter().find(|ids| ids.name() == name);
        named.expect("one of the possible values")
    })
}

fn layout() -> impl TypedValueParser<Value = Layout> {
    let names = PossibleValuesParser::new(Layout::names());
    names.map(|name| Layout::from_name(&name).expect("one of the possible values"))
}

fn format() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name()));
    names.map(|name| Format::from_name(&name).expect("one of the possible values"))
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  wireproof nostr verify events.jsonl
  wireproof nostr verify day.pb.gz --json | jq '.findings[] | {index, code}'
  wireproof nostr verify archive/ --limit 100000
  strfry export | wireproof nostr verify - --emit valid --dedupe | strfry import --no-verify
  wireproof nostr verify a.jsonl.zst b.jsonl.gz --kind 1 --tag t=bitcoin --emit valid > notes.jsonl";

const CONVERT_EXAMPLES: &str = "\
Examples:
  wireproof nostr convert day.pb.gz --to jsonl -o day.jsonl
  wireproof nostr convert events.jsonl --to notepack -o events.notepack
  wireproof nostr convert events.cbor --from cbor-packed --to jsonl | head";

const SIZES_EXAMPLES: &str = "\
Examples:
  wireproof nostr sizes events.jsonl
  wireproof nostr sizes events.jsonl --kind 3,10002 --formats json,notepack";

const ANALYZE_EXAMPLES: &str = "\
Examples:
  wireproof nostr analyze events.jsonl
  wireproof nostr analyze archive/ --limit 50000 --json | jq .kinds";

const RECOMMEND_EXAMPLES: &str = "\
Examples:
  wireproof nostr recommend results.json
  wireproof nostr recommend results.json --size 100 --speed 0 --validated 0 --tooling 0";
