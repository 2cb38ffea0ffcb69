//! The error of every function: code, rule and place, as JSON.

use atproto::event::FrameError;
use codec::car::CarError;
use codec::cbor;
use serde_json::{Map, Value};
use verify::RecordError;
use verify::plc::PlcRejection;
use verify::repository::RepositoryRejection;
use verify::sync::SyncRejection;

/// A broken rule, or a wrong argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(Box<Details>);

/// The rule and its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The stable code, as in docs/formats/codes.md; `argument` for a wrong argument.
    pub code: &'static str,
    /// The broken rule.
    pub rule: String,
    /// The rule and its place, for a person.
    pub message: String,
    /// Bytes from the start of the input to the part that broke the rule.
    pub offset: Option<u64>,
    /// The block.
    pub cid: Option<String>,
    /// The path of the record, or the key of the tree.
    pub path: Option<String>,
    /// Index of the entry of a log, from 0.
    pub index: Option<usize>,
}

impl From<Details> for Fault {
    #[cold]
    fn from(details: Details) -> Self {
        Self(Box::new(details))
    }
}

impl Fault {
    /// The fault of an argument.
    #[must_use]
    pub fn argument(name: &str, why: impl ToString) -> Self {
        let rule = why.to_string();
        let message = format!("{name}: {rule}");
        Details { code: "argument", message, rule, ..Details::default() }.into()
    }

    /// The rule and its place, for a person.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The fields, without those that are not known.
    #[must_use]
    pub fn to_value(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        set("code", Some(self.0.code.into()));
        set("rule", Some(self.0.rule.as_str().into()));
        set("message", Some(self.0.message.as_str().into()));
        set("offset", self.0.offset.map(Value::from));
        set("cid", self.0.cid.as_deref().map(Value::from));
        set("path", self.0.path.as_deref().map(Value::from));
        set("index", self.0.index.map(Value::from));
        fields
    }

    /// The fields as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        Value::Object(self.to_value()).to_string()
    }
}

impl From<RepositoryRejection> for Fault {
    #[cold]
    fn from(why: RepositoryRejection) -> Self {
        Details {
            code: why.code(),
            rule: why.fault.to_string(),
            message: why.to_string(),
            offset: why.offset,
            cid: why.cid.map(|cid| cid.to_string()),
            path: why.path.map(String::from),
            index: None,
        }
        .into()
    }
}

impl From<PlcRejection> for Fault {
    #[cold]
    fn from(why: PlcRejection) -> Self {
        Details {
            code: why.code(),
            rule: why.fault.to_string(),
            message: why.to_string(),
            index: Some(why.index),
            ..Details::default()
        }
        .into()
    }
}

impl From<CarError> for Fault {
    #[cold]
    fn from(error: CarError) -> Self {
        Details {
            code: error.fault.code(),
            rule: error.fault.to_string(),
            message: error.to_string(),
            offset: Some(error.offset),
            ..Details::default()
        }
        .into()
    }
}

impl From<FrameError> for Fault {
    #[cold]
    fn from(error: FrameError) -> Self {
        Details {
            code: SyncRejection::from(error).code(),
            rule: error.fault.to_string(),
            message: error.to_string(),
            offset: Some(error.offset as u64),
            ..Details::default()
        }
        .into()
    }
}

impl From<cbor::DecodeError> for Fault {
    #[cold]
    fn from(error: cbor::DecodeError) -> Self {
        Details {
            code: "dag-cbor",
            rule: error.reason.to_string(),
            message: error.to_string(),
            offset: Some(error.offset as u64),
            ..Details::default()
        }
        .into()
    }
}

impl From<RecordError> for Fault {
    #[cold]
    fn from(error: RecordError) -> Self {
        Details {
            code: error.code(),
            rule: error.fault.to_string(),
            message: error.to_string(),
            offset: Some(error.offset as u64),
            ..Details::default()
        }
        .into()
    }
}
