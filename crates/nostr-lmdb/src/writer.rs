//! Writing a database of strfry.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use heed::{Env, RoTxn, RwTxn, WithoutTls};
use kernels::{hex, sha256};
use mapping::lmdb;
use nostr::formats::Format;
use nostr::formats::packed_event::{self, PackedEvent};
use nostr::{EncodeError, Event};

use crate::error::DatabaseError;
use crate::flat;
use crate::payload::PLAIN;
use crate::tables::{self, Address, DELETION, Tables};

/// Writes a new database of strfry, version 3, with all indexes of events.
///
/// As strfry does, it stores an event once, keeps the newest of replaceable and addressable events (NIP-01), and removes and
/// refuses what its author deleted (NIP-09, NIP-59), in whichever order events come. It verifies nothing, as strfry verifies
/// nothing of what it has stored. Payloads are not compressed, and no filter has a negentropy tree.
pub struct StrfryWriter {
    env: Env<WithoutTls>,
    tables: Tables,
    /// Number of the last event.
    last: u64,
    counts: Counts,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored,
    /// It was stored before.
    Duplicate,
    /// A newer event replaces it.
    Replaced,
    /// It is deleted by another event.
    Deleted,
}

/// Numbers of events by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events of the database.
    pub stored: u64,
    /// Events that were stored before.
    pub duplicates: u64,
    /// Events that a newer one replaces, or replaced after they had been stored.
    pub replaced: u64,
    /// Events that another one deletes, or deleted after they had been stored.
    pub deleted: u64,
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

    /// Stores events, in one transaction: what became of each, or why the database cannot hold it.
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

    /// Makes the database durable.
    ///
    /// # Errors
    /// If the system fails.
    pub fn finish(self) -> Result<Counts, DatabaseError> {
        self.env.force_sync()?;
        Ok(self.counts)
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
        let (mut summary, mut payload) = (Vec::new(), vec![PLAIN]);
        let encoded = packed_event::encode(event, &mut summary);
        if let Err(fault) = encoded.and_then(|()| Format::Json.encode(event, &mut payload)) {
            return Ok(Err(fault));
        }
        let packed = stored_summary(&summary)?;
        let outcome = self.exclusion(txn, &packed)?;
        if outcome == Outcome::Stored {
            let replaced = self.replaceable(txn, &packed)?;
            let deleted = self.deleted(txn, &packed)?;
            self.insert(txn, &packed, &summary, &payload)?;
            self.remove_all(txn, replaced, Outcome::Replaced)?;
            self.remove_all(txn, deleted, Outcome::Deleted)?;
        }
        *self.counts.of(outcome) += 1;
        Ok(Ok(outcome))
    }

    /// What becomes of an event, by those that are stored.
    fn exclusion(
        &self,
        txn: &RoTxn<'_>,
        event: &PackedEvent<'_>,
    ) -> Result<Outcome, DatabaseError> {
        if self.number_of_id(txn, event.id())?.is_some() {
            return Ok(Outcome::Duplicate);
        }
        if self.is_deleted(txn, event)? {
            return Ok(Outcome::Deleted);
        }
        if let Some(number) = self.replaceable(txn, event)? {
            let other = self.summary(txn, number)?.unwrap_or_default();
            if age(event) < age(&stored_summary(&other)?) {
                return Ok(Outcome::Replaced);
            }
        }
        Ok(Outcome::Stored)
    }

    /// Whether an event is deleted by its id, or its address at a later time.
    fn is_deleted(&self, txn: &RoTxn<'_>, event: &PackedEvent<'_>) -> Result<bool, DatabaseError> {
        let recipients = event.tags().filter(|tag| is_gift_wrap(event) && tag.name == b'p');
        let by = recipients.map(|tag| tag.value).chain([&event.pubkey()[..]]);
        for pubkey in by {
            if self.tables.deletions.get(txn, &tables::key(&[event.id(), pubkey], &[]))?.is_some() {
                return Ok(true);
            }
        }
        let Some(d) = tables::first_d(event).filter(|_| event.is_addressable()) else {
            return Ok(false);
        };
        let author = hex::encode(event.pubkey());
        let hash = sha256::digest_parts(&[format!("{}:{author}:", event.kind()).as_bytes(), d]);
        for deletion in self.tables.replace_deletions.prefix_iter(txn, &hash[..])? {
            let time = deletion?.0.last_chunk().map(|time| u64::from_ne_bytes(*time));
            if time.is_some_and(|time| time >= event.created_at() as u64) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number of the stored event that this one replaces, or that replaces it.
    fn replaceable(
        &self,
        txn: &RoTxn<'_>,
        event: &PackedEvent<'_>,
    ) -> Result<Option<u64>, DatabaseError> {
        match tables::first_d(event) {
            Some(d) if event.is_replaceable() || event.is_addressable() => {
                self.number_at(txn, event.pubkey(), d, event.kind())
            }
            _ => Ok(None),
        }
    }

    /// The numbers of stored events that this one deletes.
    fn deleted(&self, txn: &RoTxn<'_>, event: &PackedEvent<'_>) -> Result<Vec<u64>, DatabaseError> {
        let mut numbers = Vec::new();
        if u64::from(event.kind()) != DELETION {
            return Ok(numbers);
        }
        for tag in event.tags() {
            let number = match tag.name {
                b'e' => self.number_of_id(txn, tag.value)?,
                b'a' => match Address::of(tag.value, event) {
                    Some(Address { kind, d }) => self.number_at(txn, event.pubkey(), d, kind)?,
                    None => None,
                },
                _ => None,
            };
            let Some(number) = number else { continue };
            let other = self.summary(txn, number)?.unwrap_or_default();
            let other = stored_summary(&other)?;
            let is_earlier = other.created_at() <= event.created_at();
            if may_delete(event, &other) && (tag.name == b'e' || is_earlier) {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    fn insert(
        &mut self,
        txn: &mut RwTxn<'_>,
        event: &PackedEvent<'_>,
        summary: &[u8],
        payload: &[u8],
    ) -> Result<(), DatabaseError> {
        self.last += 1;
        let number = self.last.to_ne_bytes();
        self.tables.summaries.put(txn, &number, summary)?;
        self.tables.payloads.put(txn, &number, payload)?;
        for (index, key) in tables::entries(event) {
            self.tables.index(index).insert(txn, &key, self.last)?;
        }
        Ok(())
    }

    /// Removes events that are stored, and counts them as `outcome` instead.
    fn remove_all(
        &mut self,
        txn: &mut RwTxn<'_>,
        numbers: impl IntoIterator<Item = u64>,
        outcome: Outcome,
    ) -> Result<(), DatabaseError> {
        for number in numbers {
            if self.remove(txn, number)? {
                self.counts.stored -= 1;
                *self.counts.of(outcome) += 1;
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

    /// The number of the event of an author with a `d` and a kind.
    fn number_at(
        &self,
        txn: &RoTxn<'_>,
        pubkey: &[u8; 32],
        d: &[u8],
        kind: u16,
    ) -> Result<Option<u64>, DatabaseError> {
        let found = self.tables.replace.get(txn, &tables::key(&[pubkey, d], &[kind.into()]))?;
        found.map(tables::number_of).transpose()
    }
}

impl Counts {
    fn of(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Stored => &mut self.stored,
            Outcome::Duplicate => &mut self.duplicates,
            Outcome::Replaced => &mut self.replaced,
            Outcome::Deleted => &mut self.deleted,
        }
    }
}

/// The summary that a writer stored.
fn stored_summary(bytes: &[u8]) -> Result<PackedEvent<'_>, DatabaseError> {
    PackedEvent::new(bytes).map_err(|_| heed::Error::Mdb(heed::MdbError::Corrupted).into())
}

/// Of two events of the same address the greater one stays.
fn age<'a>(event: &PackedEvent<'a>) -> (i64, Reverse<&'a [u8; 32]>) {
    (event.created_at(), Reverse(event.id()))
}

/// Whether a deletion may delete an event: one of its author, or a gift wrap to it.
fn may_delete(deletion: &PackedEvent<'_>, other: &PackedEvent<'_>) -> bool {
    let is_to_author =
        |tag: packed_event::IndexedTag<'_>| tag.name == b'p' && tag.value == &deletion.pubkey()[..];
    other.pubkey() == deletion.pubkey() || (is_gift_wrap(other) && other.tags().any(is_to_author))
}

/// Gift wraps are signed by a key of one use, so their recipient may delete them (NIP-59).
fn is_gift_wrap(event: &PackedEvent<'_>) -> bool {
    matches!(event.kind(), 1_059 | 21_059)
}

/// Version of the database, byte order of its machine, count of changes of the filters of negentropy.
const META: [u64; 3] = [3, 1, 1];

/// Number of tables.
const MAX_TABLES: u32 = 16;
/// Maximum size of a database that is written: 1 TiB.
const MAX_BYTES: usize = 1 << 40;
