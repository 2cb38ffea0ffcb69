//! The rows of a mirror as a directory serves them: by account, by number, and by time.
//!
//! The operations were verified when they were stored; here every row is compared with its checksum.

use rusqlite::types::ToSql;

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

    fn select(
        &self,
        statement: &str,
        values: &[&dyn ToSql],
    ) -> Result<Vec<MirroredOperation>, StoreError> {
        self.try_select(statement, values).map_err(StoreError::at(&self.path))
    }

    fn try_select(
        &self,
        statement: &str,
        values: &[&dyn ToSql],
    ) -> Result<Vec<MirroredOperation>, StoreFault> {
        let mut select = self.connection.prepare_cached(statement)?;
        let (mut rows, mut found) = (select.query(values)?, Vec::new());
        while let Some(row) = rows.next()? {
            found.push(owned(&RawOperation::read(row)?)?);
        }
        Ok(found)
    }
}

fn owned(raw: &RawOperation<'_>) -> Result<MirroredOperation, StoreFault> {
    if !raw.is_intact() {
        return Err(StoreFault::Damaged(format!("operation {} of {}", raw.number, raw.did)));
    }
    Ok(MirroredOperation {
        did: raw.did.to_owned(),
        number: raw.number,
        seq: raw.seq,
        created_at_micros: raw.created_at_micros,
        nullified: raw.nullified,
        cid: raw.cid.to_owned(),
        json: raw.json.to_owned(),
    })
}

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
