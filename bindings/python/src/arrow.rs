//! Records as columns: those of frames and of repositories, without an object of Python for any of them.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use wireproof::atproto::event::{
    Block, Commit, Decoder, Event, FrameError, FrameFault, Options, RepoOp, Values,
};
use wireproof::atproto::repo::{Record, RepoError, Repository};
use wireproof::codec::CidRef;
use wireproof::codec::car::{CarFault, HashProof};
use wireproof::codec::cbor::{Arena, decode};
use wireproof::codec::json;
use wireproof::crypto::PublicKey;
use wireproof::kernels::sha256;
use wireproof::verify::repository::{self, RepositoryRejection};
use wireproof::verify::sync::SyncRejection;

use crate::arguments::{check_columns, wrong_value};
use crate::columns::{BytesColumn, Pieces};
use crate::errors::{self, Class};
use crate::record_batches::{RecordBatchStream, STREAM, read_batches};

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

/// Verify a repository, and return its records.
#[pyfunction]
pub(crate) fn repository_records(
    py: Python<'_>,
    car: &[u8],
    key: &str,
    did: Option<&str>,
) -> PyResult<RecordBatchStream> {
    let key = PublicKey::from_did_key(key).map_err(|error| wrong_value("key", error))?;
    let batches = py.detach(|| {
        let whole = repository::verify(car, did, &key, &repository::Options::default())?;
        Ok::<_, RepositoryRejection>(record_batches(&whole, &RecordSelection::all())?)
    });
    let batches = batches.map_err(|why| errors::of_repository(py, &why))?;
    Ok(stored_stream(records_schema(), batches))
}

/// A stream of records that are there, which can be read any number of times.
pub(crate) fn stored_stream(schema: SchemaRef, batches: Vec<RecordBatch>) -> RecordBatchStream {
    let batches = Arc::new(batches);
    RecordBatchStream::repeatable(schema, move || {
        let batches = batches.clone();
        Ok(Box::new((0..batches.len()).map(move |index| Ok(batches[index].clone()))))
    })
}

/// Which columns of records are made.
pub(crate) struct RecordSelection(Vec<usize>);

impl RecordSelection {
    fn all() -> Self {
        Self((0..records_schema().fields().len()).collect())
    }

    /// The columns of these names in their order, or all.
    pub(crate) fn new(columns: Option<&[String]>) -> PyResult<Self> {
        let Some(columns) = columns else { return Ok(Self::all()) };
        let schema = records_schema();
        check_columns("a record", &schema, columns)?;
        Ok(Self(columns.iter().filter_map(|name| schema.index_of(name).ok()).collect()))
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::new(records_schema().project(&self.0).expect("columns of the schema"))
    }
}

/// The records of a repository in the order of their paths, in batches: each is small enough for offsets of 32 bits.
pub(crate) fn record_batches(
    repository: &Repository<'_>,
    selection: &RecordSelection,
) -> Result<Vec<RecordBatch>, RepoError> {
    let (mut batches, mut records) = (Vec::new(), repository.records());
    loop {
        let batch = records_batch(records.by_ref().take(BATCH_RECORDS), selection)?;
        if batch.num_rows() == 0 {
            return Ok(batches);
        }
        batches.push(batch);
    }
}

/// Records as the selected columns of `collection`, `rkey`, `cid`, `record` and `json`.
fn records_batch<'a>(
    records: impl Iterator<Item = Result<Record<'a>, RepoError>>,
    RecordSelection(selected): &RecordSelection,
) -> Result<RecordBatch, RepoError> {
    // JSON takes most of the time.
    let lacks_json = !selected.contains(&JSON);
    let mut columns = RecordColumns { lacks_json, ..RecordColumns::default() };
    for record in records {
        let Record { path, cid, block } = record?;
        columns.push(&path, Some(cid.as_cid_ref()), Some(block));
    }
    let batch = RecordBatch::try_new(records_schema(), columns.finish());
    let batch = batch.expect("the columns of the schema");
    Ok(batch.project(selected).expect("columns of the schema"))
}

/// The number of the column `json`.
const JSON: usize = 4;

/// The columns of records.
#[derive(Default)]
struct RecordColumns {
    collection: StringBuilder,
    rkey: StringBuilder,
    cid: StringBuilder,
    record: LargeBinaryBuilder,
    json: LargeStringBuilder,
    /// Whether the JSON of every record is null.
    lacks_json: bool,
    /// The value of a record, and its JSON.
    arena: Arena,
    text: Vec<u8>,
}

impl RecordColumns {
    fn push(&mut self, path: &str, cid: Option<CidRef<'_>>, block: Option<&[u8]>) {
        let (collection, rkey) = path.split_once('/').unwrap_or((path, ""));
        self.collection.append_value(collection);
        self.rkey.append_value(rkey);
        append_cid(&mut self.cid, cid);
        self.record.append_option(block);
        let has_json = !self.lacks_json && block.is_some_and(|block| self.write_json(block));
        let json = str::from_utf8(&self.text).ok().filter(|_| has_json);
        self.json.append_option(json);
    }

    /// Writes the JSON of a record. One that is not canonical has none, and is shown as its bytes.
    fn write_json(&mut self, block: &[u8]) -> bool {
        self.text.clear();
        self.arena.reset();
        let value = decode(block, &self.arena);
        value.is_ok_and(|value| json::append(&mut self.text, &value).is_ok())
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
        if block.cid.sha256().is_some_and(|expected| *expected != digest) {
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

/// The column that has the frames.
pub(crate) const FRAME: &str = "frame";

/// Frames that are decoded together: more do not fit the cache of a core.
const BATCH_FRAMES: usize = 128;

/// Records of a batch: their paths are shorter than 2 GiB.
const BATCH_RECORDS: usize = 1 << 16;
