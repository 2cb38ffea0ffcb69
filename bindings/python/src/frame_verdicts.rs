//! Verification of frames in record batches: a row for each frame in, a row of its verdict out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wireproof::atproto::event::{Event, Header, RepoOp, peek};
use wireproof::codec::cbor::{KeyOrder, Reader};
use wireproof::verify::sync::{Judge, Judged, MemoryState, Outcome};

use crate::account_keys::AccountKeys;
use crate::arrow::{FRAME, append_cid};
use crate::columns::{BytesColumn, KeptColumns, Pieces, TimeColumn};
use crate::judged::{chain, claims, kind, message, verdict};
use crate::record_batches::{RecordBatchStream, STREAM, lock, read_batches};

/// What is known of accounts between streams of frames: the newest verified commit of each.
///
/// Pass it as `state` to several calls of `verify_frames`, and the events of the later ones continue those of the earlier ones.
/// Their keys are prepared once, too, so that many short streams are as fast as a long one. An account takes about 100 bytes,
/// and the keys up to 64 MiB. `len(states)` is the number of accounts.
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct AccountStates(SharedJudge);

/// Streams that share it take turns, batch by batch.
type SharedJudge = Arc<Mutex<StatefulJudge>>;

/// A judge, and the states of the accounts that it has judged.
#[derive(Default)]
struct StatefulJudge {
    judge: Judge,
    states: MemoryState,
}

#[pymethods]
impl AccountStates {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| lock(&self.0).states.len())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<wireproof.AccountStates of {} accounts>", self.__len__(py))
    }
}

/// Verify a stream of frames.
#[pyfunction]
pub(crate) fn verify_frames(
    stream: &Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    state: Option<&Bound<'_, AccountStates>>,
    now: Option<u64>,
    batched_keys: bool,
    keep: Vec<String>,
) -> PyResult<RecordBatchStream> {
    let keys = AccountKeys::new(keys, batched_keys)?;
    let reader = read_batches(STREAM, stream)?;
    let input = reader.schema();
    let frame = BytesColumn::index(STREAM, &input, FRAME)?;
    let received = TimeColumn::index(STREAM, &input, "received")?;
    let kept = KeptColumns::new(&input, &keep, frame_fields())?;
    let schema = kept.schema.clone();
    let judge = state.map_or_else(Arc::default, |states| states.get().0.clone());
    let pieces = Pieces::new(STREAM, reader, frame);
    let frames = FrameVerdicts { pieces, frame, received, kept, keys, judge, now };
    Ok(RecordBatchStream::once(schema, Box::new(frames)))
}

/// Frames that are judged when their verdicts are asked for.
struct FrameVerdicts {
    pieces: Pieces,
    frame: usize,
    received: Option<usize>,
    kept: KeptColumns,
    keys: AccountKeys,
    judge: SharedJudge,
    /// The time of the judgement in microseconds since 1970; the clock's if there is none.
    now: Option<u64>,
}

impl Iterator for FrameVerdicts {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let piece = self.pieces.next()?;
        Some(piece.and_then(|piece| self.judge(&piece)))
    }
}

impl FrameVerdicts {
    fn judge(&mut self, piece: &RecordBatch) -> PyResult<RecordBatch> {
        let column = BytesColumn::new(piece.column(self.frame));
        let frames: Vec<&[u8]> =
            (0..piece.num_rows()).map(|row| column.get(row).unwrap_or_default()).collect();
        let times = self.times(piece)?;
        let keys = self.keys.look_up(&accounts_of(&frames))?;
        let key_of = |did: &str| keys.get(did).copied();
        let mut rows = FrameRows::default();
        let mut shared = lock(&self.judge);
        let StatefulJudge { judge, states } = &mut *shared;
        let mut start = 0;
        while start < frames.len() {
            let (end, now) = group(&times, start);
            let Ok(judged) = judge.judge_batch(&frames[start..end], &key_of, states, now);
            for (row, judged) in (start..end).zip(&judged) {
                rows.push(judged, column.get(row).is_none());
            }
            start = end;
        }
        self.kept.batch(piece, rows.finish())
    }

    /// The time at which each row is judged: when it was received, if that is known.
    fn times(&self, piece: &RecordBatch) -> PyResult<Vec<u64>> {
        let now = match self.now {
            Some(now) => now,
            None => now_micros()?,
        };
        let received = self.received.map(|index| TimeColumn::new(piece.column(index)));
        let time = |row| received.as_ref().and_then(|times| times.get(row)).unwrap_or(now);
        Ok((0..piece.num_rows()).map(time).collect())
    }
}

/// The end of the rows from `start` that are judged together, which were received within a second, and the time of the last one.
fn group(times: &[u64], start: usize) -> (usize, u64) {
    let rows = &times[start..times.len().min(start + BATCH_FRAMES)];
    let is_near = |time: &u64| (rows[0]..=rows[0].saturating_add(GROUP_MICROS)).contains(time);
    let count = rows.iter().take_while(|time| is_near(time)).count();
    let last = rows[..count].iter().max().copied().unwrap_or(rows[0]);
    (start + count, last)
}

fn now_micros() -> PyResult<u64> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).map(|time| time.as_micros());
    let micros = since_1970.ok().and_then(|micros| u64::try_from(micros).ok());
    micros.ok_or_else(|| PyValueError::new_err("the clock of this machine is before 1970"))
}

/// The accounts of commits and syncs, each once. What cannot be read is refused before its key is needed.
fn accounts_of<'a>(frames: &[&'a [u8]]) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    let accounts = frames.iter().filter_map(|frame| account_of(frame));
    accounts.filter(|did| seen.insert(*did)).collect()
}

fn account_of(frame: &[u8]) -> Option<&str> {
    let (header, payload_offset) = peek(frame).ok()?;
    let field = match (header.op, header.kind?) {
        (Header::MESSAGE, "#commit") => "repo",
        (Header::MESSAGE, "#sync") => "did",
        _ => return None,
    };
    let mut reader = Reader::new(&frame[payload_offset..]);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map().ok()? {
        match reader.key(&mut keys).ok()? {
            key if key == field => return reader.text().ok(),
            _ => reader.skip().ok()?,
        }
    }
    None
}

/// Rows of the verdicts of frames.
struct FrameRows {
    seq: Int64Builder,
    kind: StringBuilder,
    did: StringBuilder,
    rev: StringBuilder,
    verdict: StringBuilder,
    code: StringBuilder,
    verified: BooleanBuilder,
    chain: StringBuilder,
    ops: ListBuilder<StructBuilder>,
    message: StringBuilder,
}

impl Default for FrameRows {
    fn default() -> Self {
        Self {
            seq: Int64Builder::new(),
            kind: StringBuilder::new(),
            did: StringBuilder::new(),
            rev: StringBuilder::new(),
            verdict: StringBuilder::new(),
            code: StringBuilder::new(),
            verified: BooleanBuilder::new(),
            chain: StringBuilder::new(),
            ops: ListBuilder::new(StructBuilder::from_fields(op_fields(), 0)),
            message: StringBuilder::new(),
        }
    }
}

impl FrameRows {
    fn push(&mut self, judged: &Judged<'_>, is_null: bool) {
        let Judged { event, outcome, .. } = judged;
        let kind = event.map_or("undecodable", kind);
        let (did, rev) = event.map_or((None, None), claims);
        self.seq.append_option(event.and_then(Event::seq));
        self.kind.append_value(kind);
        self.did.append_option(did);
        self.rev.append_option(rev);
        self.verdict.append_value(verdict(outcome));
        self.code.append_value(outcome.code());
        self.verified.append_value(outcome.is_accepted());
        self.chain.append_option(chain(outcome));
        self.push_ops(outcome);
        let message = match is_null {
            true => Some("the frame is null".to_owned()),
            false => message(outcome),
        };
        self.message.append_option(message);
    }

    /// The operations of a verified commit.
    fn push_ops(&mut self, outcome: &Outcome<'_>) {
        let Outcome::Commit(commit, _) = outcome else { return self.ops.append_null() };
        for op in commit.ops {
            self.push_op(op);
        }
        self.ops.append(true);
    }

    fn push_op(&mut self, op: &RepoOp<'_>) {
        let row = self.ops.values();
        let (collection, rkey) = op.path.split_once('/').unwrap_or((op.path, ""));
        for (index, text) in [op.action.as_str(), collection, rkey].into_iter().enumerate() {
            text_column(row, index).append_value(text);
        }
        append_cid(text_column(row, CID_INDEX), op.cid);
        row.append(true);
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.seq.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.did.finish()),
            Arc::new(self.rev.finish()),
            Arc::new(self.verdict.finish()),
            Arc::new(self.code.finish()),
            Arc::new(self.verified.finish()),
            Arc::new(self.chain.finish()),
            Arc::new(self.ops.finish()),
            Arc::new(self.message.finish()),
        ]
    }
}

fn text_column(row: &mut StructBuilder, index: usize) -> &mut StringBuilder {
    row.field_builder(index).expect("all fields of an operation are texts")
}

fn frame_fields() -> Vec<Field> {
    vec![
        Field::new("seq", DataType::Int64, true),
        Field::new("kind", DataType::Utf8, false),
        Field::new("did", DataType::Utf8, true),
        Field::new("rev", DataType::Utf8, true),
        Field::new("verdict", DataType::Utf8, false),
        Field::new("code", DataType::Utf8, false),
        Field::new("verified", DataType::Boolean, false),
        Field::new("chain", DataType::Utf8, true),
        Field::new_list("ops", Field::new("item", DataType::Struct(op_fields()), true), true),
        Field::new("message", DataType::Utf8, true),
    ]
}

fn op_fields() -> Fields {
    let text = |name, is_nullable| Field::new(name, DataType::Utf8, is_nullable);
    let fields = ["action", "collection", "rkey"].map(|name| text(name, false));
    fields.into_iter().chain([text("cid", true)]).collect()
}

/// The place of the CID among the fields of an operation.
const CID_INDEX: usize = 3;

/// Frames that are judged together.
const BATCH_FRAMES: usize = 128;

/// Frames that are judged together were received within this time, in microseconds.
const GROUP_MICROS: u64 = 1_000_000;
