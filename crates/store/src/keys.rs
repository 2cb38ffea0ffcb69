//! The rows of keys. A damaged one is like none: the key is looked up again.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::checksum::Checksum;
use crate::database::StoreFault;

/// The key of an account when it was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// The key as a `did:key`, stored verbatim.
    pub did_key: String,
    /// When it was fetched, in microseconds since 1970.
    pub fetched_micros: u64,
    /// The URL of the account's host; empty if its DID document names none, `None` if it was not stored, as by
    /// earlier versions.
    pub host: Option<String>,
}

impl StoredKey {
    fn checksum(&self, did: &str) -> i64 {
        let key = Checksum::of("key").bytes(Some(did.as_bytes()));
        let key = key.bytes(Some(self.did_key.as_bytes())).number(self.fetched_micros);
        key.bytes(self.host.as_deref().map(str::as_bytes)).to_integer()
    }
}

/// Reads the key of an account, if there is an intact one.
pub(crate) fn read(connection: &Connection, did: &str) -> Result<Option<StoredKey>, StoreFault> {
    let mut select = connection.prepare_cached(SELECT)?;
    let row = select.query_row([did], |row| Ok((key_of(row)?, row.get::<_, Option<i64>>(3)?)));
    let is_intact =
        |(key, checksum): &(StoredKey, Option<i64>)| *checksum == Some(key.checksum(did));
    Ok(row.optional()?.filter(is_intact).map(|(key, _)| key))
}

fn key_of(row: &Row<'_>) -> Result<StoredKey, rusqlite::Error> {
    let fetched = row.get::<_, i64>(1)?;
    Ok(StoredKey {
        did_key: row.get(0)?,
        fetched_micros: fetched.cast_unsigned(),
        host: row.get(2)?,
    })
}

/// Stores the checksums of keys that have none, some at a time.
pub(crate) fn seal(transaction: &Connection) -> Result<(), StoreFault> {
    let mut select = transaction.prepare(SELECT_WITHOUT_CHECKSUM)?;
    let mut update = transaction.prepare("UPDATE key SET checksum = ?2 WHERE did = ?1")?;
    let mut last = String::new();
    loop {
        let rows = select.query_map([&last], |row| Ok((row.get(4)?, key_of(row)?)))?;
        let rows = rows.collect::<Result<Vec<(String, StoredKey)>, _>>()?;
        let Some((newest, _)) = rows.last() else { return Ok(()) };
        last.clone_from(newest);
        for (did, key) in rows {
            update.execute(params![did, key.checksum(&did)])?;
        }
    }
}

/// Writes the key of an account; `None` deletes it.
pub(crate) fn write(
    transaction: &Connection,
    did: &str,
    key: Option<&StoredKey>,
) -> Result<(), StoreFault> {
    let Some(key) = key else {
        transaction.prepare_cached("DELETE FROM key WHERE did = ?1")?.execute([did])?;
        return Ok(());
    };
    let StoredKey { did_key, fetched_micros, host } = key;
    let fetched = fetched_micros.cast_signed();
    let mut upsert = transaction.prepare_cached(UPSERT)?;
    upsert.execute(params![did, did_key, fetched, host, key.checksum(did)])?;
    Ok(())
}

const SELECT: &str = "SELECT key, fetched, host, checksum FROM key WHERE did = ?1";

const SELECT_WITHOUT_CHECKSUM: &str = "
SELECT key, fetched, host, checksum, did FROM key
WHERE did > ?1 AND checksum IS NULL ORDER BY did LIMIT 1000";

const UPSERT: &str = "
INSERT INTO key (did, key, fetched, host, checksum) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (did) DO UPDATE SET key = ?2, fetched = ?3, host = ?4, checksum = ?5";
