//! `wireproof frames verify-lines`: proves the lines of `follow --proof` again, without a network unless keys are looked up.
//!
//! The proof of a line is a slice of its repository: the signed commit, the tree nodes on the paths of the operations, and
//! the records; or the frame, which has such a slice and is judged as a whole. Each operation is proved as the state of its
//! path at that commit, and compared with the line.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bumpalo::Bump;
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wireproof::atproto::event::{self, Action, Commit, Event, RepoOp};
use wireproof::codec::{Cid, cbor, json as codec_json};
use wireproof::crypto::PublicKey;
use wireproof::verify::record;
use wireproof::verify::repository::RepositoryRejection;
use wireproof::verify::sync::{Judge, MemoryState, Outcome};

use super::line_keys::{LineKeys, LineKeysArgs};
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

/// What was found in the lines.
#[derive(Debug, Default, Serialize)]
struct LinesReport {
    lines: u64,
    /// Lines whose operations are proved.
    proved: u64,
    /// Lines that claim no verified records.
    unproved: u64,
    operations: u64,
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

/// A line of `follow`, as far as it is compared.
#[derive(Debug, Deserialize)]
struct Line {
    kind: String,
    did: Option<String>,
    rev: Option<String>,
    seq: Option<i64>,
    time: Option<String>,
    commit: Option<String>,
    verdict: String,
    #[serde(default)]
    ops: Vec<Op>,
    proof: Option<Proof>,
}

/// A slice or a frame.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Proof {
    Frame(Bytes),
    Blocks(Bytes),
}

#[derive(Clone, Debug, Deserialize)]
struct Bytes {
    #[serde(rename = "$bytes")]
    base64: String,
}

#[derive(Debug, Deserialize)]
struct Op {
    action: String,
    collection: String,
    rkey: String,
    cid: Option<String>,
    record: Option<Value>,
    invalid: Option<Invalid>,
    #[serde(default)]
    filtered: bool,
}

#[derive(Debug, Deserialize)]
struct Invalid {
    bytes: Bytes,
}

/// Why a line is refused.
struct Refusal {
    code: &'static str,
    message: String,
}

/// The proof of the last line that had one: with `--ops` the first operation of an event has it for the others.
struct Kept {
    did: String,
    rev: String,
    proof: Proof,
    /// Number of operations that refer to the proof.
    operations: usize,
}

pub(super) fn run(args: &VerifyLinesArgs, output: Output) -> Result<(), Failure> {
    let keys = LineKeys::of(&args.keys, &args.network)?;
    let mut report = LinesReport::default();
    let mut verifier = Verifier { keys: &keys, judge: Judge::builder().build(), kept: None };
    let mut lines = open(&args.file)?;
    let mut text = Vec::new();
    while next_line(&mut lines, &mut text, &args.file)? {
        report.lines += 1;
        verifier.verify(&text, &mut report)?;
    }
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
    judge: Judge,
    kept: Option<Kept>,
}

impl Verifier<'_> {
    fn verify(&mut self, text: &[u8], report: &mut LinesReport) -> Result<(), Failure> {
        let line = match read(text) {
            Ok(line) => line,
            Err(refusal) => {
                report.refuse(None, refusal);
                return Ok(());
            }
        };
        if line.verdict != "verified" {
            report.unproved += 1;
            return Ok(());
        }
        let key = self.keys.get(line.did.as_deref().unwrap_or_default())?;
        match self.prove(&line, key) {
            Ok(()) => {
                report.proved += 1;
                report.operations += line.ops.len() as u64;
            }
            Err(refusal) => report.refuse(Some(&line), refusal),
        }
        Ok(())
    }

    fn prove(&mut self, line: &Line, key: Option<PublicKey>) -> Result<(), Refusal> {
        let (Some(did), Some(rev)) = (&line.did, &line.rev) else {
            return Err(differs("a verified line has no account or no revision"));
        };
        let key = key.ok_or_else(|| Refusal {
            code: NO_KEY_CODE,
            message: format!("{} of {did}", self.keys.place()),
        })?;
        match self.proof_of(line, did, rev)? {
            Proof::Blocks(slice) if is_kind(line, &["commit", "operation", "resync"]) => {
                prove_ops(line, &slice.decode()?, did, &key)
            }
            Proof::Blocks(_) => Err(differs("such a line has no blocks")),
            Proof::Frame(frame) => {
                let frame = frame.decode()?;
                match judge(&mut self.judge, did, &key, &frame, line)? {
                    Some(commit) => {
                        line.ops.iter().try_for_each(|op| op.compare_claim(commit.ops))?;
                        prove_ops(line, commit.car, did, &key)
                    }
                    None if line.ops.is_empty() && line.commit.is_none() => Ok(()),
                    None => Err(differs("the frame has no operations")),
                }
            }
        }
    }

    /// The proof of a line, which with `--ops` is that of the line before.
    fn proof_of(&mut self, line: &Line, did: &str, rev: &str) -> Result<Proof, Refusal> {
        match &line.proof {
            Some(proof) => {
                let (did, rev, proof) = (did.to_owned(), rev.to_owned(), proof.clone());
                self.kept = Some(Kept { did, rev, proof, operations: 0 });
            }
            None if line.kind != "operation" => self.kept = None,
            None => {}
        }
        let is_of_line = |kept: &&mut Kept| kept.did == did && kept.rev == rev;
        let kept = self.kept.as_mut().filter(is_of_line).ok_or_else(|| Refusal {
            code: MISSING_CODE,
            message: "a verified line without a proof: run follow with --proof".to_owned(),
        })?;
        kept.operations += line.ops.len();
        match kept.operations > event::Options::default().max_ops {
            true => Err(differs("more operations than a commit can have")),
            false => Ok(kept.proof.clone()),
        }
    }
}

fn is_kind(line: &Line, kinds: &[&str]) -> bool {
    kinds.contains(&&*line.kind)
}

/// Judges a frame alone. The commit, if it is not a `#sync`.
fn judge<'f>(
    judge: &'f mut Judge,
    did: &str,
    key: &PublicKey,
    frame: &'f [u8],
    line: &Line,
) -> Result<Option<Commit<'f>>, Refusal> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    let key_of = |of: &str| (of == did).then_some(*key.as_compressed());
    let Ok(judged) = judge.judge(frame, &key_of, &mut MemoryState::default(), micros);
    if let Outcome::Rejected(why) = &judged.outcome {
        return Err(Refusal { code: why.code(), message: why.to_string() });
    }
    let (seq, did, rev, time, commit, kinds) = match judged.event {
        Some(Event::Commit(of)) => {
            (of.seq, of.repo, of.rev, of.time, Some(*of), &["commit", "operation"][..])
        }
        Some(Event::Sync(of)) => (of.seq, of.did, of.rev, of.time, None, &["sync"][..]),
        _ => return Err(differs("the frame has no commit")),
    };
    let is_same = line.did.as_deref() == Some(did)
        && line.rev.as_deref() == Some(rev)
        && line.time.as_deref() == Some(time)
        && line.seq == Some(seq)
        && is_kind(line, kinds);
    match is_same && judged.outcome.is_accepted() {
        true => Ok(commit),
        false => Err(differs("the frame is another event")),
    }
}

/// Proves the operations of a line from a slice.
fn prove_ops(line: &Line, slice: &[u8], did: &str, key: &PublicKey) -> Result<(), Refusal> {
    let options = record::Options::default();
    let slice = record::Slice::read(slice, Some(did), key, &options).map_err(refused)?;
    let root = slice.root().to_string();
    if line.rev.as_deref() != Some(slice.commit().rev) || line.commit != Some(root) {
        return Err(differs("the proof is of another commit"));
    }
    for op in &line.ops {
        let path = op.path();
        let proof = slice.prove(&path).map_err(refused)?;
        op.compare(proof.record()).map_err(|what| differs(&format!("{path}: {what}")))?;
    }
    Ok(())
}

impl Op {
    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.rkey)
    }

    /// Compares the operation with those of a commit: an update of a record that the consumer did not select is a deletion.
    fn compare_claim(&self, claims: &[RepoOp<'_>]) -> Result<(), Refusal> {
        let path = self.path();
        let claim = claims.iter().find(|of| of.path == path);
        let claim = claim.ok_or_else(|| differs(&format!("{path}: not in the commit")))?;
        let action = if self.filtered { Action::Update } else { claim.action };
        match claim.action == action && (self.filtered || self.action == action.as_str()) {
            true => Ok(()),
            false => Err(differs(&format!("{path}: the commit has another action"))),
        }
    }

    /// Compares the operation with the record at its path, if there is one.
    fn compare(&self, proved: Option<(Cid, &[u8])>) -> Result<(), &'static str> {
        match (&*self.action, self.filtered, proved) {
            ("delete", filtered, proved) if filtered == proved.is_some() => self.has_no_content(),
            ("delete", true, _) | ("create" | "update", false, None) => {
                Err("the repository has no such record")
            }
            ("delete", false, _) => Err("the repository still has the record"),
            ("create" | "update", false, Some((cid, block))) => self.has_content(cid, block),
            _ => Err("no such operation"),
        }
    }

    fn has_no_content(&self) -> Result<(), &'static str> {
        match (&self.cid, &self.record, &self.invalid) {
            (None, None, None) => Ok(()),
            _ => Err("a deletion with a record"),
        }
    }

    fn has_content(&self, cid: Cid, block: &[u8]) -> Result<(), &'static str> {
        if self.cid != Some(cid.to_string()) {
            return Err("the record has another CID");
        }
        match (&self.record, &self.invalid) {
            (Some(record), None) => match json_of(block).as_ref() == Some(record) {
                true => Ok(()),
                false => Err("the line has another record"),
            },
            (None, Some(invalid)) => match invalid.bytes.decode() {
                Ok(bytes) if bytes == block => Ok(()),
                _ => Err("the line has other bytes"),
            },
            (None, None) if json_of(block).is_none() => Ok(()),
            (None, None) => Err("the line has no record"),
            (Some(_), Some(_)) => Err("the line has two contents"),
        }
    }
}

/// The JSON form of a record, if it has one.
fn json_of(block: &[u8]) -> Option<Value> {
    let arena = Bump::new();
    let value = cbor::decode(block, &arena).ok()?;
    serde_json::to_value(codec_json::Json(&value)).ok()
}

impl Bytes {
    fn decode(&self) -> Result<Vec<u8>, Refusal> {
        let arena = Bump::new();
        let text = format!("{{\"$bytes\":{}}}", Value::from(self.base64.as_str()));
        match codec_json::decode(&text, &arena) {
            Ok(cbor::Value::Bytes(bytes)) => Ok(bytes.to_vec()),
            _ => Err(differs("bytes that are not base64")),
        }
    }
}

fn read(text: &[u8]) -> Result<Line, Refusal> {
    let malformed = |error: serde_json::Error| differs(&format!("not a line of follow: {error}"));
    let mut line: Line = serde_json::from_slice(text).map_err(malformed)?;
    if line.kind == "operation" {
        line.ops = vec![serde_json::from_slice(text).map_err(malformed)?];
    }
    Ok(line)
}

fn refused(why: RepositoryRejection) -> Refusal {
    Refusal { code: why.code(), message: why.to_string() }
}

fn differs(what: &str) -> Refusal {
    Refusal { code: DIFFERS_CODE, message: what.to_owned() }
}

impl LinesReport {
    fn refuse(&mut self, line: Option<&Line>, Refusal { code, message }: Refusal) {
        self.refused += 1;
        if self.findings.len() < MAX_FINDINGS {
            let (did, rev) = line.map_or((None, None), |of| (of.did.clone(), of.rev.clone()));
            self.findings.push(LineFinding { line: self.lines, did, rev, code, message });
        }
    }

    fn to_text(&self) -> String {
        let Self { lines, proved, unproved, operations, refused, findings } = self;
        let mut text: String = findings
            .iter()
            .map(|of| format!("line {}: {} ({})\n", of.line, of.message, of.code))
            .collect();
        text += &format!(
            "{lines} lines: {proved} proved with {operations} operations, {unproved} without a claim, {refused} refused\n"
        );
        text
    }
}

/// Code of a line that claims to be verified and has no proof.
const MISSING_CODE: &str = "proof/missing";
/// Code of a line that says something else than its proof.
const DIFFERS_CODE: &str = "proof/differs";
const NO_KEY_CODE: &str = "signature/no-key";

/// Maximum length of a line: that of a stored event.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Number of refused lines that are shown.
const MAX_FINDINGS: usize = 1000;
