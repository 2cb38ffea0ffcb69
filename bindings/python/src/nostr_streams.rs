//! Nostr events in record batches: decoded from a column of bytes, encoded into one, and verified. One row in is one row
//! out.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use nostr::{
    Arena, DecodeError, Event, EventFault, IdSerialization, Limits, Value, verify_many_with,
};
use nostr_formats::Format;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::{
    BytesColumn, KeptColumns, MAX_PIECE_BYTES, MAX_PIECE_ROWS, Pieces, RowSizes, TextColumn,
    read_error,
};
use crate::errors::Class;
use crate::event_columns::{EventColumns, EventFields, EventRows, event_fields};
use crate::nostr::{code, decode_error, named, serialization};
use crate::record_batches::{
    RecordBatchStream, STREAM, column_index, column_type_error, read_batches,
};

/// Decode the events of a column.
#[pyfunction]
pub(crate) fn decode_events(
    stream: &Bound<'_, PyAny>,
    format: &str,
    has_nulls: bool,
    keep: Vec<String>,
) -> PyResult<RecordBatchStream> {
    let format = named(format)?;
    let reader = read_batches(STREAM, stream)?;
    let column = EncodedColumn::index(format, &reader.schema())?;
    let kept = KeptColumns::new(&reader.schema(), &keep, event_fields(has_nulls))?;
    let schema = kept.schema.clone();
    let pieces = Pieces::measured(STREAM, reader, move |batch| EncodedColumn::sizes(column, batch));
    let events = DecodedEvents { pieces, format, column, kept, has_nulls, first_row: 0 };
    Ok(RecordBatchStream::once(schema, Box::new(events)))
}

/// Encode the events of record batches, one into a value of the column `event`.
#[pyfunction]
pub(crate) fn encode_events(
    stream: &Bound<'_, PyAny>,
    format: &str,
    has_nulls: bool,
    keep: Vec<String>,
) -> PyResult<RecordBatchStream> {
    let format = named(format)?;
    let reader = read_batches(STREAM, stream)?;
    let fields = EventFields::find(STREAM, &reader.schema())?;
    let encoded = Field::new(EVENT, encoded_type(format), has_nulls);
    let kept = KeptColumns::new(&reader.schema(), &keep, vec![encoded])?;
    let schema = kept.schema.clone();
    let pieces = Pieces::measured(STREAM, reader, move |batch| event_sizes(fields, batch));
    let events = EncodedEvents { pieces, format, fields, kept, has_nulls, first_row: 0 };
    Ok(RecordBatchStream::once(schema, Box::new(events)))
}

/// Verify the events of record batches: of the column `event`, if there is one, else of their columns.
#[pyfunction]
pub(crate) fn verify_events(
    stream: &Bound<'_, PyAny>,
    format: &str,
    ids: &str,
    keep: Vec<String>,
) -> PyResult<RecordBatchStream> {
    let (format, ids) = (named(format)?, serialization(ids)?);
    let reader = read_batches(STREAM, stream)?;
    let input = Input::find(format, &reader.schema())?;
    let results = [event_fields(true), verdict_fields()].concat();
    let kept = KeptColumns::new(&reader.schema(), &keep, results)?;
    let schema = kept.schema.clone();
    let pieces = Pieces::measured(STREAM, reader, move |batch| input.sizes(batch));
    let verdicts = EventVerdicts { pieces, input, ids, kept };
    Ok(RecordBatchStream::once(schema, Box::new(verdicts)))
}

/// Decode a batch of a format into columns.
#[pyfunction]
pub(crate) fn batch_to_arrow(
    py: Python<'_>,
    format: &str,
    data: &[u8],
) -> PyResult<RecordBatchStream> {
    let format = named(format)?;
    let batches = py.detach(|| {
        let arena = Arena::new();
        let events = format.decode_batch(data, &arena, &Limits::default())?;
        Ok::<_, DecodeError>(record_batches(events))
    });
    let batches = batches.map_err(|error| decode_error(py, error))?;
    let batches = Arc::new(batches);
    Ok(RecordBatchStream::repeatable(events_schema(), move || {
        let batches = batches.clone();
        Ok(Box::new((0..batches.len()).map(move |index| Ok(batches[index].clone()))))
    }))
}

/// Events as record batches that are as small as pieces are.
fn record_batches(events: &[Event<'_>]) -> Vec<RecordBatch> {
    let (mut batches, mut rest) = (Vec::new(), events);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(piece_len(rest));
        let mut rows = EventRows::default();
        piece.iter().for_each(|event| rows.push(event));
        let batch = RecordBatch::try_new(events_schema(), rows.finish());
        batches.push(batch.expect("the columns of the schema"));
        rest = later;
    }
    batches
}

/// Number of events, at least one, that are in a record batch together.
fn piece_len(events: &[Event<'_>]) -> usize {
    let mut bytes = 0;
    let is_in_piece = |event: &&Event<'_>| {
        let is_in_piece = bytes < MAX_PIECE_BYTES;
        let values = event.tags.iter().flat_map(|tag| tag.iter());
        bytes += event.content.len() + values.map(Value::text_len).sum::<usize>();
        is_in_piece
    };
    events.iter().take(MAX_PIECE_ROWS).take_while(is_in_piece).count()
}

fn events_schema() -> SchemaRef {
    Arc::new(Schema::new(event_fields(false)))
}

/// Encode the events of record batches as one batch of a format.
#[pyfunction]
pub(crate) fn batch_from_arrow<'py>(
    format: &str,
    stream: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = named(format)?;
    let reader = read_batches(STREAM, stream)?;
    let fields = EventFields::find(STREAM, &reader.schema())?;
    let bytes = stream.py().detach(|| {
        let batches: Result<Vec<RecordBatch>, _> = reader.collect();
        encode_batch(format, fields, &batches.map_err(|error| read_error(STREAM, &error))?)
    });
    Ok(PyBytes::new(stream.py(), &bytes?))
}

fn encode_batch(format: Format, fields: EventFields, batches: &[RecordBatch]) -> PyResult<Vec<u8>> {
    let columns = batches.iter().map(|batch| EventColumns::new(fields, batch));
    let (columns, arena): (Vec<EventColumns>, _) = (columns.collect(), Arena::new());
    let (mut events, mut out) = (Vec::new(), Vec::new());
    for (columns, batch) in columns.iter().zip(batches) {
        for row in 0..batch.num_rows() {
            let number = events.len() as u64;
            events.push(
                columns.event(row, &arena).map_err(|why| at_row(number, UNREADABLE, why, None))?,
            );
        }
    }
    match format.encode_batch(&events, &mut out) {
        Ok(()) => Ok(out),
        Err(error) => Err(raised(error.to_string(), UNENCODABLE, None)),
    }
}

/// A column of events of a format: bytes, or text if the format is JSON.
enum EncodedColumn {
    Bytes(BytesColumn),
    Text(TextColumn),
}

impl EncodedColumn {
    fn index(format: Format, schema: &Schema) -> PyResult<usize> {
        let index = column_index(STREAM, schema, EVENT)?;
        match schema.field(index).data_type() {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(index),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if format == Format::Json => {
                Ok(index)
            }
            _ if format == Format::Json => {
                Err(column_type_error(STREAM, schema.field(index), "text or binary"))
            }
            _ => Err(column_type_error(STREAM, schema.field(index), "binary")),
        }
    }

    fn new(column: &ArrayRef) -> Self {
        match column.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Self::Text(TextColumn::new(column))
            }
            _ => Self::Bytes(BytesColumn::new(column)),
        }
    }

    /// The bytes of a row; none if it is null.
    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(column) => column.get(row),
            Self::Text(column) => column.get(row).map(str::as_bytes),
        }
    }

    fn sizes(column: usize, batch: &RecordBatch) -> RowSizes {
        let column = Self::new(batch.column(column));
        Box::new(move |row| column.get(row).map_or(0, <[u8]>::len))
    }
}

fn event_sizes(fields: EventFields, batch: &RecordBatch) -> RowSizes {
    let columns = EventColumns::new(fields, batch);
    Box::new(move |row| columns.size(row))
}

/// Events that are decoded when they are asked for.
struct DecodedEvents {
    pieces: Pieces,
    format: Format,
    column: usize,
    kept: KeptColumns,
    /// Whether an event that cannot be read is a row of nulls, and not an error.
    has_nulls: bool,
    /// The number of the next row in the stream.
    first_row: u64,
}

impl Iterator for DecodedEvents {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let piece = self.pieces.next()?;
        Some(piece.and_then(|piece| self.decode(&piece)))
    }
}

impl DecodedEvents {
    fn decode(&mut self, piece: &RecordBatch) -> PyResult<RecordBatch> {
        let column = EncodedColumn::new(piece.column(self.column));
        let (mut arena, mut rows) = (Arena::new(), EventRows::default());
        for (row, number) in (0..piece.num_rows()).zip(self.first_row..) {
            arena.reset();
            match decode(self.format, column.get(row), &arena) {
                Ok(event) => rows.push(&event),
                Err(_) if self.has_nulls => rows.push_null(),
                Err(Unreadable { message, offset }) => {
                    return Err(at_row(number, UNREADABLE, &message, offset));
                }
            }
        }
        self.first_row += piece.num_rows() as u64;
        self.kept.batch(piece, rows.finish())
    }
}

/// Why a row has no event.
struct Unreadable {
    message: String,
    offset: Option<u64>,
}

fn decode<'a>(
    format: Format,
    bytes: Option<&'a [u8]>,
    arena: &'a Arena,
) -> Result<Event<'a>, Unreadable> {
    let null = || Unreadable { message: "the event is null".to_owned(), offset: None };
    let event = format.decode(bytes.ok_or_else(null)?, arena, &Limits::default());
    event.map_err(|error| Unreadable {
        message: error.to_string(),
        offset: Some(error.offset as u64),
    })
}

/// Events that are encoded when they are asked for.
struct EncodedEvents {
    pieces: Pieces,
    format: Format,
    fields: EventFields,
    kept: KeptColumns,
    /// Whether an event that cannot be read or held is a null, and not an error.
    has_nulls: bool,
    /// The number of the next row in the stream.
    first_row: u64,
}

impl Iterator for EncodedEvents {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let piece = self.pieces.next()?;
        Some(piece.and_then(|piece| self.encode(&piece)))
    }
}

impl EncodedEvents {
    fn encode(&mut self, piece: &RecordBatch) -> PyResult<RecordBatch> {
        let columns = EventColumns::new(self.fields, piece);
        let (mut arena, mut rows) = (Arena::new(), EncodedRows::new(self.format));
        let mut bytes = Vec::new();
        for (row, number) in (0..piece.num_rows()).zip(self.first_row..) {
            arena.reset();
            bytes.clear();
            let encoded = match columns.event(row, &arena) {
                Ok(event) => self
                    .format
                    .encode(&event, &mut bytes)
                    .map_err(|why| (UNENCODABLE, why.to_string())),
                Err(why) => Err((UNREADABLE, why.to_owned())),
            };
            match encoded {
                Ok(()) => rows.push(Some(&bytes)),
                Err(_) if self.has_nulls => rows.push(None),
                Err((code, why)) => return Err(at_row(number, code, &why, None)),
            }
        }
        self.first_row += piece.num_rows() as u64;
        self.kept.batch(piece, vec![rows.finish()])
    }
}

/// Builds the column of encoded events.
enum EncodedRows {
    Bytes(LargeBinaryBuilder),
    Text(LargeStringBuilder),
}

impl EncodedRows {
    fn new(format: Format) -> Self {
        match format {
            Format::Json => Self::Text(LargeStringBuilder::new()),
            _ => Self::Bytes(LargeBinaryBuilder::new()),
        }
    }

    fn push(&mut self, event: Option<&[u8]>) {
        match self {
            Self::Bytes(column) => column.append_option(event),
            Self::Text(column) => {
                let text = event.map(|event| str::from_utf8(event).expect("JSON is text"));
                column.append_option(text);
            }
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bytes(mut column) => Arc::new(column.finish()),
            Self::Text(mut column) => Arc::new(column.finish()),
        }
    }
}

fn encoded_type(format: Format) -> DataType {
    if format == Format::Json { DataType::LargeUtf8 } else { DataType::LargeBinary }
}

/// Where the events of a stream are.
#[derive(Clone, Copy)]
enum Input {
    /// In a column, encoded in a format.
    Encoded(Format, usize),
    /// In a column per field.
    Columns(EventFields),
}

impl Input {
    fn find(format: Format, schema: &Schema) -> PyResult<Self> {
        match schema.index_of(EVENT) {
            Ok(_) => Ok(Self::Encoded(format, EncodedColumn::index(format, schema)?)),
            Err(_) => Ok(Self::Columns(EventFields::find(STREAM, schema)?)),
        }
    }

    fn sizes(self, batch: &RecordBatch) -> RowSizes {
        match self {
            Self::Encoded(_, column) => EncodedColumn::sizes(column, batch),
            Self::Columns(fields) => event_sizes(fields, batch),
        }
    }

    fn open(self, batch: &RecordBatch) -> OpenInput {
        match self {
            Self::Encoded(format, column) => {
                OpenInput::Encoded(format, EncodedColumn::new(batch.column(column)))
            }
            Self::Columns(fields) => OpenInput::Columns(EventColumns::new(fields, batch).into()),
        }
    }
}

/// The events of a batch.
enum OpenInput {
    Encoded(Format, EncodedColumn),
    Columns(Box<EventColumns>),
}

impl OpenInput {
    fn event<'a>(&'a self, row: usize, arena: &'a Arena) -> Result<Event<'a>, String> {
        match self {
            Self::Encoded(format, column) => {
                decode(*format, column.get(row), arena).map_err(|why| why.message)
            }
            Self::Columns(columns) => columns.event(row, arena).map_err(str::to_owned),
        }
    }
}

/// Events that are verified when their verdicts are asked for.
struct EventVerdicts {
    pieces: Pieces,
    input: Input,
    ids: IdSerialization,
    kept: KeptColumns,
}

impl Iterator for EventVerdicts {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let piece = self.pieces.next()?;
        Some(piece.and_then(|piece| self.verify(&piece)))
    }
}

impl EventVerdicts {
    fn verify(&mut self, piece: &RecordBatch) -> PyResult<RecordBatch> {
        let (input, mut arena) = (self.input.open(piece), Arena::new());
        let (mut rows, mut verdicts) = (EventRows::default(), VerdictRows::default());
        let numbers: Vec<usize> = (0..piece.num_rows()).collect();
        for group in numbers.chunks(GROUP_ROWS) {
            arena.reset();
            let events: Vec<Result<Event<'_>, String>> =
                group.iter().map(|row| input.event(*row, &arena)).collect();
            let readable: Vec<Event<'_>> = events.iter().flatten().copied().collect();
            let mut results = verify_many_with(&readable, self.ids).into_iter();
            for event in &events {
                match event {
                    Ok(event) => {
                        rows.push(event);
                        let result = results.next().expect("one for each readable event");
                        verdicts.push(
                            code(&result),
                            result.err().map(|fault: EventFault| fault.to_string()),
                        );
                    }
                    Err(why) => {
                        rows.push_null();
                        verdicts.push(UNREADABLE, Some(why.clone()));
                    }
                }
            }
        }
        self.kept.batch(piece, [rows.finish(), verdicts.finish()].concat())
    }
}

/// Builds the columns of verdicts.
#[derive(Default)]
struct VerdictRows {
    verified: BooleanBuilder,
    code: StringBuilder,
    message: StringBuilder,
}

impl VerdictRows {
    fn push(&mut self, code: &str, message: Option<String>) {
        self.verified.append_value(message.is_none());
        self.code.append_value(code);
        self.message.append_option(message);
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.verified.finish()),
            Arc::new(self.code.finish()),
            Arc::new(self.message.finish()),
        ]
    }
}

fn verdict_fields() -> Vec<Field> {
    vec![
        Field::new("verified", DataType::Boolean, false),
        Field::new("code", DataType::Utf8, false),
        Field::new("message", DataType::Utf8, true),
    ]
}

#[cold]
fn at_row(number: u64, code: &str, why: &str, offset: Option<u64>) -> PyErr {
    raised(format!("row {number}: {why}"), code, offset)
}

#[cold]
fn raised(message: String, code: &str, offset: Option<u64>) -> PyErr {
    Python::attach(|py| Class::Decode.error(py, message, code, offset))
}

/// The column of encoded events.
const EVENT: &str = "event";

/// Events that are verified together.
const GROUP_ROWS: usize = 512;

const UNREADABLE: &str = "event/unreadable";
const UNENCODABLE: &str = "event/unencodable";
