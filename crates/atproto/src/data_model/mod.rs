//! Checks that a record follows the data model.
//!
//! DAG-CBOR can encode more than the AT Protocol's data model has. A repository or an event with such a
//! record is sound: its hash is right, and all readers see the same. So it is not rejected; the record is
//! flagged, for its readers.
//!
//! | item | rule |
//! |---|---|
//! | the whole | a map |
//! | numbers | integers of 64 bits with a sign; no floats |
//! | links | version 1, DAG-CBOR or raw, SHA-256 |
//! | keys of maps | not empty; not `$link` or `$bytes`, which in JSON make a link or bytes of the map |
//! | `$type` | text that is not empty, at every depth |
//! | `$type` of a record | there, an NSID, and the collection that the record is in |
//! | a map whose `$type` is `blob` | `ref`, a link to raw bytes; `mimeType`, text that is not empty; `size`, at least 1 |
//!
//! Other keys that start with `$` are ignored, as are further fields of a blob. The schema of a record is
//! not checked here.
//!
//! ```
//! use wireproof::codec::cbor::Arena;
//! use wireproof::codec::json;
//! use wireproof::atproto::data_model;
//!
//! let arena = Arena::new();
//! let post = json::decode(r#"{"$type": "app.test.post", "marks": [1, 0.5]}"#, &arena)?;
//! let error = data_model::check_record(&post, "app.test.post").unwrap_err();
//! assert_eq!((error.code(), &*error.item_path), ("data/float", "/marks/1"));
//! # Ok::<(), json::JsonError>(())
//! ```

#[cfg(test)]
mod tests;

use std::fmt::{self, Write};

use bumpalo::Bump;
use codec::cbor::{self, Map, Reason, Value};
use codec::{CidRef, cid};

use crate::syntax::{Nsid, SyntaxError};

/// A broken rule of the data model, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// The broken rule.
    pub fault: DataFault,
    /// Keys and indices of the item that breaks it, each after a slash; empty for the whole record. A long
    /// path is truncated.
    pub item_path: Box<str>,
}

/// A rule of the data model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataFault {
    /// The bytes are not canonical DAG-CBOR.
    #[error("{0}")]
    Cbor(Reason),
    /// The whole is not a map.
    #[error("a record must be a map")]
    Shape,
    /// A float.
    #[error("a float: numbers are integers")]
    Float,
    /// An integer that needs more than 64 bits with its sign.
    #[error("an integer beyond 64 bits with a sign")]
    Integer,
    /// A link of another version, codec or hash function.
    #[error("a link must be of version 1, DAG-CBOR or raw, under SHA-256")]
    Link,
    /// A key without bytes.
    #[error("an empty key")]
    EmptyKey,
    /// A key that in JSON makes something else of the map.
    #[error("$link and $bytes are not keys: in JSON they stand for a link and for bytes")]
    ReservedKey,
    /// A `$type` that is not text, or empty.
    #[error("$type must be text that is not empty")]
    Type,
    /// A record without `$type`.
    #[error("a record must have a $type")]
    NoRecordType,
    /// A record whose `$type` is not an NSID.
    #[error("a record's $type: {0}")]
    RecordType(SyntaxError),
    /// A record whose `$type` is not the collection that it is in.
    #[error("a record's $type must be its collection")]
    OtherCollection,
    /// A blob whose `ref` is missing, or not a link to raw bytes.
    #[error("a blob must have a ref: a link to raw bytes")]
    BlobRef,
    /// A blob whose `mimeType` is missing, not text, or empty.
    #[error("a blob must have a mimeType: text that is not empty")]
    BlobMimeType,
    /// A blob whose `size` is missing, or not an integer above 0.
    #[error("a blob must have a size: an integer above 0")]
    BlobSize,
}

impl DataError {
    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self.fault {
            DataFault::Cbor(_) => "data/cbor",
            DataFault::Shape => "data/shape",
            DataFault::Float => "data/float",
            DataFault::Integer => "data/integer",
            DataFault::Link => "data/link",
            DataFault::EmptyKey | DataFault::ReservedKey => "data/key",
            DataFault::Type => "data/type",
            DataFault::NoRecordType | DataFault::RecordType(_) | DataFault::OtherCollection => {
                "data/record-type"
            }
            DataFault::BlobRef | DataFault::BlobMimeType | DataFault::BlobSize => "data/blob",
        }
    }
}

impl std::error::Error for DataError {}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)?;
        if self.item_path.is_empty() { Ok(()) } else { write!(f, ", at {:?}", self.item_path) }
    }
}

/// Checks data on its own: a record, or any other object of the data model.
///
/// # Errors
/// At the first item that breaks a rule, in the order of the encoding.
pub fn check(data: &Value<'_>) -> Result<(), DataError> {
    match data {
        Value::Map(_) => check_item(data, &ItemPath::WHOLE),
        _ => ItemPath::WHOLE.flag(DataFault::Shape),
    }
}

/// Checks a record of `collection`.
///
/// # Errors
/// At the first item that breaks a rule, in the order of the encoding, or else if its `$type` is not
/// the collection.
pub fn check_record(record: &Value<'_>, collection: &str) -> Result<(), DataError> {
    check_type(record_type(record)?, collection)
}

/// Checks the bytes of a record of `collection`.
///
/// # Errors
/// As [`check_record`], or if the bytes are not canonical DAG-CBOR.
pub fn check_block(block: &[u8], collection: &str) -> Result<(), DataError> {
    with_record_type(block, |found| check_type(found?, collection))
}

/// The result of checking a record apart from its collection, for a block that is the record of many paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRecord(Result<Box<str>, DataError>);

impl CheckedRecord {
    /// Checks the bytes of a record.
    pub fn of_block(block: &[u8]) -> Self {
        with_record_type(block, |found| Self(found.map(Into::into)))
    }

    /// The result of a record of this type that breaks no rule.
    pub fn of_type(collection: &str) -> Self {
        Self(Ok(collection.into()))
    }

    /// Checks the record as one of `collection`.
    ///
    /// # Errors
    /// As [`check_block`].
    pub fn in_collection(&self, collection: &str) -> Result<(), DataError> {
        check_type(self.0.as_deref().map_err(Clone::clone)?, collection)
    }
}

fn with_record_type<T>(block: &[u8], then: impl FnOnce(Result<&str, DataError>) -> T) -> T {
    let arena = Bump::new();
    match cbor::decode(block, &arena) {
        Ok(record) => then(record_type(&record)),
        Err(error) => then(Err(ItemPath::WHOLE.error(DataFault::Cbor(error.reason)))),
    }
}

/// The `$type` of a record, which is an NSID, and so short.
fn record_type<'a>(record: &Value<'a>) -> Result<&'a str, DataError> {
    check(record)?;
    let found = record.get(TYPE).and_then(Value::as_text);
    let found = found.ok_or_else(|| ItemPath::WHOLE.error(DataFault::NoRecordType))?;
    match Nsid::parse(found) {
        Ok(_) => Ok(found),
        Err(error) => Err(type_error(DataFault::RecordType(error))),
    }
}

fn check_type(found: &str, collection: &str) -> Result<(), DataError> {
    if found == collection { Ok(()) } else { Err(type_error(DataFault::OtherCollection)) }
}

#[cold]
fn type_error(fault: DataFault) -> DataError {
    ItemPath::WHOLE.below(PathSegment::Key(TYPE)).error(fault)
}

/// Checks an item. The codec limits its depth.
fn check_item(item: &Value<'_>, path: &ItemPath<'_>) -> Result<(), DataError> {
    match item {
        Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::Text(_) | Value::Bytes(_) => {
            Ok(())
        }
        Value::Float(_) => path.flag(DataFault::Float),
        Value::WideInteger(_) => path.flag(DataFault::Integer),
        Value::Link(cid) if cid.to_cid().is_some() => Ok(()),
        Value::Link(_) => path.flag(DataFault::Link),
        Value::Array(items) => {
            let mut items = items.iter().zip(0..);
            items.try_for_each(|(item, at)| check_item(item, &path.below(PathSegment::Index(at))))
        }
        Value::Map(map) => check_map(*map, path),
    }
}

fn check_map(map: Map<'_>, path: &ItemPath<'_>) -> Result<(), DataError> {
    for (key, item) in map.iter() {
        let path = path.below(PathSegment::Key(key));
        match (*key, item) {
            ("", _) => return path.flag(DataFault::EmptyKey),
            (LINK | BYTES, _) => return path.flag(DataFault::ReservedKey),
            (TYPE, Value::Text(name)) if !name.is_empty() => {}
            (TYPE, _) => return path.flag(DataFault::Type),
            _ => check_item(item, &path)?,
        }
    }
    match map.get(TYPE) {
        Some(Value::Text(BLOB)) => check_blob(map, path),
        _ => Ok(()),
    }
}

fn check_blob(blob: Map<'_>, path: &ItemPath<'_>) -> Result<(), DataError> {
    let is_raw = |cid: CidRef<'_>| cid.to_cid().is_some_and(|cid| cid.codec() == cid::Codec::Raw);
    if !blob.get("ref").and_then(Value::as_link).is_some_and(is_raw) {
        return path.flag(DataFault::BlobRef);
    }
    if blob.get("mimeType").and_then(Value::as_text).is_none_or(str::is_empty) {
        return path.flag(DataFault::BlobMimeType);
    }
    if blob.get("size").and_then(Value::as_integer).is_none_or(|size| size < 1) {
        return path.flag(DataFault::BlobSize);
    }
    Ok(())
}

/// The path of an item, as a linked list on the stack that is written out only for an error.
#[derive(Clone, Copy)]
struct ItemPath<'p> {
    parent: Option<&'p ItemPath<'p>>,
    segment: PathSegment<'p>,
}

#[derive(Clone, Copy)]
enum PathSegment<'p> {
    Whole,
    Key(&'p str),
    Index(usize),
}

impl<'p> ItemPath<'p> {
    /// The whole record.
    const WHOLE: Self = Self { parent: None, segment: PathSegment::Whole };

    #[inline]
    fn below(&'p self, segment: PathSegment<'p>) -> Self {
        Self { parent: Some(self), segment }
    }

    /// The error of a fault at this path.
    #[cold]
    fn error(&self, fault: DataFault) -> DataError {
        let mut item_path = String::new();
        self.write(&mut item_path);
        DataError { fault, item_path: item_path.into() }
    }

    #[cold]
    fn flag(&self, fault: DataFault) -> Result<(), DataError> {
        Err(self.error(fault))
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        if out.len() > MAX_PATH_BYTES {
            return;
        }
        match self.segment {
            PathSegment::Whole => {}
            PathSegment::Index(at) => write!(out, "/{at}").expect("writing to a String succeeds"),
            PathSegment::Key(key) => {
                let ends = (0..=key.len().min(MAX_PATH_BYTES)).rev();
                let cut = ends.into_iter().find(|at| key.is_char_boundary(*at)).unwrap_or(0);
                write!(out, "/{}", &key[..cut]).expect("writing to a String succeeds");
                out.push_str(if cut < key.len() { "…" } else { "" });
            }
        }
    }
}

/// Bytes of a path after which no further key is written, and bytes written of one key.
const MAX_PATH_BYTES: usize = 200;

const TYPE: &str = "$type";
const LINK: &str = "$link";
const BYTES: &str = "$bytes";
/// The `$type` of a blob, which is not an NSID.
const BLOB: &str = "blob";
