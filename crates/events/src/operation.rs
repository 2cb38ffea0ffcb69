//! An operation: a change of a record.

use atproto::event::Action;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::{Json, Text};

/// A change of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OpFields<'l>", bound(deserialize = "'de: 'l"))]
pub struct Op<'l> {
    /// The change to the record.
    #[serde(serialize_with = "action_word")]
    pub action: Action,
    /// The collection of the record.
    pub collection: Text<'l>,
    /// The key of the record in its collection.
    pub rkey: Text<'l>,
    /// The CID of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cid: Option<Text<'l>>,
    /// The record; none of a deletion.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content<'l>>,
    /// Of a deletion: the record is there, and does not match the condition of the run any more.
    #[serde(skip_serializing_if = "is_false")]
    pub filtered: bool,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Content<'l> {
    /// The record in the JSON form of the data model.
    Record(Json<'l>),
    /// The rule that the signed bytes break, and the bytes.
    Invalid(Json<'l>),
}

impl Op<'_> {
    /// The path of the record.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection, self.rkey)
    }

    /// The same operation, borrowed from this one.
    pub fn by_ref(&self) -> Op<'_> {
        Op {
            action: self.action,
            collection: self.collection.by_ref(),
            rkey: self.rkey.by_ref(),
            cid: self.cid.as_ref().map(Text::by_ref),
            content: self.content.as_ref().map(Content::by_ref),
            filtered: self.filtered,
        }
    }

    /// The JSON of the record.
    pub fn record(&self) -> Option<&Json<'_>> {
        match &self.content {
            Some(Content::Record(record)) => Some(record),
            _ => None,
        }
    }

    /// The JSON of a record that is invalid or has no JSON form.
    pub fn invalid(&self) -> Option<&Json<'_>> {
        match &self.content {
            Some(Content::Invalid(invalid)) => Some(invalid),
            _ => None,
        }
    }
}

impl Content<'_> {
    /// The same content, borrowed from this one.
    pub fn by_ref(&self) -> Content<'_> {
        match self {
            Self::Record(record) => Content::Record(record.by_ref()),
            Self::Invalid(invalid) => Content::Invalid(invalid.by_ref()),
        }
    }
}

/// A change of a record, by the keys of its JSON.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OpFields<'l> {
    /// What becomes of the record.
    action: ActionWord,
    /// The collection of the record.
    #[serde(borrow)]
    collection: Text<'l>,
    /// The key of the record in its collection.
    #[serde(borrow)]
    rkey: Text<'l>,
    /// The CID of the record.
    #[serde(borrow)]
    cid: Option<Text<'l>>,
    /// The record in the JSON form of the data model; none of a deletion.
    #[serde(borrow)]
    record: Option<Json<'l>>,
    /// In the place of a record: the rule that its signed bytes break, and the bytes.
    #[serde(borrow)]
    invalid: Option<Json<'l>>,
    /// Of a deletion: the record is there, and does not match the condition of the run any more.
    #[serde(default)]
    filtered: bool,
}

impl<'l> TryFrom<OpFields<'l>> for Op<'l> {
    type Error = &'static str;

    fn try_from(fields: OpFields<'l>) -> Result<Self, &'static str> {
        let OpFields {
            action: ActionWord(action),
            collection,
            rkey,
            cid,
            record,
            invalid,
            filtered,
        } = fields;
        let content = content(action, record, invalid)?;
        Ok(Self { action, collection, rkey, cid, content, filtered })
    }
}

/// The content of an operation's record.
///
/// # Errors
/// If it has two, or a deletion has one.
pub(crate) fn content<'l>(
    action: Action,
    record: Option<Json<'l>>,
    invalid: Option<Json<'l>>,
) -> Result<Option<Content<'l>>, &'static str> {
    match (record, invalid) {
        (None, None) => Ok(None),
        _ if action == Action::Delete => Err("a deletion with a record"),
        (Some(record), None) => Ok(Some(Content::Record(record))),
        (None, Some(invalid)) => Ok(Some(Content::Invalid(invalid))),
        (Some(_), Some(_)) => Err("an operation with both `record` and `invalid`"),
    }
}

/// An action by its word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionWord(pub(crate) Action);

impl<'de> Deserialize<'de> for ActionWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Text::deserialize(deserializer)?;
        let action = Action::parse(&word).map(Self);
        action.ok_or_else(|| D::Error::custom(format_args!("the action {:?}", &*word)))
    }
}

/// Writes the word of an action.
fn action_word<S: Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(action.as_str())
}

fn is_false(value: &bool) -> bool {
    !value
}
