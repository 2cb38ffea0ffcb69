//! Checkpoints: the state of a table at a version, so that the entries before it need not be read, or there.
//!
//! Read in every form of the protocol: one Parquet file, several parts, and V2 as Parquet or JSON, which name sidecars. Written
//! as one Parquet file, which states its own hash as an entry does.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value};

use super::action::{Action, KNOWN};
use super::entry_hash::{self, CHECKPOINT, CHECKPOINT_KEY};
use crate::error::ArchiveFault;

/// Reads the actions of a checkpoint file in Parquet, or of a sidecar.
pub(super) fn read(
    file: Vec<u8>,
    visit: &mut dyn FnMut(Action) -> Result<(), ArchiveFault>,
) -> Result<(), ArchiveFault> {
    if !CHECKPOINT.is_right(&file) {
        return Err(ArchiveFault::ChangedEntry);
    }
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(file), options)?;
    let groups = reader.metadata().row_groups().iter();
    let decoded: u64 = groups.map(|group| group.total_byte_size().max(0) as u64).sum();
    if decoded > MAX_DECODED_BYTES {
        return Err(ArchiveFault::Log(format!("a checkpoint of {decoded} bytes")));
    }
    let columns = reader.parquet_schema().columns().iter().enumerate();
    let known = columns.filter(|(_, column)| is_known(column.path().parts())).map(|(at, _)| at);
    let mask = ProjectionMask::leaves(reader.parquet_schema(), known.collect::<Vec<_>>());
    let batches = reader.with_projection(mask).with_batch_size(BATCH_ROWS).build()?;
    for batch in batches {
        read_batch(&batch?, visit)?;
    }
    Ok(())
}

/// Whether a column is read. The columns with typed values repeat the columns of text.
fn is_known(path: &[String]) -> bool {
    let is_typed = path.get(1).is_some_and(|name| name.ends_with("_parsed"));
    path.first().is_some_and(|name| KNOWN.contains(&&**name)) && !is_typed
}

fn read_batch(
    batch: &RecordBatch,
    visit: &mut dyn FnMut(Action) -> Result<(), ArchiveFault>,
) -> Result<(), ArchiveFault> {
    let schema = batch.schema();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        for row in 0..batch.num_rows() {
            let value = value_at(column, row);
            if value.is_null() {
                continue;
            }
            let action = Value::Object(Map::from_iter([(field.name().clone(), value)]));
            let failed = |error| ArchiveFault::Log(format!("not an action: {error}"));
            visit(serde_json::from_value(action).map_err(failed)?)?;
        }
    }
    Ok(())
}

/// A value of a column as the log has it in JSON. Types that no action has are null.
fn value_at(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Struct(fields) => {
            let members = fields.iter().zip(column.as_struct().columns());
            let members =
                members.map(|(field, column)| (field.name().clone(), value_at(column, row)));
            Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            (0..items.len()).map(|item| value_at(&items, item)).collect()
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let [keys, values] = entries.columns() else { return Value::Null };
            let name = |at| value_at(keys, at).as_str().unwrap_or_default().to_owned();
            let entries = (0..entries.len()).map(|at| (name(at), value_at(values, at)));
            Value::Object(entries.collect())
        }
        _ => Value::Null,
    }
}

/// Writes actions as a checkpoint file.
pub(super) fn write(actions: &[Action]) -> Result<Vec<u8>, ArchiveFault> {
    let schema = Arc::new(schema());
    let key = KeyValue::new(CHECKPOINT_KEY.to_owned(), entry_hash::NONE.to_owned());
    let properties = WriterProperties::builder()
        .set_created_by(concat!("wireproof/", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![key]))
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties);
    let options = options.with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options)?;
    for actions in actions.chunks(BATCH_ROWS) {
        let json = |action| serde_json::to_value(action).expect("actions have string keys");
        let rows: Vec<Value> = actions.iter().map(json).collect();
        let rows: Vec<Option<&Value>> = rows.iter().map(Some).collect();
        let columns = schema.fields().iter().map(|field| member_column(field, &rows)).collect();
        writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
    }
    let mut file = writer.into_inner()?;
    CHECKPOINT.set(&mut file);
    Ok(file)
}

/// The column with one member of the objects.
fn member_column(field: &Field, objects: &[Option<&Value>]) -> ArrayRef {
    let values: Vec<Option<&Value>> = objects
        .iter()
        .map(|object| object.and_then(|object| object.get(field.name())))
        .map(|value| value.filter(|value| !value.is_null()))
        .collect();
    column(field.data_type(), &values)
}

/// A column of these values, which have its type or are null.
fn column(data_type: &DataType, values: &[Option<&Value>]) -> ArrayRef {
    let text = |value: &Option<&'_ Value>| value.and_then(Value::as_str).map(str::to_owned);
    match data_type {
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| member_column(field, values)).collect();
            let is_there: BooleanArray = values.iter().map(|value| value.map(|_| true)).collect();
            Arc::new(StructArray::new(fields.clone(), columns, is_there.nulls().cloned()))
        }
        DataType::Map(..) => text_maps(values),
        DataType::List(_) => text_lists(values),
        DataType::Int64 => {
            let values = values.iter().map(|value| value.and_then(Value::as_i64));
            Arc::new(values.collect::<Int64Array>())
        }
        DataType::Int32 => {
            let number = |value: &Value| value.as_i64().and_then(|value| i32::try_from(value).ok());
            let values = values.iter().map(|value| value.and_then(number));
            Arc::new(values.collect::<Int32Array>())
        }
        DataType::Boolean => {
            let values = values.iter().map(|value| value.and_then(Value::as_bool));
            Arc::new(values.collect::<BooleanArray>())
        }
        _ => Arc::new(values.iter().map(text).collect::<StringArray>()),
    }
}

fn text_maps(values: &[Option<&Value>]) -> ArrayRef {
    let names =
        MapFieldNames { entry: ENTRIES.to_owned(), key: KEY.to_owned(), value: VALUE.to_owned() };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for value in values {
        let entries = value.and_then(Value::as_object);
        for (name, value) in entries.into_iter().flatten() {
            maps.keys().append_value(name);
            maps.values().append_option(value.as_str());
        }
        maps.append(entries.is_some()).expect("as many keys as values");
    }
    Arc::new(maps.finish())
}

fn text_lists(values: &[Option<&Value>]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new()).with_field(element());
    for value in values {
        let items = value.and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            lists.values().append_option(item.as_str());
        }
        lists.append(items.is_some());
    }
    Arc::new(lists.finish())
}

/// The columns of a checkpoint by the protocol: one per kind of action.
fn schema() -> Schema {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let long = |name: &str| Field::new(name, DataType::Int64, true);
    let int = |name: &str| Field::new(name, DataType::Int32, true);
    let flag = |name: &str| Field::new(name, DataType::Boolean, true);
    let map = |name: &str| Field::new(name, map_type(), true);
    let list = |name: &str| Field::new(name, DataType::List(Arc::new(element())), true);
    let group = |name: &str, fields: Vec<Field>| {
        Field::new(name, DataType::Struct(Fields::from(fields)), true)
    };
    Schema::new(vec![
        group("txn", vec![text("appId"), long("version"), long("lastUpdated")]),
        group(
            "add",
            vec![
                text("path"),
                map("partitionValues"),
                long("size"),
                long("modificationTime"),
                flag("dataChange"),
                text("stats"),
                map("tags"),
            ],
        ),
        group(
            "remove",
            vec![
                text("path"),
                long("deletionTimestamp"),
                flag("dataChange"),
                flag("extendedFileMetadata"),
                map("partitionValues"),
                long("size"),
            ],
        ),
        group(
            "metaData",
            vec![
                text("id"),
                text("name"),
                text("description"),
                group("format", vec![text("provider"), map("options")]),
                text("schemaString"),
                list("partitionColumns"),
                map("configuration"),
                long("createdTime"),
            ],
        ),
        group(
            "protocol",
            vec![
                int("minReaderVersion"),
                int("minWriterVersion"),
                list("readerFeatures"),
                list("writerFeatures"),
            ],
        ),
    ])
}

fn map_type() -> DataType {
    let fields =
        vec![Field::new(KEY, DataType::Utf8, false), Field::new(VALUE, DataType::Utf8, true)];
    let entries = Field::new(ENTRIES, DataType::Struct(Fields::from(fields)), false);
    DataType::Map(Arc::new(entries), false)
}

fn element() -> Field {
    Field::new("element", DataType::Utf8, true)
}

const ENTRIES: &str = "key_value";
const KEY: &str = "key";
const VALUE: &str = "value";

/// Rows that are decoded or written at once.
const BATCH_ROWS: usize = 1_024;

/// Size of the columns of a checkpoint, as its end states it: some four million files.
const MAX_DECODED_BYTES: u64 = 2 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn actions() -> Vec<Action> {
        [
            r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
            r#"{"metaData":{"id":"an-id","name":"ops","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":["day"],"configuration":{"a":"b"},"createdTime":7}}"#,
            r#"{"txn":{"appId":"import","version":3,"lastUpdated":9}}"#,
            r#"{"add":{"path":"day=2026-07-01/a.parquet","partitionValues":{"day":"2026-07-01"},"size":7,"modificationTime":9,"dataChange":true,"stats":"{\"numRecords\":2}"}}"#,
            r#"{"add":{"path":"day=2026-07-01/b.parquet","partitionValues":{"day":null},"size":8,"modificationTime":9,"dataChange":false,"stats":null}}"#,
            r#"{"remove":{"path":"day=2026-07-01/c.parquet","deletionTimestamp":9,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{"day":"2026-07-01"},"size":8}}"#,
        ]
        .map(|action| serde_json::from_str(action).unwrap())
        .to_vec()
    }

    fn read_all(file: &[u8]) -> Result<Vec<Action>, ArchiveFault> {
        let mut found = Vec::new();
        read(file.to_vec(), &mut |action| {
            found.push(action);
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn the_actions_of_a_checkpoint_are_read_as_they_were_written() {
        let (actions, mut expected) = (actions(), actions());
        let mut found = read_all(&write(&actions).unwrap()).unwrap();
        let text = |action: &Action| serde_json::to_string(action).unwrap();
        found.sort_by_key(text);
        expected.sort_by_key(text);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_changed_bit_of_a_checkpoint_is_found_wherever_it_is() {
        let mut file = write(&actions()).unwrap();
        for at in 0..file.len() {
            let bit = 1 << (at % 8);
            file[at] ^= bit;
            assert!(read_all(&file).is_err(), "byte {at}");
            file[at] ^= bit;
        }
    }

    #[test]
    fn a_file_that_is_no_checkpoint_is_an_error() {
        for file in [&b""[..], b"PAR1", b"no Parquet file at all"] {
            assert!(read_all(file).is_err());
        }
    }
}
