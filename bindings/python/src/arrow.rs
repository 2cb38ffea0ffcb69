//! Records as columns: those of frames and of repositories, without an object of Python for any of them.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wireproof::atproto::event::{Commit, Decoder, Event, FrameError, Options, RepoOp};
use wireproof::atproto::repo::{Record, RepoError, Repository};
use wireproof::codec::CidRef;
use wireproof::codec::car::HashProof;
use wireproof::codec::cbor::{Arena, Value, decode};
use wireproof::codec::json;
use wireproof::crypto::PublicKey;
use wireproof::verify::repository::{self, RepositoryRejection};
use wireproof::verify::sync::SyncRejection;

use crate::columns::{BytesColumn, Pieces};
use crate::errors::{self, Class};
use crate::record_batches::{RecordBatchStream, read_batches};

/// Decode frames into a row for each operation of their commits.
#[pyfunction]
pub(crate) fn decode_frames(
    stream: &Bound<'_, PyAny>,
    skips_malformed: bool,
) -> PyResult<RecordBatchStream> {
    let reader = read_batches(STREAM, stream)?;
    let column = BytesColumn::index(STREAM, &reader.schema(), FRAME)?;
    let frames = DecodedFrames {
        pieces: Pieces::new(STREAM, reader, column),
        column,
        decoder: Decoder::new(Options::default()),
        first_frame: 0,
        skips_malformed,
    };
    Ok(RecordBatchStream::once(operations_schema(), Box::new(frames)))
}

/// Verify a repository, and return its records.
#[pyfunction]
pub(crate) fn repository_records(
    py: Python<'_>,
    car: &[u8],
    key: &str,
    did: Option<&str>,
) -> PyResult<RecordBatchStream> {
    let key = PublicKey::from_did_key(key)
        .map_err(|error| PyValueError::new_err(format!("argument 'key': {error}")))?;
    let batches = py.detach(|| {
        let whole = repository::verify(car, did, &key, &repository::Options::default())?;
        Ok::<_, RepositoryRejection>(record_batches(&whole)?)
    });
    let batches = batches.map_err(|why| errors::of_repository(py, &why))?;
    Ok(stored_stream(batches))
}

/// A stream of records that are there, which can be read any number of times.
pub(crate) fn stored_stream(batches: Vec<RecordBatch>) -> RecordBatchStream {
    let batches = Arc::new(batches);
    RecordBatchStream::repeatable(records_schema(), move || {
        let batches = batches.clone();
        Ok(Box::new((0..batches.len()).map(move |index| Ok(batches[index].clone()))))
    })
}

/// The records of a repository in the order of their paths, in batches: each is small enough for offsets of 32 bits.
pub(crate) fn record_batches(repository: &Repository<'_>) -> Result<Vec<RecordBatch>, RepoError> {
    let (mut batches, mut records) = (Vec::new(), repository.records());
    loop {
        let batch = records_batch(records.by_ref().take(BATCH_RECORDS))?;
        if batch.num_rows() == 0 {
            return Ok(batches);
        }
        batches.push(batch);
    }
}

/// Records as the columns `collection`, `rkey`, `cid`, `record` and `json`.
pub(crate) fn records_batch<'a>(
    records: impl Iterator<Item = Result<Record<'a>, RepoError>>,
) -> Result<RecordBatch, RepoError> {
    let (mut columns, mut arena) = (RecordColumns::default(), Arena::new());
    for record in records {
        let Record { path, cid, block } = record?;
        // One that is not canonical has no JSON, and is shown as its bytes.
        let value = decode(block, &arena).ok();
        columns.push(&path, Some(cid.as_cid_ref()), Some(block), value.as_ref());
        arena.reset();
    }
    let batch = RecordBatch::try_new(records_schema(), columns.finish());
    Ok(batch.expect("the columns of the schema"))
}

/// The columns of records.
#[derive(Default)]
struct RecordColumns {
    collection: StringBuilder,
    rkey: StringBuilder,
    cid: StringBuilder,
    record: LargeBinaryBuilder,
    json: LargeStringBuilder,
    /// The JSON of a record.
    text: Vec<u8>,
}

impl RecordColumns {
    fn push(
        &mut self,
        path: &str,
        cid: Option<CidRef<'_>>,
        block: Option<&[u8]>,
        value: Option<&Value<'_>>,
    ) {
        let (collection, rkey) = path.split_once('/').unwrap_or((path, ""));
        self.collection.append_value(collection);
        self.rkey.append_value(rkey);
        append_cid(&mut self.cid, cid);
        self.record.append_option(block);
        self.text.clear();
        let json = value.filter(|value| json::append(&mut self.text, value).is_ok());
        let json = json.and_then(|_| str::from_utf8(&self.text).ok());
        self.json.append_option(json);
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.collection.finish()),
            Arc::new(self.rkey.finish()),
            Arc::new(self.cid.finish()),
            Arc::new(self.record.finish()),
            Arc::new(self.json.finish()),
        ]
    }
}

/// Appends the text of a CID.
pub(crate) fn append_cid(column: &mut StringBuilder, cid: Option<CidRef<'_>>) {
    match cid {
        None => column.append_null(),
        Some(cid) => {
            write!(column, "{cid}").expect("memory is written");
            column.append_value("");
        }
    }
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
        let mut rows = OperationRows::default();
        for frames in frames.chunks(BATCH_FRAMES) {
            let numbers = self.first_frame..;
            for (number, event) in numbers.zip(self.decoder.decode_batch(frames)) {
                match event {
                    Ok(Event::Commit(commit)) => rows.push_all(number, commit),
                    Ok(_) => {}
                    Err(_) if self.skips_malformed => {}
                    Err(error) => return Err(malformed(number, *error)),
                }
            }
            self.first_frame += frames.len() as i64;
        }
        Ok(rows.finish())
    }
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
#[derive(Default)]
struct OperationRows {
    seq: Int64Builder,
    did: StringBuilder,
    rev: StringBuilder,
    action: StringBuilder,
    records: RecordColumns,
    frame: Int64Builder,
}

impl OperationRows {
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
        let block = op.record.filter(|block| block.proof == HashProof::Checked);
        let value = block.and_then(|block| block.value);
        self.records.push(op.path, op.cid, block.map(|block| block.data), value.as_ref());
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

/// The columns of records.
pub(crate) fn records_schema() -> SchemaRef {
    Arc::new(Schema::new(record_fields(false)))
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

fn record_fields(has_deletions: bool) -> Vec<Field> {
    vec![
        Field::new("collection", DataType::Utf8, false),
        Field::new("rkey", DataType::Utf8, false),
        Field::new("cid", DataType::Utf8, has_deletions),
        Field::new("record", DataType::LargeBinary, has_deletions),
        Field::new("json", DataType::LargeUtf8, true),
    ]
}

/// The argument that has the batches.
pub(crate) const STREAM: &str = "stream";

/// The column that has the frames.
pub(crate) const FRAME: &str = "frame";

/// Frames that are decoded together: more do not fit the cache of a core.
const BATCH_FRAMES: usize = 128;

/// Records of a batch: their paths are shorter than 2 GiB.
const BATCH_RECORDS: usize = 1 << 16;
