//! What is told of records that the data model does not allow?

use std::fmt;

use serde::Serialize;
use wireproof::verify::{Flagged, FlaggedRecord};

/// How many there are, and the first of them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FlaggedRecords {
    records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<First>,
}

#[derive(Debug, Serialize)]
struct First {
    path: String,
    /// The rule, by its stable name.
    code: &'static str,
    /// Where in the record.
    place: String,
    reason: String,
}

impl FlaggedRecords {
    /// Counts those that come after.
    pub(crate) fn extend(&mut self, later: Flagged) {
        self.records += later.records;
        if self.first.is_none() {
            self.first = later.first.map(First::from);
        }
    }
}

impl From<Flagged> for FlaggedRecords {
    fn from(flagged: Flagged) -> Self {
        Self { records: flagged.records, first: flagged.first.map(First::from) }
    }
}

impl From<FlaggedRecord> for First {
    fn from(FlaggedRecord { path, error }: FlaggedRecord) -> Self {
        let (code, reason) = (error.code(), error.to_string());
        Self { path: path.into(), code, place: error.item_path.into(), reason }
    }
}

impl fmt::Display for FlaggedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(First { path, code, reason, .. }) = &self.first else {
            return f.write_str("no record that the data model does not allow");
        };
        let records = self.records;
        write!(
            f,
            "{records} that the data model does not allow, the first {path:?} ({code}): {reason}"
        )
    }
}
