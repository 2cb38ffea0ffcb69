//! The lines of `wireproof labels`: the verdict on a label, or a message about a labeler.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::error::LineError;
use crate::text::Text;
use crate::words::Verdict;

/// A line of `wireproof labels`, of version 1.
///
/// A line of a label has everything that its proof needs: the signed fields, the signature, and the key that signed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelLine<'l> {
    /// The version of the lines, 1.
    pub v: u64,
    /// `label`, or the name of the message.
    #[serde(borrow)]
    pub kind: Text<'l>,
    /// The DID of the service that sent the label.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub service: Option<Text<'l>>,
    /// URL of the service.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub host: Option<Text<'l>>,
    /// The sequence number of the message that had the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The place of the label in its message, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The verdict on a label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The stable name of the verdict.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code<'l>>,
    /// The rule that a label breaks, or a text of the service or about it.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'l>>,
    /// The DID of the labeler.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub src: Option<Text<'l>>,
    /// The subject.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Text<'l>>,
    /// The version of the subject.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub cid: Option<Text<'l>>,
    /// The value.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub val: Option<Text<'l>>,
    /// Whether the label retracts an earlier one; as it was signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neg: Option<bool>,
    /// The time of creation.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub cts: Option<Text<'l>>,
    /// The time from which the label no longer applies.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub exp: Option<Text<'l>>,
    /// The signature, in base64 without padding.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub sig: Option<Text<'l>>,
    /// The key that signed a verified label, as a `did:key`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub key: Option<Text<'l>>,
}

impl<'l> LabelLine<'l> {
    /// The kind of the line of a label.
    pub const LABEL: &'static str = "label";

    /// Reads a line.
    ///
    /// # Errors
    /// If the text is no such line.
    pub fn parse(json: &'l [u8]) -> Result<Self, LineError> {
        serde_json::from_slice(json).map_err(|error| LineError::of_json(&error, json))
    }

    /// Appends the line without a line feed.
    pub fn append(&self, lines: &mut Vec<u8>) {
        serde_json::to_writer(lines, self).expect("text and numbers have a JSON form");
    }

    /// Whether it is the line of a verified label.
    pub fn is_verified_label(&self) -> bool {
        &*self.kind == Self::LABEL && self.verdict == Some(Verdict::Verified)
    }
}
