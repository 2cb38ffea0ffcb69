//! The rows of `labels`.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use arrow_array::{
    Array, BinaryArray, BooleanArray, Int16Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::file_batches::column;
use crate::hidden::HideList;
use crate::label_fields::LabelFields;
use crate::scan::Scan;
use crate::table::Table;
use crate::table_rows::{
    Columns, Key, Row, bytes, integers, optional, optional_bytes, text, times,
};
use crate::table_scan::Selection;

/// The columns of `labels`.
#[derive(Debug)]
pub(crate) struct LabelColumns {
    did: StringArray,
    received: TimestampMicrosecondArray,
    service: StringArray,
    host: StringArray,
    seq: Int64Array,
    idx: Int16Array,
    src: StringArray,
    uri: StringArray,
    cid: StringArray,
    val: StringArray,
    neg: BooleanArray,
    cts: StringArray,
    exp: StringArray,
    ver: Int64Array,
    sig: BinaryArray,
    verdict: StringArray,
    key: StringArray,
    label: BinaryArray,
}

impl Columns for LabelColumns {
    const TABLE: Table = Table::Labels;

    fn new(rows: &RecordBatch) -> Self {
        Self {
            did: text(rows, "did"),
            received: times(rows, "received"),
            service: text(rows, "service"),
            host: text(rows, "host"),
            seq: integers(rows, "seq"),
            idx: column(rows, "idx").as_primitive::<Int16Type>().clone(),
            src: text(rows, "src"),
            uri: text(rows, "uri"),
            cid: text(rows, "cid"),
            val: text(rows, "val"),
            neg: column(rows, "neg").as_boolean().clone(),
            cts: text(rows, "cts"),
            exp: text(rows, "exp"),
            ver: integers(rows, "ver"),
            sig: bytes(rows, "sig"),
            verdict: text(rows, "verdict"),
            key: text(rows, "key"),
            label: bytes(rows, "label"),
        }
    }

    fn key(&self, row: usize) -> Key {
        let did = optional(&self.did, row).map(Box::from);
        Key { did, number: self.received.value(row), text: None }
    }
}

impl Row<LabelColumns> {
    /// The account that the label is about.
    pub(crate) fn did(&self) -> Option<&str> {
        optional(&self.columns().did, self.index())
    }

    /// When the label was received, in microseconds since 1970.
    pub(crate) fn received(&self) -> i64 {
        self.columns().received.value(self.index())
    }

    /// The DID of the service that sent it.
    pub(crate) fn service(&self) -> &str {
        self.columns().service.value(self.index())
    }

    /// Service, host, number of the message and index in it.
    pub(crate) fn origin(&self) -> (&str, &str, i64, i16) {
        let (columns, row) = (self.columns(), self.index());
        let host = columns.host.value(row);
        (self.service(), host, columns.seq.value(row), columns.idx.value(row))
    }

    /// The columns with fields of the label.
    pub(crate) fn fields(&self) -> LabelFields<'_> {
        let (columns, row) = (self.columns(), self.index());
        LabelFields {
            src: optional(&columns.src, row),
            uri: optional(&columns.uri, row),
            cid: optional(&columns.cid, row),
            val: optional(&columns.val, row),
            neg: columns.neg.is_valid(row).then(|| columns.neg.value(row)),
            cts: optional(&columns.cts, row),
            exp: optional(&columns.exp, row),
            ver: columns.ver.is_valid(row).then(|| columns.ver.value(row)),
            sig: optional_bytes(&columns.sig, row),
        }
    }

    /// The bytes as they were received.
    pub(crate) fn received_bytes(&self) -> Cow<'_, [u8]> {
        self.label().map_or_else(|| self.fields().to_bytes().into(), Cow::Borrowed)
    }

    /// The bytes as they were received, where the fields do not give them.
    pub(crate) fn label(&self) -> Option<&[u8]> {
        optional_bytes(&self.columns().label, self.index())
    }

    /// The stable code of the verdict.
    pub(crate) fn verdict(&self) -> &str {
        self.columns().verdict.value(self.index())
    }

    /// The key under which it was verified.
    pub(crate) fn key(&self) -> Option<&str> {
        optional(&self.columns().key, self.index())
    }
}

/// The labels of an archive that are not hidden, by the accounts that they are about.
pub struct LabelScan {
    scan: Scan<LabelColumns>,
    hidden: HideList,
}

/// A label of an archive.
#[derive(Clone, Debug)]
pub struct LabelRow(Row<LabelColumns>);

impl Archive {
    /// The labels that are not hidden, account by account, in order of arrival within an account.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn labels(&self) -> Result<LabelScan, ArchiveError> {
        let scan = self.scan(&Selection::default()).await?;
        Ok(LabelScan { scan, hidden: self.hide_list().await? })
    }
}

impl LabelScan {
    /// The next label; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub async fn next(&mut self) -> Result<Option<LabelRow>, ArchiveError> {
        while let Some(row) = self.scan.next().await? {
            let accounts = [row.did(), row.fields().src];
            if !accounts.iter().flatten().any(|did| self.hidden.has_account(did)) {
                return Ok(Some(LabelRow(row)));
            }
        }
        Ok(None)
    }
}

impl LabelRow {
    /// The bytes as they were received, which the source has signed without `sig`.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        self.0.received_bytes()
    }

    /// Service, host, number of the message and index in it.
    pub fn origin(&self) -> (&str, &str, i64, i16) {
        self.0.origin()
    }

    /// When it was received, in microseconds since 1970.
    pub fn received(&self) -> i64 {
        self.0.received()
    }

    /// The stable code of the verdict.
    pub fn verdict(&self) -> &str {
        self.0.verdict()
    }

    /// The key under which it was verified, as a did:key.
    pub fn key(&self) -> Option<&str> {
        self.0.key()
    }
}
