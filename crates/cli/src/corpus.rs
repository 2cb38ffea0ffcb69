//! `wireproof corpus generate`: a simulated stream, written to files.

use std::io::Write;

use ::bench::corpora::{self, FRAMES_FILE};
use simnet::firehose::Spec;

use crate::args::GenerateArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ProgressLine;

pub(crate) fn generate(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    let usual = Spec::default();
    let spec = Spec {
        seed: args.seed.unwrap_or(usual.seed),
        frames: args.frames.map_or(usual.frames, |frames| frames as usize),
        ..usual
    };
    let mut line = ProgressLine::new();
    let made = corpora::generate(&spec, &args.out, &mut |done, total| {
        line.at(format!("making {FRAMES_FILE}"), done as u64, total as u64);
    });
    line.end();
    let manifest = made?;
    writeln!(
        output.stdout(),
        "{}: {} frames, {} bytes, SHA-256 {}",
        args.out.join(FRAMES_FILE).display(),
        manifest.counts.frames,
        manifest.file_bytes,
        manifest.sha256
    )?;
    Ok(())
}
