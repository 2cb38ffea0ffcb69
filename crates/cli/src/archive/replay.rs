//! `wireproof archive replay`: the frames of an archive in order of arrival.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;
use wireproof::archive::Archive;

use super::{AddressArgs, parse_time};
use crate::failure::Failure;
use crate::output::Output;

/// Write the frames of an archive to a file, in order of arrival.
///
/// Frames that were refused are left out. The file is one that `frames verify` and `archive import` read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// The file; it is replaced.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: PathBuf,
    /// Leave out events that arrived before this time: 2026-07-01T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<i64>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &ReplayArgs, output: Output) -> Result<(), Failure> {
    let (archive, since) = (args.address.open().await?, args.since.unwrap_or(i64::MIN));
    let summary = write(&archive, since, args).await?;
    output.document(&summary, args.json, ReplaySummary::to_text)
}

/// Writes a file of frames, whose count comes last.
async fn write(archive: &Archive, since: i64, args: &ReplayArgs) -> Result<ReplaySummary, Failure> {
    let failed = Failure::file(&args.to);
    let mut summary = ReplaySummary { frame_count: 0, bytes: 0 };
    let mut file = match File::create(&args.to) {
        Ok(file) => BufWriter::new(file),
        Err(error) => return Err(failed(error)),
    };
    let mut written = file.write_all(&[0; 4]);
    archive
        .replay(since, |replayed| {
            if written.is_ok() {
                let len = replayed.frame.len() as u32;
                written = file
                    .write_all(&len.to_be_bytes())
                    .and_then(|()| file.write_all(replayed.frame));
                summary.frame_count += 1;
                summary.bytes += u64::from(len);
            }
            Ok::<(), Failure>(())
        })
        .await?;
    let written = written.and_then(|()| {
        file.rewind()?;
        file.write_all(&summary.frame_count.to_be_bytes())?;
        file.flush()
    });
    written.map_err(failed)?;
    Ok(summary)
}

/// What JSON and text say of a replay.
#[derive(Debug, Serialize)]
struct ReplaySummary {
    frame_count: u32,
    bytes: u64,
}

impl ReplaySummary {
    fn to_text(&self) -> String {
        format!("{} frames, {} bytes\n", self.frame_count, self.bytes)
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof archive replay archive --to frames.bin
  wireproof archive replay archive --to frames.bin --since 2026-07-01T00:00:00Z";
