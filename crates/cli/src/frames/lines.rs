//! `wireproof frames verify-lines`: proves the lines of `follow --proof` again, without a network unless keys are looked up.
//!
//! The proof of a line is a slice of its repository: the signed commit, the tree nodes on the paths of the operations, and
//! the records; or the frame, which has such a slice and is judged as a whole. Every operation is proved as the state of its
//! path at that commit, and compared with the line.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Serialize;

use super::line::UnreadLine;
use super::line_keys::{LineKeys, LineKeysArgs};
use super::line_proof::{ProvedLine, Prover, RefusedLine};
use crate::failure::Failure;
use crate::files;
use crate::network::NetworkArgs;
use crate::output::Output;
use crate::standard_streams;

#[derive(Debug, Args)]
pub(crate) struct VerifyLinesArgs {
    /// The lines; `-` reads standard input.
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    keys: LineKeysArgs,
    #[command(flatten)]
    network: NetworkArgs,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// The findings and counts of a file of lines.
#[derive(Debug, Default, Serialize)]
struct LinesReport {
    lines: u64,
    /// Lines whose operations are proved.
    proved: u64,
    /// Lines that claim no verified records.
    unproved: u64,
    operations: u64,
    /// Operations of proved frames that no line has.
    left_out: u64,
    /// Keys of proved lines that are not compared with a proof.
    not_compared: BTreeSet<&'static str>,
    refused: u64,
    /// The first refused lines.
    findings: Vec<LineFinding>,
}

/// A line that is refused.
#[derive(Debug, Serialize)]
struct LineFinding {
    /// Number of the line, from 1.
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rev: Option<String>,
    code: &'static str,
    message: String,
}

pub(super) fn run(args: &VerifyLinesArgs, output: Output) -> Result<(), Failure> {
    let keys = LineKeys::of(&args.keys, &args.network)?;
    let mut report = LinesReport::default();
    let mut verifier = Verifier { keys: &keys, prover: Prover::default() };
    let mut lines = open(&args.file)?;
    let mut text = Vec::new();
    while next_line(&mut lines, &mut text, &args.file)? {
        report.lines += 1;
        verifier.verify(&text, &mut report)?;
    }
    report.left_out = verifier.prover.left_out();
    output.document(&report, args.json, LinesReport::to_text)?;
    match report.refused {
        0 => Ok(()),
        count => {
            let what = format!("{count} of {} lines are refused", report.lines);
            Err(Failure::refused(&args.file, what))
        }
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if files::is_standard_stream(path) {
        return Ok(Box::new(standard_streams::stdin()?.lock()));
    }
    let file = std::fs::File::open(path).map_err(Failure::file(path))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Reads the next line that is not empty. Whether there is one.
fn next_line(lines: &mut dyn BufRead, text: &mut Vec<u8>, path: &Path) -> Result<bool, Failure> {
    loop {
        text.clear();
        let limited = &mut lines.take(MAX_LINE_BYTES + 1);
        let len = limited.read_until(b'\n', text).map_err(Failure::file(path))?;
        if len as u64 > MAX_LINE_BYTES {
            let what = format!("a line of more than {MAX_LINE_BYTES} bytes");
            return Err(Failure::refused(path, what));
        }
        if len == 0 || !text.trim_ascii().is_empty() {
            return Ok(len > 0);
        }
    }
}

struct Verifier<'k> {
    keys: &'k LineKeys<'k>,
    prover: Prover,
}

impl Verifier<'_> {
    fn verify(&mut self, text: &[u8], report: &mut LinesReport) -> Result<(), Failure> {
        let line = match UnreadLine::parse(text) {
            Ok(line) if line.is_verified() => line,
            Ok(_) => {
                report.unproved += 1;
                return Ok(());
            }
            Err(why) => {
                report.refuse(None, None, why.into());
                return Ok(());
            }
        };
        let (did, rev) = (line.did.clone(), line.rev.clone());
        let key = self.keys.get(did.as_deref().unwrap_or_default())?;
        let no_key = || RefusedLine::no_key(self.keys.place(), did.as_deref().unwrap_or_default());
        let line = line.read().map_err(RefusedLine::from);
        let proved = line.and_then(|line| self.prover.prove(line, &key.ok_or_else(no_key)?));
        match proved {
            Ok(proved) => report.add(&proved),
            Err(refusal) => report.refuse(did, rev, refusal),
        }
        Ok(())
    }
}

impl LinesReport {
    fn add(&mut self, proved: &ProvedLine) {
        self.proved += 1;
        self.operations += proved.operations;
        self.not_compared.extend(&proved.not_compared);
    }

    fn refuse(&mut self, did: Option<String>, rev: Option<String>, refusal: RefusedLine) {
        self.refused += 1;
        if self.findings.len() < MAX_FINDINGS {
            let RefusedLine { code, message } = refusal;
            self.findings.push(LineFinding { line: self.lines, did, rev, code, message });
        }
    }

    fn to_text(&self) -> String {
        let Self { lines, proved, unproved, operations, refused, .. } = self;
        let mut text: String = self
            .findings
            .iter()
            .map(|of| format!("line {}: {} ({})\n", of.line, of.message, of.code))
            .collect();
        text += &format!(
            "{lines} lines: {proved} proved with {operations} operations, {unproved} without a claim, {refused} refused\n"
        );
        if self.left_out > 0 {
            text += &format!("{} operations of the proved commits are in no line\n", self.left_out);
        }
        if !self.not_compared.is_empty() {
            let keys: Vec<_> = self.not_compared.iter().copied().collect();
            text += &format!("not compared with a proof: {}\n", keys.join(", "));
        }
        text
    }
}

/// Maximum length of a line, as of a stored event.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Number of refused lines that are shown.
const MAX_FINDINGS: usize = 1000;
