//! `wireproof capture`: what a stream tells now, in the files that benchmarks share.

mod args;
mod keys;
mod listen;
mod signed;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use ::bench::corpora::{ACCOUNTS_FILE, FRAMES_FILE};
use bytes::Bytes;
use serde::Serialize;
use simnet::firehose::FrameCounts;
use wireproof::atproto::corpus;
use wireproof::atproto::event::{Decoder, Options, Values};
use wireproof::codec::cbor;
use wireproof::kernels::{hex, sha256};

use crate::failure::Failure;
use crate::follow::{Hosts, RELAY};

use crate::network::{self, Network};
use crate::output::Output;
use crate::progress::ProgressLine;
pub(crate) use args::CaptureArgs;
use keys::Keys;
use signed::Signed;

pub(crate) fn run(args: &CaptureArgs, output: Output) -> Result<(), Failure> {
    network::runtime()?.block_on(capture(args, output))
}

async fn capture(args: &CaptureArgs, output: Output) -> Result<(), Failure> {
    let hosts = Hosts::new(&args.from.host, RELAY)?;
    let network = Network::open(&args.from.network)?;
    fs::create_dir_all(&args.out).map_err(Failure::file(&args.out))?;
    let mut line = ProgressLine::new();
    let frames = listen::listen(args, &hosts, &network, &mut line).await?;
    let keys = match args.sigs {
        true => Some(keys::of_accounts(&frames, &network.resolver, &mut line).await),
        false => None,
    };
    line.end();
    let folder = Folder { dir: &args.out, hosts: &hosts.names, seconds: args.seconds, output };
    folder.write_frames(&frames)?;
    match keys {
        Some(keys) => folder.write_signed(&signed::read(&frames, &keys), &keys),
        None => Ok(()),
    }
}

/// Where files go, and what stands beside all of them.
struct Folder<'f> {
    dir: &'f Path,
    hosts: &'f [String],
    seconds: u64,
    output: Output,
}

/// What stands beside a file.
#[derive(Serialize)]
struct Description<'f, C> {
    hosts: &'f [String],
    seconds: u64,
    file_bytes: u64,
    sha256: String,
    counts: C,
}

impl Folder<'_> {
    fn write_frames(&self, frames: &[Bytes]) -> Result<(), Failure> {
        let file = corpus::write(frames.iter().map(|frame| &frame[..]));
        self.write(FRAMES_FILE, &file, count(frames), &format!("{} frames", frames.len()))
    }

    fn write_signed(&self, signed: &Signed, keys: &Keys) -> Result<(), Failure> {
        let path = self.dir.join(ACCOUNTS_FILE);
        let accounts: BTreeMap<&String, String> =
            keys.known.iter().map(|(did, key)| (did, key.to_did_key())).collect();
        write_json(&path, &accounts)?;
        let (path, count, unknown) = (path.display(), accounts.len(), keys.unknown);
        writeln!(self.output.stdout(), "{path}: {count} keys, {unknown} not to be had")?;
        let what = format!("{} commits, {}", signed.counts.commits, signed.dropped);
        self.write(COMMITS_FILE, &signed.file, signed.counts, &what)
    }

    /// Writes a file, its description beside it last, and tells of both in a line.
    fn write(
        &self,
        name: &str,
        file: &[u8],
        counts: impl Serialize,
        what: &str,
    ) -> Result<(), Failure> {
        let path = self.dir.join(name);
        fs::write(&path, file).map_err(Failure::file(&path))?;
        let (sha256, file_bytes) = (hex::encode(&sha256::digest(file)), file.len() as u64);
        let shown = path.display();
        writeln!(self.output.stdout(), "{shown}: {what}, {file_bytes} bytes, SHA-256 {sha256}")?;
        let (hosts, seconds) = (self.hosts, self.seconds);
        let description = Description { hosts, seconds, file_bytes, sha256, counts };
        write_json(&path.with_extension("json"), &description)
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).expect("text and numbers");
    text.push(b'\n');
    fs::write(path, &text).map_err(Failure::file(path))
}

/// What a decoder must find.
fn count(frames: &[Bytes]) -> FrameCounts {
    let options = Options { values: Values::ValidateOnly, ..Options::default() };
    let (mut decoder, mut counts) = (Decoder::new(options), FrameCounts::default());
    for frame in frames {
        counts.frames += 1;
        let Ok(event) = decoder.decode(frame) else {
            counts.errors += 1;
            continue;
        };
        for block in event.blocks() {
            let mut content = cbor::ItemCounts::default();
            if block.cid.is_dag_cbor() {
                cbor::count(block.data, &mut content).expect("the decoder validated this block");
            }
            counts.add_block(&content);
        }
    }
    counts
}

/// The name under which a folder of corpora has it.
const COMMITS_FILE: &str = "signed-commits.bin";
