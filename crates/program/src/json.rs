//! Values that several JSON documents and lines share. `docs/formats/follow-lines.md` names the keys.

use std::fmt;

use codec::cbor::Value;
use codec::json::{ItemJsonError, Json, JsonError, append_item};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use verify::{Flagged, FlaggedRecord, InvalidRecord, InvalidRecords, RecordError, RecordFlag};

/// The path of a record in its repository, flattened into the object that it belongs to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RecordPath<T = String> {
    /// The collection.
    pub collection: T,
    /// The record key.
    pub rkey: T,
}

impl<'a> RecordPath<&'a str> {
    /// Splits `collection/rkey`. In a key that is not a record path, all before the first slash is the collection.
    pub fn split(path: &'a str) -> Self {
        let (collection, rkey) = path.split_once('/').unwrap_or((path, ""));
        Self { collection, rkey }
    }

    /// The path with text of its own.
    pub fn to_owned(self) -> RecordPath {
        RecordPath { collection: self.collection.to_owned(), rkey: self.rkey.to_owned() }
    }
}

impl fmt::Display for RecordPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.collection, self.rkey)
    }
}

/// The flagged records: their number and the first of them.
#[derive(Debug, Default, Serialize)]
pub struct FlaggedRecords {
    records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<FirstFlagged>,
}

#[derive(Debug, Serialize)]
struct FirstFlagged {
    #[serde(flatten)]
    path: RecordPath,
    /// The stable name of the rule.
    code: &'static str,
    /// The place in the record, as a JSON Pointer; empty for the record as a whole.
    pointer: String,
    message: String,
}

impl FlaggedRecords {
    /// Adds the flagged records of a later commit.
    pub fn extend(&mut self, later: Flagged) {
        self.records += later.records;
        if self.first.is_none() {
            self.first = later.first.map(FirstFlagged::from);
        }
    }
}

impl From<Flagged> for FlaggedRecords {
    fn from(flagged: Flagged) -> Self {
        Self { records: flagged.records, first: flagged.first.map(FirstFlagged::from) }
    }
}

impl From<FlaggedRecord> for FirstFlagged {
    fn from(FlaggedRecord { path, flag }: FlaggedRecord) -> Self {
        let (code, message) = (flag.code(), flag.to_string());
        let pointer = match flag {
            RecordFlag::DataModel(error) => error.item_path.into(),
            _ => String::new(),
        };
        Self { path: RecordPath::split(&path).to_owned(), code, pointer, message }
    }
}

impl fmt::Display for FlaggedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(FirstFlagged { path, code, message, .. }) = &self.first else {
            return f.write_str("no record");
        };
        let (records, path) = (self.records, path.to_string());
        write!(f, "{records}, the first {path:?} ({code}): {message}")
    }
}

/// The content of a signed record.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordContent {
    /// Its JSON.
    Record(Box<RawValue>),
    /// Its bytes, which are no record.
    Invalid(InvalidBytes),
}

impl RecordContent {
    /// The content of a block whose check found that it is `invalid`, or that it is not.
    pub fn of(invalid: Option<&InvalidRecord>, block: &[u8]) -> Self {
        match invalid {
            Some(invalid) => Self::Invalid(InvalidBytes::new(&invalid.error, block)),
            None => json_of(block).map_or_else(
                |error| Self::Invalid(InvalidBytes::without_json(&error, block)),
                Self::Record,
            ),
        }
    }
}

fn json_of(block: &[u8]) -> Result<Box<RawValue>, ItemJsonError> {
    let mut json = Vec::new();
    append_item(&mut json, block)?;
    let json = String::from_utf8(json).expect("JSON of UTF-8 text is UTF-8");
    Ok(RawValue::from_string(json).map_err(JsonError::from)?)
}

/// A signed record that is invalid or has no JSON form: the broken rule, and the bytes in the place of a value.
#[derive(Debug, Serialize)]
pub struct InvalidBytes {
    /// The stable name of the rule.
    pub code: &'static str,
    /// Bytes from the start of the record.
    pub offset: usize,
    message: String,
    /// The bytes.
    #[serde(serialize_with = "bytes_form")]
    pub bytes: Vec<u8>,
}

impl InvalidBytes {
    /// The bytes of a record that breaks a rule.
    pub fn new(error: &RecordError, bytes: &[u8]) -> Self {
        let code = error.code();
        let offset = error.offset;
        let message = error.to_string();
        Self { code, offset, message, bytes: bytes.to_vec() }
    }

    /// A canonical value without a JSON form: the rule is one of the data model, and has no offset.
    pub fn without_json(error: &impl fmt::Display, bytes: &[u8]) -> Self {
        let code = RESERVED_KEY;
        let offset = 0;
        let message = error.to_string();
        Self { code, offset, message, bytes: bytes.to_vec() }
    }
}

/// The stable name of the rule that every canonical value without a JSON form breaks: it has a key `$link` or
/// `$bytes`.
const RESERVED_KEY: &str = "data/key";

impl fmt::Display for InvalidBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, message, .. } = self;
        write!(f, "({code}): {message}")
    }
}

fn bytes_form<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    Json(&Value::Bytes(bytes)).serialize(serializer)
}

/// The invalid records of verified data: their number and the first of them.
#[derive(Debug, Default, Serialize)]
pub struct InvalidSummary {
    records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<FirstInvalid>,
}

#[derive(Debug, Serialize)]
struct FirstInvalid {
    #[serde(flatten)]
    path: RecordPath,
    cid: String,
    /// The stable name of the rule.
    code: &'static str,
    /// Bytes from the start of the record.
    offset: usize,
    message: String,
}

impl InvalidSummary {
    /// Number of invalid records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds the invalid records of a later commit.
    pub fn extend(&mut self, later: &InvalidRecords) {
        self.records += later.records;
        if self.first.is_none() {
            self.first = later.first.as_ref().map(FirstInvalid::new);
        }
    }
}

impl From<&InvalidRecords> for InvalidSummary {
    fn from(invalid: &InvalidRecords) -> Self {
        let mut summary = Self::default();
        summary.extend(invalid);
        summary
    }
}

impl FirstInvalid {
    fn new(InvalidRecord { path, cid, error }: &InvalidRecord) -> Self {
        Self {
            path: RecordPath::split(path).to_owned(),
            cid: cid.to_string(),
            code: error.code(),
            offset: error.offset,
            message: error.to_string(),
        }
    }
}

impl fmt::Display for InvalidSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(FirstInvalid { path, code, message, .. }) = &self.first else {
            return f.write_str("no record is invalid");
        };
        let (records, path) = (self.records, path.to_string());
        write!(f, "{records} invalid, the first {path:?} ({code}): {message}")
    }
}
