//! The actions of a Delta log, as the Delta protocol writes them in JSON: one a line.
//!
//! Actions and fields that this program does not know are ignored, as the protocol demands of a reader of version 1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One line of an entry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    Protocol(Protocol),
    MetaData(Box<MetaData>),
    Add(Box<Add>),
    Remove(Box<Remove>),
    Txn(Txn),
    CommitInfo(CommitInfo),
    Sidecar(Sidecar),
}

/// The actions that are read.
pub(crate) const KNOWN: [&str; 7] =
    ["protocol", "metaData", "add", "remove", "txn", "commitInfo", "sidecar"];

/// The versions of the protocol that the table demands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Protocol {
    pub(crate) min_reader_version: u32,
    pub(crate) min_writer_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reader_features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) writer_features: Option<Vec<String>>,
}

/// The table itself.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetaData {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) format: Format,
    pub(crate) schema_string: String,
    pub(crate) partition_columns: Vec<String>,
    #[serde(default)]
    pub(crate) configuration: BTreeMap<String, String>,
    pub(crate) created_time: Option<i64>,
}

/// The format of the table's files.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Format {
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
}

/// A file of the table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Add {
    pub(crate) path: String,
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) modification_time: i64,
    #[serde(default)]
    pub(crate) data_change: bool,
    #[serde(default)]
    pub(crate) stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<BTreeMap<String, Option<String>>>,
    /// Rows that are deleted without a new file, which this program does not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<serde_json::Value>,
}

impl Add {
    /// The stats; a foreign writer may leave them out.
    pub(crate) fn stats(&self) -> Stats {
        self.stats.as_deref().and_then(|stats| serde_json::from_str(stats).ok()).unwrap_or_default()
    }
}

/// A file that is no longer of the table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remove {
    pub(crate) path: String,
    pub(crate) deletion_timestamp: Option<i64>,
    #[serde(default)]
    pub(crate) data_change: bool,
    pub(crate) extended_file_metadata: Option<bool>,
    pub(crate) partition_values: Option<BTreeMap<String, Option<String>>>,
    pub(crate) size: Option<u64>,
}

/// How far an application has written, so that its commits happen once.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Txn {
    pub(crate) app_id: String,
    pub(crate) version: i64,
    pub(crate) last_updated: Option<i64>,
}

/// The origin of the entry. Other programs put any fields here. Its id tells an entry of this writer from an equal one
/// of another.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CommitInfo {
    pub(crate) timestamp: i64,
    pub(crate) operation: String,
    pub(crate) engine_info: String,
    pub(crate) txn_id: String,
    /// The hash of the entry.
    pub(crate) entry_sha256: String,
}

/// A file with actions of a checkpoint, by its name in the folder of sidecars.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sidecar {
    pub(crate) path: String,
}

/// The values of a file's columns that a reader needs to skip it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    pub(crate) num_records: u64,
    #[serde(default)]
    pub(crate) min_values: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    pub(crate) max_values: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    pub(crate) null_count: serde_json::Map<String, serde_json::Value>,
}

impl Stats {
    /// The least and the greatest account, if they are stated.
    pub(crate) fn dids(&self) -> Option<(&str, &str)> {
        self.texts("did")
    }

    /// The least and the greatest text of a column, if they are stated.
    pub(crate) fn texts(&self, column: &str) -> Option<(&str, &str)> {
        Some((self.min_values.get(column)?.as_str()?, self.max_values.get(column)?.as_str()?))
    }
}
