//! `wireproof capture`: saves the frames of a stream in files for `bench` and `inspect`.

mod listen;
mod signed;

use std::path::PathBuf;

use ::bench::corpora::{ACCOUNTS_FILE, FRAMES_FILE};
use atproto::corpus;
use atproto::event::{Decoder, Options, Values};
use base::crash_point;
use bytes::Bytes;
use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use codec::cbor;
use kernels::{hex, sha256};
use net::firehose::StopSignal;
use serde::Serialize;
use simnet::firehose::FrameCounts;

use crate::corpus_file::CorpusFile;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Shutdown;
use crate::network::{self, Network};
use crate::output::Output;
use crate::progress::ProgressLine;
use crate::stream::{DEFAULT_RELAY, Hosts, StreamArgs};
use signed::{CapturedKeys, SignedCommits};

/// Capture the frames of a live stream in files that `bench` and `inspect` read.
///
/// firehose-frames.bin holds the commits that change records, unverified, exactly as received and in the same order. A
/// description is written next to it.
///
/// With --sigs, `capture` looks up the keys of the accounts and writes them to accounts.json. It writes the signed
/// commit objects to signed-commits.bin, except commits without a key or with a wrong signature, and prints the number
/// of exceptions.
///
/// Ctrl-C ends the capture early: the frames received so far are written.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CaptureArgs {
    /// Duration of the capture from the first event on.
    #[arg(long, env = "WIREPROOF_SECONDS", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Maximum size of all frames in bytes; they are held in memory.
    #[arg(long, env = "WIREPROOF_CAPTURE_BYTES", value_name = "N", default_value_t = 1 << 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    capture_bytes: u64,
    /// Look up the keys of the accounts, and save the signed commits.
    #[arg(long, env = "WIREPROOF_SIGS", value_parser = FalseyValueParser::new())]
    sigs: bool,
    /// Folder to write to, created if missing.
    #[arg(long, env = "WIREPROOF_OUT", value_name = "DIR", default_value = ".")]
    #[arg(value_hint = ValueHint::DirPath)]
    out: PathBuf,
    #[command(flatten)]
    stream: StreamArgs,
}

pub(crate) fn run(args: &CaptureArgs, output: Output) -> Result<(), Failure> {
    let runtime = network::runtime()?;
    let result = runtime.block_on(capture(args, output));
    runtime.shutdown_background();
    result
}

async fn capture(args: &CaptureArgs, output: Output) -> Result<(), Failure> {
    let hosts = Hosts::new(&args.stream.host, DEFAULT_RELAY)?;
    let network = Network::open(&args.stream.network, &hosts.urls)?;
    files::create_folder(&args.out)?;
    let mut line = ProgressLine::new();
    let stop = StopSignal::new();
    let stop_limit = args.stream.stop_limit();
    let _shutdown = Shutdown::listen(stop.clone(), stop_limit, || ())?;
    let frames = listen::listen(args, &hosts, &network, &stop, &mut line).await?;
    // The rest of the time is for the files.
    let stopped = async {
        stop.requested().await;
        tokio::time::sleep(stop_limit / 2).await;
    };
    let keys = if args.sigs {
        Some(CapturedKeys::look_up(&frames, &network.resolver, stopped, &mut line).await)
    } else {
        None
    };
    line.end();
    let file = corpus::write(frames.iter().map(|frame| &frame[..]));
    let content = format!("{} frames", frames.len());
    write(args, &hosts, FRAMES_FILE, &file, count(&frames), content, output)?;
    crash_point("capture/frames");
    let Some(keys) = keys else { return Ok(()) };
    let path = args.out.join(ACCOUNTS_FILE);
    files::replace_json(&path, &keys.to_did_keys())?;
    crash_point("capture/accounts");
    let path = path.display();
    let found = keys.found.len();
    let missing = keys.missing;
    output.text(&format!("{path}: {found} keys, {missing} not found\n"))?;
    let SignedCommits { file, counts, dropped } = signed::read(&frames, &keys);
    let content = format!("{} commits, {dropped}", counts.commits);
    write(args, &hosts, "signed-commits.bin", &file, counts, content, output)
}

/// Writes a file and its description.
fn write(
    args: &CaptureArgs,
    hosts: &Hosts,
    name: &str,
    bytes: &[u8],
    counts: impl Serialize,
    content: String,
    output: Output,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Description<'f, C> {
        hosts: &'f [String],
        seconds: u64,
        file_bytes: u64,
        sha256: &'f str,
        counts: C,
    }
    let sha256 = &*hex::encode(&sha256::digest(bytes));
    let hosts = &*hosts.names;
    let seconds = args.seconds;
    let file_bytes = bytes.len() as u64;
    let description = Description { hosts, seconds, file_bytes, sha256, counts };
    CorpusFile { name, bytes, sha256, content }.write(&args.out, &description, output)
}

/// The counts that a decoder of the frames must report.
fn count(frames: &[Bytes]) -> FrameCounts {
    let mut options = Options::default();
    options.values = Values::ValidateOnly;
    let (mut decoder, mut counts) = (Decoder::new(options), FrameCounts::default());
    for frame in frames {
        counts.frames += 1;
        let Ok(event) = decoder.decode(frame) else {
            counts.errors += 1;
            continue;
        };
        for block in event.blocks() {
            let mut items = cbor::ItemCounts::default();
            if block.cid.is_dag_cbor() {
                cbor::count(block.data, &mut items).expect("the decoder validated this block");
            }
            counts.add_block(&items);
        }
    }
    counts
}

const EXAMPLES: &str = "\
Examples:
  wireproof capture --seconds 60 --out corpus
  wireproof capture --sigs --out corpus && wireproof bench decode commit sigs --corpus corpus
  wireproof inspect corpus/firehose-frames.bin --limit 3";
