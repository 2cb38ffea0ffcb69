//! Stores labels as they were received, together with the cursor of their service: one commit has both.
//!
//! ```text
//! label_cursor ── messages after it ── seal_labels: files ── one commit: files, and the cursors of the services
//! ```
//!
//! A process that ends before the commit has stored nothing, and receives the messages again. After the commit, the cursor is
//! behind them. A second process for the same service cannot commit: the cursor is not the one after which its labels come.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int16Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use base::crash_point;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed};
use crate::error::{ArchiveError, ArchiveFault};
use crate::hidden::HideList;
use crate::label_fields::LabelFields;
use crate::merge::MAX_FILE_BYTES;
use crate::sealed::Sealed;
use crate::table::{Table, day_of};
use crate::table_file::TableFile;

/// A label as it was received, with its verdict. Bytes and texts are borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedLabel<'a> {
    /// The DID of the service that sent it.
    pub service: &'a str,
    /// The origin of the host of the service.
    pub host: &'a str,
    /// The number of its message in the stream of the service.
    pub seq: i64,
    /// Its index in the message.
    pub idx: i16,
    /// When it was received, in microseconds since 1970.
    pub received: i64,
    /// The stable code of the verdict.
    pub verdict: &'a str,
    /// The key under which it was verified, as a did:key.
    pub key: Option<&'a str>,
    /// The program and the policy that judged it.
    pub judge: &'a str,
    /// Its bytes.
    pub label: &'a [u8],
}

/// Messages of a service whose labels are stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRange {
    /// The DID of the service.
    pub service: String,
    /// The origin of its host.
    pub host: String,
    /// The cursor after which they come: [`Archive::label_cursor`] before they are stored.
    pub after: Option<i64>,
    /// The number of the last message: the cursor once they are stored. It is less than `after` if the service has begun its numbers
    /// again.
    pub up_to: i64,
}

impl Archive {
    /// The number of the last message of a service whose labels are stored; `None` if there is none.
    ///
    /// # Errors
    /// If the log of the table cannot be read.
    pub async fn label_cursor(
        &self,
        service: &str,
        host: &str,
    ) -> Result<Option<i64>, ArchiveError> {
        let snapshot = self.snapshot(Table::Labels).await?;
        Ok(snapshot.txns.get(&stream(service, host)).copied())
    }

    /// Stores all labels of these messages, and the cursors after them, in one commit. Labels of erased accounts and about them are
    /// left out. The same work done again adds nothing.
    ///
    /// # Errors
    /// If the archive cannot be written, or another process stores labels of one of the services: then nothing is stored.
    pub async fn seal_labels(
        &self,
        mut labels: Vec<ArchivedLabel<'_>>,
        ranges: &[LabelRange],
    ) -> Result<Sealed, ArchiveError> {
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        if !list.has_no_erasure() {
            labels.retain(|label| !is_of_erased(label, &list));
        }
        let mut sealed = Sealed { events: labels.len() as u64, ..Sealed::default() };
        let mut days: BTreeMap<Date, Vec<PlacedLabel<'_>>> = BTreeMap::new();
        for label in labels {
            let did = LabelFields::of(label.label).account();
            days.entry(day_of(label.received)).or_default().push(PlacedLabel { did, label });
        }
        let mut add = Vec::new();
        for (day, mut labels) in days {
            labels.sort_by_key(PlacedLabel::place);
            add.extend(self.write_labels(day, &labels).await?);
        }
        crash_point("archive/labels-uploaded");
        (sealed.files, sealed.bytes) = (add.len() as u64, add.iter().map(|add| add.size).sum());
        let is_new = self.commit_labels(add, ranges).await?;
        crash_point("archive/labels-committed");
        Ok(if is_new { sealed } else { Sealed::default() })
    }

    /// Writes the files of one day: labels in the order of the table.
    async fn write_labels(
        &self,
        day: Date,
        labels: &[PlacedLabel<'_>],
    ) -> Result<Vec<Add>, ArchiveError> {
        let create = || TableFile::create(self.storage(), Table::Labels, day);
        let (mut add, mut file, mut rows) = (Vec::new(), create()?, LabelRows::default());
        for label in labels {
            rows.push(label);
            if rows.bytes < GROUP_BYTES {
                continue;
            }
            file.write(&rows.finish())?;
            if file.len() >= MAX_FILE_BYTES {
                add.extend(std::mem::replace(&mut file, create()?).finish(self.storage()).await?);
            }
        }
        file.write(&rows.finish())?;
        add.extend(file.finish(self.storage()).await?);
        Ok(add)
    }

    /// Commits files with the cursors after them; `false` if the same was committed before.
    async fn commit_labels(
        &self,
        add: Vec<Add>,
        ranges: &[LabelRange],
    ) -> Result<bool, ArchiveError> {
        let txns = ranges.iter().map(|range| (range.stream(), range.up_to)).collect();
        let after = ranges.iter().map(|range| (range.stream(), range.after)).collect();
        let change = Change { operation: "WRITE", add, txns, after, ..Change::default() };
        if self.commit(Table::Labels, &change).await? != Committed::Superseded {
            return Ok(true);
        }
        for range in ranges {
            let cursor = self.label_cursor(&range.service, &range.host).await?;
            if cursor != Some(range.up_to) {
                let fault = ArchiveFault::LabelsElsewhere(range.service.clone());
                return Err(ArchiveError::new(Table::Labels.name(), fault));
            }
        }
        Ok(false)
    }
}

impl LabelRange {
    fn stream(&self) -> String {
        stream(&self.service, &self.host)
    }
}

/// The name of the stream of a service in the log: numbers of another host are not related.
fn stream(service: &str, host: &str) -> String {
    format!("labels {service} {host}")
}

fn is_of_erased(label: &ArchivedLabel<'_>, list: &HideList) -> bool {
    let fields = LabelFields::of(label.label);
    [fields.src, fields.account()].into_iter().flatten().any(|did| list.is_erased(did))
}

/// A label, and the account that it is about.
struct PlacedLabel<'a> {
    did: Option<&'a str>,
    label: ArchivedLabel<'a>,
}

impl<'a> PlacedLabel<'a> {
    /// The place in the table's order.
    fn place(&self) -> (Option<&'a str>, i64, i64, i16, &'a str, &'a str) {
        let ArchivedLabel { received, seq, idx, service, host, .. } = self.label;
        (self.did, received, seq, idx, service, host)
    }
}

/// Builders of the columns of `labels`.
#[derive(Default)]
struct LabelRows {
    did: StringBuilder,
    received: TimestampMicrosecondBuilder,
    service: StringBuilder,
    host: StringBuilder,
    seq: Int64Builder,
    idx: Int16Builder,
    src: StringBuilder,
    uri: StringBuilder,
    cid: StringBuilder,
    val: StringBuilder,
    neg: BooleanBuilder,
    cts: StringBuilder,
    exp: StringBuilder,
    ver: Int64Builder,
    sig: BinaryBuilder,
    verdict: StringBuilder,
    key: StringBuilder,
    judge: StringBuilder,
    label: BinaryBuilder,
    bytes: usize,
}

impl LabelRows {
    fn push(&mut self, PlacedLabel { did, label }: &PlacedLabel<'_>) {
        let fields = LabelFields::of(label.label);
        self.did.append_option(*did);
        self.received.append_value(label.received);
        self.service.append_value(label.service);
        self.host.append_value(label.host);
        self.seq.append_value(label.seq);
        self.idx.append_value(label.idx);
        self.src.append_option(fields.src);
        self.uri.append_option(fields.uri);
        self.cid.append_option(fields.cid);
        self.val.append_option(fields.val);
        self.neg.append_option(fields.neg);
        self.cts.append_option(fields.cts);
        self.exp.append_option(fields.exp);
        self.ver.append_option(fields.ver);
        self.sig.append_option(fields.sig);
        self.verdict.append_value(label.verdict);
        self.key.append_option(label.key);
        self.judge.append_value(label.judge);
        self.label.append_option((fields.to_bytes() != label.label).then_some(label.label));
        // Short labels have the cost of their other columns.
        self.bytes += 2 * label.label.len() + 256;
    }

    /// The rows so far; later rows start a new batch.
    fn finish(&mut self) -> RecordBatch {
        self.bytes = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.did.finish()),
            Arc::new(self.received.finish().with_timezone("UTC")),
            Arc::new(self.service.finish()),
            Arc::new(self.host.finish()),
            Arc::new(self.seq.finish()),
            Arc::new(self.idx.finish()),
            Arc::new(self.src.finish()),
            Arc::new(self.uri.finish()),
            Arc::new(self.cid.finish()),
            Arc::new(self.val.finish()),
            Arc::new(self.neg.finish()),
            Arc::new(self.cts.finish()),
            Arc::new(self.exp.finish()),
            Arc::new(self.ver.finish()),
            Arc::new(self.sig.finish()),
            Arc::new(self.verdict.finish()),
            Arc::new(self.key.finish()),
            Arc::new(self.judge.finish()),
            Arc::new(self.label.finish()),
        ];
        RecordBatch::try_new(Table::Labels.schema(), columns).expect("the columns of the table")
    }
}

/// Bytes of labels whose rows are built at once.
const GROUP_BYTES: usize = 1 << 20;
