//! Proves the content that is derived from frames: the rows of `ops`, and the columns of `events` other than the frame.
//!
//! ```text
//! events in order ─┐                 the same account and arrival
//! ops in order ────┴─ merged ──> events of one place ── compared with ── rows of ops of that place
//! ```
//!
//! The rows of a compact commit are its proof, so this only checks that there are no others.

use std::collections::BTreeSet;
use std::sync::Arc;

use atproto::event::{Commit, Decoder, Event};
use codec::Cid;
use codec::cid::Codec;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event_rows::{EventColumns, EventRow};
use crate::op_rows::OpColumns;
use crate::rows::{FULL, Fields, field_decoder};
use crate::rule::Rule;
use crate::scan::Scan;
use crate::table::Table;
use crate::table_rows::{Key, Row};
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification};

/// Compares derived rows and columns with the events, which come in the order of their table.
pub(crate) struct DerivedProver {
    ops: Scan<OpColumns>,
    decoder: Decoder,
    /// The events of the last place.
    group: Vec<EventRow>,
    /// Rows of operations of which no event was seen.
    orphans: Vec<Row<OpColumns>>,
    /// Files that are left out, as they are refused.
    without: Arc<BTreeSet<String>>,
}

impl DerivedProver {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        let ops = archive.scan(selection).await?;
        let without = selection.without.clone();
        Ok(Self { ops, decoder: field_decoder(), group: Vec::new(), orphans: Vec::new(), without })
    }

    /// Adds the next event.
    pub(crate) async fn add(
        &mut self,
        row: &EventRow,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let is_other = |last: &EventRow| !last.0.is_at_place_of(&row.0);
        if self.group.last().is_some_and(is_other) {
            self.settle(verification).await?;
        }
        self.group.push(row.clone());
        Ok(())
    }

    /// Compares the last events, and refuses rows of operations without an event.
    pub(crate) async fn finish(
        mut self,
        archive: &Archive,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        self.settle(verification).await?;
        while let Some(op) = self.ops.next().await? {
            self.orphan(op);
        }
        if self.is_without(Table::Events) {
            return Ok(());
        }
        for op in self.orphans {
            // A writer may have stored the event after the events were listed, as operations are stored first.
            if verification.has_account(op.did())
                && op.arrival() >= verification.since()
                && !has_event(archive, &op).await?
            {
                let message = "no event has this operation: `archive seal` stores the events of a crash, others were put there";
                verification.refuse(finding(&op, message.to_owned()));
            }
        }
        Ok(())
    }

    /// Compares the events of one place with the rows of operations of that place.
    async fn settle(&mut self, verification: &mut Verification<'_>) -> Result<(), ArchiveError> {
        let group = std::mem::take(&mut self.group);
        let Some(first) = group.first() else { return Ok(()) };
        let (did, number) = (first.event().did, first.event().arrival);
        let place = |number| Key { did: did.map(Box::from), number, text: None };
        while let Some(op) = self.ops.next_before(&place(number)).await? {
            self.orphan(op);
        }
        let mut ops = Vec::new();
        while let Some(op) = self.ops.next_before(&place(number.saturating_add(1))).await? {
            ops.push(op);
        }
        let is_selected = did.is_none_or(|did| verification.has_account(did));
        if !is_selected || first.event().received < verification.since() {
            return Ok(());
        }
        // Rows of an unknown form are refused as such.
        let has_others = group.iter().any(|row| row.form() != FULL);
        for row in group.iter().filter(|row| row.form() == FULL) {
            if let Err(message) = self.compare(row, &mut ops) {
                verification.refuse(Finding::of(row, Rule::Derived.code(), message));
            }
        }
        match ops.first() {
            Some(op) if !has_others => {
                let message = "the event has no such operation".to_owned();
                verification.refuse(finding(op, message));
            }
            _ => {}
        }
        Ok(())
    }

    /// Compares an event with its frame, and takes its operations out of the rows.
    fn compare(&mut self, row: &EventRow, ops: &mut Vec<Row<OpColumns>>) -> Result<(), String> {
        let event = row.event();
        let decoded = self.decoder.decode(event.frame).ok();
        let columns = compare_columns(row, decoded.as_ref());
        let ops = match decoded {
            Some(Event::Commit(commit)) if event.is_verified() => take_ops(commit, ops),
            _ => Ok(()),
        };
        if self.is_without(Table::Ops) { columns } else { columns.and(ops) }
    }

    /// Whether a file of a table is left out.
    fn is_without(&self, table: Table) -> bool {
        let is_of_table = |file: &String| file.split('/').next() == Some(table.name());
        self.without.iter().any(is_of_table)
    }

    fn orphan(&mut self, op: Row<OpColumns>) {
        // Every orphan is its own finding; more findings say nothing new.
        if self.orphans.len() < MAX_ORPHANS {
            self.orphans.push(op);
        }
    }
}

/// Compares the columns of an event with the fields of its frame.
fn compare_columns(row: &EventRow, decoded: Option<&Event<'_>>) -> Result<(), String> {
    let event = row.event();
    let fields = Fields::of(decoded);
    let stated = row.derived();
    let columns = [
        ("time", stated.time == fields.time),
        ("rev", row.rev() == fields.rev),
        ("since", row.since() == fields.since),
        ("kind", event.kind == crate::event::kind(event.frame)),
        ("seq", decoded.is_none_or(|event_of| event_of.seq() == event.seq)),
        ("commit", !stated.has_cids),
    ];
    match columns.iter().find(|(_, is_same)| !is_same) {
        None => Ok(()),
        Some((name, _)) => Err(format!("the column {name} differs from the frame")),
    }
}

/// Takes the operations of a commit out of these rows.
fn take_ops(commit: Commit<'_>, ops: &mut Vec<Row<OpColumns>>) -> Result<(), String> {
    for (idx, op) in commit.ops.iter().enumerate() {
        let is_same = |row: &Row<OpColumns>| {
            let (collection, rkey) = op.path.split_once('/').unwrap_or((op.path, ""));
            let record = op.record.map(|block| block.data);
            row.idx() == idx as i16
                && row.action() == op.action.as_str()
                && row.path() == (collection, rkey)
                && is_record(row.record(), op.cid.and_then(|cid| cid.to_cid()), record)
                && !row.has_prev()
        };
        match ops.iter().position(is_same) {
            Some(at) => drop(ops.remove(at)),
            None => return Err(format!("no row of ops has its operation {idx}, {}", op.path)),
        }
    }
    Ok(())
}

/// Whether the record of a row belongs to an operation: left to the frame, or stored as for a compact commit.
fn is_record(
    (stored_cid, stored): (Option<&[u8]>, Option<&[u8]>),
    cid: Option<Cid>,
    record: Option<&[u8]>,
) -> bool {
    if (stored_cid, stored) == (None, None) {
        return true;
    }
    let usual = record.map(|record| Cid::of(Codec::DagCbor, record));
    let unusual = cid.filter(|cid| usual != Some(*cid));
    stored == record && stored_cid == unusual.as_ref().map(|cid| &cid.as_bytes()[..])
}

/// Whether there is an event of the account and arrival of an operation, as of now.
async fn has_event(archive: &Archive, op: &Row<OpColumns>) -> Result<bool, ArchiveError> {
    let selection = Selection { did: Some(op.did().to_owned()), ..Selection::default() };
    let mut events: Scan<EventColumns> = archive.scan(&selection).await?;
    let place = |number| Key { did: Some(op.did().into()), number, text: None };
    events.skip_to(&place(op.arrival())).await?;
    Ok(events.next_before(&place(op.arrival().saturating_add(1))).await?.is_some())
}

fn finding(op: &Row<OpColumns>, message: String) -> Finding {
    let ((file, row), did) = (op.place(), Some(op.did().to_owned()));
    let code = Rule::Derived.code();
    Finding { file: file.to_owned(), row: Some(row), did, code, message }
}

/// Operations without an event that are looked up.
const MAX_ORPHANS: usize = 1_000;
