//! The rows of a mirror as a directory serves them: by account, by number, and by time.
//!
//! The operations were verified when they were stored; here every row is compared with its checksum.

use rusqlite::types::ToSql;

use crate::checksum::CoveredBytes;
use crate::database::{StoreError, StoreFault};
use crate::plc_mirror::{PlcMirrorReader, RawOperation};

/// An operation of a mirror, as a directory states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredOperation {
    /// The account.
    pub did: String,
    /// Its place in the history of the account, from 0.
    pub number: u64,
    /// Its number in the directory.
    pub seq: u64,
    /// When the directory accepted it, in microseconds since 1970.
    pub created_at_micros: i64,
    /// Whether a later operation nullified it.
    pub nullified: bool,
    /// The text of its CID.
    pub cid: String,
    /// Its JSON, with the text of the directory.
    pub json: String,
}

impl PlcMirrorReader {
    /// The operations of an account in the order of its history, nullified ones included.
    ///
    /// # Errors
    /// If they cannot be read, or a row is damaged.
    pub fn operations(&self, did: &str) -> Result<Vec<MirroredOperation>, StoreError> {
        self.select(SELECT_OF_ACCOUNT, &[&did])
    }

    /// The last operation in force of an account.
    ///
    /// # Errors
    /// If it cannot be read, or the row is damaged.
    pub fn last_operation(&self, did: &str) -> Result<Option<MirroredOperation>, StoreError> {
        Ok(self.select(SELECT_LAST, &[&did])?.pop())
    }

    /// The operations with the next numbers after this one, at most `count`.
    ///
    /// # Errors
    /// If they cannot be read, or a row is damaged.
    pub fn operations_after(
        &self,
        seq: u64,
        count: usize,
    ) -> Result<Vec<MirroredOperation>, StoreError> {
        let seq = i64::try_from(seq).unwrap_or(i64::MAX);
        self.select(SELECT_AFTER_NUMBER, &[&seq, &limit(count)])
    }

    /// The operations after a time in microseconds, in the order of their times and then of their CIDs, at most `count`.
    ///
    /// # Errors
    /// If they cannot be read, or a row is damaged.
    pub fn operations_after_time(
        &self,
        micros: i64,
        count: usize,
    ) -> Result<Vec<MirroredOperation>, StoreError> {
        self.select(SELECT_AFTER_TIME, &[&micros, &limit(count)])
    }

    /// The operations after a time and a CID, in the order of [`operations_after_time`](Self::operations_after_time), at most
    /// `count`.
    ///
    /// # Errors
    /// If they cannot be read, or a row is damaged.
    pub fn operations_after_moment(
        &self,
        micros: i64,
        cid: &str,
        count: usize,
    ) -> Result<Vec<MirroredOperation>, StoreError> {
        self.select(SELECT_AFTER_MOMENT, &[&micros, &cid, &limit(count)])
    }

    /// The operations after a place in the order of the DIDs and then of the histories, at most `count`.
    ///
    /// # Errors
    /// If they cannot be read, or a row is damaged.
    pub fn operations_after_place(
        &self,
        did: &str,
        number: u64,
        count: usize,
    ) -> Result<Vec<MirroredOperation>, StoreError> {
        self.select(SELECT_AFTER_PLACE, &[&did, &number.cast_signed(), &limit(count)])
    }

    /// The newest time of an operation, in microseconds since 1970.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn newest_time(&self) -> Result<Option<i64>, StoreError> {
        let newest = self.connection.query_row(SELECT_NEWEST_TIME, [], |row| row.get(0));
        newest.map_err(|error| StoreError::new(&self.path, StoreFault::from(error)))
    }

    /// Calls `visit` for the operations of [`operations_after`](Self::operations_after), without a copy of them. What was visited counts
    /// for nothing after an error.
    ///
    /// # Errors
    /// If they cannot be read, or a row is damaged.
    pub fn visit_after(
        &self,
        seq: u64,
        count: usize,
        visit: impl FnMut(&MirrorRow<'_>),
    ) -> Result<(), StoreError> {
        let seq = i64::try_from(seq).unwrap_or(i64::MAX);
        let visited = self.visit(SELECT_AFTER_NUMBER, &[&seq, &limit(count)], visit);
        visited.map_err(StoreError::at(&self.path))
    }

    fn select(
        &self,
        statement: &str,
        values: &[&dyn ToSql],
    ) -> Result<Vec<MirroredOperation>, StoreError> {
        let mut found = Vec::new();
        let visited = self.visit(statement, values, |row| found.push(row.to_owned()));
        visited.map_err(StoreError::at(&self.path))?;
        Ok(found)
    }

    fn visit(
        &self,
        statement: &str,
        values: &[&dyn ToSql],
        mut visit: impl FnMut(&MirrorRow<'_>),
    ) -> Result<(), StoreFault> {
        let mut select = self.connection.prepare_cached(statement)?;
        let (mut rows, mut check) = (select.query(values)?, Check::default());
        while let Some(row) = rows.next()? {
            let raw = RawOperation::read(row)?;
            check.add(&raw)?;
            visit(&MirrorRow {
                did: raw.did,
                number: raw.number,
                seq: raw.seq,
                created_at_micros: raw.created_at_micros,
                nullified: raw.nullified,
                cid: raw.cid,
                json: raw.json,
            });
        }
        check.finish()
    }
}

/// An operation of a mirror that is being read; its owned form is [`MirroredOperation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorRow<'r> {
    /// The account.
    pub did: &'r str,
    /// Its place in the history of the account, from 0.
    pub number: u64,
    /// Its number in the directory.
    pub seq: u64,
    /// When the directory accepted it, in microseconds since 1970.
    pub created_at_micros: i64,
    /// Whether a later operation nullified it.
    pub nullified: bool,
    /// The text of its CID.
    pub cid: &'r str,
    /// Its JSON, with the text of the directory.
    pub json: &'r str,
}

impl MirrorRow<'_> {
    /// The same with copies.
    pub fn to_owned(&self) -> MirroredOperation {
        MirroredOperation {
            did: self.did.to_owned(),
            number: self.number,
            seq: self.seq,
            created_at_micros: self.created_at_micros,
            nullified: self.nullified,
            cid: self.cid.to_owned(),
            json: self.json.to_owned(),
        }
    }
}

impl MirroredOperation {
    /// The same without copies.
    pub fn as_row(&self) -> MirrorRow<'_> {
        MirrorRow {
            did: &self.did,
            number: self.number,
            seq: self.seq,
            created_at_micros: self.created_at_micros,
            nullified: self.nullified,
            cid: &self.cid,
            json: &self.json,
        }
    }
}

/// The comparison of rows with their checksums, some rows at a time.
#[derive(Default)]
struct Check {
    covered: [CoveredBytes; LANES],
    /// The numbers in the directory, and the stored checksums.
    rows: [(u64, i64); LANES],
    waiting: usize,
}

impl Check {
    fn add(&mut self, raw: &RawOperation<'_>) -> Result<(), StoreFault> {
        raw.cover(&mut self.covered[self.waiting]);
        self.rows[self.waiting] = (raw.seq, raw.checksum());
        self.waiting += 1;
        if self.waiting == LANES { self.finish() } else { Ok(()) }
    }

    /// Compares the rows that wait.
    fn finish(&mut self) -> Result<(), StoreFault> {
        let (waiting, mut sums) = (std::mem::take(&mut self.waiting), [0; LANES]);
        if waiting == LANES {
            sums = CoveredBytes::checksums(&self.covered);
        } else {
            let alone = self.covered.iter().take(waiting).map(CoveredBytes::checksum);
            sums.iter_mut().zip(alone).for_each(|(sum, of_row)| *sum = of_row);
        }
        for ((seq, stored), sum) in self.rows.iter().zip(sums).take(waiting) {
            if sum != *stored {
                return Err(StoreFault::Damaged(format!("operation {seq} of the directory")));
            }
        }
        Ok(())
    }
}

/// Number of rows whose checksums are computed in turn.
const LANES: usize = 8;

fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT did, number, seq, created, signer, nullified, cid, json, checksum FROM operation ",
            $rest
        )
    };
}

const SELECT_OF_ACCOUNT: &str = select!("WHERE did = ?1 ORDER BY number");
const SELECT_LAST: &str = select!("WHERE did = ?1 AND nullified = 0 ORDER BY number DESC LIMIT 1");
const SELECT_AFTER_NUMBER: &str = select!("WHERE seq > ?1 ORDER BY seq LIMIT ?2");
const SELECT_AFTER_TIME: &str = select!("WHERE created > ?1 ORDER BY created, cid LIMIT ?2");
const SELECT_AFTER_MOMENT: &str =
    select!("WHERE created >= ?1 AND (created > ?1 OR cid > ?2) ORDER BY created, cid LIMIT ?3");
const SELECT_AFTER_PLACE: &str =
    select!("WHERE (did, number) > (?1, ?2) ORDER BY did, number LIMIT ?3");
const SELECT_NEWEST_TIME: &str = "SELECT max(created) FROM operation";
