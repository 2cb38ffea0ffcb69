//! The cursors of streams and the bounds of their printed events, under one checksum.
//!
//! The checksum is over all rows of both tables, so that a row that is lost is detected too: without it, a run
//! would start at the present and skip the events in between. It is compared before every read and every change.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::checksum::Checksum;
use crate::database::StoreFault;

/// Streams with a sequence number, in the order of their names.
pub(crate) type Seqs = Vec<(String, u64)>;

/// The rows of both tables.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The last handled event of every stream.
    pub(crate) cursors: Seqs,
    /// A sequence number per stream that no printed event exceeds.
    pub(crate) printed: Seqs,
}

impl Streams {
    /// Reads the rows, and compares their checksum.
    pub(crate) fn read(connection: &Connection) -> Result<Self, StoreFault> {
        let streams = Self::read_unchecked(connection)?;
        let select = "SELECT checksum FROM stream_checksum WHERE id = 0";
        let stored =
            connection.prepare_cached(select)?.query_row([], |row| row.get(0)).optional()?;
        if stored == Some(streams.checksum()) {
            Ok(streams)
        } else {
            Err(StoreFault::Damaged("the checksum of the cursors is wrong".to_owned()))
        }
    }

    fn read_unchecked(connection: &Connection) -> Result<Self, StoreFault> {
        let rows = |select| -> Result<Seqs, StoreFault> {
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()));
            Ok(connection.prepare_cached(select)?.query_map([], row)?.collect::<Result<_, _>>()?)
        };
        let cursors = rows("SELECT stream, seq FROM cursor ORDER BY stream")?;
        Ok(Self { cursors, printed: rows("SELECT stream, seq FROM printed ORDER BY stream")? })
    }

    fn checksum(&self) -> i64 {
        let add = |sum: Checksum, (stream, seq): &(String, u64)| {
            sum.bytes(Some(stream.as_bytes())).number(*seq)
        };
        let cursors = Checksum::of("cursor").number(self.cursors.len() as u64);
        let cursors = self.cursors.iter().fold(cursors, add).bytes(Some(b"printed"));
        self.printed.iter().fold(cursors, add).to_integer()
    }
}

/// Stores the checksum of the rows. In a transaction that has read them before it changed them.
pub(crate) fn seal(transaction: &Connection) -> Result<(), StoreFault> {
    let checksum = Streams::read_unchecked(transaction)?.checksum();
    let upsert = "INSERT INTO stream_checksum (id, checksum) VALUES (0, ?1) \
                  ON CONFLICT (id) DO UPDATE SET checksum = ?1";
    transaction.prepare_cached(upsert)?.execute([checksum])?;
    Ok(())
}

/// Sets the cursor of a stream.
pub(crate) fn set_cursor(
    transaction: &Connection,
    stream: &str,
    seq: u64,
) -> Result<(), StoreFault> {
    transaction.prepare_cached(UPSERT_CURSOR)?.execute(params![stream, seq.cast_signed()])?;
    Ok(())
}

/// Deletes the cursor of a stream.
pub(crate) fn forget_cursor(transaction: &Connection, stream: &str) -> Result<(), StoreFault> {
    transaction.prepare_cached("DELETE FROM cursor WHERE stream = ?1")?.execute([stream])?;
    Ok(())
}

/// Sets the hashes of the last printed events of a stream.
pub(crate) fn set_recent(
    transaction: &Connection,
    stream: &str,
    hashes: &[[u8; 16]],
) -> Result<(), StoreFault> {
    let replace = "INSERT OR REPLACE INTO recent (stream, hashes) VALUES (?1, ?2)";
    transaction.prepare_cached(replace)?.execute(params![stream, hashes.as_flattened()])?;
    Ok(())
}

/// The hashes of the last printed events of a stream.
pub(crate) fn recent(connection: &Connection, stream: &str) -> Result<Vec<[u8; 16]>, StoreFault> {
    let mut select = connection.prepare_cached("SELECT hashes FROM recent WHERE stream = ?1")?;
    let hashes = select.query_row([stream], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(hashes.unwrap_or_default().as_chunks::<16>().0.to_vec())
}

/// Sets the bound of the printed events of a stream.
pub(crate) fn set_printed(
    transaction: &Connection,
    stream: &str,
    seq: u64,
) -> Result<(), StoreFault> {
    transaction.prepare_cached(UPSERT_PRINTED)?.execute(params![stream, seq.cast_signed()])?;
    Ok(())
}

const UPSERT_CURSOR: &str = "
INSERT INTO cursor (stream, seq) VALUES (?1, ?2) ON CONFLICT (stream) DO UPDATE SET seq = ?2";

const UPSERT_PRINTED: &str = "
INSERT INTO printed (stream, seq) VALUES (?1, ?2) ON CONFLICT (stream) DO UPDATE SET seq = ?2";
