//! The operations of frames as columns, without an object of Python for any of them.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atproto::event::{
    Block, Commit, Decoder, Event, FrameError, FrameFault, Options, RepoOp, Values,
};
use codec::car::{CarFault, HashProof};
use kernels::sha256;
use pyo3::prelude::*;
use verify::sync::SyncRejection;

use crate::columns::{BytesColumn, Pieces};
use crate::errors::Class;
use crate::record_batches::{RecordBatchStream, STREAM, read_batches};
use crate::record_columns::{RecordColumns, record_fields};

/// Decode frames into a row for each operation of their commits.
#[pyfunction]
pub(crate) fn decode_frames(
    stream: &Bound<'_, PyAny>,
    skips_malformed: bool,
    hashes_all: bool,
) -> PyResult<RecordBatchStream> {
    let reader = read_batches(STREAM, stream)?;
    let column = BytesColumn::index(STREAM, &reader.schema(), FRAME)?;
    let frames = DecodedFrames {
        pieces: Pieces::new(STREAM, reader, column),
        column,
        decoder: Decoder::new(options(hashes_all)),
        first_frame: 0,
        skips_malformed,
    };
    Ok(RecordBatchStream::once(operations_schema(), Box::new(frames)))
}

/// Values are built of records alone, which are hashed later if the other blocks are not hashed.
fn options(hashes_all: bool) -> Options {
    let mut options = Options::default();
    (options.values, options.trust_hashes) = (Values::ValidateOnly, !hashes_all);
    options
}

/// The operations of frames that are decoded when they are asked for.
struct DecodedFrames {
    pieces: Pieces,
    column: usize,
    decoder: Decoder,
    /// The number of the next frame in the stream.
    first_frame: i64,
    skips_malformed: bool,
}

impl Iterator for DecodedFrames {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let piece = self.pieces.next()?;
        Some(piece.and_then(|piece| self.operations(&piece)))
    }
}

impl DecodedFrames {
    fn operations(&mut self, piece: &RecordBatch) -> PyResult<RecordBatch> {
        let frames = BytesColumn::new(piece.column(self.column));
        let frames: Vec<&[u8]> =
            (0..piece.num_rows()).map(|row| frames.get(row).unwrap_or_default()).collect();
        let mut rows = OperationRows::new();
        for frames in frames.chunks(BATCH_FRAMES) {
            let events = self.decoder.decode_batch(frames);
            let mut digests = record_digests(events).into_iter();
            for ((number, event), frame) in (self.first_frame..).zip(events).zip(frames) {
                match event.and_then(|event| check_records(event, frame, &mut digests)) {
                    Ok(Event::Commit(commit)) => rows.push_all(number, &commit),
                    Ok(_) => {}
                    Err(_) if self.skips_malformed => {}
                    Err(error) => return Err(malformed(number, error)),
                }
            }
            self.first_frame += frames.len() as i64;
        }
        Ok(rows.finish())
    }
}

/// The records of a commit that are not hashed yet.
fn unhashed<'a>(event: &Event<'a>) -> impl Iterator<Item = &'a Block<'a>> {
    let ops = if let Event::Commit(commit) = event { commit.ops } else { &[] };
    ops.iter().filter_map(|op| op.record).filter(|block| block.proof == HashProof::Trusted)
}

/// The hashes of the records of all commits, which share the lanes of the processor.
fn record_digests(events: &[Result<Event<'_>, FrameError>]) -> Vec<sha256::Digest> {
    let records: Vec<&[u8]> =
        events.iter().flatten().flat_map(unhashed).map(|block| block.data).collect();
    sha256::digest_many(&records)
}

/// Compares the records of an event with their hashes, which are the next ones of `digests`.
fn check_records<'a>(
    event: Event<'a>,
    frame: &[u8],
    digests: &mut impl Iterator<Item = sha256::Digest>,
) -> Result<Event<'a>, FrameError> {
    let mut wrong = None;
    for (block, digest) in unhashed(&event).zip(digests) {
        if HashProof::of(block.cid, block.data, &digest).is_none() {
            wrong = wrong.or(Some(block));
        }
    }
    let Some(block) = wrong else { return Ok(event) };
    // The block was cut from this frame, so the distance of their starts is its offset.
    let offset = block.data.as_ptr().addr() - frame.as_ptr().addr();
    Err(FrameError { offset, fault: FrameFault::Car(CarFault::HashMismatch) })
}

#[cold]
fn malformed(number: i64, error: FrameError) -> PyErr {
    let message = format!("frame {number}: {error}");
    Python::attach(|py| {
        let code = SyncRejection::from(error).code();
        Class::Decode.error(py, message, code, Some(error.offset as u64))
    })
}

/// Rows of operations.
struct OperationRows {
    seq: Int64Builder,
    did: StringBuilder,
    rev: StringBuilder,
    action: StringBuilder,
    records: RecordColumns,
    frame: Int64Builder,
}

impl OperationRows {
    fn new() -> Self {
        Self {
            seq: Int64Builder::new(),
            did: StringBuilder::new(),
            rev: StringBuilder::new(),
            action: StringBuilder::new(),
            records: RecordColumns::new(),
            frame: Int64Builder::new(),
        }
    }

    fn push_all(&mut self, number: i64, commit: &Commit<'_>) {
        for op in commit.ops {
            self.seq.append_value(commit.seq);
            self.did.append_value(commit.repo);
            self.rev.append_value(commit.rev);
            self.action.append_value(op.action.as_str());
            self.push_record(op);
            self.frame.append_value(number);
        }
    }

    fn push_record(&mut self, op: &RepoOp<'_>) {
        // Nothing proves the bytes under a hash function that is not known.
        let block = op.record.filter(|block| block.cid.sha256().is_some());
        self.records.push(op.path, op.cid, block.map(|block| block.data));
    }

    fn finish(mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.seq.finish()),
            Arc::new(self.did.finish()),
            Arc::new(self.rev.finish()),
            Arc::new(self.action.finish()),
        ];
        columns.extend(self.records.finish());
        columns.push(Arc::new(self.frame.finish()));
        RecordBatch::try_new(operations_schema(), columns).expect("the columns of the schema")
    }
}

/// The columns of operations; a deletion has no record.
fn operations_schema() -> SchemaRef {
    let mut fields = vec![
        Field::new("seq", DataType::Int64, false),
        Field::new("did", DataType::Utf8, false),
        Field::new("rev", DataType::Utf8, false),
        Field::new("action", DataType::Utf8, false),
    ];
    fields.extend(record_fields(true));
    fields.push(Field::new("frame", DataType::Int64, false));
    Arc::new(Schema::new(fields))
}

/// The column that has the frames.
pub(crate) const FRAME: &str = "frame";

/// Frames that are decoded together: more do not fit the cache of a core.
const BATCH_FRAMES: usize = 128;
