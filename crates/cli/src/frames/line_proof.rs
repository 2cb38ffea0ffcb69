//! The proof of a line of `follow`: a slice of its repository, or its frame, with which the line is compared.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use atproto::event::{self, Action, Commit, Event, RepoOp};
use atproto::repo::Record;
use codec::Cid;
use crypto::PublicKey;
use delivery::EventId;
use events::Kind;
use serde_json::Value;
use verify::InvalidRecord;
use verify::record;
use verify::repository::{self, RepositoryRejection};
use verify::sync::{Judge, MemoryState, Outcome};

use super::line::{Invalid, MAX_LINE_DEPTH, Malformed, Op, Proof, VerifiedLine};
use super::strict_json;
use crate::json::{InvalidBytes, RecordContent};

/// Proves lines in their order.
pub(super) struct Prover {
    judge: Judge,
    kept: Option<KeptProof>,
    /// Operations of earlier frames that no line had.
    left_out: u64,
}

/// A line that is proved.
pub(super) struct ProvedLine {
    pub(super) operations: u64,
    /// Its keys that are not compared with the proof.
    pub(super) not_compared: Vec<&'static str>,
}

/// Why a line is refused.
pub(super) struct RefusedLine {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The proof of the last line that had one: with `--ops` the first operation of an event has it for the others.
struct KeptProof {
    did: String,
    rev: String,
    proof: Rc<Proof>,
    /// Number of operations in the frame.
    operations: usize,
    /// The records that lines had.
    paths: HashSet<String>,
}

impl Default for Prover {
    fn default() -> Self {
        Self { judge: Judge::builder().build(), kept: None, left_out: 0 }
    }
}

impl Prover {
    /// Compares a line with its proof.
    pub(super) fn prove(
        &mut self,
        line: VerifiedLine,
        key: &PublicKey,
    ) -> Result<ProvedLine, RefusedLine> {
        check_id(&line)?;
        if line.key.as_ref().is_some_and(|of| *of != key.to_did_key()) {
            return Err(differs("the line names another key"));
        }
        let mut not_compared = line.uncompared.clone();
        let proof = self.proof_of(&line)?;
        match &*proof {
            Proof::Blocks(slice) if is_of_records(line.kind) => {
                prove_ops(&line, slice, key)?;
                not_compared.extend(not_in_blocks(&line));
            }
            Proof::Blocks(_) => return Err(differs("such a line has no blocks")),
            Proof::Frame(frame) => self.prove_frame(&line, frame, key)?,
        }
        Ok(ProvedLine { operations: line.ops.len() as u64, not_compared })
    }

    /// Number of operations of the frames until now that no line had.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out + self.kept.as_ref().map_or(0, KeptProof::left_out)
    }

    fn prove_frame(
        &mut self,
        line: &VerifiedLine,
        frame: &[u8],
        key: &PublicKey,
    ) -> Result<(), RefusedLine> {
        let Some(commit) = judge(&mut self.judge, key, frame, line)? else {
            return match line.commit {
                None => Ok(()),
                Some(_) => Err(differs("the frame has no operations")),
            };
        };
        if line.ops.is_empty() && !commit.ops.is_empty() {
            return Err(differs("the line has none of the operations"));
        }
        line.ops.iter().try_for_each(|op| op.compare_claim(commit.ops))?;
        prove_ops(line, commit.car, key)?;
        if let Some(kept) = &mut self.kept {
            kept.operations = commit.ops.len();
        }
        Ok(())
    }

    /// The proof of a line, which with `--ops` is in the line before.
    fn proof_of(&mut self, line: &VerifiedLine) -> Result<Rc<Proof>, RefusedLine> {
        if line.proof.is_some() || line.kind != Kind::Operation {
            self.left_out = self.left_out();
            self.kept = line.proof.as_ref().map(|proof| KeptProof::of(line, proof.clone()));
        }
        let is_of_line = |kept: &&mut KeptProof| kept.did == line.did && kept.rev == line.rev;
        let kept = self.kept.as_mut().filter(is_of_line).ok_or_else(|| RefusedLine {
            code: MISSING_CODE,
            message: "a verified line without a proof: run follow with --proof".to_owned(),
        })?;
        for op in &line.ops {
            if !kept.paths.insert(op.path.clone()) {
                return Err(differs(&format!("{}: two operations", op.path)));
            }
        }
        if kept.paths.len() > event::Options::default().max_ops {
            Err(differs("more operations than a commit can have"))
        } else {
            Ok(kept.proof.clone())
        }
    }
}

impl KeptProof {
    fn of(line: &VerifiedLine, proof: Rc<Proof>) -> Self {
        let (did, rev) = (line.did.clone(), line.rev.clone());
        Self { did, rev, proof, operations: 0, paths: HashSet::new() }
    }

    fn left_out(&self) -> u64 {
        self.operations.saturating_sub(self.paths.len()) as u64
    }
}

/// Whether a line of the kind has operations.
fn is_of_records(kind: Kind) -> bool {
    matches!(kind, Kind::Commit | Kind::Operation | Kind::Resync)
}

/// Compares the id of a line with the account, the revision and the path.
fn check_id(line: &VerifiedLine) -> Result<(), RefusedLine> {
    let Some(id) = &line.id else { return Ok(()) };
    let of_commit = EventId::of_commit(&line.did, &line.rev);
    let of_repository = line.piece.is_some();
    let is_same = match (line.kind, &*line.ops) {
        (Kind::Commit, _) => id == of_commit.as_str(),
        (Kind::Operation, [op]) if !of_repository => *id == format!("{of_commit}/{}", op.path),
        (Kind::Operation, [op]) => {
            id.starts_with(&format!("{of_commit}/")) && id.ends_with(&format!("/{}", op.path))
        }
        (Kind::Resync, _) => id.starts_with(&format!("{of_commit}/")),
        _ => true,
    };
    if is_same { Ok(()) } else { Err(differs("the id is of another line")) }
}

/// The keys of a line that its blocks do not prove: whether a record is new, whether operations are left out, and
/// keys outside the blocks.
fn not_in_blocks(line: &VerifiedLine) -> Vec<&'static str> {
    let has_put = line.ops.iter().any(|op| op.action != Some(Action::Delete));
    let keys = [
        ("seq", line.seq.is_some()),
        ("time", line.time.is_some()),
        ("piece", line.piece.is_some()),
        ("action", has_put),
        ("ops", line.kind != Kind::Operation),
    ];
    keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect()
}

/// Judges a frame alone. The commit, if it is not a `#sync`.
fn judge<'f>(
    judge: &'f mut Judge,
    key: &PublicKey,
    frame: &'f [u8],
    line: &VerifiedLine,
) -> Result<Option<Commit<'f>>, RefusedLine> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    let key_of = |of: &str| (of == line.did).then_some(*key.as_compressed());
    let Ok(judged) = judge.judge(frame, &key_of, &mut MemoryState::default(), micros);
    if let Outcome::Rejected(why) = &judged.outcome {
        return Err(RefusedLine { code: why.code(), message: why.to_string() });
    }
    let (seq, did, rev, time, commit, kinds) = match judged.event {
        Some(Event::Commit(of)) => {
            (of.seq, of.repo, of.rev, of.time, Some(*of), &[Kind::Commit, Kind::Operation][..])
        }
        Some(Event::Sync(of)) => (of.seq, of.did, of.rev, of.time, None, &[Kind::Sync][..]),
        _ => return Err(differs("the frame has no commit")),
    };
    let is_same = line.did == did
        && line.rev == rev
        && line.time.as_deref() == Some(time)
        && line.seq == Some(seq)
        && kinds.contains(&line.kind);
    if is_same && judged.outcome.is_accepted() {
        Ok(commit)
    } else {
        Err(differs("the frame is another event"))
    }
}

/// Proves the operations of a line from a slice.
fn prove_ops(line: &VerifiedLine, slice: &[u8], key: &PublicKey) -> Result<(), RefusedLine> {
    let options = record::Options::default();
    let slice = record::Slice::read(slice, Some(&line.did), key, &options).map_err(refused)?;
    let root = slice.root().to_string();
    if line.rev != slice.commit().rev || line.commit != Some(root) {
        return Err(differs("the proof is of another commit"));
    }
    // Only the records of a fetched repository have a limit of their own.
    let max_bytes = match line.piece {
        Some(_) => repository::Options::default().max_record_bytes,
        None => usize::MAX,
    };
    for op in &line.ops {
        let proof = slice.prove(&op.path).map_err(refused)?;
        let compared = op.compare(proof.record(), max_bytes);
        compared.map_err(|what| differs(&format!("{}: {what}", op.path)))?;
    }
    Ok(())
}

impl Op {
    /// Compares the operation with a commit's operations: an update of a record that the consumer did not select is a
    /// deletion.
    fn compare_claim(&self, claims: &[RepoOp<'_>]) -> Result<(), RefusedLine> {
        let path = &self.path;
        let claim = claims.iter().find(|of| of.path == path);
        let claim = claim.ok_or_else(|| differs(&format!("{path}: not in the commit")))?;
        let action = if self.is_filtered { Action::Update } else { claim.action };
        if claim.action == action && (self.is_filtered || self.action == Some(action)) {
            Ok(())
        } else {
            Err(differs(&format!("{path}: the commit has another action")))
        }
    }

    /// Compares the operation with the record at its path, if there is one.
    fn compare(&self, proved: Option<(Cid, &[u8])>, max_bytes: usize) -> Result<(), &'static str> {
        match (self.action, self.is_filtered, proved) {
            (Some(Action::Delete), filtered, proved) if filtered == proved.is_some() => {
                self.has_no_content()
            }
            (Some(Action::Delete), true, _)
            | (Some(Action::Create | Action::Update), false, None) => {
                Err("the repository has no such record")
            }
            (Some(Action::Delete), false, _) => Err("the repository still has the record"),
            (Some(Action::Create | Action::Update), false, Some((cid, block))) => {
                let record = Record { path: self.path.clone(), cid, block };
                self.has_content(&record, max_bytes)
            }
            (None, ..) | (Some(_), true, _) => Err("no such operation"),
        }
    }

    fn has_no_content(&self) -> Result<(), &'static str> {
        match (&self.cid, &self.record, &self.invalid) {
            (None, None, None) => Ok(()),
            _ => Err("a deletion with a record"),
        }
    }

    fn has_content(&self, record: &Record<'_>, max_bytes: usize) -> Result<(), &'static str> {
        if self.cid != Some(record.cid.to_string()) {
            return Err("the record has another CID");
        }
        let invalid = InvalidRecord::of_record(record, max_bytes);
        let content = RecordContent::of(invalid.as_ref(), record.block);
        match (&content, &self.record, &self.invalid) {
            (RecordContent::Record(json), Some(record), None) if is_same(json.get(), record) => {
                Ok(())
            }
            (RecordContent::Record(_), Some(_), None) => Err("the line has another record"),
            (RecordContent::Invalid(of), None, Some(invalid)) if invalid.is(of) => Ok(()),
            (RecordContent::Invalid(_), None, Some(_)) => {
                Err("the line has other bytes or another rule")
            }
            (RecordContent::Record(_), None, Some(_)) => Err("the record is valid"),
            (RecordContent::Invalid(_), Some(_), None) => Err("the record is invalid"),
            (_, None, None) => Err("the line has no record"),
            (_, Some(_), Some(_)) => Err("the line has two contents"),
        }
    }
}

impl Invalid {
    /// Whether the line says the rule and the bytes of this record.
    fn is(&self, of: &InvalidBytes) -> bool {
        (&*self.code, self.offset, &*self.bytes) == (of.code, of.offset as u64, &*of.bytes)
    }
}

/// Whether the JSON of a record is this value.
fn is_same(json: &str, record: &Value) -> bool {
    strict_json::read(json.as_bytes(), MAX_LINE_DEPTH).is_ok_and(|of| of == *record)
}

impl RefusedLine {
    /// There is no key of the account in `place`.
    pub(super) fn no_key(place: &str, did: &str) -> Self {
        Self { code: NO_KEY_CODE, message: format!("{place} of {did}") }
    }
}

impl From<Malformed> for RefusedLine {
    fn from(Malformed(why): Malformed) -> Self {
        Self { code: MALFORMED_CODE, message: format!("not a line of follow: {why}") }
    }
}

fn refused(why: RepositoryRejection) -> RefusedLine {
    RefusedLine { code: why.code(), message: why.to_string() }
}

fn differs(what: &str) -> RefusedLine {
    RefusedLine { code: DIFFERS_CODE, message: what.to_owned() }
}

/// Code of a line that claims to be verified and has no proof.
const MISSING_CODE: &str = "proof/missing";
/// Code of a line that says something else than its proof.
const DIFFERS_CODE: &str = "proof/differs";
/// Code of a text that is not a line, or has a key twice, unknown or missing.
const MALFORMED_CODE: &str = "proof/line";
const NO_KEY_CODE: &str = "signature/no-key";
