//! `wireproof frames`: are these events what their accounts said?

mod report;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mapping::MappedFile;
use wireproof::atproto::corpus;
use wireproof::verify::account_keys::AccountKeys;
use wireproof::verify::sync::{Judge, MemoryState};

use crate::args::frames::{FramesCommand, FramesVerifyArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::verify::account_keys;
use report::Report;

pub(crate) fn run(command: &FramesCommand, output: Output) -> Result<(), Failure> {
    let FramesCommand::Verify(args) = command;
    verify(args, output)
}

fn verify(args: &FramesVerifyArgs, output: Output) -> Result<(), Failure> {
    let keys = account_keys(&args.keys)?;
    let file = MappedFile::open(&args.file).map_err(Failure::file(&args.file))?;
    let told = |error| Failure::Refused(format!("{}: {error}", args.file.display()));
    let frames = corpus::read(&file).map_err(told)?;
    let started = Instant::now();
    let mut report = judge(&frames, &keys);
    report.took(started.elapsed());
    if args.json {
        report.write_json(output.stdout())?;
    } else {
        report.write_text(args.all, output.stdout())?;
    }
    match report.refused() {
        0 => Ok(()),
        refused => Err(Failure::Refused(format!("{}: {refused} refused", args.file.display()))),
    }
}

fn judge(frames: &[&[u8]], keys: &AccountKeys) -> Report {
    let (mut judge, mut state) = (Judge::default(), MemoryState::default());
    let mut report = Report::default();
    for batch in frames.chunks(BATCH_LEN) {
        let now_micros = since_1970().as_micros() as u64;
        let verdicts = judge.judge_batch(batch, keys, &mut state, now_micros);
        let Ok(verdicts) = verdicts;
        verdicts.iter().for_each(|judged| report.add(judged));
    }
    report
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Frames that are judged together: enough to fill the lanes, few enough to stay in the cache.
const BATCH_LEN: usize = 512;
