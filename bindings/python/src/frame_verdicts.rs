//! Verification of frames in record batches: one row in per frame, one row out with its verdict.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields};
use codec::CidRef;
use pyo3::prelude::*;

use crate::accounts::store_error;
use crate::arguments::{clock_micros, time_since_1970};
use crate::columns::{BytesColumn, KeptColumns, Pieces, TimeColumn};
use crate::frame_operations::FRAME;
use crate::judge::{Judge, Route};
use crate::judged::{Facts, OpFacts, Part};
use crate::record_batches::{RecordBatchStream, STREAM, read_batches};
use crate::record_columns::append_cid;

/// Verify a stream of frames.
#[pyfunction]
pub(crate) fn verify_frames(
    stream: &Bound<'_, PyAny>,
    judge: &Bound<'_, PyAny>,
    now: Option<&Bound<'_, PyAny>>,
    keep: Vec<String>,
) -> PyResult<RecordBatchStream> {
    let (judge, now) = (Judge::of(judge)?, now.map(time_since_1970).transpose()?);
    let reader = read_batches(STREAM, stream)?;
    let input = reader.schema();
    let frame = BytesColumn::index(STREAM, &input, FRAME)?;
    let received = TimeColumn::index(STREAM, &input, "received")?;
    let kept = KeptColumns::new(&input, &keep, frame_fields())?;
    let schema = kept.schema.clone();
    let pieces = Pieces::new(STREAM, reader, frame);
    let frames = FrameVerdicts { pieces, frame, received, kept, judge, now };
    Ok(RecordBatchStream::once(schema, Box::new(frames)))
}

/// Frames that are judged when their verdicts are asked for.
struct FrameVerdicts {
    pieces: Pieces,
    frame: usize,
    received: Option<usize>,
    kept: KeptColumns,
    judge: Py<Judge>,
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
        let (times, routes) = (self.times(piece), Route::of_all(&frames));
        let judge = self.judge.get();
        let keys = Python::attach(|py| judge.find_keys(py, &routes))?;
        let (mut rows, mut start) = (FrameRows::default(), 0);
        while start < frames.len() {
            let (end, now) = group(&times, start);
            let judged = judge.judge(&frames[start..end], &routes[start..end], &keys, now);
            for (row, facts) in (start..end).zip(judged.map_err(store_error)?) {
                rows.push(frames[row], &facts, column.get(row).is_none());
            }
            start = end;
        }
        self.kept.batch(piece, rows.finish())
    }

    /// The times at which the rows are judged: when they were received, if that is known.
    fn times(&self, piece: &RecordBatch) -> Vec<u64> {
        let now = self.now.unwrap_or_else(clock_micros);
        let received = self.received.map(|index| TimeColumn::new(piece.column(index)));
        let time = |row| received.as_ref().and_then(|times| times.get(row)).unwrap_or(now);
        (0..piece.num_rows()).map(time).collect()
    }
}

/// The end of the rows from `start` that are judged together, which were received within a second, and the time of the last one.
fn group(times: &[u64], start: usize) -> (usize, u64) {
    let rows = &times[start..];
    let is_near = |time: &u64| (rows[0]..=rows[0].saturating_add(GROUP_MICROS)).contains(time);
    let count = rows.iter().take_while(|time| is_near(time)).count();
    let last = rows[..count].iter().max().copied().unwrap_or(rows[0]);
    (start + count, last)
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
    fn push(&mut self, frame: &[u8], facts: &Facts, is_null: bool) {
        self.seq.append_option(facts.seq.and_then(|seq| i64::try_from(seq).ok()));
        self.kind.append_value(&facts.kind);
        self.did.append_option(text(frame, &facts.did));
        self.rev.append_option(text(frame, &facts.rev));
        self.verdict.append_value(&facts.verdict);
        self.code.append_value(&facts.code);
        self.verified.append_value(facts.is_verified);
        self.chain.append_option(facts.chain.as_deref());
        for op in &facts.ops {
            self.push_op(frame, op);
        }
        self.ops.append(facts.is_commit());
        let message = if is_null { Some("the frame is null") } else { facts.message.as_deref() };
        self.message.append_option(message);
    }

    fn push_op(&mut self, frame: &[u8], op: &OpFacts) {
        let row = self.ops.values();
        let path = op.path.str(frame);
        let (collection, rkey) = path.split_once('/').unwrap_or((path, ""));
        for (index, text) in [&*op.action, collection, rkey].into_iter().enumerate() {
            text_column(row, index).append_value(text);
        }
        let cid = op.cid.as_ref().and_then(|cid| CidRef::from_bytes(cid.bytes(frame)));
        append_cid(text_column(row, CID_INDEX), cid);
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

fn text<'f>(frame: &'f [u8], part: &'f Option<Part>) -> Option<&'f str> {
    Some(part.as_ref()?.str(frame))
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

/// Frames that are judged together were received within this time, in microseconds.
const GROUP_MICROS: u64 = 1_000_000;
