//! Writing a database of strfry.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use heed::{Env, RoTxn, RwTxn, WithoutTls};
use kernels::hex;
use mapping::lmdb;
use nostr::{Arena, EncodeError, Event, Limits};
use nostr_formats::Format;
use nostr_formats::container::MAX_EVENT_BYTES;
use nostr_formats::packed_event::{self, PackedEvent};

use crate::error::DatabaseError;
use crate::flat;
use crate::payload::PLAIN;
use crate::tables::{self, Address, DELETION, Tables};

/// Writes a new database of strfry, version 3, with all indexes of events.
///
/// The remaining events depend on the set of events alone, not on their order. An event is stored once. Deletions remove the
/// events of their author that they name (NIP-09), and gift wraps to their author (NIP-59); a deletion is never deleted. Of a
/// replaceable or addressable event, the newest one that is not deleted remains, of several of one time the one with the lowest
/// id (NIP-01). Ephemeral events are not stored. It verifies nothing, as strfry verifies no stored event. Payloads are not
/// compressed, and no filter has a negentropy tree.
pub struct StrfryWriter {
    env: Env<WithoutTls>,
    tables: Tables,
    /// Number of the last event.
    last: u64,
    counts: Counts,
}

/// The outcome for an event. [`StrfryWriter::finish`] removes deleted and replaced events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored,
    /// It was stored before. Of two events with an id the one whose JSON is less remains.
    Duplicate,
    /// Its kind is not stored.
    Ephemeral,
}

/// Numbers of events by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events of the database.
    pub stored: u64,
    /// Events that were stored before.
    pub duplicates: u64,
    /// Events that a newer one replaces.
    pub replaced: u64,
    /// Events that another one deletes.
    pub deleted: u64,
    /// Events of kinds that are not stored.
    pub ephemeral: u64,
}

impl StrfryWriter {
    /// Creates a database in `folder`, which is empty.
    ///
    /// # Errors
    /// If the folder does not exist or is not empty, or the system fails.
    pub fn create(folder: &Path) -> Result<Self, DatabaseError> {
        if fs::read_dir(folder).map_err(DatabaseError::Io)?.next().is_some() {
            return Err(DatabaseError::Exists);
        }
        let env = lmdb::create(folder, MAX_TABLES, MAX_BYTES)?;
        let tables = Tables::create(&env)?;
        let mut txn = env.write_txn()?;
        tables.meta.put(&mut txn, &1_u64.to_ne_bytes(), &flat::of_integers(&META))?;
        txn.commit()?;
        Ok(Self { env, tables, last: 0, counts: Counts::default() })
    }

    /// Stores events, in one transaction: their outcomes, or why the database cannot hold them.
    ///
    /// # Errors
    /// If LMDB cannot write.
    pub fn write(
        &mut self,
        events: &[Event<'_>],
    ) -> Result<Vec<Result<Outcome, EncodeError>>, DatabaseError> {
        let env = self.env.clone();
        let mut txn = env.write_txn()?;
        let outcomes =
            events.iter().map(|event| self.store(&mut txn, event)).collect::<Result<_, _>>()?;
        txn.commit()?;
        Ok(outcomes)
    }

    /// Removes deleted and replaced events, and makes the database durable.
    ///
    /// # Errors
    /// If LMDB cannot write, or the system fails.
    pub fn finish(mut self) -> Result<Counts, DatabaseError> {
        self.resolve()?;
        self.env.force_sync()?;
        Ok(self.counts)
    }

    /// Removes the deleted events, then the replaced ones.
    pub(crate) fn resolve(&mut self) -> Result<(), DatabaseError> {
        self.each_event(|writer, txn, number| {
            let deleted = writer.deleted(txn, number)?;
            writer.remove_all(txn, deleted, Removal::Deleted)
        })?;
        self.each_event(|writer, txn, number| {
            let replaced = writer.replaced(txn, number)?;
            writer.remove_all(txn, replaced, Removal::Replaced)
        })
    }

    /// Calls `visit` with the number of every event, in transactions of bounded length.
    fn each_event(
        &mut self,
        mut visit: impl FnMut(&mut Self, &mut RwTxn<'_>, u64) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let (env, mut next) = (self.env.clone(), 1);
        while next <= self.last {
            let mut txn = env.write_txn()?;
            let end = self.last.min(next + TRANSACTION_EVENTS - 1);
            for number in next..=end {
                visit(self, &mut txn, number)?;
            }
            txn.commit()?;
            next = end + 1;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> (&Env<WithoutTls>, &Tables) {
        (&self.env, &self.tables)
    }

    fn store(
        &mut self,
        txn: &mut RwTxn<'_>,
        event: &Event<'_>,
    ) -> Result<Result<Outcome, EncodeError>, DatabaseError> {
        if (20_000..30_000).contains(&event.kind) {
            self.counts.ephemeral += 1;
            return Ok(Ok(Outcome::Ephemeral));
        }
        let (summary, payload) = match encode(event) {
            Ok(encoded) => encoded,
            Err(fault) => return Ok(Err(fault)),
        };
        let Some(number) = self.number_of_id(txn, &event.id)? else {
            self.last += 1;
            self.insert(txn, self.last, &summary, &payload)?;
            self.counts.stored += 1;
            return Ok(Ok(Outcome::Stored));
        };
        let stored = self.tables.payloads.get(txn, &number.to_ne_bytes())?;
        if stored.is_some_and(|stored| payload.as_slice() < stored) {
            self.remove(txn, number)?;
            self.insert(txn, number, &summary, &payload)?;
        }
        self.counts.duplicates += 1;
        Ok(Ok(Outcome::Duplicate))
    }

    /// The numbers of the events that this one deletes, if it is a deletion. Its tags come from the payload: a summary leaves
    /// out long ones.
    fn deleted(&self, txn: &RoTxn<'_>, number: u64) -> Result<Vec<u64>, DatabaseError> {
        let Some(summary) = self.summary(txn, number)? else { return Ok(Vec::new()) };
        let deletion = stored_summary(&summary)?;
        if u64::from(deletion.kind()) != DELETION {
            return Ok(Vec::new());
        }
        let payload = self.tables.payloads.get(txn, &number.to_ne_bytes())?.unwrap_or_default();
        let (arena, json) = (Arena::new(), payload.get(1..).unwrap_or_default());
        let event = Format::Json.decode(json, &arena, &Limits::default());
        let event = event.map_err(|_| heed::Error::Mdb(heed::MdbError::Corrupted))?;
        let mut numbers = Vec::new();
        for tag in event.tags {
            let text = |at: usize| tag.get(at).map(|text| text.to_text()).unwrap_or_default();
            let (name, value) = (text(0), text(1));
            let (named, is_address) = match &*name {
                "e" => (self.number_of_digits(txn, &value)?.into_iter().collect(), false),
                "a" => (self.numbers_of_address(txn, value.as_bytes(), &deletion)?, true),
                _ => continue,
            };
            for number in named {
                let other = self.summary(txn, number)?.unwrap_or_default();
                let other = stored_summary(&other)?;
                let is_earlier = other.created_at() <= deletion.created_at();
                if may_delete(&deletion, &other) && (is_earlier || !is_address) {
                    numbers.push(number);
                }
            }
        }
        Ok(numbers)
    }

    /// The numbers of events of the address of this one but the newest.
    fn replaced(&self, txn: &RoTxn<'_>, number: u64) -> Result<Vec<u64>, DatabaseError> {
        let Some(summary) = self.summary(txn, number)? else { return Ok(Vec::new()) };
        let event = stored_summary(&summary)?;
        let mut numbers = match tables::first_d(&event) {
            Some(d) if event.is_replaceable() || event.is_addressable() => {
                self.numbers_at(txn, event.pubkey(), d, event.kind())?
            }
            _ => return Ok(Vec::new()),
        };
        if numbers.len() < 2 {
            return Ok(Vec::new());
        }
        let mut newest = (event.created_at(), Reverse(*event.id()), number);
        for number in &numbers {
            let other = self.summary(txn, *number)?.unwrap_or_default();
            let other = stored_summary(&other)?;
            newest = newest.max((other.created_at(), Reverse(*other.id()), *number));
        }
        numbers.retain(|number| *number != newest.2);
        Ok(numbers)
    }

    fn insert(
        &self,
        txn: &mut RwTxn<'_>,
        number: u64,
        summary: &[u8],
        payload: &[u8],
    ) -> Result<(), DatabaseError> {
        self.tables.summaries.put(txn, &number.to_ne_bytes(), summary)?;
        self.tables.payloads.put(txn, &number.to_ne_bytes(), payload)?;
        for (index, key) in tables::entries(&stored_summary(summary)?) {
            self.tables.index(index).insert(txn, &key, number)?;
        }
        Ok(())
    }

    /// Removes events, and counts why.
    fn remove_all(
        &mut self,
        txn: &mut RwTxn<'_>,
        numbers: impl IntoIterator<Item = u64>,
        removal: Removal,
    ) -> Result<(), DatabaseError> {
        for number in numbers {
            if self.remove(txn, number)? {
                self.counts.stored -= 1;
                match removal {
                    Removal::Deleted => self.counts.deleted += 1,
                    Removal::Replaced => self.counts.replaced += 1,
                }
            }
        }
        Ok(())
    }

    /// Removes an event; whether it was stored.
    fn remove(&self, txn: &mut RwTxn<'_>, number: u64) -> Result<bool, DatabaseError> {
        let Some(summary) = self.summary(txn, number)? else { return Ok(false) };
        for (index, key) in tables::entries(&stored_summary(&summary)?) {
            self.tables.index(index).remove(txn, &key, number)?;
        }
        self.tables.summaries.delete(txn, &number.to_ne_bytes())?;
        self.tables.payloads.delete(txn, &number.to_ne_bytes())?;
        Ok(true)
    }

    fn summary(&self, txn: &RoTxn<'_>, number: u64) -> Result<Option<Vec<u8>>, DatabaseError> {
        Ok(self.tables.summaries.get(txn, &number.to_ne_bytes())?.map(<[u8]>::to_vec))
    }

    /// The number of the event with an id.
    fn number_of_id(&self, txn: &RoTxn<'_>, id: &[u8]) -> Result<Option<u64>, DatabaseError> {
        let first = tables::key(&[id], &[0]);
        let found = self.tables.ids.get_greater_than_or_equal_to(txn, &first)?;
        let found = found.filter(|(key, _)| key.starts_with(id));
        found.map(|(_, number)| tables::number_of(number)).transpose()
    }

    /// The number of the event with an id of 64 digits.
    fn number_of_digits(
        &self,
        txn: &RoTxn<'_>,
        digits: &str,
    ) -> Result<Option<u64>, DatabaseError> {
        let mut id = [0; 32];
        if digits.len() == 64 && hex::decode(digits.to_ascii_lowercase().as_bytes(), &mut id) {
            self.number_of_id(txn, &id)
        } else {
            Ok(None)
        }
    }

    /// The numbers of the events that a tag `a` of a deletion names: all of its author with this kind and `d`.
    fn numbers_of_address(
        &self,
        txn: &RoTxn<'_>,
        value: &[u8],
        deletion: &PackedEvent<'_>,
    ) -> Result<Vec<u64>, DatabaseError> {
        match Address::of(value, deletion) {
            Some(Address { kind, d }) => self.numbers_at(txn, deletion.pubkey(), d, kind),
            None => Ok(Vec::new()),
        }
    }

    /// The numbers of the events of an author with a `d` and a kind.
    fn numbers_at(
        &self,
        txn: &RoTxn<'_>,
        pubkey: &[u8; 32],
        d: &[u8],
        kind: u16,
    ) -> Result<Vec<u64>, DatabaseError> {
        if d.len() > MAX_D_BYTES {
            return Ok(Vec::new());
        }
        let key = tables::key(&[pubkey, d], &[kind.into()]);
        let Some(found) = self.tables.replace.get_duplicates(txn, &key)? else {
            return Ok(Vec::new());
        };
        found.map(|entry| tables::number_of(entry?.1)).collect()
    }
}

/// Why an event is removed.
#[derive(Clone, Copy, Debug)]
enum Removal {
    Deleted,
    Replaced,
}

/// The summary and the payload of an event, or why the database cannot hold it.
fn encode(event: &Event<'_>) -> Result<(Vec<u8>, Vec<u8>), EncodeError> {
    let (mut summary, mut payload) = (Vec::new(), vec![PLAIN]);
    packed_event::encode(event, &mut summary)?;
    Format::Json.encode(event, &mut payload)?;
    if payload.len() > MAX_EVENT_BYTES {
        return Err(EncodeError::Unsupported(LONG_EVENT));
    }
    let d = event.tags.iter().find(|tag| tag.first().is_some_and(|name| name.to_text() == "d"));
    let d_len = d.and_then(|tag| tag.get(1)).map_or(0, |value| value.to_text().len());
    if (30_000..40_000).contains(&event.kind) && d_len > MAX_D_BYTES {
        return Err(EncodeError::Unsupported(LONG_D));
    }
    Ok((summary, payload))
}

/// The summary that a writer stored.
fn stored_summary(bytes: &[u8]) -> Result<PackedEvent<'_>, DatabaseError> {
    PackedEvent::new(bytes).map_err(|_| heed::Error::Mdb(heed::MdbError::Corrupted).into())
}

/// Whether a deletion may delete an event: one of its author, or a gift wrap to it, and no deletion (NIP-09).
fn may_delete(deletion: &PackedEvent<'_>, other: &PackedEvent<'_>) -> bool {
    if u64::from(other.kind()) == DELETION {
        return false;
    }
    let is_to_author =
        |tag: packed_event::IndexedTag<'_>| tag.name == b'p' && tag.value == &deletion.pubkey()[..];
    other.pubkey() == deletion.pubkey() || (is_gift_wrap(other) && other.tags().any(is_to_author))
}

/// Gift wraps are signed by a key of one use, so their recipient may delete them (NIP-59).
fn is_gift_wrap(event: &PackedEvent<'_>) -> bool {
    matches!(event.kind(), 1_059 | 21_059)
}

/// Version of the database, byte order of its machine, count of changes of the filters of negentropy.
const META: [u64; 3] = [tables::VERSION, 1, 1];

/// Maximum length in bytes of a tag that strfry indexes.
const MAX_D_BYTES: usize = 255;
const LONG_D: &str =
    "a tag `d` longer than 255 bytes, which strfry does not keep apart from others";
const LONG_EVENT: &str = "an event longer than 16 MiB";

/// Number of events that are visited in a transaction.
const TRANSACTION_EVENTS: u64 = 512;

/// Number of tables.
const MAX_TABLES: u32 = 16;
/// Maximum size of a database that is written: 1 TiB.
const MAX_BYTES: usize = 1 << 40;
