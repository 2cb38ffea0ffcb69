//! Views with the columns of a lexicon.
//!
//! Source: <https://atproto.com/specs/lexicon>.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The schema of a collection's records, of which the properties become columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexicon {
    collection: String,
    view: String,
    columns: Vec<Column>,
}

/// Why a document is not the lexicon of a collection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LexiconError {
    /// The document is no JSON, or no lexicon.
    #[error("not a lexicon: {0}")]
    Document(#[from] serde_json::Error),
    /// The lexicon defines something else than records.
    #[error("{0} is no lexicon of records: its `main` has another type")]
    NoRecord(String),
    /// A name has characters that no name of a lexicon has.
    #[error("{0:?} is no name of a lexicon")]
    Name(String),
}

/// A property of records, as a column of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    property: String,
    function: &'static str,
}

#[derive(Deserialize)]
struct Document {
    id: String,
    defs: Map<String, Value>,
}

impl Lexicon {
    /// Reads the lexicon of a collection. Texts, integers, booleans and datetimes become columns of these types; arrays, objects,
    /// references, unions, blobs, links and bytes become columns of JSON.
    ///
    /// # Errors
    /// If it is not the lexicon of a collection.
    ///
    /// ```
    /// use wireproof::query::Lexicon;
    ///
    /// let lexicon = br#"{"lexicon": 1, "id": "app.test.note", "defs": {"main": {"type": "record", "key": "tid",
    ///     "record": {"type": "object", "properties": {"text": {"type": "string"}}}}}}"#;
    /// assert_eq!(Lexicon::parse(lexicon)?.view(), "app_test_note");
    /// # Ok::<(), wireproof::query::LexiconError>(())
    /// ```
    pub fn parse(json: &[u8]) -> Result<Self, LexiconError> {
        let Document { id, defs } = serde_json::from_slice(json)?;
        let record = defs.get("main").filter(|main| main["type"] == "record");
        let Some(record) = record.map(|main| &main["record"]) else {
            return Err(LexiconError::NoRecord(id));
        };
        if !is_name(&id, '.') {
            return Err(LexiconError::Name(id));
        }
        let view = id.replace(['.', '-'], "_").to_ascii_lowercase();
        let properties = record["properties"].as_object().into_iter().flatten();
        let columns = properties.map(|(name, schema)| Column::new(name, schema));
        Ok(Self { collection: id, view, columns: columns.collect::<Result<_, _>>()? })
    }

    /// The collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// The name of the view: the collection with underscores for dots and hyphens, in lower case.
    pub fn view(&self) -> &str {
        &self.view
    }

    /// The statement of the view.
    pub(crate) fn to_sql(&self) -> String {
        let columns = self.columns.iter().map(|Column { property, function }| {
            let name = if OWN_COLUMNS.contains(&property.as_str()) {
                format!("record_{property}")
            } else {
                property.clone()
            };
            format!(", {function}(record, '{property}') AS \"{name}\"")
        });
        format!(
            "SELECT did, rkey, rev, at_uri(did, collection, rkey) AS uri, record{} FROM current_records \
             WHERE collection = '{}'",
            columns.collect::<String>(),
            self.collection
        )
    }
}

impl Column {
    fn new(property: &str, schema: &Value) -> Result<Self, LexiconError> {
        if !is_name(property, '_') {
            return Err(LexiconError::Name(property.to_owned()));
        }
        let function = match (schema["type"].as_str(), schema["format"].as_str()) {
            (Some("string"), Some("datetime")) => "record_time",
            (Some("string"), _) => "record_text",
            (Some("integer"), _) => "record_integer",
            (Some("boolean"), _) => "record_boolean",
            _ => "record_json",
        };
        Ok(Self { property: property.to_owned(), function })
    }
}

/// Whether a text has the characters of a name, so that it can stand in a statement.
fn is_name(text: &str, separator: char) -> bool {
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == separator;
    !text.is_empty() && text.chars().all(is_part)
}

/// The columns that every view has.
const OWN_COLUMNS: [&str; 5] = ["did", "rkey", "rev", "uri", "record"];
