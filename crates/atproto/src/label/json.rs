//! Answers of `com.atproto.label.queryLabels`: a page of labels as JSON.

use codec::cbor::{self, Arena, EncodeError};
use codec::json::{self, JsonError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::MAX_LABELS;

/// A page of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPage {
    /// Where the next page begins, if there is one.
    pub cursor: Option<String>,
    /// The labels as DAG-CBOR, for [`Label::parse`](super::Label::parse), in order.
    pub labels: Vec<Vec<u8>>,
}

/// Why a text is no page of labels.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabelPageError {
    /// It is not an object with an array `labels`.
    #[error("not an answer of queryLabels: {0}")]
    Page(serde_json::Error),
    /// A label is no value of the data model; its index.
    #[error("label {0} of the page: {1}")]
    Label(usize, JsonError),
    /// A label has no canonical form; its index.
    #[error("label {0} of the page: {1}")]
    Encode(usize, EncodeError),
    /// The page has more labels than [`MAX_LABELS`]; their number.
    #[error("{0} labels on a page: at most {MAX_LABELS} are read")]
    TooMany(usize),
}

impl LabelPage {
    /// Reads an answer. A label is any value of the data model; its rules are checked when it is parsed.
    ///
    /// # Errors
    /// If the text is no such answer.
    pub fn parse(json: &[u8]) -> Result<Self, LabelPageError> {
        #[derive(Deserialize)]
        struct Page<'a> {
            cursor: Option<String>,
            #[serde(borrow)]
            labels: Vec<&'a RawValue>,
        }
        let Page { cursor, labels } = serde_json::from_slice(json).map_err(LabelPageError::Page)?;
        if labels.len() > MAX_LABELS {
            return Err(LabelPageError::TooMany(labels.len()));
        }
        let mut arena = Arena::new();
        let mut bytes = Vec::with_capacity(labels.len());
        for (index, label) in labels.into_iter().enumerate() {
            arena.reset();
            let value = json::decode(label.get(), &arena);
            let value = value.map_err(|error| LabelPageError::Label(index, error))?;
            let label = cbor::encode(&value);
            bytes.push(label.map_err(|error| LabelPageError::Encode(index, error))?);
        }
        Ok(Self { cursor, labels: bytes })
    }
}
