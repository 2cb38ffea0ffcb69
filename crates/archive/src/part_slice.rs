//! The slice of a stored part: its commit and nodes with its records, as a server would send them.

use std::io;

use codec::{Cid, car};
use kernels::sha256;

use crate::archive::Archive;
use crate::chain::record_cid;
use crate::error::ArchiveError;
use crate::part_rows::{PartColumns, PartRecordColumns, part_key};
use crate::rule::{BrokenRule, Rule};
use crate::scan::Scan;
use crate::table_rows::{Key, Row};
use crate::table_scan::Selection;

/// The slice of a part, and the rows that are in it.
pub(crate) struct PartSlice {
    /// A CAR whose root is the commit.
    pub(crate) archive: Vec<u8>,
    /// The paths and CIDs of the stored records, in their order.
    pub(crate) records: Vec<(String, Cid)>,
}

/// The slices of the parts of an archive, one after the other.
pub(crate) struct PartSlices {
    records: Scan<PartRecordColumns>,
    /// The first record of the next part.
    next: Option<Row<PartRecordColumns>>,
    /// The last part that was asked for: the same part in two files has two rows, which follow each other.
    place: Option<Key>,
    /// Its records.
    rows: Vec<Row<PartRecordColumns>>,
    bytes: usize,
}

impl PartSlices {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        let records = archive.scan(selection).await?;
        Ok(Self { records, next: None, place: None, rows: Vec::new(), bytes: 0 })
    }

    /// The slice of a part, or the rule that its rows break. No part may come before one that was asked for.
    pub(crate) async fn of(
        &mut self,
        part: &Row<PartColumns>,
    ) -> Result<Result<PartSlice, BrokenRule>, ArchiveError> {
        let place = part_key(part.part());
        if self.place.as_ref() != Some(&place) {
            self.read(&place).await?;
            self.place = Some(place);
        }
        if self.bytes.saturating_add(part.proof().len()) > MAX_PART_BYTES {
            let message = format!("its proof and records have more than {MAX_PART_BYTES} bytes");
            return Ok(Err((Rule::Records.code(), message)));
        }
        Ok(PartSlice::new(part.proof(), &self.rows))
    }

    /// Reads the records of a part.
    async fn read(&mut self, place: &Key) -> Result<(), ArchiveError> {
        (self.rows, self.bytes) = (Vec::new(), 0);
        if self.next.as_ref().is_none_or(|row| part_key(row.part()) < *place) {
            self.records.skip_to(place).await?;
            self.next = self.records.next().await?;
        }
        while let Some(row) = self.next.take() {
            if part_key(row.part()) != *place {
                self.next = Some(row);
                break;
            }
            // The same part in two files is one: its records follow in two runs, of which the second one is left out.
            let first = self.rows.first().unwrap_or(&row);
            if first.place().0 == row.place().0 && self.bytes <= MAX_PART_BYTES {
                self.bytes += row.bytes().len();
                self.rows.push(row);
            }
            self.next = self.records.next().await?;
        }
        Ok(())
    }
}

impl PartSlice {
    fn new(proof: &[u8], rows: &[Row<PartRecordColumns>]) -> Result<Self, BrokenRule> {
        let blocks: Vec<&[u8]> = rows.iter().map(Row::<PartRecordColumns>::bytes).collect();
        let digests = sha256::digest_many(&blocks);
        let mut slice = Self { archive: proof.to_vec(), records: Vec::with_capacity(rows.len()) };
        for (row, digest) in rows.iter().zip(&digests) {
            let (collection, rkey) = row.path();
            let path = format!("{collection}/{rkey}");
            let Some(cid) = record_cid(row.cid(), digest) else {
                let message = format!("{path}: the record does not match its CID");
                return Err((Rule::Records.code(), message));
            };
            slice.add(&cid, row.bytes()).expect("memory takes all");
            slice.records.push((path, cid));
        }
        Ok(slice)
    }

    fn add(&mut self, cid: &Cid, block: &[u8]) -> io::Result<()> {
        car::Writer::append_to(&mut self.archive).block(cid, block)
    }
}

/// The maximum size of a part with its records, which are in memory to prove it: as of a slice that is
/// [verified](verify::record::Options) when it is fetched.
pub const MAX_PART_BYTES: usize = 64 << 20;
