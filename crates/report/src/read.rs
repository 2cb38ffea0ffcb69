//! Reads result files, and names the file and field of an invalid one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use results::{Results, SCHEMA};
use serde::Deserialize;

/// Reads a file of results, with its rows in the order of the report.
///
/// # Errors
/// If it cannot be read, is cut short, is of another schema, or a field is missing or of another kind.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    let fault = |fault| ReadError { path: path.to_owned(), fault };
    let bytes = fs::read(path).map_err(|error| fault(ReadFault::Io(error)))?;
    parse(&bytes).map_err(fault)
}

/// Reads a document of results, with its rows in the order of the report.
///
/// # Errors
/// See [`read`].
pub fn parse(bytes: &[u8]) -> Result<Results, ReadFault> {
    let Header { schema } = serde_json::from_slice(bytes).map_err(not_json_or_no_results)?;
    if schema != SCHEMA {
        return Err(ReadFault::Schema(schema));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let mut results: Results = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        ReadFault::Field { field, fault: error.into_inner() }
    })?;
    json.end().map_err(ReadFault::Json)?;
    results::terminal::sort(&mut results.rows);
    Ok(results)
}

/// Parsed first: with another schema, all other fields may differ.
#[derive(Deserialize)]
struct Header {
    schema: String,
}

fn not_json_or_no_results(fault: serde_json::Error) -> ReadFault {
    match fault.classify() {
        serde_json::error::Category::Eof => ReadFault::CutShort(fault),
        serde_json::error::Category::Data => ReadFault::Field { field: "schema".to_owned(), fault },
        _ => ReadFault::Json(fault),
    }
}

/// Why a file has no results, and which file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub fault: ReadFault,
}

/// Why a document has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The system cannot read it.
    #[error("{0}")]
    Io(io::Error),
    /// It is truncated.
    #[error("cut short, or still being written: {0}")]
    CutShort(serde_json::Error),
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(serde_json::Error),
    /// It has another schema.
    #[error(
        "schema: this is {0:?}, and this program reads {SCHEMA:?}; measure again, or use the program that wrote it"
    )]
    Schema(String),
    /// A field is missing or has another type.
    #[error("{field}: {fault}")]
    Field {
        /// The path to it.
        field: String,
        /// The fault.
        fault: serde_json::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn refusal(document: &str) -> String {
        parse(document.as_bytes()).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read_again_in_the_order_of_the_report() {
        let results = samples::results();
        let mut shuffled = results.clone();
        shuffled.rows.reverse();
        assert_eq!(parse(&serde_json::to_vec(&shuffled).unwrap()).unwrap(), results);
    }

    #[test]
    fn another_schema_is_reported_before_its_fields_are_read() {
        let text = refusal(r#"{"schema": "wireproof-bench/9", "rows": 7}"#);
        assert!(text.contains("wireproof-bench/9") && text.contains(SCHEMA), "{text}");
    }

    #[test]
    fn a_truncated_file_is_reported_as_truncated() {
        let json = serde_json::to_string(&samples::results()).unwrap();
        for end in [1, json.len() / 2, json.len() - 1] {
            assert!(refusal(&json[..end]).starts_with("cut short"), "{end}");
        }
    }

    #[test]
    fn a_field_that_is_missing_or_of_another_kind_is_named_with_its_path() {
        let json = serde_json::to_string(&samples::results()).unwrap();
        let text = refusal(&json.replacen("\"units\":320,", "\"units\":\"many\",", 1));
        assert!(text.starts_with("rows[0].units: invalid type"), "{text}");
        let text = refusal(&json.replacen("\"cpu\":", "\"processor\":", 1));
        assert!(text.starts_with("machine: missing field `cpu`"), "{text}");
        assert!(refusal("{}").starts_with("schema: missing field"));
        assert!(refusal("[7]").starts_with("schema: "));
        assert!(refusal("no").starts_with("not JSON"));
    }

    #[test]
    fn a_file_is_named() {
        let error = read(Path::new("no/such/results.json")).unwrap_err();
        assert!(error.to_string().starts_with("no/such/results.json: "));
    }
}
