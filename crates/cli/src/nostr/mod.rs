//! `wireproof nostr`: verifies, converts, samples and measures Nostr events in files, follows relays, and judges events for strfry.

mod convert;
#[cfg(feature = "nostr-lmdb")]
mod database;
mod failure;
mod filter;
mod follow;
mod get;
mod names;
mod refusal;
mod sample;
mod statistics;
mod strfry_plugin;
mod verify;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use nostr::IdSerialization;
use nostr_files::{Input, InputError, Layout, ReaderProcess};
use nostr_formats::Format;
use simnet::nostr_sampling::{SizeClass, TagClass};

use self::filter::FilterArgs;
use self::follow::NostrFollowArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{files, standard_streams};
use failure::of_input;

/// Verify, convert, sample and measure Nostr events in files, and follow relays.
///
/// A file holds JSON lines, plain or compressed (.jsonl.gz, .jsonl.zst); or is a container of events in any format
/// (.nostr), recognised by its first bytes; or holds length-prefixed events: Notepack if its name ends in .notepack or
/// .notepack.gz, Protocol Buffers if it ends in .gz otherwise. A line is an event, a message of a relay or client with
/// an event, ["EVENT",…], or a notepack_… string. In a folder, all files that end in .gz, .zst, .jsonl, .nostr or
/// .notepack are read, in the order of their names. A folder with data.mdb is an LMDB database of strfry or nostrdb.
#[derive(Debug, Subcommand)]
pub(crate) enum NostrCommand {
    /// Verify the id and the signature of every event.
    ///
    /// Ids and signatures are verified in batches, on all cores. Exit code 0 if all events are valid. `id: escaped` counts the
    /// valid events whose id is the hash of the form with escaped control characters. With --emit, events go to standard
    /// output as JSON lines, in order, and the findings and counts to standard error.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Follow relays, and write every valid event once, as a line of JSON, or deliver it.
    ///
    /// Stored events come first, page by page until there are no older ones, then new ones. Ids and signatures are
    /// verified in batches, on all cores, and events that do not match the filter are refused. A lost connection is
    /// opened again and resumed before the last event. The next run resumes after the last line that the reader of the
    /// output took, and repeats the lines of --overlap-seconds. Refusals and messages of relays are printed to standard
    /// error, one per minute and kind. Requests for authentication (NIP-42) are answered only with --auth-key.
    ///
    /// With --to, events go to databases, queues, files or webhooks, through an outbox on disk that keeps them until
    /// they are acknowledged. The next run resumes after the last event in the outbox. A table has every event once.
    ///
    /// Ctrl-C or SIGTERM writes the received events and stores the position, within --stop-seconds (exit code 130 after
    /// Ctrl-C, 0 after SIGTERM). Exit code 3 if no relay can be followed, or with --stored if one of them cannot.
    #[command(after_help = FOLLOW_EXAMPLES)]
    Follow(Box<NostrFollowArgs>),
    /// Decide for strfry which events it writes, as its write-policy plugin.
    ///
    /// Reads requests of strfry on standard input, one per line, and answers every request on standard output at once:
    /// an event is accepted if it matches the filter and its id and signature are right, by the rules of `nostr
    /// verify`. Otherwise it is rejected, with the reason and its code. A line that is not a request is rejected if it
    /// has an id, and reported on standard error. Exit code 0 at the end of the input.
    #[command(after_help = STRFRY_PLUGIN_EXAMPLES)]
    StrfryPlugin(StrfryPluginArgs),
    /// Convert events to another format.
    ///
    /// `container` holds events of any format in checked blocks, so that damage to one block leaves the others intact;
    /// --format names the format. `pb`, `notepack-segment` and the layouts named after them are length-prefixed events:
    /// delimited Protocol Buffers, and the segments of pensieve. These layouts, jsonl and notepack-string are read and
    /// written group by group. The name of a format stands for its list of events, which is held in memory, or with
    /// --single for one event. An event that the format cannot hold is refused.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Draw events at random.
    ///
    /// The sample is written to standard output as JSON lines, in the order of the input. It depends on the seed and on the ids of the
    /// events alone, so the same events give the same sample in any order and in any number of files. Only the sample is held
    /// in memory, and an id is in it once.
    #[command(after_help = SAMPLE_EXAMPLES)]
    Sample(SampleArgs),
    /// Print events by their number in a file, or by id.
    ///
    /// In a container, the index leads to the block of an event. Other files are read from the start, and so is a
    /// container if you ask for an id. Events are printed in the order of the file and not verified: pipe them to
    /// `nostr verify -`.
    #[command(after_help = GET_EXAMPLES)]
    Get(GetArgs),
    /// Show how many bytes events take in every format.
    ///
    /// The sizes are raw, single events under gzip at level 6 and under Zstandard at level 3, and all events with
    /// 32-bit length prefixes in one Zstandard frame at level 3. An event that a format cannot hold is named, with the
    /// reason, and stays in the sums of the other formats.
    #[command(after_help = SIZES_EXAMPLES)]
    Sizes(SizesArgs),
    /// Show the kinds of events, their lengths and their tags.
    #[command(after_help = ANALYZE_EXAMPLES)]
    Analyze(AnalyzeArgs),
    /// Rank the formats by the results of `wireproof bench nostr`.
    ///
    /// A format has up to 100 points for speed, size, validated events per second, and tooling. The options set their
    /// weights; 0 leaves one out.
    #[command(after_help = RECOMMEND_EXAMPLES)]
    Recommend(RecommendArgs),
}

/// Takes the program and the arguments that run this command in another process.
pub(crate) fn set_command(again: Vec<OsString>) {
    // All calls in a process have the same program.
    let _ = COMMAND.set(again);
}

/// Files of events, and databases, which a process of their own reads.
fn input(
    files: &[impl AsRef<Path>],
    layout: Option<Layout>,
    limit: Option<u64>,
) -> Result<Input, InputError> {
    let input = Input::open(files, layout, limit)?;
    let mut again = COMMAND.get().cloned().unwrap_or_default().into_iter();
    let program = again.next().unwrap_or_default().into();
    let arguments = again.chain(["read-database".into()]).collect();
    Ok(input.with_reader(ReaderProcess { program, arguments }))
}

static COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();

/// The events to read.
#[derive(Debug, Args)]
struct EventsArgs {
    /// Files, folders of files, and folders of databases; `-` for standard input.
    #[arg(value_name = "FILE|DIR|-", value_hint = ValueHint::AnyPath, required = true)]
    files: Vec<PathBuf>,
    /// The layout of the files [default: detected from the first bytes and the name, else jsonl].
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    from: Option<Layout>,
    /// Take the name of a format for one event, not for a list: a file has one event.
    #[arg(long)]
    single: bool,
    /// Maximum number of events; several files contribute equal numbers from their start [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// Verify events one by one [default: in batches].
    #[arg(long)]
    one_by_one: bool,
    /// The form of control characters in the hashed event: `verbatim` is the text of NIP-01, `escaped`, as \u00XX, is
    /// the form that clients write in practice.
    #[arg(long, value_name = "FORM", value_parser = id_serialization(), default_value = "either")]
    ids: IdSerialization,
    #[command(flatten)]
    filter: FilterArgs,
    /// Write these events to standard output as JSON lines. Events that were read from JSON keep their text; control
    /// characters are written as escapes.
    #[arg(long, value_name = "WHICH", conflicts_with = "json")]
    emit: Option<Emit>,
    /// Exit with code 0 even if events are refused.
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
    /// Events with the right id and signature.
    Valid,
    /// All others, including lines that are not an event.
    Invalid,
    /// Valid and invalid ones.
    All,
}

#[derive(Debug, Args)]
pub(crate) struct StrfryPluginArgs {
    /// The form of control characters in the hashed event: see `nostr verify`.
    #[arg(long, value_name = "FORM", value_parser = id_serialization(), default_value = "either")]
    ids: IdSerialization,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// The layout to write.
    #[arg(long, value_name = "LAYOUT", value_parser = target())]
    to: Target,
    /// The format of events in a container [default: notepack].
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    format: Option<Format>,
    /// Convert the intact blocks of a damaged container. The damaged ones are named on standard error [default: refuse
    /// it].
    #[arg(long)]
    skip_damaged: bool,
    /// The file to write; an existing file is replaced once the new one is complete. The folder of a database, which is new or
    /// empty [default: `-`, standard output].
    #[arg(long, short, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

/// The target of a conversion.
#[derive(Clone, Copy, Debug)]
enum Target {
    File(Layout),
    StrfryDatabase,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    events: EventsArgs,
    /// Maximum number of events in the sample.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_SAMPLE))]
    count: u64,
    /// Another seed gives another sample.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Divide the count equally among the classes of events that occur; the rest of a class with too few events goes to
    /// the others.
    #[arg(long, value_name = "BY")]
    stratify: Option<Strata>,
    /// Take events of these sizes, by their estimated length as JSON: tiny up to 500 bytes, small up to 2,000, medium up to
    /// 10,000, large up to 100,000, huge beyond.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size_class())]
    size: Vec<SizeClass>,
    /// Take events with these numbers of tags: none, few up to 5, moderate up to 20, many up to 100, massive beyond.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = tag_class())]
    tag_count: Vec<TagClass>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The property that divides events into classes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Strata {
    /// Their kinds.
    Kind,
    /// The sizes of --size.
    Size,
    /// The numbers of tags of --tag-count.
    Tags,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The file, or the folder of a database; `-` for standard input.
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Numbers of events, from 0.
    #[arg(value_name = "NUMBER")]
    numbers: Vec<u64>,
    /// Ids of events: of 64 digits, note1… or nevent1….
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = names::event_id)]
    id: Vec<[u8; 32]>,
    /// The layout of the file [default: detected from the first bytes and the name, else jsonl].
    #[arg(long, value_name = "LAYOUT", value_parser = layout())]
    from: Option<Layout>,
    /// The layout to print; the name of a format stands for one event.
    #[arg(long, value_name = "LAYOUT", value_parser = layout(), default_value = "jsonl")]
    to: Layout,
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
        NostrCommand::Follow(args) => follow::run(args),
        NostrCommand::StrfryPlugin(args) => strfry_plugin::run(args, output),
        NostrCommand::Convert(args) => convert::run(args),
        NostrCommand::Sample(args) => sample::run(args, output),
        NostrCommand::Get(args) => get::run(args),
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
        let from = self.from.map(|layout| if self.single { layout.single() } else { layout });
        input(&self.files, from, self.limit).map_err(of_input)
    }

    /// The name of the input, for messages.
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

fn target() -> impl TypedValueParser<Value = Target> {
    let names = Layout::names().into_iter().chain([STRFRY_DATABASE]);
    PossibleValuesParser::new(names).map(|name| match Layout::from_name(&name) {
        Some(layout) => Target::File(layout),
        None => Target::StrfryDatabase,
    })
}

fn format() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name()));
    names.map(|name| Format::from_name(&name).expect("one of the possible values"))
}

fn size_class() -> impl TypedValueParser<Value = SizeClass> {
    let names = PossibleValuesParser::new(SizeClass::ALL.map(SizeClass::name));
    names.map(|name| {
        let named = SizeClass::ALL.into_iter().find(|class| class.name() == name);
        named.expect("one of the possible values")
    })
}

fn tag_class() -> impl TypedValueParser<Value = TagClass> {
    let names = PossibleValuesParser::new(TagClass::ALL.map(TagClass::name));
    names.map(|name| {
        let named = TagClass::ALL.into_iter().find(|class| class.name() == name);
        named.expect("one of the possible values")
    })
}

/// The name of a database of strfry.
const STRFRY_DATABASE: &str = "strfry-lmdb";

/// Maximum number of events in a sample.
const MAX_SAMPLE: u64 = 10_000_000;

const VERIFY_EXAMPLES: &str = "\
Examples:
  wireproof nostr verify events.jsonl
  wireproof nostr verify day.pb.gz --json | jq '.findings[] | {index, code}'
  wireproof nostr verify archive/ --limit 100000
  strfry export | wireproof nostr verify - --emit valid --dedupe | strfry import --no-verify
  wireproof nostr verify strfry-db/ --emit valid --dedupe > events.jsonl
  wireproof nostr verify a.jsonl.zst b.jsonl.gz --kind 1 --tag t=bitcoin --emit valid > notes.jsonl";

const FOLLOW_EXAMPLES: &str = "\
Examples:
  wireproof nostr follow wss://relay.example.com --kind 1 --limit 100
  wireproof nostr follow wss://one.example.com wss://two.example.com --state state | strfry import --no-verify
  wireproof nostr follow relay.example.com --kind 1 --to sqlite:notes.db
  wireproof nostr follow relay.example.com --stored --since 1700000000 > events.jsonl
  wireproof nostr follow relay.example.com --stored --negentropy --have events.jsonl >> events.jsonl";

const STRFRY_PLUGIN_EXAMPLES: &str = "\
Examples:
  wireproof nostr strfry-plugin --kind 0,1,3,7
  sed 's/.*/{\"type\":\"new\",\"event\":&}/' events.jsonl | wireproof nostr strfry-plugin

In strfry.conf:
  relay { writePolicy { plugin = \"/usr/local/bin/wireproof nostr strfry-plugin\" } }";

const CONVERT_EXAMPLES: &str = "\
Examples:
  wireproof nostr convert day.pb.gz --to jsonl -o day.jsonl
  wireproof nostr convert events.jsonl --to container --format cbor-packed -o events.nostr
  wireproof nostr convert events.cbor --from cbor-packed --to jsonl | head
  wireproof nostr verify events.jsonl --emit valid | wireproof nostr convert - --to strfry-lmdb -o strfry-db
  wireproof nostr convert segment-000000001.notepack.gz --to container | wireproof nostr verify -
  echo notepack_… | wireproof nostr convert - --single --to msgpack > event.msgpack";

const GET_EXAMPLES: &str = "\
Examples:
  wireproof nostr get events.nostr 0 1000000
  wireproof nostr get events.nostr 7 --to notepack-string
  wireproof nostr get day.pb.gz --id 6f91552294802bedb75a5dec37da702788443992e6a65eb21acf729e808e64e3";

const SAMPLE_EXAMPLES: &str = "\
Examples:
  wireproof nostr sample archive/ --count 10000 > sample.jsonl
  wireproof nostr sample events.jsonl.zst --stratify kind --seed 7 > by-kind.jsonl
  wireproof nostr sample events.jsonl --size large,huge --kind 3 --count 100";

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
