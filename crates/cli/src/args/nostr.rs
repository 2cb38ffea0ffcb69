//! What can be asked about Nostr events?

use std::path::PathBuf;

use ::bench::nostr::Layout;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use wireproof::nostr::formats::Format;

/// Judges, converts and measures Nostr events in files.
///
/// A file has JSON lines, or with a name that ends in .gz what archives write: gzip of Protocol Buffers,
/// each event behind its length. Of a folder all files that end in .gz are read, in the order of their
/// names.
#[derive(Debug, Subcommand)]
pub(crate) enum NostrCommand {
    /// Checks the id and the signature of every event.
    ///
    /// Ids are hashed and signatures verified many at a time. Exit code 0 only if all events are valid.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(NostrVerifyArgs),
    /// Writes events in another format.
    ///
    /// jsonl and pb.gz are read and written group by group. A format's name stands for its list of
    /// events, which is in memory as a whole. What a format cannot hold is refused: nothing is cut off.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Tells how many bytes events take in each format.
    ///
    /// As they are, each event alone under gzip at level 6 and under Zstandard at level 3, and all behind
    /// their 32-bit lengths in one frame of Zstandard at level 3.
    #[command(after_help = SIZES_EXAMPLES)]
    Sizes(SizesArgs),
    /// Tells of which kinds events are, how long, and how tagged.
    #[command(after_help = ANALYZE_EXAMPLES)]
    Analyze(AnalyzeArgs),
    /// Ranks the formats by the results of a run of `wireproof bench nostr`.
    ///
    /// A format has up to 100 points for speed, size, validated events a second, and tooling; weights say
    /// how much each counts, and 0 leaves it out.
    #[command(after_help = RECOMMEND_EXAMPLES)]
    Recommend(RecommendArgs),
}

/// Which events to read.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The file, or a folder of files that end in .gz; `-` for standard input.
    #[arg(value_name = "FILE|DIR|-", value_hint = ValueHint::AnyPath)]
    pub(crate) file: PathBuf,
    /// How events stand in it [default: by its name pb.gz, else jsonl].
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    pub(crate) from: Option<Layout>,
    /// How many events to read, the same share of each file of a folder, the first ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct NostrVerifyArgs {
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// Verifies each event alone, as one who has only one.
    #[arg(long)]
    pub(crate) one_by_one: bool,
    /// Every event that is refused, instead of the first ten.
    #[arg(long)]
    pub(crate) all: bool,
    /// One JSON document, with every event that is refused.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// How to write them.
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    pub(crate) to: Layout,
    /// The file to write; a file that is there is replaced when the new one is whole [default:
    /// standard output].
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SizesArgs {
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// Events of these kinds only.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) kind: Vec<u16>,
    /// These formats [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = format())]
    pub(crate) formats: Vec<Format>,
    /// One JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// Every kind and every name of a tag, instead of the twenty most frequent.
    #[arg(long)]
    pub(crate) all: bool,
    /// One JSON document, with every kind and every name.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecommendArgs {
    /// The results of a run, as `wireproof bench --json` writes them.
    #[arg(value_name = "RESULTS.json", value_hint = ValueHint::FilePath)]
    pub(crate) results: PathBuf,
    /// How much encoding and decoding count.
    #[arg(long, value_name = "WEIGHT", default_value_t = 20)]
    pub(crate) speed: u32,
    /// How much bytes count, raw and framed under Zstandard.
    #[arg(long, value_name = "WEIGHT", default_value_t = 25)]
    pub(crate) size: u32,
    /// How much events count that are decoded, hashed and verified in a second.
    #[arg(long, value_name = "WEIGHT", default_value_t = 40)]
    pub(crate) validated: u32,
    /// How much libraries and languages count, by our judgement.
    #[arg(long, value_name = "WEIGHT", default_value_t = 15)]
    pub(crate) tooling: u32,
    /// One JSON document.
    #[arg(long)]
    pub(crate) json: bool,
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
  wireproof nostr verify day.pb.gz --json | jq '.findings[] | {event, reason}'
  wireproof nostr verify archive/ --limit 100000";

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
